package lang

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/index"
)

// Excerpt returns the sentences of text that fit the terms of a question best, in their order and in at most
// room code points; empty if not even one fits. Gaps are marked.
func Excerpt(text string, terms []index.Term, room int) string {
	var parts []string
	for len(text) > 0 {
		end := SentenceEnd(text)
		parts, text = append(parts, text[:end]), text[end:]
	}
	type scored struct {
		at    int
		score float32
	}
	order := make([]scored, len(parts))
	for i, part := range parts {
		has := map[string]bool{}
		for _, t := range index.Terms(part) {
			has[t] = true
		}
		order[i].at = i
		for _, t := range terms {
			if has[t.Text] {
				order[i].score += t.Weight
			}
		}
	}
	slices.SortStableFunc(order, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var chosen []int
	for _, s := range order {
		n := utf8.RuneCountInString(parts[s.at]) + len(gap)
		if n <= room {
			room -= n
			chosen = append(chosen, s.at)
		}
	}
	slices.Sort(chosen)
	return join(parts, chosen)
}

// gap marks omitted sentences. It counts by bytes, so there is always room for it.
const gap = " … "

func join(parts []string, chosen []int) string {
	var b strings.Builder
	for i, at := range chosen {
		if i > 0 && chosen[i-1] != at-1 {
			b.WriteString(gap)
		}
		b.WriteString(parts[at])
	}
	return strings.TrimSpace(b.String())
}

// Pieces are the parts of a text and of excerpts from it that are in one line and without gaps.
func Pieces(excerpt string) []string {
	pieces := strings.Split(strings.ReplaceAll(excerpt, gap, "\n"), "\n")
	for i, piece := range pieces {
		pieces[i] = strings.TrimSpace(piece)
	}
	return pieces
}
