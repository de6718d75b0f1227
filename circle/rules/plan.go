package rules

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"nodest/framework"
)

// Item is something that a character may tell.
type Item struct {
	Text   string
	Source string // card, memory or date
	Ref    string // id of the memory that it comes from
}

// Memory is a memory that the user allows a character to tell of.
type Memory struct{ ID, Text string }

// The parts of a plan.
const (
	planItems    = 6
	planFewest   = 4
	planMemories = 2
	planCard     = 3
	maxSentences = 200 // sentences of a card that are considered
	minSentence  = 12  // bytes
	maxSentence  = 300 // code points of an item
)

// PlanItems returns four to six things that a character may tell on a day: sentences of
// its card, memories, and what the date suggests. It leaves out sentences that mention the
// user or are not prose. date is in the user's zone; seed should be made of the character
// and the day.
func PlanItems(seed uint64, l framework.Language, card []string, shareable []Memory, date time.Time) []Item {
	d := dice(seed, "plan")
	var items []Item
	memories := slices.Clone(shareable)
	shuffle(d, memories)
	for _, m := range memories {
		if text := cut(oneLine(m.Text), maxSentence); text != "" && len(items) < planMemories {
			items = append(items, Item{Text: text, Source: "memory", Ref: m.ID})
		}
	}
	special, dates := datesOf(l, date)
	shuffle(d, dates)
	if special != "" {
		dates = append([]string{special}, dates...)
	}
	sentences := sentencesOf(card)
	shuffle(d, sentences)
	for _, s := range sentences[:min(len(sentences), planCard)] {
		items = append(items, Item{Text: s, Source: "card"})
	}
	items = append(items, Item{Text: dates[0], Source: "date"})
	for _, text := range dates[1:] {
		if len(items) < planFewest {
			items = append(items, Item{Text: text, Source: "date"})
		}
	}
	items = items[:min(len(items), planItems)]
	shuffle(d, items)
	return items
}

func shuffle[T any](d *rand.Rand, s []T) {
	d.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// sentencesOf finds the sentences of a card that a character can tell of.
func sentencesOf(card []string) []string {
	var out []string
	seen := 0
	for _, text := range card {
		for line := range strings.Lines(text[:min(len(text), maxReply)]) {
			for s := range sentencesIn(line) {
				if seen++; seen > maxSentences {
					return out
				}
				if s = oneLine(s); tellable(s) && !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

func sentencesIn(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i, r := range line {
			next := i + len(string(r))
			ends := strings.ContainsRune("。！？", r) ||
				strings.ContainsRune(".!?", r) && (next == len(line) || line[next] == ' ' || line[next] == '\n')
			if !ends {
				continue
			}
			if !yield(line[start:next]) {
				return
			}
			start = next
		}
		yield(line[start:])
	}
}

// tellable reports whether a sentence is prose that does not mention the user.
func tellable(s string) bool {
	small := strings.ToLower(s)
	if len(s) < minSentence || len([]rune(s)) > maxSentence || strings.ContainsAny(s, "{}[]<>|=#*_`\ufffd") ||
		strings.Contains(small, "user") || strings.Contains(s, "用户") || strings.Contains(s, "http") {
		return false
	}
	letters, signs := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters++
		case !unicode.IsSpace(r):
			signs++
		}
	}
	return letters > 5*signs
}
