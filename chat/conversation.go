package chat

import (
	"cmp"
	"context"
	"encoding/json"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/memory"
)

// MaxTitle bounds the title of a conversation, in code points.
const MaxTitle = 200

// CreateConversation begins a conversation with a character. Its first message
// is the greeting, with the alternate greetings as swipes.
//
// Errors: NotFound for a character or persona that the user does not have;
// Invalid with the field.
func (svc *Service) CreateConversation(ctx context.Context, c *op.Call, in ConversationInput) (*Conversation, error) {
	if in.CharacterID == "" {
		return nil, fault.InvalidField("characterId", "required", "required")
	}
	if err := op.CheckLine("title", in.Title, MaxTitle); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Conversation, error) {
		ch, err := tx.Characters.CharacterCard(in.CharacterID)
		if err != nil {
			return nil, op.InField("characterId", err)
		}
		conv := &Conversation{
			ID: op.NewID(), CharacterID: ch.ID, Title: cmp.Or(in.Title, op.Truncate(ch.Name, MaxTitle)),
			PersonaID: in.PersonaID, Version: 1, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
		}
		if conv.Settings, err = checkSettings(tx, in.Settings); err != nil {
			return nil, err
		}
		user, err := character.UserPersona(tx.Characters, ch, in.PersonaID)
		if err != nil {
			return nil, err
		}
		first, err := NewGreeting(tx, ch, conv.ID, user)
		if err != nil {
			return nil, err
		}
		conv.PlayID = first.Swipes[0].PlayID
		return conv, InsertConversation(tx, c, conv, first)
	})
}

// InsertConversation stores a conversation with its messages, each the child of
// the one before, and emits events for the conversation and, if it is the only one,
// for its message. Clients read the part of a longer history that they show.
func InsertConversation(tx Tx, c *op.Call, conv *Conversation, messages ...*Message) error {
	if len(messages) > 0 {
		last := messages[len(messages)-1]
		if s := last.Chosen(); s != nil {
			s.RevisionID = cmp.Or(s.RevisionID, op.NewID())
		}
		conv.HeadID, conv.LastMessage = last.ID, last.Preview()
	}
	if err := tx.InsertConversation(conv); err != nil {
		return err
	}
	parent := ""
	for _, m := range messages {
		m.ConversationID, m.ParentID = conv.ID, parent
		parent = m.ID
	}
	if err := tx.InsertMessage(messages...); err != nil {
		return err
	}
	events := []*stream.Event{ConversationEvent(c.UserID, "chat.created", c.By(), conv)}
	if len(messages) == 1 {
		events = append(events, MessageEvent(c.UserID, "message.created", c.By(), messages[0]))
	}
	return tx.Emit(events...)
}

// Conversation returns one of the user's conversations.
func (svc *Service) Conversation(ctx context.Context, userID, id string) (*Conversation, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Conversation, error) {
		conv, err := tx.Conversation(id)
		if err != nil {
			return nil, err
		}
		conv.Play, err = PlayOf(tx, conv.PlayID)
		return conv, err
	})
}

// Conversations lists the user's conversations, the ones that changed last first unless
// the filter says otherwise; limit is 1 to 200, 0 = 50.
func (svc *Service) Conversations(ctx context.Context, userID string, f ConversationFilter, cursor string, limit int) (*op.Page[*Conversation], error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Conversation, string, error) {
		return tx.Conversations(f, cursor, limit)
	})
}

// UpdateConversation changes the members that are given.
//
// Errors: Invalid with the field; NotFound for a persona or character that the
// user does not have; PreconditionFailed when IfVersion is not 0 and not the
// conversation's version.
func (svc *Service) UpdateConversation(ctx context.Context, c *op.Call, in ConversationPatch) (*Conversation, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Conversation, error) {
		conv, err := tx.LockConversation(in.ID)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(in.IfVersion, conv.Version); err != nil {
			return nil, err
		}
		open := !conv.Archived
		if err := in.apply(tx, conv); err != nil {
			return nil, err
		}
		if open && conv.Archived && svc.opts.Memory { // no further messages are expected
			if err := memory.ExtractNow(tx.Memory, conv.ID); err != nil {
				return nil, err
			}
		}
		if conv.Play, err = PlayOf(tx, conv.PlayID); err != nil {
			return nil, err
		}
		return conv, updateConversation(tx, c, conv)
	})
}

func (in ConversationPatch) apply(tx Tx, conv *Conversation) error {
	if in.Title != nil {
		if err := op.CheckLine("title", *in.Title, MaxTitle); err != nil {
			return err
		}
		conv.Title = *in.Title
	}
	if in.PersonaID != nil {
		if *in.PersonaID != "" {
			if _, err := tx.Characters.Resource(character.Persona, *in.PersonaID); err != nil {
				return op.InField("personaId", err)
			}
		}
		conv.PersonaID = *in.PersonaID
	}
	if len(in.AuthorNote) > 0 {
		if err := character.CheckNote("authorNote", in.AuthorNote); err != nil {
			return err
		}
		conv.AuthorNote = op.JSONOrNil(in.AuthorNote)
	}
	if len(in.Settings) > 0 {
		settings, err := checkSettings(tx, in.Settings)
		if err != nil {
			return err
		}
		conv.Settings = settings
	}
	if in.Archived != nil {
		conv.Archived = *in.Archived
	}
	if in.Tags != nil {
		tags, err := op.CheckTags("tags", in.Tags)
		if err != nil {
			return err
		}
		conv.Tags = tags
	}
	if len(in.Variables) > 0 || len(in.Timed) > 0 {
		return in.play(tx, conv)
	}
	return nil
}

// checkSettings reads the settings of a conversation.
func checkSettings(tx Tx, settings json.RawMessage) (json.RawMessage, error) {
	if op.IsNull(settings) {
		return json.RawMessage("{}"), nil
	}
	var o Settings
	if err := op.DecodeStrict("settings", settings, &o); err != nil {
		return nil, err
	}
	if err := o.Validate("settings"); err != nil {
		return nil, err
	}
	if o.CharacterID != "" {
		if _, err := tx.Characters.CharacterCard(o.CharacterID); err != nil {
			return nil, op.InField("settings.characterId", err)
		}
	}
	return op.MustJSON(&o), nil
}

// updateConversation stores conv as its next version and emits its event.
func updateConversation(tx Tx, c *op.Call, conv *Conversation) error {
	conv.Version++
	conv.UpdatedAt = tx.Now()
	if err := tx.UpdateConversation(conv); err != nil {
		return err
	}
	return tx.Emit(ConversationEvent(c.UserID, "chat.updated", c.By(), conv))
}

// Delete deletes a conversation with its messages.
func Delete(tx Tx, c *op.Call, id string) error {
	if err := tx.DeleteConversation(id); err != nil {
		return err
	}
	ev := op.Event(c.UserID, "chat.deleted", c.By(), nil)
	ev.ConversationID = id
	return tx.Emit(ev)
}

// History returns a page of the shown branch, oldest first: the newest messages
// before the message of that id, "" = the newest of all. limit is 1 to 200, 0 = 50.
func (svc *Service) History(ctx context.Context, userID, conversationID, before string, limit int) (*HistoryPage, error) {
	return svc.history(ctx, userID, conversationID, limit, func(tx Tx, conv *Conversation, limit int) ([]*Message, bool, error) {
		if conv.HeadID == "" {
			return []*Message{}, false, nil
		}
		if before != "" {
			if _, err := messageIn(tx, conv.ID, before, "before"); err != nil {
				return nil, false, err
			}
		}
		return tx.Path(conv.ID, conv.HeadID, before, limit)
	})
}

// HistoryAfter returns a page of the shown branch, oldest first, that begins with the
// message after the one of that id. limit is 1 to 200, 0 = 50.
//
// Errors: NotFound (field after) for a message that is not on the shown branch.
func (svc *Service) HistoryAfter(ctx context.Context, userID, conversationID, after string, limit int) (*HistoryPage, error) {
	return svc.history(ctx, userID, conversationID, limit, func(tx Tx, conv *Conversation, limit int) ([]*Message, bool, error) {
		items, more, err := tx.PathAfter(conv.ID, conv.HeadID, after, limit)
		if err != nil {
			err = op.InField("after", err)
		}
		return items, more, err
	})
}

// history returns the page of a conversation that read reads.
func (svc *Service) history(
	ctx context.Context, userID, conversationID string, limit int, read func(Tx, *Conversation, int) ([]*Message, bool, error),
) (*HistoryPage, error) {
	limit, err := op.CheckLimit(limit)
	if err != nil {
		return nil, err
	}
	var conv *Conversation
	page, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*HistoryPage, error) {
		var err error
		if conv, err = tx.Conversation(conversationID); err != nil {
			return nil, err
		}
		tx.NearTexts()
		page := &HistoryPage{}
		if page.Items, page.More, err = read(tx, conv, limit); err == nil {
			page.Displays, err = addFiles(tx, page.Items)
		}
		return page, err
	})
	if err != nil {
		return nil, err
	}
	page.Displays = svc.display(ctx, userID, conv, page.Items) || page.Displays
	return page, nil
}
