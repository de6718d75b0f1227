package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// Save is a save point: a named version of a conversation. Its messages are read on
// request.
type Save struct {
	ID             string          `json:"id"`
	ConversationID string          `json:"conversationId"`
	CharacterID    string          `json:"characterId"`
	Version        int64           `json:"version"` // version of the conversation
	HeadID         string          `json:"headId"`
	Description    string          `json:"description"`
	PreviewText    string          `json:"previewText"`
	MessageCount   int             `json:"messageCount"`
	Automatic      bool            `json:"automatic,omitempty"` // made by a restore, of what was shown before
	Thumbnail      string          `json:"thumbnail,omitempty"`
	Pins           *character.Pins `json:"pins,omitempty"`  // the documents as they were
	Extra          json.RawMessage `json:"extra,omitempty"` // members of an imported file that are not ours
	ImportedAt     *time.Time      `json:"importedAt,omitempty"`
	CreatedAt      time.Time       `json:"createdAt"`
}

// Limits of what a user gives a save point.
const (
	MaxDescription = 2_000   // code points
	MaxPreviewText = 1_000   // code points
	MaxThumbnail   = 100_000 // bytes
)

// CreateSave makes a save point of what the conversation shows. It costs the same
// whatever the length of the chat.
//
// Errors: Invalid with the field; NotFound; Busy while a reply is being written
// there.
func (svc *Service) CreateSave(ctx context.Context, c *op.Call, in SaveInput) (*Save, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Save, error) {
		conv, err := LockIdle(tx, in.ConversationID)
		if err != nil {
			return nil, err
		}
		s, err := savedNow(tx, conv)
		if err != nil {
			return nil, err
		}
		s.Description, s.Thumbnail = in.Description, in.Thumbnail
		s.PreviewText = cmp.Or(in.PreviewText, s.PreviewText)
		return s, InsertSave(tx, c, s)
	})
}

// Check returns Invalid with the field.
func (in SaveInput) Check() error {
	for _, t := range []struct {
		field, text string
		length      int // in the unit of its limit
		limit       int
	}{
		{"description", in.Description, utf8.RuneCountInString(in.Description), MaxDescription},
		{"previewText", in.PreviewText, utf8.RuneCountInString(in.PreviewText), MaxPreviewText},
		{"thumbnail", in.Thumbnail, len(in.Thumbnail), MaxThumbnail},
	} {
		switch {
		case !utf8.ValidString(t.text) || strings.ContainsRune(t.text, 0):
			return fault.InvalidField(t.field, "encoding", "must be valid UTF-8 without the NUL character")
		case t.length > t.limit:
			return fault.InvalidField(t.field, "range", "length %d, limit %d", t.length, t.limit)
		}
	}
	return nil
}

// savedNow is a new save point, not stored yet, of a locked conversation.
func savedNow(tx Tx, conv *Conversation) (*Save, error) {
	s := &Save{
		ID: op.NewID(), ConversationID: conv.ID, CharacterID: conv.CharacterID,
		Version: conv.Version, HeadID: conv.HeadID, CreatedAt: tx.Now(),
	}
	if conv.LastMessage != nil {
		s.PreviewText = conv.LastMessage.Text
	}
	var err error
	if s.MessageCount, err = tx.Count(conv.ID, conv.HeadID); err != nil {
		return nil, err
	}
	s.Pins, err = pinnedNow(tx, conv)
	return s, err
}

// InsertSave stores a save point and emits its event.
func InsertSave(tx Tx, c *op.Call, s *Save) error {
	if err := tx.InsertSave(s); err != nil {
		return err
	}
	return tx.Emit(saveEvent(c, "save.created", s))
}

// Saves lists the save points of a conversation, the newest first, those that
// restores made only if asked for; limit is 1 to 200, 0 = 50.
func (svc *Service) Saves(ctx context.Context, userID, conversationID string, automatic bool, cursor string, limit int) (*op.Page[*Save], error) {
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Save, string, error) {
		if _, err := tx.Conversation(conversationID); err != nil {
			return nil, "", err
		}
		return tx.Saves(conversationID, automatic, cursor, limit)
	})
}

// Limits of a save point that is read where no limit is given: the app's ChatSave holds all of it.
const (
	maxSaveView   = 10_000  // messages
	maxSaveTokens = 1 << 20 // about 4 MiB of text
)

// Save returns a save point with its messages as they were: the newest ones before the
// message of that id ("" = from the end), at most limit, 1 to 200; 0 = 10,000. Fewer if their texts
// have more than about 4 MiB.
func (svc *Service) Save(ctx context.Context, userID, saveID, before string, limit int) (*SaveView, error) {
	if limit == 0 {
		limit = maxSaveView
	} else if _, err := op.CheckLimit(limit); err != nil {
		return nil, err
	}
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*SaveView, error) {
		s, err := tx.Save(saveID)
		if err != nil {
			return nil, err
		}
		if before != "" {
			if _, err := messageIn(tx, s.ConversationID, before, "before"); err != nil {
				return nil, err
			}
		}
		v := &SaveView{Save: s, Messages: []*Message{}}
		return v, v.read(tx, before, limit)
	})
}

// read reads the messages before one, in pages.
func (v *SaveView) read(tx Tx, before string, limit int) (err error) {
	if v.Save.HeadID == "" {
		return nil
	}
	tx.NearTexts()
	v.Messages, _, err = ReadPath(before, maxSaveTokens, "", func(before string, size int) (page []*Message, more bool, err error) {
		page, v.More, err = tx.PathAt(v.Save.ConversationID, v.Save.Version, v.Save.HeadID, before, min(size, limit))
		limit -= len(page)
		return page, v.More && limit > 0, err
	})
	return err
}

// Path are the messages of the save point as they were, like Shown.
func (s *Save) Path(tx Tx) iter.Seq2[*Message, error] {
	return walk(s.HeadID, func(after string) ([]*Message, bool, error) {
		return tx.PathAtAfter(s.ConversationID, s.Version, s.HeadID, after, walkPage)
	})
}

// DeleteSave deletes a save point. Its messages stay in the conversation.
func (svc *Service) DeleteSave(ctx context.Context, c *op.Call, saveID string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		s, err := tx.Save(saveID)
		if err != nil {
			return err
		}
		if err := tx.DeleteSave(s.ID); err != nil {
			return err
		}
		return tx.Emit(saveEvent(c, "save.deleted", s))
	})
}

func saveEvent(c *op.Call, kind string, s *Save) *stream.Event {
	ev := op.Event(c.UserID, kind, c.By(), struct {
		Save SaveObject `json:"save"`
	}{eventSave(s)})
	ev.ConversationID = s.ConversationID
	return ev
}

// restoredSaveEvent reports that a conversation was set back to a save point.
func restoredSaveEvent(c *op.Call, s *Save, conv *Conversation) *stream.Event {
	ev := op.Event(c.UserID, "save.restored", c.By(), struct {
		Save SaveObject `json:"save"`
		Head *string    `json:"head"`
	}{eventSave(s), conversationOf(conv).HeadID})
	ev.ConversationID = s.ConversationID
	return ev
}

// State is what the conversation was at a save point. Persona, author's note and
// settings of an imported one came with its file, in Extra.
func (s *Save) State(tx Tx) (*Conversation, error) {
	then, err := tx.StateAt(s.ConversationID, s.Version)
	if err != nil || s.ImportedAt == nil || len(s.Extra) == 0 {
		return then, err
	}
	var came struct {
		State Conversation `json:"state"`
	}
	if err := json.Unmarshal(s.Extra, &came); err != nil {
		return nil, fmt.Errorf("extra members of save point %s: %w", s.ID, err)
	}
	then.PersonaID, then.AuthorNote, then.Settings, then.PlayID = came.State.PersonaID, came.State.AuthorNote, came.State.Settings, came.State.PlayID
	return then, nil
}

// WireSave is s as clients see it in lists, answers and events: the app's
// ChatSave without messages.
func WireSave(s *Save) any { return SaveOf(s) }
