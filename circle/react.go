package circle

import (
	"context"
	"strings"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// server is what events name as their cause where no device is.
const server = "server"

// reactAttempts is how often a reaction is tried while the provider fails.
const reactAttempts = 5

func (svc *Service) reactKinds() []jobs.Kind {
	return []jobs.Kind{
		// One at a time of a user: it looks at every member.
		{Name: JobSpread, Run: svc.spread, PerUser: 1},
		// One at a time, so that each sees what was said before.
		{Name: JobReact, Run: svc.react, PerUser: 1, Attempts: reactAttempts},
		{Name: JobReview, Run: svc.review, Attempts: reviewAttempts},
	}
}

// occasion is what a character reacts to.
type occasion struct {
	turn     *Turn
	post     *Post
	comments []*Comment // comments on the post, oldest first
	answered *Comment   // nil = the post
	who      *character.Character
	set      *character.UserSettings
	state    *State
	now      time.Time // in the user's time zone
}

// react carries out a turn that reacts to a post or to a comment. It asks the model
// outside of any transaction; what comes of it is stored with the end of the job.
func (svc *Service) react(ctx context.Context, j *jobs.Job) error {
	var r *reaction
	var note rules.Note
	var later time.Time
	err := svc.store.View(ctx, j.UserID, func(tx Tx) (err error) {
		var o *occasion
		if o, note, later, err = occasionOf(tx, j.Subject); err != nil || o == nil || note != "" || !later.IsZero() {
			r = nil
			return err
		}
		r, err = svc.prepare(tx, o)
		return err
	})
	switch {
	case err != nil:
		return svc.failed(ctx, j, reactAttempts, cost{}, err)
	case note != "":
		return svc.leaveOut(ctx, j, note, cost{})
	case !later.IsZero():
		return svc.postpone(ctx, j, later)
	case r == nil:
		return nil // the turn has ended
	}
	answer, note, err := svc.decide(ctx, j.UserID, r)
	if err != nil {
		return svc.failed(ctx, j, reactAttempts, r.cost, err)
	}
	return svc.carryOut(ctx, j, r, answer, note)
}

// occasionOf reads what a turn is about, and whether it may still be carried out: note
// says why not, later says when. o is nil if the turn is gone or has ended.
func occasionOf(tx Tx, turnID string) (o *occasion, note rules.Note, later time.Time, err error) {
	t, err := tx.Turn(turnID)
	if err != nil || t.State != TurnPlanned {
		return nil, "", later, goneOr(err)
	}
	o = &occasion{turn: t}
	if err := o.read(tx); err != nil {
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			return o, rules.NoteGone, later, nil
		}
		return nil, "", later, err
	}
	if o.state.AsleepAt != nil {
		return o, rules.NoteAsleep, later, nil
	}
	if o.ended() {
		return o, rules.NoteEnded, later, nil
	}
	quiet := rules.QuietHours(o.state.Settings.QuietFrom, o.state.Settings.QuietUntil)
	if !quiet.End(o.now).IsZero() && t.Reason != rules.AskedFor {
		habit, toUser := o.state.Settings.habit(t.CharacterID), t.TargetID == Me
		return o, "", o.now.Add(habit.Delay(rules.Seed(t.ID), o.now, quiet, t.Reason, toUser)).UTC(), nil
	}
	done, err := interactions(tx, t.CharacterID, o.comments)
	if err != nil {
		return nil, "", later, err
	}
	if settings, err := o.who.ParseSettings(); err != nil {
		return nil, "", later, err
	} else if !rules.Allowed(settings.Circle.Frequency, done, o.interaction()) {
		return o, rules.NoteLimit, later, nil
	}
	return o, "", later, nil
}

// read fails with NotFound or Conflict if something is gone that the turn needs.
func (o *occasion) read(tx Tx) (err error) {
	if o.post, err = tx.Post(o.turn.PostID); err != nil {
		return err
	}
	if o.turn.CommentID != "" {
		if o.answered, err = tx.Comment(o.turn.CommentID); err != nil {
			return err
		}
	}
	if o.who, err = takesPart(tx, o.turn.CharacterID); err != nil {
		return err
	}
	if o.comments, err = tx.Comments(0, o.post.ID); err != nil {
		return err
	}
	if o.state, err = tx.CircleState(); err != nil {
		return err
	}
	if o.set, err = tx.Characters.Settings(); err != nil {
		return err
	}
	o.now = tx.Now().In(o.set.Zone())
	return nil
}

// interaction is what the turn counts as.
func (o *occasion) interaction() rules.Interaction {
	i := rules.Interaction{Author: o.turn.TargetID}
	if o.answered != nil {
		i.Thread = o.answered.Thread
	}
	return i
}

// maxDaily bounds how many of a character's turns of 24 hours are looked at.
const maxDaily = 500

// interactions returns what a character did in the last 24 hours. comments are those of
// the post that matters: only its threads have their ids.
func interactions(tx Tx, characterID string, comments []*Comment) ([]rules.Interaction, error) {
	turns, _, err := tx.Turns(TurnFilter{
		CharacterID: characterID, State: TurnDone, Reactions: true, Since: tx.Now().Add(-24 * time.Hour),
	}, "", maxDaily)
	if err != nil {
		return nil, err
	}
	threads := map[string]string{}
	for _, c := range comments {
		threads[c.ID] = c.Thread
	}
	done := make([]rules.Interaction, 0, len(turns))
	for _, t := range turns {
		i := rules.Interaction{Author: t.TargetID}
		if t.CommentID != "" {
			// Comments of other posts are in threads of their own.
			if i.Thread = threads[t.CommentID]; i.Thread == "" {
				i.Thread = t.CommentID
			}
		}
		done = append(done, i)
	}
	return done, nil
}

// carryOut stores what came of a turn, if it still may, and ends the job.
func (svc *Service) carryOut(ctx context.Context, j *jobs.Job, r *reaction, a rules.Answer, note rules.Note) error {
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		day, err := dayOf(tx)
		if err != nil {
			return err
		}
		if _, err := tx.LockSpend(day); err != nil { // nobody else says anything meanwhile
			return err
		}
		o, gone, _, err := occasionOf(tx, j.Subject)
		if err != nil {
			return err
		}
		if o != nil {
			if err := svc.storeReaction(tx, o, r, a, firstNote(gone, note)); err != nil {
				return err
			}
		}
		return tx.Jobs.FinishJob(j)
	})
}

func firstNote(notes ...rules.Note) rules.Note {
	for _, n := range notes {
		if n != "" {
			return n
		}
	}
	return ""
}

// storeReaction stores a like, a comment, both or nothing, and ends the turn.
func (svc *Service) storeReaction(tx Tx, o *occasion, r *reaction, a rules.Answer, note rules.Note) error {
	t := o.turn
	act := rules.Act{}
	if a.Action != nil {
		act = *a.Action
	}
	likes := act.Like && o.answered == nil && o.post.AuthorID != t.CharacterID
	text := strings.TrimSpace(act.Comment)
	if note == "" {
		var err error
		if note, err = o.nothingNew(tx, r, likes, text); err != nil {
			return err
		}
	}
	if note != "" {
		return endTurn(tx, t, TurnNothing, note, r.cost)
	}
	if likes {
		l := &Like{PostID: o.post.ID, AuthorID: t.CharacterID, AuthorName: o.who.Name, Thoughts: a.Thoughts, CreatedAt: tx.Now()}
		if err := svc.like(tx, server, o.post, l); err != nil {
			return err
		}
	}
	if text != "" {
		if err := svc.comment(tx, server, o.post, o.commentOf(tx, r, a, text)); err != nil {
			return err
		}
	}
	return endTurn(tx, t, TurnDone, "", r.cost)
}

// nothingNew says why nothing comes of a reaction; "" = something does. Somebody else may
// have said the same while the model was asked.
func (o *occasion) nothingNew(tx Tx, r *reaction, likes bool, text string) (rules.Note, error) {
	if text == "" {
		if likes {
			return "", nil
		}
		return rules.NoteChoice, nil
	}
	again, err := said(tx, text)
	if err != nil || again || rules.Repeats(text, nil, o.since(r.comments)) {
		return rules.NoteRepeats, err
	}
	return "", nil
}

func (o *occasion) commentOf(tx Tx, r *reaction, a rules.Answer, text string) *Comment {
	c := &Comment{
		ID: op.NewID(), PostID: o.post.ID, AuthorID: o.turn.CharacterID, AuthorName: o.who.Name, Depth: 1,
		Text: op.Truncate(text, MaxComment), Thoughts: a.Thoughts, Emotion: a.Emotion, Emoticon: a.Emoticon,
		Evidence: r.evidence(a), End: a.End, CreatedAt: tx.Now(),
	}
	c.Thread = c.ID
	if o.answered != nil {
		c.ReplyTo, c.Thread, c.Depth = o.answered.ID, o.answered.Thread, o.answered.Depth+1
	}
	return c
}

// since returns the texts of the comments that were not among earlier ones: another
// process may have added them while the model was asked.
func (o *occasion) since(earlier []*Comment) (texts []string) {
	for _, c := range o.comments[min(len(earlier), len(o.comments)):] {
		texts = append(texts, c.Text)
	}
	return texts
}

// ended reports whether there is no room for another comment, or nothing left to say.
func (o *occasion) ended() bool {
	if o.post.Comments >= maxComments {
		return true
	}
	if o.answered == nil || o.turn.TargetID == Me {
		return false
	}
	talk := talkOf(o.comments, o.answered, o.turn.CharacterID)
	talk.Mentions = true // so that only the end of the thread counts
	goesOn, _ := rules.Answers(0, talk)
	return !goesOn
}
