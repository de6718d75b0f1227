package lang

import (
	"slices"
	"testing"
	"time"
)

// TestTheKindOfAnswerIsOptional has questions for a kind of thing: the word for the kind is required only if the
// question has nothing else, and a pair of characters always, because a row may share parts of it.
func TestTheKindOfAnswerIsOptional(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ask      string
		optional []string // terms that a row need not have
		ofKind   bool     // it asks for nothing but the kind
	}{
		{"Which instrument do I practise before breakfast?", []string{"instrument"}, false},
		{"What kind of cheese do I avoid in restaurants?", []string{"chees"}, false},
		{"Which instrument do I play?", nil, true},
		{"What did my grandmother knit for the harbour fair?", nil, false},
		{"我早饭前练什么乐器？", nil, false},
	} {
		q := ReadQuery(c.ask, Names{}, time.Time{})
		var optional []string
		for _, term := range q.Terms {
			if term.Extra && !isDenseTerm(term.Text) {
				optional = append(optional, term.Text)
			}
			if !term.Extra && slices.Contains(c.optional, term.Text) {
				t.Errorf("%q requires %q", c.ask, term.Text)
			}
		}
		if !slices.Equal(optional, c.optional) || q.OfKind != c.ofKind {
			t.Errorf("%q: optional %q, want %q; asks only for the kind: %v, want %v", c.ask, optional, c.optional, q.OfKind, c.ofKind)
		}
	}
}

// TestOnlyAPartnerIsLeft has lines about what somebody left: a place, a firm or an umbrella ends no relationship.
func TestOnlyAPartnerIsLeft(t *testing.T) {
	t.Parallel()
	partner := "User's girlfriend is called Odile"
	for said, ends := range map[string]bool{
		"I left my girlfriend in March.": true, "I broke up with Odile.": true, "I left Vodafone for a cheaper one.": false,
		"I left Norwich last year.": false, "I left my umbrella at the baker's.": false,
	} {
		over := false
		for _, s := range (Names{}).Statements(Line{Role: RoleUser, Text: said}) {
			over = over || s.Ends && Ends(s.Text, partner)
		}
		if over != ends {
			t.Errorf("%q ends that %q: %v, want %v", said, partner, over, ends)
		}
	}
}
