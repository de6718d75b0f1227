package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"nodest/index"
	"nodest/memory/lang"
)

// The gate keeps a prompt free of what has nothing to do with the message. It requires evidence
// that means the same in a chat of ten lines and of ten thousand, while the ranking only says
// what fits best. Evidence is counted in words: a word that is in one row is worth 1, more
// common ones less, small talk nothing (small_talk.go).
const (
	leastShare     = 0.27 // of what a question asks for
	leastTold      = 1.3  // of a message that asks nothing
	leastToldShare = 0.1
	leastPublic    = 0.5  // of a text in the circle: one telling word
	leastDay       = 0.5  // of Days.Fit
	leastStand     = 0.06 // by how much the cosine of a vector stands out
	leastSpread    = 4    // in spreads of the cosines below the median
	leastVectors   = 8    // with fewer there is nothing to stand out from
)

// gated reports whether only what passes the gate may be returned.
func (q *Ask) gated() bool { return !q.Everything && !q.Search }

// passes reports whether evidence is sufficient.
func (r *ranking) passes(evidence float32) bool {
	if r.q.Public {
		return evidence >= leastPublic
	}
	share := evidence / max(r.match.Asked, lang.LeastAsked)
	if (r.read.Asks || r.read.Keywords) && evidence >= lang.LeastAsked && share >= leastShare {
		return true
	}
	return evidence >= leastTold && share >= leastToldShare
}

// opens finds the rows that are proven to be related to the message. Without any, nothing is
// returned; with one, a question also gets what passes the floor.
func (r *ranking) opens(v index.View) bool {
	r.proven = map[int]bool{}
	r.echo = echoOf(r.q.Text, r.read.Terms)
	for _, i := range r.rows {
		if r.proves(i) || r.answers(v, i) {
			r.proven[i] = true
		}
	}
	return len(r.proven) > 0
}

// proves reports whether row i passes the gate by itself.
func (r *ranking) proves(i int) bool {
	return r.q.gated() && (r.passes(r.match.Evidence[i]) || r.ofTheDay(i) || r.standsOut(i) || r.givesProperty(r.entries[i], i))
}

// answers reports whether row i follows a question that passes the gate.
func (r *ranking) answers(v index.View, i int) bool {
	before := v.Neighbour(i, -1)
	b := entryAt(v, before)
	return b != nil && b.traits.Asks && b.Speaker != r.entries[i].Speaker && r.passes(r.match.Evidence[before])
}

// admits reports whether rows that only pass the floor may be returned.
func (r *ranking) admits() bool { return !r.q.gated() || r.read.Asks || r.read.Keywords }

// idle reports whether a unit says nothing: the greeting of another chat, or only questions.
func (r *ranking) idle(e *entry) bool {
	return e.Layer == Exchange && (r.greets(e) || e.onlyAsks())
}

// ofTheDay reports whether a question is about the day of row i: about that very day, or about
// a longer time and nothing else, or about something that is in the row. Small talk ("How was
// today?") is about today too, so then the question must be about the user.
func (r *ranking) ofTheDay(i int) bool {
	fit := r.of[sigDay][i]
	if !r.read.Asks || fit < leastDay {
		return false
	}
	vague, present := false, true
	for _, d := range r.read.Days {
		vague = vague || !d.Exact()
		present = present && d.Holds(r.q.Now)
	}
	if present && !r.mine {
		return false
	}
	return !vague && !present && fit == 1 || r.match.Asked < lang.LeastAsked || r.match.Evidence[i] >= lang.LeastAsked/2
}

// standsOut reports whether the model finds row i much nearer than others.
func (r *ranking) standsOut(i int) bool {
	return r.standsOutFrom > 0 && r.of[sigVector][i] >= r.standsOutFrom
}

func (r *ranking) givesProperty(e *entry, i int) bool {
	return r.read.Properties != 0 && r.of[sigRow][i] > 0 && e.gives(r.q.Names)&r.read.Properties != 0
}

// greets reports whether a unit is the greeting of another chat.
func (r *ranking) greets(e *entry) bool {
	return e.Layer == Exchange && e.Speaker == lang.RoleCharacter && e.Order == 1 && (r.q.Here.ConversationID == "" || e.Conversation != r.q.Here.ConversationID)
}

// echo is what the message itself says.
type echo struct {
	hash  string
	terms map[string]bool
}

func echoOf(text string, terms []index.Term) echo {
	e := echo{ContentHash(text), make(map[string]bool, len(terms))}
	for _, t := range terms {
		e.terms[t.Text] = true
	}
	return e
}

// echoes reports whether a row only repeats the message. After a question, a statement in its
// words may be the answer.
func (r *ranking) echoes(e *entry, words []string) bool {
	switch {
	case e.Layer == Fact:
		return false
	case e.Hash == r.echo.hash && e.Hash != "":
		return true
	case r.read.Asks || r.read.Keywords:
		return false
	}
	return !slices.ContainsFunc(words, func(t string) bool { return !r.echo.terms[t] && lang.TellsSomething(t) })
}

func (e *entry) onlyAsks() bool {
	return knownOnce(&e.asksOnly, func() bool { return lang.OnlyAsks(e.Text) })
}

// knownOnce returns the result of of, and remembers it.
func knownOnce(known *atomic.Uint32, of func() bool) bool {
	const yes, no = 1, 2
	if known.Load() == 0 {
		answer := uint32(no)
		if of() {
			answer = yes
		}
		known.Store(answer)
	}
	return known.Load() == yes
}

// At most namingRows rows are searched for the name, of a word that is in at most mostNamings.
const (
	namingRows  = 64
	mostNamings = 2000
)

var (
	// beginning are the first words of sentences, whose capital means nothing.
	beginning = regexp.MustCompile(`(?:^|[.!?…\n][\s"”’]*)(\p{Lu}\p{Ll}+)`)
	// naming is how a name is stated.
	naming = regexp.MustCompile(`(?i)\b(?:called|named|name is|name's) (\p{L}+)|(?:叫[做作]?|名字是)([\p{Han}·]{2,3})(?:$|[\p{P}\s的])`)
	// noName is what follows 叫 and is no name.
	noName = regexp.MustCompile(`^(?:[你您他她它我了过不停好苦人妈爸一几个来去着得车醒]|外卖|什么|大家|滴滴|快递|出租)`)
)

// recognise treats words of a statement as names if the memory knows them as such: first words
// of sentences, and words in scripts without capitals.
func recognise(q *lang.Question, v index.View, text string) {
	if !q.States {
		return
	}
	begins := map[string]bool{}
	for _, m := range beginning.FindAllStringSubmatch(text, -1) {
		if w := strings.ToLower(m[1]); !lang.TimeWords[w] {
			for _, t := range index.Terms(w) {
				begins[t] = true
			}
		}
	}
	q.Terms = slices.Clone(q.Terms)
	for i := range q.Terms {
		t := &q.Terms[i]
		dense := t.Text[0] >= utf8.RuneSelf && utf8.RuneCountInString(t.Text) > 1
		if (dense && !t.Extra && t.Evidence > lang.ProvesNothing || t.Evidence == 1) && isKnownName(v, t.Text, begins[t.Text]) {
			t.Evidence = lang.ProvesName
		}
	}
}

// isKnownName reports whether a row states that a term is a name, or, with capitals, has it
// capitalised inside a sentence.
func isKnownName(v index.View, term string, capitals bool) bool {
	rows, _ := v.Having(term, mostNamings)
	return slices.ContainsFunc(rows[:min(len(rows), namingRows)], func(row int) bool {
		text := entryAt(v, row).Text
		is := func(name string) bool { return slices.Contains(index.Terms(strings.ToLower(name)), term) }
		for _, m := range naming.FindAllStringSubmatch(text, -1) {
			if m[1] != "" && is(m[1]) || m[2] != "" && strings.HasPrefix(m[2], term) && !noName.MatchString(m[2]) {
				return true
			}
		}
		return capitals && slices.ContainsFunc(lang.Named.FindAllStringSubmatch(text, -1), func(m []string) bool { return is(m[1]) })
	})
}
