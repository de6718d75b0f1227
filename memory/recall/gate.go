package recall

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// The gate keeps a prompt free of what has nothing to do with the message. It requires evidence
// that means the same in a chat of ten lines and of ten thousand, while the ranking only says
// what fits best. Evidence is counted in words: a word that is in one row is worth 1, more
// common ones less, small talk nothing (memory/lang).
const (
	leastShare      = 0.27 // share of what a question asks for
	leastOwn        = 0.45 // likewise of a question about the user: with less, what it asks for was never said
	leastOfOthers   = 0.75 // likewise in a row that is not of the user in the first person, or has nothing of the thing that is asked about
	clearShare      = 0.75 // share of what a question asks for in a row that answers it clearly
	leastTold       = 1.3  // for a message that asks nothing
	leastToldShare  = 0.1
	plainTold       = 2.5 // a message that tells this much is like any other
	richTold        = 4   // from which on it needs least
	leastInScene    = 0.85
	leastSceneShare = 0.06
	leastPublic     = 0.5 // for a text in the circle: one telling word
	leastDay        = 0.5 // the least Days.Fit
)

// gate is what the gate knows of a message.
type gate struct {
	echo   echo
	vague  bool         // one of the question's days is a longer time
	ofNow  bool         // all of the question's days are now
	giving map[int]bool // rows of facts that give what is asked for, and name the user
}

// passes reports whether the evidence in row i is sufficient, and not only from the turns before.
func (r *ranking) passes(i int) bool {
	evidence := r.columns.match.Scores[i].Evidence
	if r.q.Only.Public {
		return evidence >= leastPublic
	}
	if r.read.Told > 0 && r.columns.match.Scores[i].Covered == 0 {
		return false
	}
	if r.tells > plainTold && evidence >= r.leastOfScene() {
		return true
	}
	if r.mine && r.read.Asks && len(r.read.Days) == 0 && !r.passesOwn(i, evidence) {
		return false
	}
	return Proves(&r.read, evidence, r.columns.match.Asked)
}

// passesOwn reports whether the evidence in row i is sufficient for a question about the user.
func (r *ranking) passesOwn(i int, evidence float32) bool {
	l := r.line(i)
	if r.heads[i] && l.tellsOfUser() || r.heads == nil && r.ofUser(l) {
		return evidence >= leastTold || evidence >= leastOwn*r.columns.match.Asked
	}
	return evidence >= leastOfOthers*r.columns.match.Asked
}

// ofUser reports whether a unit tells of the user: a fact, or what the user says in the first person.
func (r *ranking) ofUser(l line) bool {
	return l.is(lineFact) && !l.is(lineCircle) || l.is(lineOfUser) && l.is(lineSelf)
}

// leastOfScene is the evidence that a memory needs in a scene that tells much: each memory that it touches is a
// smaller part of it.
func (r *ranking) leastOfScene() float32 {
	least := leastTold - (leastTold-leastInScene)*(r.tells-plainTold)/(richTold-plainTold)
	return max(leastInScene, least, leastSceneShare*r.tells)
}

// readScene measures how much the message and the turns before tell, if it is a scene: several sentences, and no
// narration, whose words are not what is talked about.
func (r *ranking) readScene() {
	r.tells = 0
	if texts := append(r.q.scene(), r.q.Text); !slices.ContainsFunc(texts, lang.Narration.MatchString) && len(lang.SentencesOf(strings.Join(texts, "\n"))) > 1 {
		r.tells = r.columns.match.Asked + r.read.Told
	}
}

// Proves reports whether a text has to do with a message: evidence is that of the words of the message in the
// text, and asked that of all its words (index.Score.Evidence, index.Match.Asked).
func Proves(read *lang.Question, evidence, asked float32) bool {
	share := evidence / max(asked, lang.LeastAsked)
	if (read.Asks || read.Keywords) && evidence >= lang.LeastAsked && share >= leastShare {
		return true
	}
	return evidence >= leastTold && share >= leastToldShare
}

// opens finds the rows that are proven to be related to the message. Without any, nothing is
// returned; with one, a question also gets what passes the floor. Without a gate it is open.
func (r *ranking) opens() (bool, error) {
	if !r.q.gated() {
		return true, nil
	}
	r.readScene()
	r.gate.echo = echoOf(r.q.Text, r.read.Terms)
	r.gate.ofNow = true
	for _, d := range r.read.Days {
		r.gate.vague = r.gate.vague || !d.Exact()
		r.gate.ofNow = r.gate.ofNow && d.Holds(r.q.Now)
	}
	if err := r.readGiving(); err != nil {
		return false, err
	}
	if err := r.readHeads(); err != nil {
		return false, err
	}
	if err := r.readStated(); err != nil {
		return false, err
	}
	for _, at := range r.columns.rows {
		if row := int(at.row); r.proves(row) || r.answers(row, int(at.before)) {
			r.columns.proven.put(row, 1)
		}
	}
	if err := r.hop(); err != nil {
		return false, err
	}
	return len(r.columns.proven.set) > 0, nil
}

// mostNaming is how many facts that share words with the question are read to see whether they
// state, under the user's name, a property that is asked for.
const mostNaming = 200

// mostGiving is how many rows that give a property which is asked for are looked at, the newest.
const mostGiving = 32

// readTold finds the rows of lines and facts that give a property which is asked for: they may have none of the
// words of the question.
func (r *ranking) readTold() error {
	r.told = map[int]bool{}
	var marks []string
	for _, p := range r.read.Properties.Each() {
		marks = append(marks, markOf(p))
	}
	if len(marks) == 0 || !r.q.gated() {
		return nil
	}
	marked, err := r.v.Marked(r.ctx, marks)
	for _, rows := range marked {
		for _, row := range newest(r.v, rows, mostGiving) {
			r.told[row] = true
		}
	}
	return err
}

// readHeads finds the rows with the thing that a question about the user is about.
func (r *ranking) readHeads() error {
	r.heads = nil
	heads := r.read.Heads(r.q.Text)
	if !r.mine || !r.read.Asks || len(heads) == 0 {
		return nil
	}
	having, err := r.v.Having(r.ctx, heads, r.v.Slots())
	r.heads = map[int]bool{}
	for _, h := range having {
		for _, row := range h.Rows {
			r.heads[row] = true
		}
	}
	return err
}

// mostStating is how many rows are read to see whether they make the statement that a question asks for.
const mostStating = 48

// readStated finds the lines of the user, and facts, with the statement that the question asks for.
func (r *ranking) readStated() error {
	r.stated = map[int]bool{}
	if r.read.Asked == nil {
		return nil
	}
	top := &topmost{size: mostStating}
	for _, at := range r.columns.rows {
		row := int(at.row)
		if s := (ranked{row, r.columns.match.Scores[row].Row}); s.score > 0 && at.line.tellsOfUser() && !r.q.Only.bars(at.line, row, r.v) && top.takes(s) {
			top.add(s)
		}
	}
	rows := numbers(top.sorted())
	if err := r.readRows(rows); err != nil {
		return err
	}
	for _, row := range rows {
		if u := r.got[row]; u != nil && len(u.Text) <= longestStatement && r.read.Asked.MadeIn(u.Text) {
			r.stated[row] = true
		}
	}
	return nil
}

// longestStatement is how many bytes a text has at most that makes a statement: longer ones tell stories.
const longestStatement = 600

// readGiving finds the facts that give properties that are asked for and name the user: the
// attribute of a row knows only of those that say "I".
func (r *ranking) readGiving() error {
	r.gate.giving = map[int]bool{}
	if r.read.Properties == 0 || r.q.Names.User == "" {
		return nil
	}
	top := &topmost{size: mostNaming}
	for _, at := range r.columns.rows {
		row := int(at.row)
		if s := r.columns.match.Scores[row].Row; s > 0 && r.line(row).is(lineFact) && top.takes(ranked{row, s}) {
			top.add(ranked{row, s})
		}
	}
	found, err := r.v.Rows(r.ctx, numbers(top.sorted()), index.Vector{})
	for _, f := range found {
		if e := entryOf(f); e != nil && e.gives(r.q.Names)&r.read.Properties != 0 {
			r.gate.giving[f.N] = true
		}
	}
	return err
}

// proves reports whether row i passes the gate by itself.
func (r *ranking) proves(i int) bool {
	return r.q.gated() && (r.passes(i) || r.ofTheDay(i) || r.standsOut(i) || r.givesProperty(i) || r.stated[i] || r.hopped[i])
}

// answers reports whether row i follows a question that passes the gate.
func (r *ranking) answers(i, before int) bool {
	if before < 0 || !r.passes(before) {
		return false
	}
	b := r.line(before)
	return b.is(lineAsks) && b.speaker() != r.line(i).speaker()
}

// admits reports whether rows that only pass the floor may be returned.
// A question about the user that a row answers clearly needs no others; the kind of thing alone answers none.
func (r *ranking) admits() bool {
	if !r.q.gated() {
		return true
	}
	best := float32(0)
	for _, row := range r.columns.proven.set {
		best = max(best, r.columns.match.Scores[row].Evidence)
	}
	clear := r.mine && len(r.read.Days) == 0 && !r.read.OfKind && best >= max(lang.LeastAsked, clearShare*r.columns.match.Asked)
	return (r.read.Asks || r.read.Keywords) && !clear
}

// idle reports whether a unit says nothing: the greeting of another chat, or only questions.
func (r *ranking) idle(e *entry) bool {
	return e.Layer == Exchange && (r.greets(e) || e.onlyAsks() || r.read.Asks && lang.BelongElsewhere(e.Text, e.Speaker, r.own))
}

// ofTheDay reports whether a question is about the day of row i: about that very day, or about
// a longer time and nothing else, or about something that is in the row. Small talk ("How was
// today?") is about today too, so then the question must be about the user.
func (r *ranking) ofTheDay(i int) bool {
	if !r.read.Asks || len(r.read.Days) == 0 {
		return false
	}
	fit := r.columns.day.of[i]
	if fit < leastDay {
		return false
	}
	if r.gate.ofNow && !r.mine {
		return false
	}
	return !r.gate.vague && !r.gate.ofNow && fit == 1 || r.read.OfDays || r.columns.match.Scores[i].Evidence >= lang.LeastAsked/2
}

func (r *ranking) givesProperty(i int) bool {
	return r.read.Properties != 0 && (r.told[i] || r.columns.match.Scores[i].Row > 0 && (r.gate.giving[i] || r.line(i).gives()&r.read.Properties != 0))
}

// greets reports whether a unit is the greeting of another chat.
func (r *ranking) greets(e *entry) bool {
	return e.Layer == Exchange && e.Speaker == lang.RoleCharacter && e.Order == 1 && (r.q.Here == "" || e.Conversation != r.q.Here)
}

// echo is what the message itself says.
type echo struct {
	hash  string
	terms map[string]bool
}

func echoOf(text string, terms []index.Term) echo {
	e := echo{lang.ContentHash(text), make(map[string]bool, len(terms))}
	for _, t := range terms {
		e.terms[t.Text] = true
	}
	return e
}

// echoes reports whether a row only repeats the message; after a question it may answer.
func (r *ranking) echoes(e *entry, words []string) bool {
	switch {
	case e.Layer == Fact:
		return false
	case e.Hash == r.gate.echo.hash && e.Hash != "":
		return true
	case r.read.Asks || r.read.Keywords:
		return false
	}
	return !slices.ContainsFunc(words, func(t string) bool { return !r.gate.echo.terms[t] && r.read.TellsSomething(t) })
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

// mostNamings is in how many rows a word is at most that may be a name.
const mostNamings = 2000

// beginning are the first words of sentences, whose capital means nothing.
var beginning = regexp.MustCompile(`(?:^|[.!?…\n][\s"”’]*)(\p{Lu}\p{Ll}+)`)

// beginningsOf returns the terms of the first words of sentences.
func beginningsOf(text string) map[string]bool {
	begins := map[string]bool{}
	for _, m := range beginning.FindAllStringSubmatch(text, -1) {
		if w := strings.ToLower(m[1]); !lang.TellsTime(w) {
			for _, t := range index.Terms(w) {
				begins[t] = true
			}
		}
	}
	return begins
}

// mayName reports whether a term of a question may be a name.
func mayName(t index.Term) bool {
	dense := t.Text[0] >= utf8.RuneSelf && utf8.RuneCountInString(t.Text) > 1
	return !t.Extra && t.Evidence > lang.ProvesNothing && (dense || t.Text[0] > '9')
}

// recognise treats words of a statement as names if the memory knows them as such: first words
// of sentences, and words in scripts without capitals.
func (r *ranking) recognise() error {
	q := &r.read
	if !q.States {
		return nil
	}
	begins := beginningsOf(r.q.Text)
	var marks, words []string
	for _, t := range q.Terms {
		if mayName(t) {
			marks, words = append(marks, markNames+t.Text, markCapital+t.Text), append(words, t.Text)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	marked, err := r.v.Marked(r.ctx, marks)
	if err != nil || len(marked) == 0 {
		return err
	}
	common, err := r.v.Having(r.ctx, words, mostNamings)
	if err != nil {
		return err
	}
	q.Terms = slices.Clone(q.Terms)
	for i := range q.Terms {
		t := &q.Terms[i]
		_, rare := common[t.Text]
		named := len(marked[markNames+t.Text]) > 0 || t.Evidence == 1 && begins[t.Text] && len(marked[markCapital+t.Text]) > 0
		if rare && named && slices.Contains(words, t.Text) {
			t.Evidence = lang.ProvesName
		}
	}
	return nil
}
