package circle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// The user writes, answers, likes, deletes and rates posts.

// PostInput is a post that the user writes, or that one of the user's characters is to
// have written.
type PostInput struct {
	AuthorID string   `json:"authorId,omitempty"` // "" or the id of the account = the user
	Text     string   `json:"text,omitempty"`
	Images   []string `json:"images,omitempty"` // attachments
}

// Post stores a post. Others may react to it.
//
// Errors: Invalid without a text and images, or with too many; TooLarge for the text;
// NotFound for an author or an image that the user does not have; Conflict for an author
// that does not take part in the circle.
func (svc *Service) Post(ctx context.Context, c *op.Call, in PostInput) (*Post, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Post, error) {
		author, name, err := in.author(tx)
		if err != nil {
			return nil, op.InField("authorId", err)
		}
		p := &Post{ID: op.NewID(), AuthorID: author, AuthorName: name, Text: in.Text, CreatedAt: tx.Now()}
		for i, id := range in.Images {
			a, err := tx.Attachments.Attachment(id)
			if err != nil {
				return nil, op.InField(fmt.Sprintf("images[%d]", i), err)
			}
			p.Images = append(p.Images, Image{a.ID, a.Name})
		}
		if err := svc.publish(tx, c.By(), p); err != nil {
			return nil, err
		}
		return p, svc.Looked(tx)
	})
}

func (in *PostInput) check() error {
	switch {
	case len(in.Images) > MaxImages:
		return fault.InvalidField("images", "range", "must have at most %d images", MaxImages)
	case len(in.Images) == 0:
		return op.CheckText("text", in.Text, MaxPost)
	}
	for i, id := range in.Images {
		if slices.Index(in.Images, id) < i {
			return fault.InvalidField(fmt.Sprintf("images[%d]", i), "value", "is there twice")
		}
	}
	return op.CheckLength("text", in.Text, MaxPost)
}

func (in *PostInput) author(tx Tx) (id, name string, err error) {
	if id = fromWire(tx.UserID(), in.AuthorID); id != Me {
		if _, err := takesPart(tx, id); err != nil {
			return "", "", err
		}
	}
	name, err = nameOf(tx, id)
	return id, name, err
}

// DeletePost deletes a post with its comments. Nobody reacts to it any more, and what its
// readers remember of it is forgotten; their message boxes lose it, too.
func (svc *Service) DeletePost(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		p, err := tx.Post(id)
		if err != nil {
			return err
		}
		if err := errors.Join(forgetPost(tx, p), tx.ForgetItems(id, "")); err != nil {
			return err
		}
		now := tx.Now()
		p.DeletedAt = &now
		if err := tx.UpdatePost(p); err != nil {
			return err
		}
		if err := tx.CancelTurns(id, ""); err != nil {
			return err
		}
		return emit(tx, c.By(), "circle.post.deleted", map[string]any{"postId": id})
	})
}

// Comment stores a comment of the user on a post, or a reply to the comment replyTo.
//
// Errors: Invalid and TooLarge for the text; NotFound for the post, and for a comment that
// is deleted or on another post; Conflict if the post has as many comments as it can have.
func (svc *Service) Comment(ctx context.Context, c *op.Call, postID, text, replyTo string) (*Comment, error) {
	if err := op.CheckText("text", text, MaxComment); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Comment, error) {
		p, err := tx.Post(postID)
		if err != nil {
			return nil, err
		}
		if p.Comments >= maxComments {
			return nil, fault.New(fault.Conflict, "the post has %d comments, the limit", p.Comments)
		}
		comment := &Comment{ID: op.NewID(), PostID: p.ID, AuthorID: Me, ReplyTo: replyTo, Depth: 1, Text: strings.TrimSpace(text), CreatedAt: tx.Now()}
		comment.Thread = comment.ID
		if replyTo != "" {
			answered, err := commentOn(tx, p.ID, replyTo)
			if err != nil {
				return nil, op.InField("replyTo", err)
			}
			comment.Thread, comment.Depth = answered.Thread, answered.Depth+1
		}
		if comment.AuthorName, err = nameOf(tx, Me); err != nil {
			return nil, err
		}
		if err := svc.comment(tx, c.By(), p, comment); err != nil {
			return nil, err
		}
		return comment, svc.Looked(tx)
	})
}

// commentOn returns a live comment on a post.
func commentOn(tx Tx, postID, id string) (*Comment, error) {
	c, err := tx.Comment(id)
	if err == nil && c.PostID != postID {
		err = fault.New(fault.NotFound, "no comment %q on this post", id)
	}
	return c, err
}

// DeleteComment deletes a comment, whoever wrote it. Replies to it stay.
func (svc *Service) DeleteComment(ctx context.Context, c *op.Call, postID, id string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		if _, err := tx.Post(postID); err != nil {
			return err
		}
		comment, err := commentOn(tx, postID, id)
		if err != nil {
			return err
		}
		now := tx.Now()
		comment.DeletedAt = &now
		if err := tx.UpdateComment(comment); err != nil {
			return err
		}
		if err := tx.CancelTurns(postID, id); err != nil {
			return err
		}
		if err := errors.Join(forgetComment(tx, comment), tx.ForgetItems(postID, id)); err != nil {
			return err
		}
		return emit(tx, c.By(), "circle.comment.deleted", map[string]any{"postId": postID, "commentId": id})
	})
}

// Like makes the user like a post; it has no effect if the user likes it already.
func (svc *Service) Like(ctx context.Context, c *op.Call, id string) (*Post, error) {
	return svc.change(ctx, c, id, func(tx Tx, p *Post) error {
		name, err := nameOf(tx, Me)
		if err != nil {
			return err
		}
		return svc.like(tx, c.By(), p, &Like{PostID: p.ID, AuthorID: Me, AuthorName: name, CreatedAt: tx.Now()})
	})
}

// Unlike takes the user's like back.
func (svc *Service) Unlike(ctx context.Context, c *op.Call, id string) (*Post, error) {
	return svc.change(ctx, c, id, func(tx Tx, p *Post) error {
		i := slices.IndexFunc(p.Likes, func(l Like) bool { return l.AuthorID == Me })
		if i < 0 {
			return nil
		}
		if _, err := tx.DeleteLike(p.ID, Me); err != nil {
			return err
		}
		return emitLike(tx, c.By(), &p.Likes[i], false)
	})
}

// SetFavorite marks a post as one of the user's favourites, or not.
func (svc *Service) SetFavorite(ctx context.Context, c *op.Call, id string, favorite bool) (*Post, error) {
	return svc.change(ctx, c, id, func(tx Tx, p *Post) error {
		if p.Favorite == favorite {
			return nil
		}
		p.Favorite = favorite
		return updatePost(tx, c.By(), p)
	})
}

// Rate rates a post from 1 to 5.
func (svc *Service) Rate(ctx context.Context, c *op.Call, id string, rating int) (*Post, error) {
	if rating < 1 || rating > 5 {
		return nil, fault.InvalidField("rating", "range", "must be from 1 to 5")
	}
	return svc.change(ctx, c, id, func(tx Tx, p *Post) error {
		if p.Rating == rating {
			return nil
		}
		p.Rating = rating
		return updatePost(tx, c.By(), p)
	})
}

// change changes a post and returns it as it is then.
func (svc *Service) change(ctx context.Context, c *op.Call, id string, fn func(tx Tx, p *Post) error) (*Post, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Post, error) {
		p, err := tx.Post(id)
		if err != nil {
			return nil, err
		}
		if err := fn(tx, p); err != nil {
			return nil, err
		}
		return tx.Post(id)
	})
}

func updatePost(tx Tx, by string, p *Post) error {
	if err := tx.UpdatePost(p); err != nil {
		return err
	}
	return emitPost(tx, by, p)
}
