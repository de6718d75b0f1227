package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/memory"
	"nodest/memory/lang"
)

// window is the input of one run.
type window struct {
	Names   lang.Names
	Earlier []memory.Turn // to understand the window by; never a source
	Turns   []memory.Turn
}

// Sizes of a window, in code points as a prompt shows them.
const (
	earlierTurns = 20
	contextTurns = 2     // how many of the earlier ones a prompt shows
	windowSize   = 12000 // the text beyond it waits for the next run
	leastTurns   = 5     // but so many are read at once, because each run costs calls of the model
	largestSize  = 48000 // unless they are larger than this
)

// nextWindow returns the turns after upTo, with the earlier ones, and the seq up to which they reach. Turns that are too many for one run are left for the next.
func nextWindow(turns []memory.Turn, upTo int64, names lang.Names) (w window, until int64) {
	w.Names = names
	until = upTo
	first := slices.IndexFunc(turns, func(t memory.Turn) bool { return t.To() > upTo })
	if first < 0 {
		first = len(turns)
	}
	w.Earlier = turns[max(0, first-earlierTurns):first]
	size := 0
	for i := first; i < len(turns); i++ {
		for _, m := range turns[i].Messages {
			size += min(utf8.RuneCountInString(m.Text), longestShown)
		}
		if i > first && (size > largestSize || size > windowSize && i >= first+leastTurns) {
			break
		}
		w.Turns = turns[first : i+1]
		until = max(until, turns[i].To())
	}
	return w, until
}

// dense reports whether the window is mostly in a script without spaces; its facts must be too.
func (w window) dense() bool {
	var b strings.Builder
	for _, m := range w.all() {
		b.WriteString(m.Text)
	}
	return lang.MostlyCJK(b.String())
}

// byRules finds statements without a model, in the languages that have rules for them: what users say of
// themselves in plain first-person sentences, and what the character promises. Questions,
// quotations, conditions, hearsay, jokes and played scenes give none.
func (w window) byRules() []candidate {
	var out []candidate
	lines, from := w.lines()
	said := w.Names.StatementsIn(lines)
	for i, m := range w.all() {
		for _, f := range said[from+i] {
			c := candidate{
				Text: f.Text, Subject: f.Subject, Kind: f.Kind, Importance: f.Importance, Origin: memory.ByRule,
				Corrects: lang.Corrects(f.Text, lines[from+i:from+i+1]), Ends: f.Ends,
			}
			c.source([]memory.Message{m})
			c.date("", []memory.Message{{Role: m.Role, Text: f.Text}})
			out = append(out, c)
		}
	}
	return out
}

// lines returns the earlier lines and those of the window, and where these begin.
func (w window) lines() (lines []lang.Line, from int) {
	earlier := memory.Lines(messagesOfTurns(w.Earlier))
	return append(earlier, memory.Lines(w.all())...), len(earlier)
}

// played reports whether the user said what is in sources only in a scene that is played.
func (w window) played(sources []memory.Message) bool {
	lines, from := w.lines()
	played := lang.Played(lines)
	said, inPlay := 0, 0
	for i, m := range w.all() {
		if m.Role != lang.RoleUser || !slices.ContainsFunc(sources, func(s memory.Message) bool { return s.Evidence == m.Evidence }) {
			continue
		}
		if said++; played[from+i] {
			inPlay++
		}
	}
	return said > 0 && said == inPlay
}
