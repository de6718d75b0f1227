package circle

import (
	"context"
	"fmt"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// A forwarded post is a message of the user in a private chat. Others of the circle do not
// learn of it; only the author of the post finds a note in its message box.

// Forwarded returns the message with which the user shows a post to a character: text, which
// may be "", then the post with the name of its author and those of its images.
//
// Errors: NotFound for the post and the character; TooLarge for text.
func (svc *Service) Forwarded(ctx context.Context, c *op.Call, postID, characterID, text string) (string, error) {
	if err := op.CheckLength("text", text, MaxComment); err != nil {
		return "", err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (string, error) {
		p, err := tx.Post(postID)
		if err != nil {
			return "", err
		}
		ch, err := tx.Characters.CharacterCard(characterID)
		if err != nil {
			return "", op.InField("characterId", err)
		}
		language, err := ch.Language()
		if err != nil {
			return "", err
		}
		var names []string
		for _, image := range p.Images {
			names = append(names, image.Name)
		}
		words := wordsOf(language).ForwardedPost
		var parts []string
		for _, part := range []string{text, fmt.Sprintf(words.Post, p.AuthorName), p.Text} {
			if strings.TrimSpace(part) != "" {
				parts = append(parts, part)
			}
		}
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf(words.Images, strings.Join(names, ", ")))
		}
		return strings.Join(parts, "\n\n"), nil
	})
}

// NoteForward tells the author of a post that the user has forwarded it, if it is a
// character that is still there.
func (svc *Service) NoteForward(ctx context.Context, c *op.Call, postID string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		p, err := tx.Post(postID)
		if fault.Is(err, fault.NotFound) || err == nil && p.AuthorID == Me {
			return nil
		}
		if err != nil {
			return err
		}
		ch, err := tx.Characters.CharacterCard(p.AuthorID)
		if err != nil {
			return err
		}
		language, err := ch.Language()
		if err != nil {
			return err
		}
		name, err := nameOf(tx, Me)
		if err != nil {
			return err
		}
		item := &Item{
			ID: op.NewID(), CharacterID: ch.ID, SenderID: Me, SenderName: name, Type: itemMessage,
			Text: wordsOf(language).ForwardedPost.Note, ContextID: p.ID, Context: op.Truncate(p.Text, maxContextText), CreatedAt: tx.Now(),
		}
		if err := tx.PutItem(item); err != nil {
			return err
		}
		return emitItem(tx, c.By(), item)
	})
}
