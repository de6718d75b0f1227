package circle

import (
	"context"
	"time"

	"nodest/internal/op"
)

// latestComments is how many comments a post has in the feed.
const latestComments = 3

// Entry is a post with comments.
type Entry struct {
	Post     *Post
	Comments []*Comment // oldest first
}

// FeedFilter selects posts of the feed; the zero value selects all.
type FeedFilter struct {
	AuthorID  string // the id of the account = the user; "" = anybody
	Favorites bool
}

// Feed lists posts newest first, each with its latest comments; limit is 1 to 200, 0 = 50.
// Reading it counts as a look at the circle.
//
// Errors: NotFound for an author that the user does not have.
func (svc *Service) Feed(ctx context.Context, c *op.Call, f FeedFilter, cursor string, limit int) (*op.Page[*Entry], error) {
	page, err := op.List(ctx, svc.store, c.UserID, limit, func(tx Tx, limit int) ([]*Entry, string, error) {
		filter := PostFilter{Favorite: f.Favorites}
		if f.AuthorID != "" {
			author := fromWire(c.UserID, f.AuthorID)
			if author != Me {
				if _, err := tx.Characters.CharacterCard(author); err != nil {
					return nil, "", op.InField("authorId", err)
				}
			}
			filter.AuthorID = &author
		}
		posts, next, err := tx.Posts(filter, cursor, limit)
		if err != nil {
			return nil, "", err
		}
		entries, err := withComments(tx, latestComments, posts...)
		return entries, next, err
	})
	if err != nil {
		return nil, err
	}
	return page, svc.look(ctx, c.UserID)
}

// withComments reads the latest comments of posts; 0 = all.
func withComments(tx Tx, latest int, posts ...*Post) ([]*Entry, error) {
	if len(posts) == 0 {
		return nil, nil
	}
	entries, ids, of := make([]*Entry, len(posts)), make([]string, len(posts)), map[string]*Entry{}
	for i, p := range posts {
		entries[i], ids[i] = &Entry{Post: p}, p.ID
		of[p.ID] = entries[i]
	}
	comments, err := tx.Comments(latest, ids...)
	if err != nil {
		return nil, err
	}
	for _, c := range comments {
		of[c.PostID].Comments = append(of[c.PostID].Comments, c)
	}
	return entries, nil
}

// look notes that the user looks at the circle.
func (svc *Service) look(ctx context.Context, userID string) error {
	recent, err := op.Read(ctx, svc.store, userID, func(tx Tx) (bool, error) {
		s, err := tx.CircleState()
		return err == nil && s.AsleepAt == nil && tx.Now().Sub(s.LookedAt) < time.Hour, err
	})
	if err != nil || recent {
		return err
	}
	return svc.store.Update(ctx, userID, svc.Looked)
}

// Read returns a post with all of its comments.
func (svc *Service) Read(ctx context.Context, userID, id string) (*Entry, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Entry, error) {
		p, err := tx.Post(id)
		if err != nil {
			return nil, err
		}
		entries, err := withComments(tx, 0, p)
		if err != nil {
			return nil, err
		}
		return entries[0], nil
	})
}

// PostTurns lists the turns about a post, newest first: what is planned, and what became of
// the rest.
func (svc *Service) PostTurns(ctx context.Context, userID, postID, cursor string, limit int) (*op.Page[*Turn], error) {
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Turn, string, error) {
		if _, err := tx.Post(postID); err != nil {
			return nil, "", err
		}
		return tx.Turns(TurnFilter{PostID: postID}, cursor, limit)
	})
}

// Turns lists turns newest first: those of a character ("" = all) in a state ("" = any).
func (svc *Service) Turns(ctx context.Context, userID, characterID string, state TurnState, cursor string, limit int) (*op.Page[*Turn], error) {
	if state != "" {
		var c op.Checks
		op.OneOf(&c, "state", state, turnStates)
		if err := c.Err(); err != nil {
			return nil, err
		}
	}
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Turn, string, error) {
		if err := isCharacter(tx, characterID); err != nil {
			return nil, "", err
		}
		return tx.Turns(TurnFilter{CharacterID: characterID, State: state}, cursor, limit)
	})
}

var turnStates = []TurnState{TurnPlanned, TurnDone, TurnNothing, TurnLeftOut, TurnFailed}

// isCharacter returns fault.NotFound for an id that is neither "" nor one of a character of
// the user.
func isCharacter(tx Tx, id string) error {
	if id == "" {
		return nil
	}
	if _, err := tx.Characters.CharacterCard(id); err != nil {
		return op.InField("characterId", err)
	}
	return nil
}
