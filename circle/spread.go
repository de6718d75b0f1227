package circle

import (
	"context"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// spread decides without a model who reacts to a post or answers a comment, and when.
func (svc *Service) spread(ctx context.Context, j *jobs.Job) error {
	turns, err := op.Read(ctx, svc.store, j.UserID, func(tx Tx) ([]*Turn, error) { return svc.plan(tx, j.Subject) })
	if err != nil {
		return err
	}
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		for _, t := range turns {
			added, err := tx.InsertTurn(t)
			if err != nil {
				return err
			}
			if !added {
				continue
			}
			if err := tx.Jobs.Enqueue(jobs.Spec{Kind: JobReact, Subject: t.ID, NotBefore: t.DueAt}); err != nil {
				return err
			}
		}
		return tx.Jobs.FinishJob(j)
	})
}

// plan returns the turns that follow from a post or a comment; none if it is gone.
func (svc *Service) plan(tx Tx, subject string) ([]*Turn, error) {
	s, err := newSpreading(tx)
	if err != nil || len(s.members) == 0 {
		return nil, err
	}
	c, err := tx.Comment(subject)
	if fault.Is(err, fault.NotFound) {
		p, err := tx.Post(subject)
		if err != nil || s.state.AsleepAt != nil && p.AuthorID != Me {
			return nil, goneOr(err)
		}
		return svc.planPost(tx, s, p)
	}
	if err != nil {
		return nil, err
	}
	p, err := tx.Post(c.PostID)
	if err != nil || s.state.AsleepAt != nil && c.AuthorID != Me {
		return nil, goneOr(err)
	}
	return s.planComment(tx, p, c)
}

// spreading is what decides who reacts.
type spreading struct {
	members []*character.Character
	state   *State
	set     *character.UserSettings
	now     time.Time // in the user's time zone
	quiet   rules.Quiet
}

func newSpreading(tx Tx) (s *spreading, err error) {
	s = &spreading{}
	if s.members, err = tx.Members(); err != nil {
		return nil, err
	}
	if s.state, err = tx.CircleState(); err != nil {
		return nil, err
	}
	if s.set, err = tx.Characters.Settings(); err != nil {
		return nil, err
	}
	s.now = tx.Now().In(s.set.Zone())
	s.quiet = rules.QuietHours(s.state.Settings.QuietFrom, s.state.Settings.QuietUntil)
	first, err := s.firstDay(tx)
	s.state.Settings.Quick = s.state.Settings.Quick || first
	return s, err
}

// firstDay reports whether the user is trying the circle out: its settings are as they were, and no post of
// the user is older than a day.
func (s *spreading) firstDay(tx Tx) (bool, error) {
	if !s.state.UpdatedAt.IsZero() {
		return false, nil
	}
	older, _, err := tx.Posts(PostFilter{AuthorID: new(Me), Before: s.now.Add(-24 * time.Hour)}, "", 1)
	return len(older) == 0, err
}

func (svc *Service) planPost(tx Tx, s *spreading, p *Post) ([]*Turn, error) {
	lately, err := reactionsLately(tx)
	if err != nil {
		return nil, err
	}
	var candidates []rules.Candidate
	for _, ch := range s.members {
		if ch.ID == p.AuthorID {
			continue
		}
		r, err := tx.Relation(ch.ID, p.AuthorID)
		if err != nil {
			return nil, err
		}
		docs, err := svc.documentsOf(tx, s.set, ch.ID)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, rules.Candidate{
			ID: ch.ID, Name: ch.Name, Strength: r.Strength, Recent: lately[ch.ID],
			About: op.Truncate(docs.Card.Description, maxQuoted) + "\n" + op.Truncate(docs.Card.Personality, maxQuoted),
		})
	}
	subject := rules.Subject{Author: p.AuthorID, Text: p.Text, At: s.now}
	var turns []*Turn
	for _, c := range rules.Choose(rules.Seed(p.ID), subject, candidates, s.state.Settings.Everybody) {
		turns = append(turns, s.turn(c.ID, p.ID, "", p.AuthorID, c.Reason))
	}
	return turns, nil
}

// reactionsLately counts the reactions of each character in the last 24 hours.
func reactionsLately(tx Tx) (map[string]int, error) {
	turns, _, err := tx.Turns(TurnFilter{State: TurnDone, Reactions: true, Since: tx.Now().Add(-24 * time.Hour)}, "", 4*maxDaily)
	lately := map[string]int{}
	for _, t := range turns {
		lately[t.CharacterID]++
	}
	return lately, err
}

// turn is a reaction that is due after a delay of the character's own.
func (s *spreading) turn(characterID, postID, commentID, targetID string, why rules.Reason) *Turn {
	seed := rules.Seed(characterID, postID, commentID)
	delay := s.state.Settings.habit(characterID).Delay(seed, s.now, s.quiet, why, targetID == Me)
	return &Turn{
		ID: op.NewID(), CharacterID: characterID, PostID: postID, CommentID: commentID, TargetID: targetID, Reason: why,
		State: TurnPlanned, DueAt: s.now.Add(delay).UTC(), CreatedAt: s.now.UTC(),
	}
}

// planComment lets the author of the post, the one whose comment is answered and those
// whom the comment names answer it. What characters say to each other below a post is not
// for its author, unless it is named.
func (s *spreading) planComment(tx Tx, p *Post, c *Comment) ([]*Turn, error) {
	comments, err := tx.Comments(0, p.ID)
	if err != nil {
		return nil, err
	}
	addressed := map[string]bool{p.AuthorID: true}
	if c.ReplyTo != "" {
		addressed[p.AuthorID] = c.AuthorID == Me
		to, err := tx.Comment(c.ReplyTo)
		if goneOr(err) != nil {
			return nil, err
		}
		if err == nil {
			addressed[to.AuthorID] = true
		}
	}
	var turns []*Turn
	for _, ch := range s.members {
		named := len(rules.Mentions(c.Text, []string{ch.Name})) > 0
		if ch.ID == c.AuthorID || !addressed[ch.ID] && !named {
			continue
		}
		talk := talkOf(comments, c, ch.ID)
		talk.Mentions, talk.OwnPost = named, p.AuthorID == ch.ID
		if talk.LastThread, err = sinceOtherPost(tx, ch.ID, c.AuthorID, p.ID); err != nil {
			return nil, err
		}
		if answers, _ := rules.Answers(rules.Seed(c.ID, ch.ID), talk); !answers {
			continue
		}
		why := rules.OwnThread
		if named && !addressed[ch.ID] {
			why = rules.Mentioned
		}
		turns = append(turns, s.turn(ch.ID, p.ID, c.ID, c.AuthorID, why))
	}
	return turns, nil
}

// talkOf is what a character knows of the thread of a comment.
func talkOf(comments []*Comment, c *Comment, characterID string) rules.Comment {
	talk := rules.Comment{ByUser: c.AuthorID == Me}
	for _, other := range comments {
		if other.Thread == c.Thread && other.DeletedAt == nil && (other.AuthorID == characterID || other.AuthorID == c.AuthorID) {
			talk.Turns++
			talk.Ended = talk.Ended || other.End
		}
	}
	return talk
}

// sinceOtherPost is how long ago one of two characters answered the other below another
// post in the last hours; 0 = it did not.
func sinceOtherPost(tx Tx, a, b, postID string) (time.Duration, error) {
	since := time.Duration(0)
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if pair[0] == Me {
			continue
		}
		turns, _, err := tx.Turns(TurnFilter{
			CharacterID: pair[0], State: TurnDone, Reactions: true, Since: tx.Now().Add(-2 * time.Hour),
		}, "", maxDaily)
		if err != nil {
			return 0, err
		}
		for _, t := range turns {
			if t.TargetID != pair[1] || t.PostID == postID || t.EndedAt == nil {
				continue
			}
			if ago := tx.Now().Sub(*t.EndedAt); since == 0 || ago < since {
				since = max(ago, 1)
			}
		}
	}
	return since, nil
}
