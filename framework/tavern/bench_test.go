package tavern

import (
	"fmt"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
)

// longChat is a chat of some hundred bytes a message, with the documents of its character.
func longChat(messages, entries int) (Sources, framework.Input) {
	c := card.RoleCard{
		Name: "Mara", Description: strings.Repeat("Captain of the salvage ship Kestrel, grey-eyed and patient. ", 20),
		Personality: "dry humour", Scenario: "Deep space.", MesExample: "{{char}}: \"Never trust a quiet engine.\"",
	}
	book := worldinfo.Source{Name: "lore", Origin: worldinfo.OfCharacter}
	for i := range entries {
		book.Entries = append(book.Entries, card.Entry{
			ID: fmt.Sprint(i), Order: float64(i % 10), Depth: i % 12, Position: card.Position(i % 5),
			Content:  strings.Repeat(fmt.Sprintf("The beacon %d stands on the moon of {{char}}. ", i), 4),
			Constant: i%10 == 0, Key: []string{fmt.Sprintf("beacon %d", i), fmt.Sprintf("灯塔%d号", i), fmt.Sprintf("keeper%d", i)},
		})
	}
	in := framework.Input{Persona: framework.Persona{Name: "Sam"}, User: framework.Message{ID: "u", Text: "Tell me about beacon 7 and keeper21."}}
	for i := range messages {
		m := framework.Message{ID: fmt.Sprint(i), Role: "assistant"}
		if i%2 == 1 {
			m.Role = "user"
		}
		m.Text = fmt.Sprintf("%d: We drift past the wreck and I count the lights again. ", i) +
			strings.Repeat("The corridor is cold, the engine hums, and nobody answers the radio. ", 3) + "我们继续往前走吧。"
		if i%17 == 0 {
			m.Text += fmt.Sprintf(" Is that beacon %d?", i%500)
		}
		in.History = append(in.History, m)
	}
	return Sources{Card: c, Books: []worldinfo.Source{book}}, in
}

func benchmark(b *testing.B, in framework.Input, play Play) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Build(b.Context(), &in, &play); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCold(b *testing.B) {
	s, in := longChat(1000, 500)
	benchmark(b, in, Play{Compiled: Compile(s)})
}

func BenchmarkWarm(b *testing.B) {
	s, in := longChat(1000, 500)
	in.Options.Tokenizer, in.Cache = "o200k_base", framework.NewCache(0)
	benchmark(b, in, Play{Compiled: Compile(s)})
}

func BenchmarkWarmWithBudget(b *testing.B) {
	s, in := longChat(1000, 500)
	in.Options.Tokenizer, in.Cache, in.Options.Context, in.Options.Reserve = "o200k_base", framework.NewCache(0), 64_000, 4000
	benchmark(b, in, Play{Compiled: Compile(s)})
}

// The keys are looked for in the whole chat, with recursion.
func BenchmarkWarmScanOfAll(b *testing.B) {
	s, in := longChat(1000, 500)
	in.Options.Tokenizer, in.Cache = "o200k_base", framework.NewCache(0)
	all := worldinfo.DefaultSettings()
	all.Depth = 1000
	benchmark(b, in, Play{Compiled: Compile(s), WorldInfo: &all})
}
