package circle

import (
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// reviewAt is how many unread items of a message box cause a review.
const reviewAt = 8

// maxContextText is how much an item shows of what it is about, in code points.
const maxContextText = 50

// tellOfComment puts a comment into the message boxes of those whom it answers, and
// changes what they think of its author.
func tellOfComment(tx Tx, by string, p *Post, c *Comment) error {
	item := Item{SenderID: c.AuthorID, SenderName: c.AuthorName, Text: c.Text, ContextID: c.ID}
	answered := Me
	if c.ReplyTo != "" {
		to, err := tx.Comment(c.ReplyTo)
		if err != nil {
			return err
		}
		answered = to.AuthorID
		reply := item
		reply.CharacterID, reply.Type, reply.Context = answered, "reply", to.Text
		if err := tell(tx, by, &reply, rules.ReplyDelta); err != nil {
			return err
		}
	}
	if p.AuthorID == answered {
		return nil
	}
	item.CharacterID, item.Type, item.Context = p.AuthorID, "comment", p.Text
	return tell(tx, by, &item, rules.CommentDelta)
}

// tellOfLike does the same for a like.
func tellOfLike(tx Tx, by string, p *Post, l *Like) error {
	return tell(tx, by, &Item{
		CharacterID: p.AuthorID, SenderID: l.AuthorID, SenderName: l.AuthorName, Type: "like", ContextID: p.ID, Context: p.Text,
	}, rules.LikeDelta)
}

// tell puts an item into a message box and changes what its owner thinks of the sender.
// The user has no box, and nobody is told of what they did themselves.
func tell(tx Tx, by string, i *Item, delta int) error {
	if i.CharacterID == Me || i.CharacterID == i.SenderID {
		return nil
	}
	i.ID, i.CreatedAt = op.NewID(), tx.Now()
	i.Context = op.Truncate(i.Context, maxContextText)
	if err := tx.PutItem(i); err != nil {
		return err
	}
	if err := emitItem(tx, by, i); err != nil {
		return err
	}
	r, err := tx.Relation(i.CharacterID, i.SenderID)
	if err != nil {
		return err
	}
	r.Interactions++
	if err := change(tx, by, r, delta, ""); err != nil {
		return err
	}
	unread, err := tx.Items(i.CharacterID, true)
	if err != nil || len(unread) < reviewAt {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobReview, Subject: i.CharacterID, Once: true})
}

// change changes a relationship by the rules and stores it.
func change(tx Tx, by string, r *Relation, delta int, newType string) error {
	r.Strength, r.Type, r.Kept = rules.Changed(r.Strength, r.Type, r.Kept, delta, newType)
	if err := tx.PutRelation(r); err != nil {
		return err
	}
	return emitRelation(tx, by, r)
}

// goneOr returns nil for an error that says that something no longer exists.
func goneOr(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
