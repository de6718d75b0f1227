package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Kinds is the extraction of a conversation, for jobs.Runner.Handle.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: memory.JobExtract, Run: s.extract, AtOnce: 4, PerUser: 1, Attempts: orderAttempts + 1, Timeout: 15 * time.Minute}}
}

// Service extracts facts in the background. It is safe for concurrent use.
type Service struct {
	store memory.Store
	opts  Options
}

// idleTime is how long a conversation must be idle before rules read its latest messages.
const idleTime = time.Minute

// Options tune a Service. Scenes is required; the rest has defaults.
type Options struct {
	// Scenes returns the settings of a character's memory.
	Scenes func(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error)
	// Model returns the model that extracts facts for a user; nil = there is none but rules.
	Model func(ctx context.Context, userID, characterID string) (llm.Asker, error)

	Rest time.Duration // idle time before a model reads fewer exchanges than a run is worth; default 30 min
}

func New(store memory.Store, o Options) *Service {
	o.Rest = cmp.Or(o.Rest, 30*time.Minute)
	return &Service{store, o}
}

// attempt is one attempt at the extraction of a conversation.
type attempt struct {
	*Service
	job         *jobs.Job
	state       memory.Reading // the reading of the conversation
	ordered     bool           // the user has ordered some of what is unread
	characterID string
	scene       memory.Scene
	model       llm.Asker // nil = there is none
	similar     similarity
	report      report
}

// report is the progress of a job: counts and reasons, no text of a chat.
type report struct {
	Method    memory.Origin  `json:"method,omitempty"` // method of the last window: llm, or rule
	Exchanges int            `json:"exchanges"`        // that were read
	Calls     int            `json:"calls"`            // requests to the model
	Added     int            `json:"added"`
	Updated   int            `json:"updated"`
	Retired   int            `json:"retired"`
	Seen      int            `json:"seen"`
	Suggested int            `json:"suggested"`
	Dropped   map[string]int `json:"dropped,omitempty"` // statements that were not stored, by reason
	Held      bool           `json:"held,omitempty"`    // too much would have been retired: it is suggested
	Waiting   int            `json:"waiting,omitempty"` // exchanges that are not read yet
	Notes     []string       `json:"notes,omitempty"`   // problems on the way
}

// errMoved says that the texts of a run are no longer those shown.
var errMoved = errors.New("the conversation was changed by another request")

func (s *Service) extract(ctx context.Context, j *jobs.Job) error {
	r := &attempt{Service: s, job: j, similar: newSimilarity(ctx)}
	for moved := 0; ; {
		again, err := r.run(ctx)
		switch {
		case (errors.Is(err, errMoved) || fault.Is(err, fault.NotFound)) && moved == 0:
			moved++ // look again, once: what is gone has nothing to be read
		case errors.Is(err, errMoved):
			return r.end(ctx, idleTime)
		case err != nil || !again:
			return err
		}
	}
}

// run reads what is due. It has ended the job, unless there is more (again).
func (r *attempt) run(ctx context.Context) (again bool, err error) {
	u, err := r.unread(ctx)
	if err != nil || len(u.turns) == 0 {
		return false, r.endUnless(ctx, err)
	}
	if err := r.dropOrder(ctx); err != nil {
		return false, err
	}
	if r.scene, err = r.opts.Scenes(ctx, r.job.UserID, r.characterID, r.job.Subject); err != nil {
		return false, r.endUnless(ctx, err)
	}
	if !r.scene.Enabled {
		return false, r.end(ctx, 0)
	}
	if r.model, err = r.extractor(ctx); err != nil {
		return false, err
	}
	d := r.due(u)
	r.report.Waiting = u.exchanges
	if !d.read {
		return false, r.end(ctx, d.after)
	}
	parts, err := r.windows(ctx, u, &d)
	if err != nil {
		return false, err
	}
	for i, p := range parts {
		done, err := r.window(ctx, p, d, i == len(parts)-1 && !u.more)
		if err != nil || done {
			return false, err
		}
	}
	if len(parts) > 0 && u.more {
		return true, nil
	}
	return false, r.end(ctx, d.after)
}

// extractor is the user's model, nil if there is none.
func (r *attempt) extractor(ctx context.Context) (llm.Asker, error) {
	if r.opts.Model == nil {
		return nil, nil
	}
	model, err := r.opts.Model(ctx, r.job.UserID, r.characterID)
	if err != nil && ctx.Err() == nil {
		return llm.AskerFunc(func(context.Context, llm.Prompt) (string, error) { return "", err }), nil
	}
	return model, err
}

// unread is what extraction has not read of a conversation, as far as it is shown.
type unread struct {
	texts     []memory.Text // by seq
	turns     []memory.Turn // the turns of texts
	exchanges int           // turns that the user has begun
	open      int           // the last ones of these, that have no reply yet
	quiet     time.Duration
	more      bool // texts are only the first ones
}

// mostUnread texts are held in memory at a time.
const mostUnread = 2000

// unread loads what is new; nothing if the conversation was deleted.
func (r *attempt) unread(ctx context.Context) (u unread, err error) {
	err = r.store.View(ctx, r.job.UserID, func(tx memory.Tx) error {
		u = unread{}
		if r.state, err = tx.Reading(r.job.Subject); err != nil {
			return err
		}
		if u.texts, u.more, err = unreadTexts(tx, r.job.Subject); err != nil {
			return err
		}
		r.ordered = r.state.Ordered > 0 && (len(u.texts) == 0 || u.texts[0].Seq <= r.state.Ordered)
		if len(u.texts) == 0 {
			return nil
		}
		r.characterID = u.texts[0].CharacterID
		u.quiet = tx.Now().Sub(memory.LastSaid(u.texts))
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return unread{}, nil
	}
	u.turns = memory.TurnsOf(messagesOf(u.texts, time.UTC))
	u.exchanges = exchangesIn(u.turns)
	for _, t := range slices.Backward(u.turns) {
		if t.Messages[len(t.Messages)-1].Role != lang.RoleUser {
			break
		}
		u.open++
	}
	return u, err
}

// exchangesIn counts turns that the user has begun.
func exchangesIn(turns []memory.Turn) (n int) {
	for _, t := range turns {
		if t.Messages[0].Role == lang.RoleUser {
			n++
		}
	}
	return n
}

// messagesOf returns texts as messages, with their times in a zone.
func messagesOf(texts []memory.Text, zone *time.Location) []memory.Message {
	out := make([]memory.Message, len(texts))
	for i, t := range texts {
		out[i] = t.Message
		out[i].At = lang.LocalTime(t.At, zone)
	}
	return out
}

// unreadTexts returns the first texts that are unread and shown; pages come from the end.
func unreadTexts(tx memory.Tx, conversationID string) (texts []memory.Text, more bool, err error) {
	before := int64(memory.AfterAll)
	known := map[string]bool{}
	for {
		page, err := tx.Said(conversationID, memory.SaidFilter{Unread: true, Before: before, Limit: memory.PageOfFacts})
		if err != nil || len(page) == 0 {
			return texts, more, err
		}
		shown, err := shownTexts(tx, page)
		if err != nil {
			return nil, false, err
		}
		shown = slices.DeleteFunc(shown, func(s memory.Text) bool { return known[s.RevisionID] })
		for _, s := range shown {
			known[s.RevisionID] = true
		}
		texts = append(shown, texts...)
		if len(texts) > mostUnread {
			texts, more = texts[:mostUnread], true
		}
		if len(page) < memory.PageOfFacts {
			return texts, more, nil
		}
		before = min(before-1, page[0].Seq+1) // the page may have cut through the texts of one message
	}
}

func shownTexts(tx memory.Tx, texts []memory.Text) ([]memory.Text, error) {
	evidence := make([]memory.Evidence, len(texts))
	for i, t := range texts {
		evidence[i] = t.Evidence
	}
	shown, err := tx.Shown(nil, evidence)
	if err != nil {
		return nil, err
	}
	var out []memory.Text
	for i, t := range texts {
		if shown[i] {
			out = append(out, t)
		}
	}
	return out, nil
}

// due is what is to be done now.
type due struct {
	read  bool
	model bool          // else by rules
	mark  bool          // the texts count as read; else they wait for the model
	after time.Duration // look again then; 0 = when something is said
}

// due decides by the number of exchanges and the time since the last message. A model is worth
// its price for ExtractEvery exchanges, or if no more come. Rules cost nothing, but texts that
// they have read still wait for the model.
func (r *attempt) due(u unread) due {
	all, byRule := due{read: true, model: r.model != nil, mark: true}, due{read: true}
	paid := r.model == nil || r.ordered || r.state.Pays(u.exchanges)
	ready := u.exchanges - u.open
	switch {
	case r.ordered, r.job.Payload != nil, ready >= cmp.Or(r.scene.ExtractEvery, extractEvery):
		if !paid {
			return byRule
		}
		return all
	case u.quiet < idleTime:
		return due{after: idleTime - u.quiet}
	case r.model == nil:
		return all
	case u.exchanges == 0: // only a greeting, or another reply: it waits for an answer
		return due{}
	case !paid:
		return byRule
	case u.quiet >= r.opts.Rest:
		return all
	default:
		return due{read: true, after: r.opts.Rest - u.quiet}
	}
}

// extractEvery is the default number of exchanges that are read at once.
const extractEvery = 5

// part is a window and the texts that it is made of.
type part struct {
	window
	texts []memory.Text
}

// windows cuts what is unread into windows of consecutive texts.
func (r *attempt) windows(ctx context.Context, u unread, d *due) (parts []part, err error) {
	texts := u.texts
	switch n := len(u.turns); {
	case u.more: // the last turn may be cut
		texts = beforeTurn(texts, u.turns[n-1])
	case u.open > 0 && !r.ordered && u.quiet < idleTime: // the last words wait for a reply
		texts, d.after = beforeTurn(texts, u.turns[n-u.open]), idleTime-u.quiet
	}
	err = r.store.View(ctx, r.job.UserID, func(tx memory.Tx) error {
		parts = nil
		runs, err := r.runs(tx, texts)
		if err != nil {
			return err
		}
		for _, run := range runs {
			more, err := r.cut(tx, run)
			if err != nil {
				return err
			}
			parts = append(parts, more...)
		}
		return nil
	})
	return parts, err
}

func beforeTurn(texts []memory.Text, t memory.Turn) []memory.Text {
	at := slices.IndexFunc(texts, func(s memory.Text) bool { return s.Seq >= t.From() })
	return texts[:max(at, 0)]
}

// cut makes windows of a run, each with the preceding turns.
func (r *attempt) cut(tx memory.Tx, run []memory.Text) (parts []part, err error) {
	before, err := tx.Said(r.job.Subject, memory.SaidFilter{Before: run[0].Seq, Limit: contextTexts})
	if err != nil {
		return nil, err
	}
	if before, err = shownTexts(tx, before); err != nil {
		return nil, err
	}
	earlier := memory.TurnsOf(messagesOf(before, r.scene.Location()))
	turns := slices.Concat(earlier, memory.TurnsOf(messagesOf(run, r.scene.Location())))
	for upTo := run[0].Seq - 1; ; {
		w, until := nextWindow(turns, upTo, r.scene.Names)
		if len(w.Turns) == 0 {
			return parts, nil
		}
		p := part{window: w}
		for _, s := range run {
			if s.Seq > upTo && s.Seq <= until {
				p.texts = append(p.texts, s)
			}
		}
		parts, upTo = append(parts, p), until
	}
}

// contextTexts are searched for the turns before a window: some are versions of one message.
const contextTexts = 40

// runs cuts texts where others, read before, are between them.
func (r *attempt) runs(tx memory.Tx, texts []memory.Text) (runs [][]memory.Text, err error) {
	from := 0
	for i := 1; i < len(texts); i++ {
		if texts[i].Seq <= texts[i-1].Seq+1 {
			continue
		}
		apart, err := readBetween(tx, r.job.Subject, texts[i-1].Seq, texts[i].Seq)
		if err != nil {
			return nil, err
		}
		if apart {
			runs, from = append(runs, texts[from:i]), i
		}
	}
	if len(texts) > 0 {
		runs = append(runs, texts[from:])
	}
	return runs, nil
}

// readBetween reports whether a shown text that was read is between two seqs.
func readBetween(tx memory.Tx, conversationID string, from, to int64) (bool, error) {
	texts, err := tx.Said(conversationID, memory.SaidFilter{Before: to, Limit: contextTexts})
	if err != nil {
		return false, err
	}
	texts = slices.DeleteFunc(texts, func(s memory.Text) bool { return s.Seq <= from || !s.Read })
	texts, err = shownTexts(tx, texts)
	return len(texts) > 0, err
}

// endUnless ends the job if err is nil or the subject was deleted.
func (r *attempt) endUnless(ctx context.Context, err error) error {
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return r.end(ctx, 0)
}

// end finishes the job; it runs again after some time, if that is not 0.
func (r *attempt) end(ctx context.Context, after time.Duration) error {
	return r.store.Update(ctx, r.job.UserID, func(tx memory.Tx) error {
		if err := r.settle(tx, 0, true); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err := tx.Jobs.NoteJob(r.job, &r.report); err != nil {
			return err
		}
		return r.finish(tx, after)
	})
}

func (r *attempt) finish(tx memory.Tx, after time.Duration) error {
	if err := tx.Jobs.FinishJob(r.job); err != nil {
		return err
	}
	if after <= 0 {
		return nil
	}
	if err := tx.Jobs.Enqueue(memory.Look(r.job.Subject, tx.Now().Add(after))); err != nil {
		return fmt.Errorf("schedule extraction for a conversation: %w", err)
	}
	return nil
}
