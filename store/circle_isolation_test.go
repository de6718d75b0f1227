package store_test

import (
	"errors"
	"testing"
	"time"

	"nodest/circle"
	"nodest/internal/attachment"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
)

// circleDay is a day of the fixture.
const circleDay = "2026-03-14"

const privateKey = "private-key"

// fillCircle inserts the rows of the circle, and an attachment, of a fixture.
func fillCircle(tx nodest.Tx, x fixture) error {
	c := store.Circle(tx)
	for _, err := range []error{
		store.Attachments(tx).InsertAttachment(&attachment.Attachment{ID: x.attachment, Name: "private"}, []byte("private")),
		c.InsertPost(&circle.Post{ID: x.post, AuthorID: x.character, Text: "private", TextKey: privateKey, Images: []circle.Image{{ID: x.attachment}}}),
		c.InsertComment(&circle.Comment{ID: x.comment, PostID: x.post, AuthorID: x.character, Thread: x.comment, Depth: 1, Text: "private"}),
		errOf(c.PutLike(&circle.Like{PostID: x.post, Thoughts: "private"})),
		errOf(c.InsertTurn(&circle.Turn{ID: x.turn, CharacterID: x.character, PostID: x.post, CommentID: x.comment, State: circle.TurnPlanned, DueAt: start})),
		c.PutRelation(&circle.Relation{CharacterID: x.character, Strength: 5, Type: "stranger", Description: "private"}),
		c.PutItem(&circle.Item{ID: x.item, CharacterID: x.character, Text: "private", ContextID: x.comment}),
		c.InsertAction(&circle.Action{ID: x.action, CharacterID: x.character, Text: "private", State: "pending", ExpiresAt: start}),
		c.PutCircleSettings(&circle.State{Settings: circle.DefaultSettings(), UpdatedAt: start}),
		c.PutSpend(&circle.Spend{Day: circleDay, Calls: 5}),
		c.PutPlan(&circle.Plan{CharacterID: x.character, Day: circleDay, Items: []circle.PlanItem{{ID: "1", Text: "private"}}}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func init() { addIntrusions(circleIntrusions) }

var circleIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"InsertAttachment": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Attachments(tx).InsertAttachment(&attachment.Attachment{ID: x.attachment, Name: "intruder"}, nil)
	},
	"Attachment": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Attachments(tx).Attachment(x.attachment)
		return wantNotFound(e, err)
	},
	"AttachmentData": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Attachments(tx).AttachmentData(x.attachment)
		return wantNotFound(e, err)
	},
	"DeleteAttachment": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Attachments(tx).DeleteAttachment(x.attachment))
	},
	"LockAttachments": func(e *env, tx nodest.Tx, _ fixture) error {
		n, err := store.Attachments(tx).LockAttachments()
		return wantEmpty(e, n == 0, err)
	},

	"InsertPost": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, store.Circle(tx).InsertPost(&circle.Post{ID: id(), AuthorID: x.character})); err != nil {
			return err
		}
		return wantNotFound(e, store.Circle(tx).InsertPost(&circle.Post{ID: id(), Images: []circle.Image{{ID: x.attachment}}}))
	},
	"Post": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Post(x.post)
		return wantNotFound(e, err)
	},
	"Posts": func(e *env, tx nodest.Tx, x fixture) error {
		for _, f := range []circle.PostFilter{{}, {AuthorID: &x.character}} {
			posts, _, err := store.Circle(tx).Posts(f, "", 5)
			if err := wantEmpty(e, len(posts) == 0, err); err != nil {
				return err
			}
		}
		return nil
	},
	"UpdatePost": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).UpdatePost(&circle.Post{ID: x.post, Rating: 1}))
	},
	"WasSaid": func(e *env, tx nodest.Tx, _ fixture) error {
		said, err := store.Circle(tx).WasSaid(privateKey, start.Add(-time.Hour))
		return wantEmpty(e, !said, err)
	},
	"InsertComment": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).InsertComment(&circle.Comment{ID: id(), PostID: x.post}))
	},
	"Comment": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Comment(x.comment)
		return wantNotFound(e, err)
	},
	"Comments": func(e *env, tx nodest.Tx, x fixture) error {
		for latest := range 2 {
			comments, err := store.Circle(tx).Comments(latest, x.post)
			if err := wantEmpty(e, len(comments) == 0, err); err != nil {
				return err
			}
		}
		return nil
	},
	"UpdateComment": func(e *env, tx nodest.Tx, x fixture) error {
		now := tx.Now()
		return wantNotFound(e, store.Circle(tx).UpdateComment(&circle.Comment{ID: x.comment, PostID: x.post, DeletedAt: &now}))
	},
	"PutLike": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).PutLike(&circle.Like{PostID: x.post, Thoughts: "intruder"})
		return wantNotFound(e, err)
	},
	"DeleteLike": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).DeleteLike(x.post, circle.Me)
		return wantNotFound(e, err)
	},

	"InsertTurn": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).InsertTurn(&circle.Turn{ID: id(), CharacterID: x.character, PostID: x.post})
		return wantNotFound(e, err)
	},
	"Turn": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Turn(x.turn)
		return wantNotFound(e, err)
	},
	"UpdateTurn": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).UpdateTurn(&circle.Turn{ID: x.turn, State: circle.TurnDone}))
	},
	"Turns": func(e *env, tx nodest.Tx, x fixture) error {
		for _, f := range []circle.TurnFilter{{}, {CharacterID: x.character}, {PostID: x.post}} {
			turns, _, err := store.Circle(tx).Turns(f, "", 5)
			if err := wantEmpty(e, len(turns) == 0, err); err != nil {
				return err
			}
		}
		return nil
	},
	"CancelTurns": func(_ *env, tx nodest.Tx, x fixture) error { return store.Circle(tx).CancelTurns(x.post, "") },

	"Relation": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := store.Circle(tx).Relation(ownCharacter(e, tx), x.character); !fault.Is(err, fault.NotFound) {
			e.Errorf("another user's character as target: %v", err)
		}
		_, err := store.Circle(tx).Relation(x.character, circle.Me)
		return wantNotFound(e, err)
	},
	"PutRelation": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).PutRelation(&circle.Relation{CharacterID: x.character, Description: "intruder"}))
	},
	"Relations": func(e *env, tx nodest.Tx, x fixture) error {
		all, err := store.Circle(tx).Relations("")
		if err := wantEmpty(e, len(all) == 0, err); err != nil {
			return err
		}
		_, err = store.Circle(tx).Relations(x.character)
		return wantNotFound(e, err)
	},
	"PutItem": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).PutItem(&circle.Item{ID: id(), CharacterID: x.character}))
	},
	"Items": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Items(x.character, false)
		return wantNotFound(e, err)
	},
	"ForgetItems": func(_ *env, tx nodest.Tx, x fixture) error {
		return errors.Join(store.Circle(tx).ForgetItems(x.post, ""), store.Circle(tx).ForgetItems(x.post, x.comment))
	},
	"ReadItems": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).ReadItems(x.character, x.item))
	},
	"InsertAction": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).InsertAction(&circle.Action{ID: id(), CharacterID: x.character}))
	},
	"Action": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Action(x.action)
		return wantNotFound(e, err)
	},
	"UpdateAction": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).UpdateAction(&circle.Action{ID: x.action, CharacterID: x.character, State: "accepted"}))
	},
	"Actions": func(e *env, tx nodest.Tx, x fixture) error {
		all, _, err := store.Circle(tx).Actions("", "", 5)
		if err := wantEmpty(e, len(all) == 0, err); err != nil {
			return err
		}
		_, _, err = store.Circle(tx).Actions(x.character, "", 5)
		return wantNotFound(e, err)
	},

	"CircleState": func(e *env, tx nodest.Tx, _ fixture) error {
		s, err := store.Circle(tx).CircleState()
		return wantEmpty(e, s.UpdatedAt.IsZero(), err)
	},
	"PutCircleState": func(_ *env, tx nodest.Tx, _ fixture) error {
		return store.Circle(tx).PutCircleState(&circle.State{LookedAt: start.Add(time.Hour)})
	},
	"PutCircleSettings": func(_ *env, tx nodest.Tx, _ fixture) error {
		return store.Circle(tx).PutCircleSettings(&circle.State{UpdatedAt: start.Add(time.Hour)})
	},
	"Members": func(e *env, tx nodest.Tx, _ fixture) error {
		all, err := store.Circle(tx).Members()
		return wantEmpty(e, len(all) == 0, err)
	},
	"LockSpend": func(e *env, tx nodest.Tx, _ fixture) error {
		s, err := store.Circle(tx).LockSpend(circleDay)
		return wantEmpty(e, s.Calls == 0, err)
	},
	"PutSpend": func(_ *env, tx nodest.Tx, _ fixture) error {
		return store.Circle(tx).PutSpend(&circle.Spend{Day: circleDay, Calls: 99})
	},
	"Spends": func(e *env, tx nodest.Tx, _ fixture) error {
		all, err := store.Circle(tx).Spends("2000-01-01", "2100-01-01")
		return wantEmpty(e, len(all) == 0, err)
	},
	"Plan": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Circle(tx).Plan(x.character, circleDay)
		return wantNotFound(e, err)
	},
	"PutPlan": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Circle(tx).PutPlan(&circle.Plan{CharacterID: x.character, Day: circleDay}))
	},
}

func TestAttachmentsAreReadWithoutTheirContent(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a := &attachment.Attachment{ID: id(), Name: "tea.png", ContentType: "image/png", Width: 3, Height: 4, Size: 5, ETag: "e"}
		e.update(func(tx nodest.Tx) error { return store.Attachments(tx).InsertAttachment(a, []byte("bytes")) })
		e.update(func(tx nodest.Tx) error {
			got, err := store.Attachments(tx).Attachment(a.ID)
			if err != nil {
				return err
			}
			e.equal("attachment", *got, *a)
			data, err := store.Attachments(tx).AttachmentData(a.ID)
			if err != nil {
				return err
			}
			e.equal("content", string(data), "bytes")
			used, err := store.Attachments(tx).LockAttachments()
			e.equal("bytes of all", used, 5)
			return err
		})
	})
}
