package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"nodest/index"
	"nodest/memory/lang"
)

// blockTags would begin or end a block of a prompt, also in variants that a model may take for
// them.
var blockTags = regexp.MustCompile(`[<＜﹤]((?:[\s/／∕⁄]|` + lang.Fillers + `)*(?:` +
	anyForm("mem") + `|` + anyForm("websearch") + `|` + anyForm("response_guidelines") + `)[^<>＜＞﹤﹥]*)[>＞﹥]?`)

// anyForm matches an ASCII word in either case, and in full width, with fillers in it.
func anyForm(word string) string {
	var narrow, wide strings.Builder
	for _, r := range word {
		narrow.WriteString(regexp.QuoteMeta(string(r)) + lang.Fillers + `*`)
		wide.WriteString(string(r-'a'+'ａ') + lang.Fillers + `*`)
	}
	return `(?i:` + narrow.String() + `\b|` + wide.String() + `)`
}

// line formats an item for a <mem> block: one line, its tags defused, with the day at its end
// if that is known and not in the text.
func blockLine(text string, day *time.Time) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // they hide tags; joiners shape letters and emoji
			return -1
		}
		return r
	}, text)
	line = blockTags.ReplaceAllString(line, "‹$1›")
	line = lang.Tidy(line)
	if day != nil && !day.IsZero() && !strings.Contains(line, day.Format(time.DateOnly)) {
		line += day.Format(" (2006-01-02)")
	}
	return line
}

// Visible is what the prompt already shows, so that recalling it would only repeat it. The zero
// value hides nothing.
type Visible struct {
	messages []Message
	read     func() *seen
}

type seen struct {
	revisions map[string]bool
	hashes    map[string]bool
	said      map[string][]int32 // messages by term
}

// mostTerms is the share of an item's terms that must be in one visible message.
const mostTerms = 0.95

// VisibleIn is the messages of the effective history; a summary among them counts by its text.
// They are analysed on first use.
func VisibleIn(messages []Message) Visible {
	return Visible{messages, sync.OnceValue(func() *seen { return readSeen(messages) })}
}

func readSeen(messages []Message) *seen {
	v := &seen{revisions: map[string]bool{}, hashes: map[string]bool{}, said: map[string][]int32{}}
	for i, m := range messages {
		if m.RevisionID != "" {
			v.revisions[m.RevisionID] = true
		}
		v.hashes[ContentHash(m.Text)] = true
		said := slices.DeleteFunc(lang.Statements(m.Text), lang.QuestionBegins.MatchString) // a question does not say what it asks for
		for _, t := range index.Terms(strings.Join(said, "\n")) {
			if in := v.said[t]; len(in) == 0 || in[len(in)-1] != int32(i) {
				v.said[t] = append(in, int32(i))
			}
		}
	}
	return v
}

// Has reports whether an item is visible: all messages of one of its sightings are, or its
// words are in one message.
func (v Visible) Has(text string, evidence []Evidence) bool {
	return v.Shows(&Unit{Hash: ContentHash(text), Evidence: evidence}) || v.says(index.Terms(text))
}

// Shows is Has without comparing words.
func (v Visible) Shows(u *Unit) bool {
	if len(v.messages) == 0 {
		return false
	}
	read := v.read()
	switch {
	case read.revisions[u.ID] || u.Hash != "" && read.hashes[u.Hash]:
		return true
	case len(u.Evidence) == 1:
		return read.revisions[u.Evidence[0].RevisionID]
	}
	return len(u.Evidence) > 0 && holds(u.Evidence, func(e Evidence) bool { return read.revisions[e.RevisionID] })
}

func (v Visible) says(terms []string) bool {
	if len(v.messages) == 0 || len(terms) < 2 {
		return false
	}
	counts, said := make([]int, len(v.messages)), v.read().said
	for _, t := range terms {
		for _, i := range said[t] {
			if counts[i]++; float64(counts[i]) >= mostTerms*float64(len(terms)) {
				return true
			}
		}
	}
	return false
}
