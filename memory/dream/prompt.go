package dream

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/framework"
	"nodest/internal/lexicon"
	"nodest/internal/op"
	"nodest/memory"
)

//go:embed prompts
var promptFiles embed.FS

var (
	promptsChinese = lexicon.Prompts(promptFiles, "prompts/zh.txt")
	promptsEnglish = lexicon.Prompts(promptFiles, "prompts/en.txt")
)

// promptsIn are the built-in words of prompts in a language.
func promptsIn(language framework.Language) map[string]string {
	if language == framework.Chinese {
		return promptsChinese()
	}
	return promptsEnglish()
}

// MaxInPrompt is the length of the notes of a prompt, in code points, without headings.
const MaxInPrompt = 2000

// ForPrompt returns what a prompt has of the documents of a memory, on a branch.
func (s *Service) ForPrompt(ctx context.Context, userID, characterID string, here memory.Place, language framework.Language) (framework.Notes, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (framework.Notes, error) {
		all, err := tx.MemoryDocuments(characterID)
		if err != nil || len(all) == 0 {
			return framework.Notes{}, err
		}
		all = slices.DeleteFunc(all, func(d *Document) bool { return d.Path == Archive })
		ByOrder(all)
		counts, err := linesShown(tx, &here, all...)
		if err != nil {
			return framework.Notes{}, err
		}
		return notesOf(all, counts, language), nil
	})
}

// notesOf writes documents for a prompt. Each has an equal part of the room, and what one leaves
// goes to those behind it. Of a document that is longer, its headings go first, then the oldest lines
// that the user did not write. It is the same as long as the documents are.
func notesOf(documents []*Document, counts [][]bool, language framework.Language) framework.Notes {
	words := promptsIn(language)
	notes := framework.Notes{Heading: words["heading"]}
	room := MaxInPrompt
	for i, d := range documents {
		lines := fitting(d, counts[i], room/(len(documents)-i))
		if len(lines) == 0 {
			continue
		}
		text := "[" + cmp.Or(words[d.Path], strings.TrimSuffix(d.Path, ".md")) + "]"
		for _, l := range lines {
			room -= utf8.RuneCountInString(l)
			text += "\n- " + l
		}
		notes.Documents = append(notes.Documents, framework.Memory{ID: d.Path, Text: text})
	}
	return notes
}

// fitting returns the lines of a document that count and fit a room, in their order.
func fitting(d *Document, counts []bool, room int) []string {
	type candidate struct {
		at   int
		text string
	}
	var all []candidate
	for i := range d.Lines {
		text := memory.PromptLine(strings.TrimLeft(d.Lines[i].Text, "-*• \t"))
		if text != "" && counts[i] && !d.Lines[i].isStructure() {
			all = append(all, candidate{i, text})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		p, q := &d.Lines[a.at], &d.Lines[b.at]
		if p.Author != q.Author {
			return cmp.Compare(q.Author, p.Author) // "user" before "dream"
		}
		return q.At.Compare(p.At)
	})
	var kept []candidate
	for _, c := range all {
		if size := utf8.RuneCountInString(c.text); size <= room {
			kept, room = append(kept, c), room-size
		}
	}
	slices.SortFunc(kept, func(a, b candidate) int { return a.at - b.at })
	lines := make([]string, len(kept))
	for i, c := range kept {
		lines[i] = c.text
	}
	return lines
}
