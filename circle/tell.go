package circle

import (
	"context"
	"slices"
	"strings"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// lateAfter is how late a turn may be carried out before its slot counts as missed.
const lateAfter = 30 * time.Minute

// Limits of the texts that a post must differ from, and of what a prompt shows of them.
const (
	postsCompared = 20 // own ones
	postsShown    = 8
	maxShownText  = 300 // code points of each
)

// runPost lets a character post. What it writes is stored in the transaction that ends the
// job.
func (svc *Service) runPost(ctx context.Context, j *jobs.Job) error {
	var w *telling
	err := svc.store.Update(ctx, j.UserID, func(tx Tx) (err error) {
		w, err = svc.beginPost(tx, j)
		return err
	})
	if err != nil || w == nil {
		return err
	}
	if w.private() {
		err = svc.greet(ctx, w)
	} else {
		err = svc.write(ctx, w)
	}
	if err != nil {
		return svc.failed(ctx, j, tellAttempts, w.cost, err)
	}
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error { return svc.endPost(tx, j, w) })
}

// telling is a post that is being written.
type telling struct {
	today
	userID string
	turn   *Turn
	ch     *character.Character
	docs   *character.Documents
	items  []told // one of the plan, or what a digest tells of
	kind   rules.Kind
	own    []*Post // the latest ones of the author, newest first
	feed   []*Post // the latest ones of all authors
	user   string  // the name that the user is called by

	ownTexts, feedTexts []string          // that the post must not repeat, newest first
	members             map[string]string // ids of the others by name

	post *Post      // nil = nothing is posted
	note rules.Note // why not
	cost cost
}

// beginPost reads what a post needs. It returns nil, with the job ended, if the character
// does not post now.
func (svc *Service) beginPost(tx Tx, j *jobs.Job) (*telling, error) {
	d, err := readToday(tx)
	if err != nil {
		return nil, err
	}
	if _, err := tx.LockSpend(d.day); err != nil { // the plan of the day does not change meanwhile
		return nil, err
	}
	t, err := tx.Turn(j.Subject)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if err != nil || t.State != TurnPlanned {
		return nil, tx.Jobs.FinishJob(j)
	}
	w := &telling{today: d, userID: j.UserID, turn: t}
	instead, err := w.instead(tx)
	if err == nil && instead == nil && !w.private() {
		err = svc.readPosts(tx, w)
		if err == nil && len(w.items) == 0 { // everything was told
			instead = func() error { return endTurn(tx, t, TurnNothing, rules.NoteRepeats, cost{}) }
		}
	}
	if err != nil || instead == nil {
		return w, err
	}
	if err := tx.Jobs.FinishJob(j); err != nil {
		return nil, err
	}
	return nil, instead()
}

// private says whether the turn is for a private message.
func (w *telling) private() bool { return strings.HasPrefix(w.turn.Slot, messageSlot) }

// instead returns what is to be done instead of carrying the turn out; nil = nothing.
func (w *telling) instead(tx Tx) (func() error, error) {
	t := w.turn
	skip := func(why rules.Note) func() error {
		return func() error { return leaveOutTurn(tx, t, why, cost{}) }
	}
	ch, err := takesPart(tx, t.CharacterID)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
		return skip(rules.NoteGone), nil
	}
	w.ch = ch
	switch late := tx.Now().Sub(t.DueAt); {
	case err != nil:
		return nil, err
	case w.asleep():
		return skip(rules.NoteAsleep), nil
	case late < 0: // it was moved
		return func() error {
			return tx.Jobs.Enqueue(jobs.Spec{Kind: JobPost, Subject: t.ID, NotBefore: t.DueAt})
		}, nil
	case t.Day < w.day && late > lateAfter:
		return skip(rules.NoteMissed), nil
	case late > lateAfter && scheduled(t):
		return func() error { return makeUp(tx, w.today, t) }, nil
	}
	return nil, nil
}

// makeUp puts a missed slot off for a while, so that not everybody posts at once when the
// server starts. Of a character's missed slots of a day the last one is made up; Note marks
// it.
func makeUp(tx Tx, d today, t *Turn) error {
	day, err := allTurns(tx, TurnFilter{CharacterID: t.CharacterID, Slots: true, Day: t.Day})
	if err != nil {
		return err
	}
	at := tx.Now().Add(time.Duration(rules.Seed(t.ID)%uint64(time.Hour/time.Second)) * time.Second)
	over := t.Note == rules.NoteMissed || !d.quiet().End(at.In(d.now.Location())).IsZero() || !at.Before(d.next())
	for _, other := range day {
		if other.ID == t.ID || !scheduled(other) {
			continue
		}
		made := other.Note == rules.NoteMissed && other.State != TurnLeftOut
		later := other.State == TurnPlanned && other.DueAt.After(t.DueAt) && other.DueAt.Before(tx.Now())
		over = over || made || later
	}
	if over {
		return leaveOutTurn(tx, t, rules.NoteMissed, cost{})
	}
	t.Note, t.DueAt = rules.NoteMissed, at
	if err := tx.UpdateTurn(t); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobPost, Subject: t.ID, NotBefore: at})
}

// readPosts reads what the post is to tell, and what it must differ from.
func (svc *Service) readPosts(tx Tx, w *telling) (err error) {
	set, err := tx.Characters.Settings()
	if err != nil {
		return err
	}
	if w.docs, err = svc.documentsOf(tx, set, w.ch.ID); err != nil {
		return err
	}
	if w.feed, _, err = tx.Posts(PostFilter{}, "", postsShown); err != nil {
		return err
	}
	if w.own, _, err = tx.Posts(PostFilter{AuthorID: &w.ch.ID}, "", postsCompared); err != nil {
		return err
	}
	for _, p := range w.own {
		w.ownTexts = append(w.ownTexts, p.Text)
	}
	if _, w.feedTexts, err = recentTexts(tx, w.ch.ID); err != nil {
		return err
	}
	members, err := tx.Members()
	if err != nil {
		return err
	}
	w.user, w.members = wordsOf(w.docs.Language).name(Me, set.UserName), others(members, w.ch.ID, set.UserName)
	if w.turn.Slot == digestSlot {
		w.kind = rules.Digest
		return svc.readDigest(tx, w, members)
	}
	plan, err := svc.planOf(tx, w.docs, w.today)
	if err != nil {
		return err
	}
	var kinds []rules.Kind
	for _, p := range w.own {
		kinds = append(kinds, p.Kind)
	}
	w.kind = rules.Deal(w.turn.CharacterID, kinds)
	w.items = nextItems(plan, w.turn.ID)
	return nil
}

// nextItems is what to tell next: an item of the plan that was not told yet.
func nextItems(p *Plan, seed string) []told {
	left := slices.DeleteFunc(slices.Clone(p.Items), func(i PlanItem) bool { return i.Used })
	if len(left) == 0 {
		return nil
	}
	return []told{{left[rules.Seed(seed)%uint64(len(left))], p.CharacterID}}
}

// endPost stores a post, or why there is none, and ends the job.
func (svc *Service) endPost(tx Tx, j *jobs.Job, w *telling) error {
	if err := tx.Jobs.FinishJob(j); err != nil {
		return err
	}
	if _, err := tx.LockSpend(w.day); err != nil {
		return err
	}
	t, err := tx.Turn(w.turn.ID)
	if fault.Is(err, fault.NotFound) || err == nil && t.State != TurnPlanned {
		return nil // it was left out meanwhile
	}
	if err != nil {
		return err
	}
	if w.private() {
		if w.note != "" {
			return leaveOutTurn(tx, t, w.note, w.cost)
		}
		return endTurn(tx, t, TurnDone, "", w.cost)
	}
	if err := useItems(tx, w); err != nil {
		return err
	}
	if w.post == nil {
		return endTurn(tx, t, TurnNothing, w.note, w.cost)
	}
	p := *w.post // a transaction may run twice
	p.ID, p.CreatedAt = op.NewID(), tx.Now()
	again, err := said(tx, p.Text)
	if err != nil {
		return err
	}
	if again {
		return endTurn(tx, t, TurnNothing, rules.NoteRepeats, w.cost)
	}
	t.PostID = p.ID
	if err := svc.publish(tx, server, &p); err != nil {
		return err
	}
	return endTurn(tx, t, TurnDone, t.Note, w.cost)
}

// useItems marks what was told, or could not be told. The plan may have changed since it
// was read.
func useItems(tx Tx, w *telling) error {
	plan, err := tx.Plan(w.ch.ID, w.day)
	if err != nil || plan == nil {
		return err
	}
	for i := range plan.Items {
		for _, used := range w.items {
			plan.Items[i].Used = plan.Items[i].Used || plan.Items[i].ID == used.ID
		}
	}
	return tx.PutPlan(plan)
}

// tellAttempts is how often a post or a message is tried.
const tellAttempts = 5

// tellKinds are the jobs that make characters speak first.
func (svc *Service) tellKinds() []jobs.Kind {
	return []jobs.Kind{
		{Name: JobDay, Run: svc.runDay, Attempts: 1_000_000}, // the days end with it
		{Name: JobPost, Run: svc.runPost, Attempts: tellAttempts},
		{Name: JobMessage, Run: svc.runMessage},
	}
}
