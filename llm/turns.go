package llm

import (
	"context"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Opening is the user's message in front of a chat that the character begins, for
// models that want the user to speak first.
const Opening = "[Start of the chat]"

// Place tells where a message of a prompt has gone: into the message with that
// index, at a position in its text, in code points.
type Place struct{ Message, At int }

// between stands between the texts of messages that became one.
const between = "\n\n"

// StrictTurns makes a prompt that every chat template takes: at most one system message, at the
// beginning, then user and assistant in turn, beginning with the user. Successive messages of one
// role become one, system messages behind the beginning speak as the user, and where the character
// begins the user says opening first. Calls of tools and their results stay as they are. It changes
// nothing that has this form already. places has the new place of each message.
func StrictTurns(messages []Message, opening string) (strict []Message, places []Place) {
	var texts []*strings.Builder
	var runes []int
	add := func(m Message) Place {
		last := len(strict) - 1
		if last < 0 || strict[last].Role != m.Role || m.usesTools() || strict[last].usesTools() {
			strict, texts, runes = append(strict, m), append(texts, &strings.Builder{}), append(runes, 0)
			last++
		} else {
			texts[last].WriteString(between)
			runes[last] += len(between)
			strict[last].Images = slices.Concat(strict[last].Images, m.Images)
			if strict[last].Name != m.Name {
				strict[last].Name = ""
			}
		}
		at := runes[last]
		texts[last].WriteString(m.Text)
		runes[last] += utf8.RuneCountInString(m.Text)
		return Place{last, at}
	}
	// The chat, behind the system messages; a prompt of nothing else is the user's.
	begun := !slices.ContainsFunc(messages, func(m Message) bool { return m.Role != System })
	for _, m := range messages {
		if m.Role == System && begun {
			m.Role = User
		}
		if m.Role == Assistant && !begun {
			add(Message{Role: User, Text: opening})
		}
		begun = begun || m.Role != System
		places = append(places, add(m))
	}
	for i := range strict {
		strict[i].Text = texts[i].String()
	}
	return strict, places
}

// usesTools reports whether m is a call of tools or a result.
func (m Message) usesTools() bool { return len(m.Calls) > 0 || m.Result != nil }

// WithStrictTurns sends every prompt in the form of StrictTurns.
func WithStrictTurns(gen Generator) Generator {
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		req.Messages, _ = StrictTurns(req.Messages, Opening)
		return gen.Stream(ctx, req)
	})
}
