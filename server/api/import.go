package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"nodest/card"
	"nodest/character"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
)

// importAny stores a file of any kind, which the form's field as names or the content shows.
func importAny(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	kind := cmp.Or(card.Kind(f.As), card.Detect(f.Data))
	switch kind {
	case card.KindUnknown:
		return nil, unknownFile(f.Data)
	case card.KindCharacter:
		return importCharacter(ctx, s, call, f)
	case card.KindWorldBook, card.KindPreset, card.KindRegex, card.KindPersona:
		return importResource(character.ResourceKind(kind))(ctx, s, call, f)
	}
	checks := op.Checks{}
	if op.OneOf(&checks, "as", kind, card.Kinds); checks.Err() != nil {
		return nil, checks.Err()
	}
	if err := findOwner(ctx, s, call, kind, &f); err != nil {
		return nil, err
	}
	switch kind {
	case card.KindSave:
		f.ID = f.ConversationID
		return importSave(ctx, s, call, f)
	case card.KindMemories:
		f.ID = f.CharacterID
		return importMemories(ctx, s, call, f)
	default:
		return importConversation(ctx, s, call, f)
	}
}

// findOwner completes the form with the conversation or character that a file belongs to,
// if the file names one of the user's.
func findOwner(ctx context.Context, s *Services, call *op.Call, kind card.Kind, f *File) (err error) {
	missing := fault.InvalidField("characterId", "required", "required: the id of the character").With("kind", string(kind))
	owner := &f.CharacterID
	if kind == card.KindSave {
		missing = fault.InvalidField("conversationId", "required", "required: the id of the conversation").With("kind", string(kind))
		owner = &f.ConversationID
	}
	if *owner != "" {
		return nil
	}
	var named string
	switch kind {
	case card.KindSave:
		if named = archive.ConversationID(f.Data); named != "" {
			_, err = s.Chats.Conversation(ctx, call.UserID, named)
		}
	case card.KindMemories:
		if named, _ = memory.IsExport(f.Data); named != "" {
			_, err = s.Characters.Get(ctx, call.UserID, named)
		}
	default:
		return findCharacter(ctx, s, call, f, missing)
	}
	if named == "" || fault.Is(err, fault.NotFound) {
		return missing
	}
	*owner = named
	return err
}

// findCharacter completes the form with the only character that has the name in a chat. A request
// that was carried out before needs none: whoever has that name by now, it gets its first answer.
func findCharacter(ctx context.Context, s *Services, call *op.Call, f *File, missing *fault.Error) error {
	if done, err := s.Archives.Answered(ctx, call); done || err != nil {
		return err
	}
	name := archive.CharacterName(f.Data)
	if name == "" {
		return missing
	}
	found, err := s.Characters.Named(ctx, call.UserID, name)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return missing.With("name", name)
	}
	f.CharacterID = found[0].ID
	return nil
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
	return fault.New(fault.InvalidImport, "unknown file type: not a file that NodeST can import").With("as", card.Kinds)
}
