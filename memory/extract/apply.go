package extract

import (
	"cmp"
	"slices"
	"time"

	"nodest/memory"
	"nodest/memory/lang"
)

// Why a decision is not carried out; see also candidates (run.go) and package lang.
const (
	reasonForgotten   = "the user asked to forget it"
	reasonKnownHere   = "already known from this message"
	reasonOlder       = "older than the current memory"
	reasonUnfounded   = "not supported by the messages"
	reasonRepeated    = "was just said again"
	reasonSuggested   = "already suggested"
	reasonEndsNothing = "ends nothing that is known"
	reasonIdentity    = "contradicts an earlier statement about someone's identity"
)

type operation string

const (
	opAdd     operation = "add"     // New is stored
	opReplace operation = "replace" // New is stored as the next version of OldID, or of Old, which is superseded
	opRetire  operation = "retire"  // OldID is retired; it can come back
	opSeen    operation = "seen"    // New is OldID with its count, time and evidence brought up to date
	opSuggest operation = "suggest" // Suggestion is put to the user
	opDrop    operation = "drop"    // nothing is stored; Reason says why
)

// change is one thing that a run does. New has no ID if it is a new row.
type change struct {
	Op         operation
	OldID      string
	Old        *memory.Memory // only in a replacement: the New of an earlier change of this run
	New        *memory.Memory
	Suggestion *memory.Suggestion
	EndedBy    []memory.Evidence // the evidence of a retirement
	Reason     string            // why a statement is dropped
}

// basis is the input of apply.
type basis struct {
	Active     []memory.Memory // the memories of the scope that count, in a fixed order
	Hidden     []memory.Memory // active ones whose texts are not shown: they count again when they are said again
	Candidates []candidate
	Decisions  []decision // none = by rule
	Tombstones []memory.Tombstone
	Suggested  map[string]bool // Suggestion.Key of all that were ever made; nil = none
	Similar    similarity
	Names      lang.Names
	Now        time.Time
}

// plan is what a run does, in order. A plan that would retire more than a fifth of the active
// memories is held: all of it is suggested to the user instead.
type plan struct {
	Changes []change
	Held    bool
}

// retireShare of the active memories may be retired by one run, but always one.
const retireShare = 0.2

// apply turns candidates and decisions into changes. It trusts neither: a statement that is
// known word for word is only counted, whatever the model says; a changed memory gets a new
// version and a retired one stays readable; what the user pinned, locked or wrote is never
// changed; what they had forgotten is not stored again; a candidate without a decision goes by
// the rules, so that none is lost. It is a pure function.
func apply(b basis) plan {
	a := &applying{basis: b, byID: map[string]*memory.Memory{}, byHash: map[string]*memory.Memory{}, gone: map[string]bool{},
		again: map[string]int64{}, done: make([]bool, len(b.Candidates)), suggested: map[string]bool{}}
	for i := range b.Hidden {
		a.byHash[memory.HashOf(&b.Hidden[i])] = &b.Hidden[i]
	}
	for i := range b.Active {
		if m := &b.Active[i]; m.Status == memory.Active {
			a.byID[m.ID], a.byHash[memory.HashOf(m)] = m, m
			a.active++
		}
	}
	for i := range b.Candidates {
		a.known(i)
	}
	for _, d := range b.Decisions {
		a.decide(d)
	}
	for i := range b.Candidates {
		if !a.done[i] {
			a.rule(i)
		}
	}
	return plan{Changes: a.changes, Held: a.retired > max(1, int(float64(a.active)*retireShare))}
}

type applying struct {
	basis
	byID, byHash    map[string]*memory.Memory
	gone            map[string]bool  // replaced or retired in this run
	again           map[string]int64 // memory that was said again → the last seq that says so
	done            []bool           // candidates that are dealt with
	added           []*memory.Memory
	suggested       map[string]bool
	changes         []change
	active, retired int
}

func (a *applying) do(c change) { a.changes = append(a.changes, c) }

func (a *applying) drop(reason string) { a.do(change{Op: opDrop, Reason: reason}) }

// known handles candidates without a decision: forgotten, or known word for word.
func (a *applying) known(i int) {
	c := &a.Candidates[i]
	hash := lang.ContentHash(c.Text)
	m := a.byHash[hash]
	switch {
	case m != nil:
		a.seen(i, m)
	case a.buried(c.Text, c.Evidence):
		a.done[i] = true
		a.drop(reasonForgotten)
	}
}

func (a *applying) buried(text string, evidence []memory.Evidence) bool {
	return memory.IsBuried(a.Tombstones, text, evidence)
}

// seen counts that a candidate repeats m.
func (a *applying) seen(i int, m *memory.Memory) {
	c := &a.Candidates[i]
	a.done[i] = true
	if last := c.last(); last > a.again[m.ID] {
		a.again[m.ID] = last
	}
	evidence, more := memory.WithSighting(m.Evidence, c.Evidence)
	if !more {
		a.drop(reasonKnownHere)
		return
	}
	next := *m
	next.Evidence, next.SeenCount, next.LastSeenAt = evidence, m.SeenCount+1, memory.LaterOf(m.LastSeenAt, a.saidAt(c))
	for at := range a.changes { // twice in one run is one change
		if ch := &a.changes[at]; ch.Op == opSeen && ch.OldID == m.ID {
			ch.New.Evidence, _ = memory.WithSighting(ch.New.Evidence, c.Evidence)
			ch.New.LastSeenAt = memory.LaterOf(ch.New.LastSeenAt, next.LastSeenAt)
			return
		}
	}
	a.do(change{Op: opSeen, OldID: m.ID, New: &next})
}

// decide carries out one decision of the model, if it may.
func (a *applying) decide(d decision) {
	if d.Candidate >= len(a.Candidates) {
		d.Candidate = -1
	}
	target := a.byID[d.Target]
	if target != nil && a.gone[target.ID] {
		target = nil
	}
	if d.Event == memory.EventDelete {
		a.delete(d, target)
		return
	}
	switch {
	case d.Candidate >= 0:
		a.decideOn(&a.Candidates[d.Candidate], d, target)
	case d.Event != memory.EventNone: // a NONE without a candidate repeats what is stored
		a.drop(lang.ReasonUnsupported)
	}
}

// decideOn carries out a decision about a candidate, other than DELETE.
func (a *applying) decideOn(c *candidate, d decision, target *memory.Memory) {
	switch {
	case a.done[d.Candidate]:
		if d.Event == memory.EventUpdate && target != nil && a.isThere(c, target) {
			a.delete(d, target)
		}
	case d.Event == memory.EventNone:
		if target != nil && sayTheSame(c, target) {
			a.seen(d.Candidate, target)
		} // else it goes by the rules
	case d.Event == memory.EventAdd || target == nil || !related(c, target):
		a.add(d.Candidate)
	default:
		a.update(d.Candidate, target, d.Text)
	}
}

// isThere reports whether the new text of target is known already.
func (a *applying) isThere(c *candidate, target *memory.Memory) bool {
	return a.byHash[lang.ContentHash(c.Text)] != nil && (lang.SameSlot(c.Text, target.Text) || lang.Opposite(c.Text, target.Text))
}

// sayTheSame checks a NONE: most of the candidate is in m, and nothing in it differs.
func sayTheSame(c *candidate, m *memory.Memory) bool {
	share, _ := lang.SaidIn(m.Text).Share(lang.PiecesOf(c.Text))
	return share >= lang.EnoughOfClause && !lang.Differ(c.Text, m.Text) && !lang.SameSlot(c.Text, m.Text)
}

// related checks an UPDATE and a DELETE: both are about one thing, or state one property.
func related(c *candidate, m *memory.Memory) bool {
	if lang.SameSlot(c.Text, m.Text) || lang.SaidIn(m.Text).Shares(lang.PiecesOf(c.Text)) {
		return true
	}
	if c.Subject != m.Subject || c.Kind != m.Kind || c.Kind != lang.KindProfile {
		return false
	}
	here, there := lang.PropertyOf(c.Text), lang.PropertyOf(m.Text)
	return here != "" && here == there
}

// add stores a candidate, unless this run has stored the same. If it contradicts something that
// this run has stored, it is its next version.
func (a *applying) add(i int) {
	c := &a.Candidates[i]
	a.done[i] = true
	hash := lang.ContentHash(c.Text)
	next := a.memory(c)
	for at, m := range a.added {
		switch {
		case memory.HashOf(m) == hash || a.Similar(m.Text, c.Text) >= sameText && !lang.Differ(m.Text, c.Text) && lang.HoldsWords(m.Text, c.Text):
			m.Evidence, _ = memory.WithSighting(m.Evidence, c.Evidence)
			a.drop(reasonDuplicate)
			return
		case m.Subject != c.Subject || !lang.Ends(c.Text, m.Text) && (m.Kind != c.Kind || !lang.Opposite(c.Text, m.Text)):
			continue
		case older(c, m):
			a.drop(reasonOlder)
			return
		case identity(m) && !c.Corrects && !lang.Aged(c.Text, m.Text):
			a.drop(reasonIdentity)
			return
		}
		next.Version, next.SeenCount, next.Importance = m.Version+1, m.SeenCount+1, max(next.Importance, m.Importance)
		a.added[at] = next
		a.do(change{Op: opReplace, Old: m, New: next})
		return
	}
	a.added = append(a.added, next)
	a.do(change{Op: opAdd, New: next})
	a.retireRest(c, a.left())
}

func (a *applying) memory(c *candidate) *memory.Memory {
	m := &memory.Memory{
		Version: 1, Text: c.Text, Subject: c.Subject, Kind: c.Kind, Importance: c.Importance, EventTime: c.EventTime,
		Evidence: slices.Clone(c.Evidence), Origin: c.Origin, Standing: memory.Standing{Status: memory.Active}, Sightings: memory.Sightings{SeenCount: 1, LastSeenAt: a.saidAt(c)},
		ContentHash: lang.ContentHash(c.Text), CreatedAt: a.Now, UpdatedAt: a.Now,
	}
	if len(c.Evidence) > 0 {
		m.ConversationID = c.Evidence[0].ConversationID
	}
	return m
}

func (a *applying) saidAt(c *candidate) time.Time {
	if c.At.IsZero() {
		return a.Now
	}
	return c.At
}

// update replaces target by a new version, or suggests it.
func (a *applying) update(i int, target *memory.Memory, text string) {
	c := &a.Candidates[i]
	a.done[i] = true
	switch {
	case older(c, target):
		a.drop(reasonOlder)
		return
	case a.again[target.ID] > c.last():
		a.drop(reasonRepeated)
		return
	}
	next := a.memory(c)
	if a.mayMerge(text, c, target) {
		next.Text, next.ContentHash = text, lang.ContentHash(text)
		for _, e := range target.Evidence {
			if e.Sighting == 0 && len(next.Evidence) < memory.MaxEvidence && !slices.Contains(next.Evidence, e) {
				next.Evidence = append(next.Evidence, e)
			}
		}
	}
	other := a.byHash[next.ContentHash]
	switch {
	case other == target:
		a.done[i] = false
		a.seen(i, target)
	case target.Guarded():
		a.suggest(memory.Suggestion{MemoryID: target.ID, Event: memory.EventUpdate, Text: next.Text, Reason: "replaced by a newer statement", Evidence: c.Evidence})
	case other != nil && !a.gone[other.ID]: // the fact that it would become is there already
		a.seen(i, other)
		a.retire(target, c.Evidence)
	default:
		next.RootID, next.Version, next.SeenCount = cmp.Or(target.RootID, target.ID), target.Version+1, target.SeenCount+1
		next.Importance = max(next.Importance, target.Importance)
		a.gone[target.ID] = true
		a.added = append(a.added, next)
		a.do(change{Op: opReplace, OldID: target.ID, New: next})
	}
}

// mayMerge checks the text that the model wrote for an update: it may join the candidate and
// the old statement and nothing else, and must contain the candidate.
func (a *applying) mayMerge(text string, c *candidate, old *memory.Memory) bool {
	hash := lang.ContentHash(text)
	if text == "" || hash == lang.ContentHash(c.Text) || hash == memory.HashOf(old) || len([]rune(text)) > longestCandidate || lang.LooksLikeMarkup(text) ||
		lang.IsQuestion(text) || lang.HasCJK(text) != lang.HasCJK(c.Text) || a.buried(text, nil) {
		return false
	}
	kept, _ := lang.SaidIn(text).Share(lang.PiecesOf(c.Text))
	sources := []lang.Line{{Text: old.Text}, {Text: c.Text}}
	return kept >= 0.99 && !lang.Differ(text, c.Text) && lang.Unsupported(text, sources, a.Names) == ""
}

// older reports whether a candidate was said before the evidence of a memory of the same
// conversation: an old window is read again.
func older(c *candidate, m *memory.Memory) bool {
	last := int64(0)
	for _, e := range m.Evidence {
		if len(c.Evidence) > 0 && e.ConversationID == c.Evidence[0].ConversationID {
			last = max(last, e.Seq)
		}
	}
	return c.last() < last
}

// delete retires target, or suggests it, if a candidate, stored by itself, contradicts it.
func (a *applying) delete(d decision, target *memory.Memory) {
	if target == nil {
		return
	}
	because := a.cause(d.Candidate, target)
	switch {
	case because == nil:
		a.drop(reasonUnfounded)
	case a.again[target.ID] > 0 && a.again[target.ID] >= because.last():
		a.drop(reasonRepeated)
	case older(because, target):
		a.drop(reasonOlder)
	case target.Guarded():
		a.suggest(memory.Suggestion{MemoryID: target.ID, Event: memory.EventDelete, Reason: "contradicted by a newer statement", Evidence: because.Evidence})
	default:
		a.retired++
		a.retire(target, because.Evidence)
	}
}

// cause returns the candidate that contradicts m: the named one, or the first related one.
func (a *applying) cause(named int, m *memory.Memory) *candidate {
	candidates := a.Candidates
	if named >= 0 {
		candidates = slices.Insert(slices.Clone(candidates), 0, candidates[named])
	}
	for i := range candidates {
		if c := &candidates[i]; related(c, m) && lang.ContentHash(c.Text) != memory.HashOf(m) {
			return c
		}
	}
	return nil
}

func (a *applying) retire(m *memory.Memory, because []memory.Evidence) {
	a.gone[m.ID] = true
	a.do(change{Op: opRetire, OldID: m.ID, EndedBy: slices.Clone(because)})
}

func (a *applying) suggest(s memory.Suggestion) {
	key := s.Key()
	if a.Suggested[key] || a.suggested[key] {
		a.drop(reasonSuggested)
		return
	}
	a.suggested[key] = true
	a.do(change{Op: opSuggest, OldID: s.MemoryID, Suggestion: &s})
}

// rule decides on a candidate without a decision.
func (a *applying) rule(i int) {
	known := a.left()
	c := &a.Candidates[i]
	event, m := byRule(c, known, a.Similar)
	switch {
	case event == memory.EventNone:
		a.seen(i, m)
	case event == memory.EventAdd && c.Ends && !slices.ContainsFunc(a.added, func(m *memory.Memory) bool { return lang.Ends(c.Text, m.Text) }):
		a.done[i] = true
		a.drop(reasonEndsNothing)
	case event == memory.EventAdd || m.Kind == lang.KindRelation && !c.Corrects && !lang.Ends(c.Text, m.Text):
		a.add(i) // who else there is takes nobody's place
	case identity(m) && !c.Corrects && !lang.Aged(c.Text, m.Text) && !older(c, m):
		a.done[i] = true
		a.suggest(memory.Suggestion{MemoryID: m.ID, Event: memory.EventUpdate, Text: c.Text, Reason: reasonIdentity, Evidence: c.Evidence})
	default:
		a.update(i, m, "")
		a.retireRest(c, known)
	}
}

// left are the facts that this run has not ended.
func (a *applying) left() (known []*memory.Memory) {
	for at := range a.Active {
		if m := &a.Active[at]; m.Status == memory.Active && !a.gone[m.ID] {
			known = append(known, m)
		}
	}
	return known
}

// retireRest retires what else c contradicts.
func (a *applying) retireRest(c *candidate, known []*memory.Memory) {
	for _, m := range known {
		if a.gone[m.ID] || a.again[m.ID] > c.last() || m.Guarded() || identity(m) && !c.Corrects && !lang.Aged(c.Text, m.Text) || m.Subject != c.Subject || m.Kind == lang.KindEvent || older(c, m) || m.LastSeenAt.After(a.saidAt(c)) {
			continue
		}
		if lang.ContentHash(c.Text) != memory.HashOf(m) && lang.Ends(c.Text, m.Text) {
			a.retire(m, c.Evidence)
		}
	}
}

// identity reports whether m says who somebody is: a name, an age, a birthday, an origin, what one is. A rule replaces it only if the user corrects it; home and work do change.
func identity(m *memory.Memory) bool {
	property := lang.PropertyOf(m.Text)
	return m.Kind == lang.KindProfile && slices.Contains([]string{lang.NameSlot, "age", "birthday", "origin", "is"}, property)
}
