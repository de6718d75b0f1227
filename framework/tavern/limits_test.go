package tavern

import (
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/llm"
)

// size is the length of all messages of a prompt, in bytes.
func size(p *framework.Prompt) (n int) {
	for _, m := range p.Messages {
		n += len(m.Text)
	}
	return n
}

func TestPresetsMakeNoTextOfAnySize(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lore ", 20_000)
	marks := preset(t, `{"prompts":[{"identifier":"main","content":"M"}],"wi_format":"`+strings.Repeat("{0}", 20_000)+`","continue_nudge_prompt":"`+
		strings.Repeat("{{lastchatmessage}}", 20_000)+`"}`)
	books := bookOf(card.Entry{Constant: true, Content: long})
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	if n := size(build(t, Sources{Card: card.RoleCard{Name: "A"}, Preset: marks, Books: books}, in, Play{})); n > 2*macro.MaxText {
		t.Errorf("a frame of world info made %d bytes", n)
	}
	in = framework.Input{
		History:     []framework.Message{{Role: "assistant", Text: long}},
		Instruction: &framework.Instruction{Task: llm.Continue},
	}
	if n := size(build(t, Sources{Card: card.RoleCard{Name: "A"}, Preset: marks}, in, Play{})); n > 2*macro.MaxText {
		t.Errorf("a nudge made %d bytes", n)
	}
}
