package cli

import (
	"context"
	"fmt"
)

// Remark is what the server tells of a file, or finds in it.
type Remark struct{ Path, Detail string }

// Line is the remark in one line.
func (r Remark) Line() string {
	if r.Path == "" { // the remark is about the whole file
		return r.Detail
	}
	return r.Path + ": " + r.Detail
}

// Became is the answer to an import of a file.
type Became struct {
	ID       string
	Warnings []Remark

	Character, Conversation *Item
	Resource                *struct {
		Item
		Kind string
	}
	Save     *struct{ ConversationID, Description string }
	Memories *struct {
		Created, Skipped int
		Failed           []struct {
			Line   int
			Detail string
		}
	}
}

// Line says in one line what a file became, or two for a resource that was bound. nouns are the words for the
// kinds of resources.
func (b *Became) Line(ctx context.Context, c *Client, nouns map[string]string) (string, error) {
	switch {
	case b.Memories != nil:
		with, err := c.Get(ctx, Characters, b.ID)
		return fmt.Sprintf("%d memories for %s, %d already known", b.Memories.Created, with.Name, b.Memories.Skipped), err
	case b.Save != nil:
		conv, err := c.Get(ctx, Chats, b.Save.ConversationID)
		return fmt.Sprintf("%s  %s  (save point of %s)", b.ID, b.Save.Description, conv.Title), err
	case b.Conversation != nil:
		with, err := c.Get(ctx, Characters, b.Conversation.CharacterID)
		return fmt.Sprintf("%s  %s  (chat with %s)", b.ID, b.Conversation.Title, with.Name), err
	case b.Resource != nil:
		r, noun := b.Resource, nouns[b.Resource.Kind]
		line := fmt.Sprintf("%s  %s  (%s)", b.ID, r.Name, noun)
		if len(r.CharacterIDs) == 0 {
			return line, nil
		}
		names, err := c.CharacterNames(ctx)
		return fmt.Sprintf("%s\n%s %s is bound to %s", line, noun, r.Name, r.BoundTo(names)), err
	}
	return b.ID + "  " + b.Character.Name, nil
}

// Notes are what people should know about the file, a line each.
func (b *Became) Notes() (notes []string) {
	if b.Memories != nil {
		for _, f := range b.Memories.Failed {
			notes = append(notes, fmt.Sprintf("line %d: %s", f.Line, f.Detail))
		}
	}
	for _, w := range b.Warnings {
		notes = append(notes, w.Line())
	}
	return notes
}
