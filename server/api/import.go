package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"nodest/card"
	"nodest/card/foreign"
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
	case card.KindWorldBook, card.KindPreset, card.KindRegex, card.KindPersona, card.KindTemplate:
		return importResource(character.ResourceKind(kind))(ctx, s, call, f)
	}
	checks := op.Checks{}
	checks.That(f.MakeCharacter == "" || f.MakeCharacter == "true" || f.MakeCharacter == "false", "makeCharacter", "value", "must be true or false")
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
	switch {
	case len(found) == 1:
		f.CharacterID = found[0].ID
		return nil
	case f.MakeCharacter == "true":
		return makeCharacter(ctx, s, call, f, name)
	}
	return missing.With("name", name)
}

// makeCharacter completes the form of a chat with a new character: the one that the file has beside the messages, as
// those of character.ai do, else one that has a name and nothing else. A repeated request makes no second one.
func makeCharacter(ctx context.Context, s *Services, call *op.Call, f *File, name string) error {
	own := *call
	if call.Key != "" {
		own.Key, own.Hash = Hash("chat.character", []byte(call.Key)), Hash("chat.character", []byte(call.Hash))
	}
	var doc foreign.Doc
	if json.Unmarshal(f.Data, &doc) == nil && foreign.ProgramOf(doc) != foreign.None {
		got, err := s.Characters.Import(ctx, &own, f.Data, f.Name)
		if err != nil {
			return err
		}
		f.CharacterID = got.Character.ID
		return nil
	}
	role, err := json.Marshal(map[string]string{"name": character.OneLine(name)})
	if err != nil {
		return err
	}
	made, err := s.Characters.Create(ctx, &own, character.Input{RoleCard: role, Dialect: string(card.SillyTavern)})
	if err != nil {
		return err
	}
	f.CharacterID = made.ID
	return nil
}

// risuModule begins the files in which Risu keeps modules.
const risuModule = "\x6f\x00"

// unknownFile says why a file is none that can be imported.
func unknownFile(data []byte) error {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return err
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(data) == 0 {
		return fault.New(fault.InvalidImport, "the file is empty")
	}
	if bytes.HasPrefix(data, []byte(risuModule)) {
		return fault.New(fault.InvalidImport, "a Risu module (.risum) cannot be read; export its lorebook from Risu as JSON")
	}
	if data[0] == '{' || data[0] == '[' {
		var document json.RawMessage
		if err := json.Unmarshal(data, &document); err != nil {
			return fault.Wrap(err, fault.InvalidImport, "invalid JSON: %v", err)
		}
	}
	if settingsOfSillyTavern(data) {
		return fault.New(fault.InvalidImport, "these are SillyTavern's settings; import its whole folder instead (nodest import --sillytavern FOLDER)").With("folder", "sillytavern")
	}
	return fault.New(fault.InvalidImport, "unknown file type: not a file that NodeST can import").With("as", card.Kinds)
}

// settingsOfSillyTavern reports whether data is its settings.json.
func settingsOfSillyTavern(data []byte) bool {
	var doc map[string]json.RawMessage
	return json.Unmarshal(data, &doc) == nil && doc["power_user"] != nil && doc["oai_settings"] != nil
}
