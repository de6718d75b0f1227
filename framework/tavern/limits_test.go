package tavern

import (
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
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

// A build over the end of a chat counts the messages before it.
func TestTheEndOfAChatIsCountedAsTheWhole(t *testing.T) {
	t.Parallel()
	entry := card.Entry{Constant: true, Content: "late"}
	delay := 30
	entry.Delay = &delay
	s := Sources{
		Card: card.RoleCard{Name: "A"}, Books: bookOf(entry),
		Preset: preset(t, `{"prompts":[{"identifier":"main","content":"{{lastMessageId}} {{allChatRange}}"}],"new_chat_prompt":""}`),
	}
	for _, summary := range []bool{false, true} {
		note := &Note{Text: "note", Position: InChat, Interval: 4}
		in := framework.Input{History: talk(6), User: framework.Message{Text: "Hi"}}
		in.Options.ScanSummary = summary
		if summary {
			in.History = append([]framework.Message{{Role: framework.RoleSummary, Text: "Long ago."}}, in.History...)
		}
		short := strings.Join(lines(build(t, s, in, Play{Note: note})), "\n")
		long := strings.Join(lines(build(t, s, in, Play{Note: note, Before: worldinfo.Before{Messages: 23, Users: 12}})), "\n")
		if !strings.Contains(short, "6 0-6") || !strings.Contains(short, "note") || strings.Contains(short, "late") {
			t.Errorf("without messages before: %s", short)
		}
		if !strings.Contains(long, "29 0-29") || !strings.Contains(long, "note") || !strings.Contains(long, "late") {
			t.Errorf("with messages before: %s", long)
		}
		long = strings.Join(lines(build(t, s, in, Play{Note: note, Before: worldinfo.Before{Messages: 22, Users: 11}})), "\n")
		if strings.Contains(long, "note") || strings.Contains(long, "late") {
			t.Errorf("with messages before: %s", long)
		}
	}
}

// Turns report the entries that lost; previews report all, with their tokens.
func TestOnlyPreviewsExplainEachEntry(t *testing.T) {
	t.Parallel()
	never := card.Entry{Constant: true, Content: "unlucky", UseProbability: true}
	silent, off := card.Entry{Key: []string{"nothing"}, Content: "silent"}, card.Entry{Constant: true, Disable: true, Content: "off"}
	s := Sources{Card: card.RoleCard{Name: "A"}, Books: bookOf(never, silent, off)}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	for explain, want := range map[bool][3]string{false: {"probability"}, true: {"probability", "no_key", "disabled"}} {
		p := build(t, s, in, Play{Explain: explain, Rand: func() float64 { return 0.9 }})
		if got := [3]string{dropped(p, "b.0"), dropped(p, "b.1"), dropped(p, "b.2")}; got != want {
			t.Errorf("explain %v: %v", explain, got)
		}
		for _, d := range p.Dropped {
			if (d.Tokens > 0) != explain {
				t.Errorf("explain %v: %+v", explain, d)
			}
		}
	}
}

// Entries without room are left out at once, not entry by entry.
func TestManyEntriesAreLeftOutAtOnce(t *testing.T) {
	t.Parallel()
	entries := make([]card.Entry, 2000)
	for i := range entries {
		entries[i] = card.Entry{Constant: true, Content: "lore of the castle", Order: float64(i % 7)}
		entries[i].IgnoreBudget = true
	}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	in.Options.Context, in.Options.Reserve = 2000, 500
	counted := 0
	play := Play{Count: func(m llm.Message) int { counted++; return len(m.Text)/4 + 4 }}
	p := build(t, Sources{Card: card.RoleCard{Name: "A"}, Books: bookOf(entries...)}, in, play)
	if len(p.Dropped) == 0 || counted > 200 {
		t.Errorf("%d entries were left out, messages were counted %d times", len(p.Dropped), counted)
	}
}
