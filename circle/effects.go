package circle

import (
	"nodest/jobs"
)

// What every post, comment and like does, whoever wrote it: each function stores it, emits
// its event, tells those whom it concerns, changes relationships, adds to memories, and
// lets others react. All of it is in the caller's transaction.

// publish stores a post.
func (svc *Service) publish(tx Tx, by string, p *Post) error {
	if err := tx.InsertPost(p); err != nil {
		return err
	}
	if err := emit(tx, by, "circle.post", map[string]any{"post": svc.wirePost(tx, p)}); err != nil {
		return err
	}
	if err := rememberPost(tx, p); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobSpread, Subject: p.ID})
}

// comment stores a comment on a post.
func (svc *Service) comment(tx Tx, by string, p *Post, c *Comment) error {
	if err := tx.InsertComment(c); err != nil {
		return err
	}
	if err := emit(tx, by, "circle.comment", map[string]any{"postId": p.ID, "comment": svc.wireComment(tx, c)}); err != nil {
		return err
	}
	if err := tellOfComment(tx, by, p, c); err != nil {
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
	if err := emit(tx, by, "circle.like", map[string]any{"postId": p.ID, "like": svc.wireLike(tx, l), "liked": true}); err != nil {
		return err
	}
	return tellOfLike(tx, by, p, l)
}
