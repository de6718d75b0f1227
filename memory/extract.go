package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/fault"
)

// Prompt is what a model is asked in the background.
type Prompt struct {
	Text      string
	JSON      bool // the answer is one JSON object
	MaxTokens int  // of the answer without the model's thinking; 0 = no limit
}

// Asker is the part of a language model that extraction uses: text in, text out.
type Asker interface {
	// Ask returns the model's whole reply to one prompt. Retrying after failures
	// is its business; an error means that there is no reply.
	Ask(ctx context.Context, p Prompt) (string, error)
}

// AskerFunc makes a function an Asker.
type AskerFunc func(ctx context.Context, p Prompt) (string, error)

// Ask calls f.
func (f AskerFunc) Ask(ctx context.Context, p Prompt) (string, error) { return f(ctx, p) }

// Candidate is a statement that was found in a window and perhaps is worth keeping.
type Candidate struct {
	Text       string
	Subject    Subject
	Kind       Sort
	Importance float64
	EventTime  *time.Time
	Evidence   []Evidence
	Origin     Origin    // ByModel or ByRule
	At         time.Time // when it was said
	Corrects   bool      // the user says there that something is otherwise than it was
}

func (c *Candidate) last() int64 {
	seq := int64(0)
	for _, e := range c.Evidence {
		seq = max(seq, e.Seq)
	}
	return seq
}

// Dropped is a statement that is not stored, and why.
type Dropped struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// Outcome is what a run can show of itself.
type Outcome struct {
	Method  Origin    // ByModel, or ByRule where the model was missing or failed
	Calls   int       // to the model, retries included
	Dropped []Dropped // statements that were not stored
	Notes   []string  // what went wrong on the way; holds no text of a chat
}

// Extraction is one run over a window: Candidates, then Decide, then Apply. It asks
// the model twice at most, and once more with the error where an answer cannot be
// used; without a model, and where that fails too, rules take over. An Extraction is
// for one goroutine.
type Extraction struct {
	Outcome Outcome

	model   Asker
	retried bool
	down    error // why the model gave no reply at all
}

// maxCandidates is how many statements one window may give.
const maxCandidates = 12

// NewExtraction starts a run; model may be nil.
func NewExtraction(model Asker) *Extraction {
	return &Extraction{model: model, Outcome: Outcome{Method: ByRule}}
}

// Candidates returns the statements of a window that are worth keeping. Every one
// is said in it: what nobody said is dropped, with a reason in the Outcome. The only
// error is that of ctx, after which nothing may be stored.
func (x *Extraction) Candidates(ctx context.Context, w Window) ([]Candidate, error) {
	if len(w.Turns) == 0 {
		return nil, ctx.Err()
	}
	var found []Candidate
	err := x.ask(ctx, candidatesPrompt(w), func(reply string) error {
		o, err := readObject(reply, "facts")
		if err != nil {
			return err
		}
		good, dropped, err := w.read(o)
		found = merged(append(found, good...))
		x.Outcome.Dropped = append(x.Outcome.Dropped, dropped...)
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(found) > 0 || err == nil {
		x.Outcome.Method = ByModel
	}
	if err != nil {
		x.note("candidates", err)
		found = merged(append(found, withoutReadBy(found, w.byRules())...))
	}
	if len(found) > maxCandidates && x.Outcome.Method == ByModel {
		for _, c := range found[maxCandidates:] {
			x.Outcome.Dropped = append(x.Outcome.Dropped, Dropped{c.Text, reasonTooMany})
		}
		found = found[:maxCandidates]
	}
	return found, nil
}

// withoutReadBy leaves out what rules have read in a message that a model has read too.
func withoutReadBy(model, rules []Candidate) []Candidate {
	return slices.DeleteFunc(rules, func(r Candidate) bool {
		return slices.ContainsFunc(model, func(c Candidate) bool { return slices.Contains(c.Evidence, r.Evidence[0]) })
	})
}

// answerTokens bounds an answer of extraction. Twelve facts with their members are
// about 1,000 tokens.
const answerTokens = 2048

var (
	errLanguage = errors.New("facts must be written in the language of the messages, with names unchanged")
	errShape    = errors.New(`each item of facts must be an object with the members "text", "subject", "kind" and "seqs"`)
	errEmpty    = errors.New("the answer was empty")
	errNoModel  = errors.New("no model")
)

// ask lets use read the reply; where it cannot, the model is asked once more, with
// the error behind the prompt.
func (x *Extraction) ask(ctx context.Context, prompt string, use func(reply string) error) error {
	if x.model == nil {
		return errNoModel
	}
	again := prompt
	var unusable error // what was wrong with the first answer
	for {
		reply, err := x.model.Ask(ctx, Prompt{Text: again, JSON: true, MaxTokens: answerTokens})
		if errors.Is(err, errSpent) {
			return cmp.Or(unusable, err)
		}
		x.Outcome.Calls++
		switch {
		case fault.Is(err, fault.EmptyReply):
			err = errEmpty
		case err != nil:
			x.down = err
			return fmt.Errorf("ask the model: %w", err)
		default:
			err = use(reply)
		}
		if err == nil || x.retried {
			return err
		}
		x.retried, unusable = true, err
		again = prompt + retryPrompt(prompt, err)
	}
}

func (x *Extraction) note(step string, err error) {
	if !errors.Is(err, errNoModel) {
		x.Outcome.Notes = append(x.Outcome.Notes, step+": "+err.Error())
	}
}

// read takes the candidates of an answer one by one. The error is for the model: it
// says what is wrong with all of an answer, or with its language.
func (w Window) read(answer object) (good []Candidate, dropped []Dropped, err error) {
	entries := answer.list("facts")
	if len(entries) == 0 && !isEmptyList(answer["facts"]) {
		return nil, nil, errShape
	}
	for i, doc := range entries {
		o := objectOf(string(doc), "text")
		if o == nil {
			err = errShape
			continue
		}
		c, reason := w.candidate(o)
		if i >= 4*maxCandidates {
			reason = reasonTooMany
		}
		if reason != "" {
			dropped = append(dropped, Dropped{shortened(o.text("text"), 200), reason})
			continue
		}
		good = append(good, c)
	}
	switch {
	case slices.ContainsFunc(dropped, func(d Dropped) bool { return d.Reason == reasonLanguage }):
		err = errLanguage
	case len(good) > 0:
		err = nil // what else stands in the answer is noise
	}
	return good, dropped, err
}

func isEmptyList(doc []byte) bool {
	var all []json.RawMessage
	return json.Unmarshal(doc, &all) == nil // null too
}

// candidate checks one entry of an answer.
func (w Window) candidate(o object) (c Candidate, reason string) {
	c = Candidate{
		Text: tidy(o.text("text")), Origin: ByModel, Importance: defaultImportance,
		Subject: Subject(strings.ToLower(o.text("subject"))), Kind: Sort(strings.ToLower(o.text("kind"))),
	}
	if n, ok := o.number("importance"); ok {
		c.Importance = clampImportance(n)
	}
	if !slices.Contains(sorts, c.Kind) {
		c.Kind = OtherSort
	}
	switch {
	case c.Text == "" || utf8.RuneCountInString(c.Text) > longestCandidate || looksLikeMarkup(c.Text):
		return c, reasonShape
	case isQuestion(c.Text):
		return c, reasonQuestion
	}
	cited := w.cited(o.integers("seqs"))
	if len(cited) == 0 {
		return c, reasonNoSource
	}
	sources, reason := w.sources(c.Text, cited)
	if reason != "" {
		sources = cited
	}
	if !slices.ContainsFunc(sources, func(m Message) bool { return sameLanguage(c.Text, m.Text) }) {
		return c, reasonLanguage
	}
	if reason != "" {
		return c, reason
	}
	if !slices.Contains(subjects, c.Subject) {
		c.Subject = AboutCharacter
		if slices.ContainsFunc(sources, func(m Message) bool { return m.Role == RoleUser }) {
			c.Subject = AboutUser
		}
	}
	if c.Subject == AboutUser || w.Names.speaksOfUser(c.Text) {
		subject, reason := w.aboutUser(&c, sources)
		if reason != "" {
			return c, reason
		}
		if c.Subject == AboutUser {
			c.Subject = subject
		}
	}
	c.source(sources)
	c.date(o.text("event_time"), sources)
	c.Corrects = corrects(c.Text, Lines(sources))
	return c, ""
}

// sameLanguage reports whether a statement may be in the language of its source.
func sameLanguage(text, source string) bool {
	if mostlyCJK(source) {
		return hasCJK(text)
	}
	return !mostlyCJK(text)
}

// source takes the evidence from the messages that a candidate stands on.
func (c *Candidate) source(sources []Message) {
	for _, m := range sources {
		c.Evidence = append(c.Evidence, m.Evidence)
		c.At = m.At
	}
}

// date sets the time of the event: what the text says relative to its message; a
// date of the model only where it names that day more closely, or stands in the
// text itself. The text then names the day itself.
func (c *Candidate) date(given string, sources []Message) {
	for _, text := range []string{c.Text, strings.Join(statedIn(Lines(sources)), "\n")} {
		if day, ok := eventTime(text, c.At); ok {
			c.EventTime = &day
			break
		}
	}
	c.Text = dated(c.Text, c.At)
	if c.EventTime == nil {
		return
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		t, err := time.ParseInLocation(layout, given, c.At.Location())
		t = t.In(c.At.Location())
		if err != nil || !wholeDay(t, time.UTC).Equal(*c.EventTime) {
			continue
		}
		if !t.Equal(midnight(t)) && !isWholeDay(t.UTC()) { // else it names no hour, or reads as none
			c.EventTime = &t
		}
		return
	}
}

// cited returns the messages of the window with these seqs, in their order.
func (w Window) cited(seqs []int64) []Message {
	var out []Message
	for _, t := range w.Turns {
		for _, m := range t.Messages {
			if slices.Contains(seqs, m.Seq) {
				out = append(out, m)
			}
		}
	}
	return out
}

// sources returns the messages that say text: those cited, else those with the
// message before the first one (a question that is answered), else one message of
// the window, since models miscount.
func (w Window) sources(text string, cited []Message) (sources []Message, reason string) {
	all := w.all()
	first := slices.IndexFunc(all, func(m Message) bool { return m.Evidence == cited[0].Evidence })
	reason = reasonUnsaid
	if len(cited) <= mostSources {
		if reason = unsaid(text, Lines(cited), w.Names); reason == "" {
			return cited, ""
		}
		if first > 0 {
			asked := append([]Message{all[first-1]}, cited...)
			if unsaid(text, Lines(asked), w.Names) == "" {
				return asked, ""
			}
		}
	}
	for _, m := range all {
		if unsaid(text, []Speech{m.Line()}, w.Names) == "" {
			return []Message{m}, ""
		}
	}
	return nil, reason
}

func (w Window) all() []Message {
	var out []Message
	for _, t := range w.Turns {
		out = append(out, t.Messages...)
	}
	return out
}

// aboutUser checks a statement about the user: the user must have said a part of it,
// or have answered yes, and what they like and are must not be the character's own
// words about itself. What is said in the course of the story (*draws a sword*) is
// about the world.
func (w Window) aboutUser(c *Candidate, sources []Message) (Subject, string) {
	var spoken, all, offered, own []string
	for i, m := range sources {
		if m.Role == RoleCharacter {
			for _, s := range sentencesOf(m.Text) {
				if isQuestion(s) || secondPerson.MatchString(s) {
					offered = append(offered, s)
				} else {
					own = append(own, s)
				}
			}
			continue
		}
		if i > 0 && w.confirms(c.Text, sources[i-1], m) {
			return AboutUser, ""
		}
		all = append(all, m.Text)
		spoken = append(spoken, ofOneself(narration.ReplaceAllString(m.Text, " ")))
	}
	pieces := piecesOf(c.Text)
	if content := slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool { return p.class != "" }); len(content) > 0 {
		pieces = content
	}
	said, others := saidIn(append(offered, spoken...)...), saidIn(own...)
	personal := c.Kind == Preference || c.Kind == Profile || c.Kind == OtherSort || feeling(c.Text) != 0
	if personal && slices.ContainsFunc(pieces, func(p piece) bool {
		return said.covers(p) < p.weight/2 && others.covers(p) >= p.weight/2
	}) {
		return "", reasonNotUser
	}
	if share, _ := saidIn(spoken...).share(pieces); share >= enoughByUser {
		return AboutUser, ""
	}
	if share, _ := saidIn(all...).share(pieces); share >= enoughByUser && len(narration.FindString(strings.Join(all, "\n"))) > 0 {
		return AboutWorld, ""
	}
	return "", reasonNotUser
}

// confirms reports whether the user answers yes to what the character has just asked
// or said about them, and that is text.
func (w Window) confirms(text string, asked, answer Message) bool {
	if asked.Role != RoleCharacter || !yes.MatchString(answer.Text) || !secondPerson.MatchString(asked.Text) {
		return false
	}
	all := w.all()
	at := slices.IndexFunc(all, func(m Message) bool { return m.Evidence == asked.Evidence })
	return at >= 0 && at+1 < len(all) && all[at+1].Evidence == answer.Evidence && unsaid(text, []Speech{asked.Line(), answer.Line()}, w.Names) == ""
}

var firstPerson = regexp.MustCompile(`(?i)[我咱俺]|\b(?:i|i'm|i've|i'd|i'll|my|me|mine|myself|we|our)\b`)

var toOther = regexp.MustCompile(`(?i)^\W*(?:and |but |so )?(?:you|your|you're)\b|^[\s\pP]*[你您]`)

// ofOneself leaves out the sentences of the user that are about the character.
func ofOneself(text string) string {
	said := sentencesOf(text)
	return strings.Join(slices.DeleteFunc(said, func(s string) bool {
		return toOther.MatchString(s) && !firstPerson.MatchString(s)
	}), "\n")
}

var ofUser = regexp.MustCompile(`(?i)^(?:用户|the user\b|user\b)`)

// speaksOfUser reports whether a statement begins with the user, whatever the model
// says that it is about.
func (n Names) speaksOfUser(text string) bool {
	return ofUser.MatchString(text) || n.User != "" && strings.HasPrefix(strings.ToLower(text), strings.ToLower(n.User))
}

// merged leaves out what is said twice, and gives the first the evidence of both.
func merged(all []Candidate) []Candidate {
	var out []Candidate
	place := map[string]int{}
	for _, c := range all {
		hash := ContentHash(c.Text)
		if at, has := place[hash]; has {
			for _, e := range c.Evidence {
				if first := &out[at]; !slices.Contains(first.Evidence, e) && len(first.Evidence) < mostSources {
					e.Sighting = 1
					first.Evidence = append(first.Evidence, e)
				}
			}
			continue
		}
		place[hash] = len(out)
		out = append(out, c)
	}
	return out
}

// jsonLine is v as one line of a prompt; nothing in a message can end it.
func jsonLine(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings and numbers always can be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Why a candidate is not stored. The words are for the outcome of a job.
const (
	reasonNoSource  = "no source among the messages"
	reasonNotUser   = "not stated by the user"
	reasonQuestion  = "a question, not a statement"
	reasonLanguage  = "not in the language of its source message"
	reasonShape     = "not a usable statement"
	reasonTooMany   = "too many candidates"
	reasonDuplicate = "stated twice in these messages"
)

// Limits of candidates.
const (
	enoughByUser     = 0.34 // by weight, what the user must have said of a statement about them
	mostSources      = 6    // messages that one statement may be put together from
	longestCandidate = 400
)
