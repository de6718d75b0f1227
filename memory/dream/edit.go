package dream

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

func lineID(n int64) string { return "L" + strconv.FormatInt(n, 10) }

// edited returns the lines of a text that the user wrote in place of those of d. A line that is
// unchanged stays as it is, also its author; one that stands in the place of another keeps its id
// and evidence, and is the user's.
func (d *Document) edited(text string, now time.Time) *Document {
	next := d.clone()
	next.Author, next.RunID = ByUser, ""
	var texts []string
	if text != "" {
		texts = strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	}
	next.Lines = make([]Line, 0, len(texts))
	from, to := 0, 0
	for _, p := range append(pairsOf(d.Lines, texts), pair{len(d.Lines), len(texts)}) {
		for ; to < p.to; to++ {
			l := Line{Text: texts[to], Author: ByUser, At: now}
			if from < p.from {
				l.ID, l.Evidence = d.Lines[from].ID, d.Lines[from].Evidence
				from++
			} else {
				l.ID = next.next()
			}
			next.Lines = append(next.Lines, l)
		}
		if p.from < len(d.Lines) {
			next.Lines = append(next.Lines, d.Lines[p.from])
		}
		from, to = p.from+1, p.to+1
	}
	return next
}

// same reports whether two versions have the same lines.
func same(a, b []Line) bool {
	return slices.EqualFunc(a, b, func(x, y Line) bool { return x.ID == y.ID && x.Text == y.Text && x.Author == y.Author })
}

// pair is a line that a text has unchanged, by both places.
type pair struct{ from, to int }

// pairsOf returns a longest common subsequence of lines and texts.
func pairsOf(lines []Line, texts []string) (pairs []pair) {
	length := make([][]int, len(lines)+1)
	for i := range length {
		length[i] = make([]int, len(texts)+1)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for j := len(texts) - 1; j >= 0; j-- {
			if lines[i].Text == texts[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(lines) && j < len(texts); {
		switch {
		case lines[i].Text == texts[j]:
			pairs = append(pairs, pair{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
