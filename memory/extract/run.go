package extract

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/civil"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// candidate is a statement found in a window.
type candidate struct {
	Text       string
	Subject    lang.Subject
	Kind       lang.Kind
	Importance float64
	EventTime  *time.Time
	Evidence   []memory.Evidence
	Origin     memory.Origin // ByModel or ByRule
	At         time.Time     // when it was said
	Corrects   bool          // the user says there that something is otherwise than it was
	Ends       bool          // worth keeping only if it ends something that is known
}

func (c *candidate) last() int64 {
	seq := int64(0)
	for _, e := range c.Evidence {
		seq = max(seq, e.Seq)
	}
	return seq
}

// run is the extraction of one window: candidates, then decide, then apply. It asks the model
// at most twice, and once more with the error after an unusable answer; without a model, or if
// it fails, rules take over.
type run struct {
	model   llm.Asker
	retried bool
	down    error // why the model gave no reply at all

	method  memory.Origin // ByModel, or ByRule where the model was missing or failed
	calls   int           // to the model, retries included
	dropped []string      // why statements were not stored
	notes   []string      // faults on the way; they hold no text of a chat
}

const maxCandidates = 12

func newRun(model llm.Asker) *run {
	return &run{model: model, method: memory.ByRule}
}

// candidates returns the statements of a window that are worth keeping, all of them said in it.
// The only error is that of ctx, after which nothing may be stored.
func (x *run) candidates(ctx context.Context, w window) ([]candidate, error) {
	if len(w.Turns) == 0 {
		return nil, ctx.Err()
	}
	var found []candidate
	err := x.ask(ctx, candidatesPrompt(w), func(reply string) error {
		o, err := llm.ReadObject(reply, "facts")
		if err != nil {
			return err
		}
		good, dropped, err := w.read(o)
		found = merged(append(found, good...))
		x.dropped = append(x.dropped, dropped...)
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(found) > 0 || err == nil {
		x.method = memory.ByModel
	}
	if err != nil {
		x.note("candidates", err)
		found = merged(append(found, withoutReadBy(found, w.byRules())...))
	}
	if len(found) > maxCandidates && x.method == memory.ByModel {
		x.dropped = append(x.dropped, slices.Repeat([]string{reasonTooMany}, len(found)-maxCandidates)...)
		found = found[:maxCandidates]
	}
	return found, nil
}

// withoutReadBy drops what rules found in messages from which the model has a candidate.
func withoutReadBy(model, rules []candidate) []candidate {
	return slices.DeleteFunc(rules, func(r candidate) bool {
		return slices.ContainsFunc(model, func(c candidate) bool { return slices.Contains(c.Evidence, r.Evidence[0]) })
	})
}

// answerTokens is the limit of an answer. Twelve facts take about 1,000 tokens.
const answerTokens = 2048

var (
	errLanguage = errors.New("facts must be written in the language of the messages, with names unchanged")
	errShape    = errors.New(`each item of facts must be an object with the members "text", "subject", "kind" and "seqs"`)
	errEmpty    = errors.New("the answer was empty")
	errNoModel  = errors.New("no model")
)

// ask passes the reply to use; if that fails, the model is asked once more, with the error.
func (x *run) ask(ctx context.Context, prompt string, use func(reply string) error) error {
	if x.model == nil {
		return errNoModel
	}
	again := prompt
	var unusable error // the fault of the first answer
	for {
		reply, err := x.model.Ask(ctx, llm.Prompt{Text: again, JSON: true, MaxTokens: answerTokens})
		if errors.Is(err, errSpent) {
			return cmp.Or(unusable, err)
		}
		x.calls++
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

func (x *run) note(step string, err error) {
	if !errors.Is(err, errNoModel) {
		x.notes = append(x.notes, step+": "+err.Error())
	}
}

// read takes the candidates of an answer one by one; dropped are the reasons why others are
// not candidates. The error is for the model.
func (w window) read(answer llm.Object) (good []candidate, dropped []string, err error) {
	entries := answer.List("facts")
	if len(entries) == 0 && !isEmptyList(answer["facts"]) {
		return nil, nil, errShape
	}
	for i, doc := range entries {
		o := llm.ObjectOf(string(doc), "text")
		if o == nil {
			err = errShape
			continue
		}
		c, reason := w.candidate(o)
		if i >= 4*maxCandidates {
			reason = reasonTooMany
		}
		if reason != "" {
			dropped = append(dropped, reason)
			continue
		}
		good = append(good, c)
	}
	switch {
	case slices.Contains(dropped, reasonLanguage):
		err = errLanguage
	case len(good) > 0:
		err = nil // the rest of the answer is noise
	}
	return good, dropped, err
}

func isEmptyList(doc []byte) bool {
	var all []json.RawMessage
	return json.Unmarshal(doc, &all) == nil // null too
}

func (w window) candidate(o llm.Object) (c candidate, reason string) {
	c = candidate{
		Text: lang.Tidy(o.Text("text")), Origin: memory.ByModel, Importance: memory.DefaultImportance,
		Subject: lang.Subject(strings.ToLower(o.Text("subject"))), Kind: lang.Kind(strings.ToLower(o.Text("kind"))),
	}
	if n, ok := o.Number("importance"); ok {
		c.Importance = memory.ClampImportance(n)
	}
	if !slices.Contains(lang.Kinds, c.Kind) {
		c.Kind = lang.KindOther
	}
	switch {
	case c.Text == "" || utf8.RuneCountInString(c.Text) > longestCandidate || lang.LooksLikeMarkup(c.Text):
		return c, reasonShape
	case lang.IsQuestion(c.Text):
		return c, reasonQuestion
	}
	cited := w.cited(o.Integers("seqs"))
	if len(cited) == 0 {
		return c, reasonNoSource
	}
	sources, reason := w.sources(c.Text, cited)
	if reason != "" {
		sources = cited
	}
	if !slices.ContainsFunc(sources, func(m memory.Message) bool { return sameLanguage(c.Text, m.Text) }) {
		return c, reasonLanguage
	}
	if reason != "" {
		return c, reason
	}
	if c.Subject, reason = w.subject(&c, sources); reason != "" {
		return c, reason
	}
	c.source(sources)
	c.date(o.Text("event_time"), sources)
	c.Corrects = lang.Corrects(c.Text, memory.Lines(sources))
	return c, ""
}

// subject corrects whom a candidate is about; with a reason, the candidate is dropped.
func (w window) subject(c *candidate, sources []memory.Message) (subject lang.Subject, reason string) {
	subject = c.Subject
	if !slices.Contains(lang.Subjects, subject) {
		subject = lang.AboutCharacter
		if slices.ContainsFunc(sources, func(m memory.Message) bool { return m.Role == lang.RoleUser }) {
			subject = lang.AboutUser
		}
	}
	if subject != lang.AboutUser && !speaksOfUser(w.Names, c.Text) {
		return subject, ""
	}
	told, reason := w.aboutUser(c, sources)
	if told == lang.AboutUser && w.played(sources) {
		told = lang.AboutWorld
	}
	if subject == lang.AboutUser {
		subject = told
	}
	return subject, reason
}

// sameLanguage reports whether a statement may be in the language of its source.
func sameLanguage(text, source string) bool {
	if lang.MostlyCJK(source) {
		return lang.HasCJK(text)
	}
	return !lang.MostlyCJK(text)
}

func (c *candidate) source(sources []memory.Message) {
	for _, m := range sources {
		c.Evidence = append(c.Evidence, m.Evidence)
		c.At = m.At
	}
}

// date sets the time of the event: the day that the text names relative to its message; a date
// of the model only if it adds an hour to that day. Relative days in the text are replaced.
func (c *candidate) date(given string, sources []memory.Message) {
	for _, text := range []string{c.Text, strings.Join(lang.Stated(memory.Lines(sources)), "\n")} {
		if day, ok := lang.EventTime(text, c.At); ok {
			c.EventTime = &day
			break
		}
	}
	c.Text = lang.Dated(c.Text, c.At)
	if c.EventTime == nil {
		return
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		t, err := time.ParseInLocation(layout, given, c.At.Location())
		t = t.In(c.At.Location())
		if err != nil || !lang.WholeDay(t).Equal(*c.EventTime) {
			continue
		}
		if !t.Equal(civil.Start(t, t.Location())) && !lang.IsWholeDay(t.UTC()) { // else it names no hour, or reads as none
			c.EventTime = &t
		}
		return
	}
}

// cited returns the messages of the window with these seqs.
func (w window) cited(seqs []int64) []memory.Message {
	return slices.DeleteFunc(w.all(), func(m memory.Message) bool { return !slices.Contains(seqs, m.Seq) })
}

// sources returns the messages that state text: those cited, else with the message before the
// first one (a question that is answered), else one message of the window, since models
// miscount.
func (w window) sources(text string, cited []memory.Message) (sources []memory.Message, reason string) {
	all := w.all()
	first := slices.IndexFunc(all, func(m memory.Message) bool { return m.Evidence == cited[0].Evidence })
	reason = lang.ReasonUnsupported
	if len(cited) <= mostSources {
		if reason = lang.Unsupported(text, memory.Lines(cited), w.Names); reason == "" {
			return cited, ""
		}
		if first > 0 {
			asked := append([]memory.Message{all[first-1]}, cited...)
			if lang.Unsupported(text, memory.Lines(asked), w.Names) == "" {
				return asked, ""
			}
		}
	}
	for _, m := range all {
		if lang.Unsupported(text, []lang.Line{m.Line()}, w.Names) == "" {
			return []memory.Message{m}, ""
		}
	}
	return nil, reason
}

func (w window) all() []memory.Message { return messagesOfTurns(w.Turns) }

func messagesOfTurns(turns []memory.Turn) (out []memory.Message) {
	for _, t := range turns {
		out = append(out, t.Messages...)
	}
	return out
}

// aboutUser checks a statement about the user: the user must have said a part of it, or have
// answered yes, and likes and traits must not be the character's own words about itself. What
// is said in the course of the story (*draws a sword*) is about the world.
func (w window) aboutUser(c *candidate, sources []memory.Message) (lang.Subject, string) {
	var spoken, all, offered, own []string
	for i, m := range sources {
		if m.Role == lang.RoleCharacter {
			toUser, ofItself := addressed(m.Text)
			offered, own = append(offered, toUser...), append(own, ofItself...)
			continue
		}
		if i > 0 && w.confirms(c.Text, sources[i-1], m) {
			return lang.AboutUser, ""
		}
		all = append(all, m.Text)
		spoken = append(spoken, ofOneself(lang.Narration.ReplaceAllString(m.Text, " ")))
	}
	pieces := lang.PiecesOf(c.Text)
	if content := slices.DeleteFunc(slices.Clone(pieces), func(p lang.Piece) bool { return p.Class != "" }); len(content) > 0 {
		pieces = content
	}
	said, others := lang.SaidIn(append(offered, spoken...)...), lang.SaidIn(own...)
	personal := c.Kind == lang.KindPreference || c.Kind == lang.KindProfile || c.Kind == lang.KindOther || lang.Feeling(c.Text) != 0
	if personal && slices.ContainsFunc(pieces, func(p lang.Piece) bool {
		return said.Covers(p) < p.Weight/2 && others.Covers(p) >= p.Weight/2
	}) {
		return "", reasonNotUser
	}
	if share, _ := lang.SaidIn(spoken...).Share(pieces); share >= enoughByUser {
		return lang.AboutUser, w.vouched(c.Text, append(lang.Vouched(c.Text, spoken), offered...))
	}
	if share, _ := lang.SaidIn(all...).Share(pieces); share >= enoughByUser && lang.Narration.MatchString(strings.Join(all, "\n")) {
		return lang.AboutWorld, ""
	}
	return "", reasonNotUser
}

// vouched returns why texts do not state what is said of the user; see lang.Vouched.
func (w window) vouched(text string, said []string) (reason string) {
	if share, _ := lang.SaidIn(append(said, w.Names.User, w.Names.Character)...).Share(lang.PiecesOf(text)); share < lang.EnoughSaid {
		return reasonNotSo
	}
	return ""
}

// addressed parts the questions and sentences that address the user from the others.
func addressed(text string) (toUser, others []string) {
	for _, s := range lang.SentencesOf(text) {
		if lang.IsQuestion(s) || lang.SecondPerson.MatchString(s) {
			toUser = append(toUser, s)
		} else {
			others = append(others, s)
		}
	}
	return toUser, others
}

// confirms reports whether text is what the character just said of the user, who answers yes.
func (w window) confirms(text string, asked, answer memory.Message) bool {
	if asked.Role != lang.RoleCharacter || !yes.MatchString(answer.Text) || !lang.SecondPerson.MatchString(asked.Text) {
		return false
	}
	all := w.all()
	at := slices.IndexFunc(all, func(m memory.Message) bool { return m.Evidence == asked.Evidence })
	return at >= 0 && at+1 < len(all) && all[at+1].Evidence == answer.Evidence && lang.Unsupported(text, []lang.Line{asked.Line(), answer.Line()}, w.Names) == ""
}

var (
	firstPerson = data.Rule("first-person")
	toOther     = data.Rule("to-other")
	ofUser      = data.Rule("of-user")
)

// ofOneself leaves out the sentences of the user about the character.
func ofOneself(text string) string {
	said := lang.SentencesOf(text)
	return strings.Join(slices.DeleteFunc(said, func(s string) bool {
		return toOther.MatchString(s) && !firstPerson.MatchString(s)
	}), "\n")
}

// speaksOfUser reports whether a statement begins with the user, whatever its subject is.
func speaksOfUser(n lang.Names, text string) bool {
	return ofUser.MatchString(text) || n.User != "" && strings.HasPrefix(strings.ToLower(text), strings.ToLower(n.User))
}

// merged joins equal statements and their evidence.
func merged(all []candidate) []candidate {
	var out []candidate
	place := map[string]int{}
	for _, c := range all {
		hash := lang.ContentHash(c.Text)
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

// Why a candidate is not stored, for the report of a job.
const (
	reasonNoSource  = "no source among the messages"
	reasonNotUser   = "not stated by the user"
	reasonNotSo     = "said of somebody else, or as something that is not so"
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
