package framework

import (
	"embed"
	"slices"

	"nodest/card"
	"nodest/internal/lexicon"
	"nodest/llm"
)

// words are the built-in texts of a prompt in one language. The opening is in turns.go.
type words struct {
	Setting, SettingName    string // introduces a user's setting; name of one that has none
	Memories, Web, Passages string // headings of the blocks of what was found

	// Guidelines by what was found. Each line asks for one thing. The recount lines
	// also ask for a <mem> block in which the character recalls the memories.
	MemoriesUsed, MemoriesRecounted, WebUsed, BothRecounted, PassagesUsed []string

	Data, DataWithPassages string            // in every request, but not in the text that the app's users know
	Rewrite                string            // precedes an instruction for rewriting the reply
	Continues, Impersonate string            // instructions to go on, and to write for the user
	Prompts                map[string]string // texts of the built-in preset by identifier, where they differ from those in package card

	Clock struct {
		Date, Time, Now     string    // layouts of package time
		Weekdays            [7]string // in the place of the English ones
		JustNow, FewSeconds string
		Units               [5][2]string // units of durations, for one and for many
	}
}

//go:embed words
var wordFiles embed.FS

// wordsIn has the words by language. The Chinese ones are those of the NodeST app, where it has any in Chinese.
var wordsIn = lexicon.Texts[Language, words](wordFiles)

// words returns the built-in words in a language; English ones for any other.
func (l Language) words() *words {
	if w := wordsIn[l]; w != nil {
		return w
	}
	return wordsIn[English]
}

// instruction is the last message of a request that asks for a task; "" = none.
func (w *words) instruction(task llm.Task) string {
	switch task {
	case llm.Continue:
		return w.Continues
	case llm.Impersonate:
		return w.Impersonate
	}
	return ""
}

// guidelines are the lines that say how to use what was found.
func (o *Options) guidelines(memories, web bool) []string {
	w := o.Language.words()
	switch {
	case memories && web && o.Recount:
		return w.BothRecounted
	case memories && web:
		return slices.Concat(w.MemoriesUsed, w.WebUsed)
	case memories && o.Recount:
		return w.MemoriesRecounted
	case memories:
		return w.MemoriesUsed
	case web:
		return w.WebUsed
	}
	return nil
}

// MemoryHeadings are the headings of the block of memories in all languages. A
// model may repeat them without the tags.
func MemoryHeadings() []string {
	return []string{wordsIn[Chinese].Memories, wordsIn[English].Memories}
}

// BuiltInPreset is the preset of the NodeST app in a language. It ends with
// instructions behind the chat that say the user's message once more; without
// tail they are left out, which is how a character without a preset is played.
func BuiltInPreset(l Language, tail bool) card.Preset {
	p, _ := card.ParsePreset(nil) // a missing document is never an error
	for i := range p.Prompts {
		if text, ok := l.words().Prompts[p.Prompts[i].Identifier]; ok {
			p.Prompts[i].Content = text
		}
	}
	if tail {
		return p
	}
	chat := slices.IndexFunc(p.Order, func(o card.OrderItem) bool { return o.Identifier == defaultHistoryID })
	behind := p.Order[chat+1:]
	p.Prompts = slices.DeleteFunc(p.Prompts, func(q card.Prompt) bool {
		return slices.ContainsFunc(behind, func(o card.OrderItem) bool { return o.Identifier == q.Identifier })
	})
	p.Order = p.Order[:chat+1]
	return p
}
