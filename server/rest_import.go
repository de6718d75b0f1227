package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"nodest/card"
	"nodest/character"
	"nodest/chat/archive"
	"nodest/fault"
	"nodest/memory"
	"nodest/op"
)

// importAny stores a file of any kind, which the form's field as names or the content
// shows.
func (s *Server) importAny(ctx context.Context, call *op.Call, f file) (any, error) {
	kind := cmp.Or(card.Kind(f.as), card.Detect(f.data))
	switch kind {
	case card.KindUnknown:
		return nil, unknownFile(f.data)
	case card.KindCharacter:
		return s.importCharacter(ctx, call, f)
	case card.KindWorldBook, card.KindPreset, card.KindRegex, card.KindPersona:
		return s.importResource(character.ResourceKind(kind))(ctx, call, f)
	}
	if !slices.Contains(card.Kinds, kind) {
		return nil, fault.InvalidField("as", "value", "must be one of %v", card.Kinds)
	}
	if err := s.findOwner(ctx, call.UserID, kind, &f); err != nil {
		return nil, err
	}
	switch kind {
	case card.KindSave:
		f.id = f.conversationID
		return s.importSave(ctx, call, f)
	case card.KindMemories:
		f.id = f.characterID
		return s.importMemories(ctx, call, f)
	default:
		return s.importChat(ctx, call, f)
	}
}

// findOwner completes the form with the conversation or character that a file belongs to,
// if the file names one of the user's.
func (s *Server) findOwner(ctx context.Context, userID string, kind card.Kind, f *file) (err error) {
	field, owner, named := "characterId", &f.characterID, ""
	switch {
	case kind == card.KindSave && f.conversationID == "":
		field, owner = "conversationId", &f.conversationID
		var of struct {
			ConversationID string `json:"conversationId"`
		}
		_ = json.Unmarshal(bytes.TrimPrefix(f.data, []byte("\ufeff")), &of) // of another type it names none
		if of.ConversationID != "" {
			_, err = s.Chats.Conversation(ctx, userID, of.ConversationID)
			*owner = of.ConversationID
		}
	case kind == card.KindMemories && f.characterID == "":
		if id, _ := memory.IsExport(f.data); id != "" {
			_, err = s.Characters.Get(ctx, userID, id)
			*owner = id
		}
	case kind == card.KindChat && f.characterID == "":
		if named = archive.CharacterName(f.data); named != "" {
			*owner, err = s.onlyCharacter(ctx, userID, named)
		}
	default:
		return nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) || err == nil && *owner != "" {
		return err
	}
	missing := fault.InvalidField(field, "required", "required: the file names none of yours").With("kind", string(kind))
	if named != "" {
		missing.Details["name"] = named
	}
	return missing
}

// onlyCharacter is the id of the character with a name; "" if none or several have it.
func (s *Server) onlyCharacter(ctx context.Context, userID, name string) (id string, err error) {
	found, err := s.Characters.Named(ctx, userID, name)
	if len(found) == 1 {
		id = found[0].ID
	}
	return id, err
}

// unknownFile says why a file is none that can be imported.
func unknownFile(data []byte) error {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return err
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(data) == 0 {
		return fault.New(fault.InvalidImport, "the file is empty")
	}
	if data[0] == '{' || data[0] == '[' {
		var document json.RawMessage
		if err := json.Unmarshal(data, &document); err != nil {
			return fault.Wrap(err, fault.InvalidImport, "invalid JSON: %v", err)
		}
	}
	return fault.New(fault.InvalidImport, "unknown file type").With("as", card.Kinds)
}
