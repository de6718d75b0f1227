package circle

import (
	"nodest/circle/rules"
	"nodest/internal/jobs"
)

// The effects of every post, comment and like, whoever wrote it: each function stores it, emits
// its event, tells those whom it concerns, changes relationships, adds to memories, and
// lets others react. All of it is in the caller's transaction.

// publish stores a post.
func (svc *Service) publish(tx Tx, by string, p *Post) error {
	p.TextKey = rules.Key(p.Text)
	if err := tx.InsertPost(p); err != nil {
		return err
	}
	if err := emitPost(tx, by, p); err != nil {
		return err
	}
	if err := rememberPost(tx, p, p.AuthorID); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobSpread, Subject: p.ID})
}

func (svc *Service) comment(tx Tx, by string, p *Post, c *Comment) error {
	c.TextKey = rules.Key(c.Text)
	if err := tx.InsertComment(c); err != nil {
		return err
	}
	data := map[string]any{"postId": p.ID, "comment": Wire{UserID: tx.UserID()}.Comment(c)}
	if err := emit(tx, by, "circle.comment", data); err != nil {
		return err
	}
	if err := tellOfComment(tx, by, p, c); err != nil {
		return err
	}
	if err := rememberPost(tx, p, c.AuthorID); err != nil {
		return err
	}
	if err := rememberComment(tx, p, c); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobSpread, Subject: c.ID})
}

// like stores a like, unless its author likes the post already.
func (svc *Service) like(tx Tx, by string, p *Post, l *Like) error {
	added, err := tx.PutLike(l)
	if err != nil || !added {
		return err
	}
	if err := emitLike(tx, by, l, true); err != nil {
		return err
	}
	if err := rememberPost(tx, p, l.AuthorID); err != nil {
		return err
	}
	return tellOfLike(tx, by, p, l)
}

func emitPost(tx Tx, by string, p *Post) error {
	return emit(tx, by, "circle.post", map[string]any{"post": Wire{UserID: tx.UserID()}.Post(p)})
}

// emitLike says that a post is liked, or no longer liked.
func emitLike(tx Tx, by string, l *Like, liked bool) error {
	data := map[string]any{"postId": l.PostID, "like": Wire{UserID: tx.UserID()}.like(l), "liked": liked}
	return emit(tx, by, "circle.like", data)
}

func emitRelation(tx Tx, by string, r *Relation) error {
	return emit(tx, by, "circle.relationship", map[string]any{
		"characterId": r.CharacterID, "targetId": wireID(tx.UserID(), r.TargetID), "strength": r.Strength, "type": r.Type,
	})
}

func emitItem(tx Tx, by string, i *Item) error {
	return emit(tx, by, "circle.message", map[string]any{"characterId": i.CharacterID, "item": Wire{UserID: tx.UserID()}.Item(i)})
}

func emitAction(tx Tx, by string, a *Action) error {
	return emit(tx, by, "circle.message", map[string]any{"characterId": a.CharacterID, "action": Wire{UserID: tx.UserID()}.Action(a)})
}

// emitState says that the settings have changed, or that the circle has fallen asleep or woken.
func emitState(tx Tx, by string, s *State) error {
	return emit(tx, by, "circle.settings", map[string]any{"settings": WireStateOf(s)})
}
