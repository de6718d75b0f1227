package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nodest/card"
	"nodest/character"
	"nodest/framework"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/lang"
)

// Setup is the input of a turn apart from the messages of the conversation.
type Setup struct {
	Conversation *Conversation
	Docs         *character.Documents
	Options      character.TurnOptions // message over conversation over preset over user
	Persona      framework.Persona
	Settings     []framework.Setting
	Overrides    Overrides
	Note         *card.AuthorNote
	Zone         *time.Location // time zone of the user's days
}

// ReadSetup reads the setup of conv. options are those of the message.
func (svc *Service) ReadSetup(tx Tx, conv *Conversation, options character.TurnOptions) (*Setup, error) {
	return readSetup(tx, conv, options, svc.characters.Documents)
}

// CompiledSetup is ReadSetup for a transaction that others wait for: nil = its documents must be
// compiled first.
func (svc *Service) CompiledSetup(tx Tx, conv *Conversation, options character.TurnOptions) (*Setup, error) {
	return readSetup(tx, conv, options, svc.characters.CompiledDocuments)
}

func readSetup(tx Tx, conv *Conversation, options character.TurnOptions,
	documents func(character.Tx, character.Wanted, *character.Pins) (*character.Documents, error),
) (*Setup, error) {
	user, err := tx.Characters.Settings()
	if err != nil {
		return nil, err
	}
	s := &Setup{Conversation: conv, Zone: user.Zone()}
	user = conv.Pins.SettingsInForce(user)
	chat, err := SettingsOf(conv)
	if err != nil {
		return nil, err
	}
	own := options.Over(chat.TurnOptions)
	ch := cmp.Or(own.CharacterID, user.CharacterID, conv.CharacterID)
	if s.Docs, err = documents(tx.Characters, character.WantedBy(user, conv.PersonaID, ch), conv.pinsOf(ch)); s.Docs == nil || err != nil {
		return nil, err
	}
	s.Options = own.Over(s.Docs.Sampling).Over(user.TurnOptions)
	if chat.Overrides != nil {
		s.Overrides = *chat.Overrides
	}
	return s, s.complete(user)
}

// setupOf is setup for a character outside a conversation.
func (svc *Service) setupOf(tx Tx, characterID string) (*Setup, error) {
	user, err := tx.Characters.Settings()
	if err != nil {
		return nil, err
	}
	s := &Setup{Conversation: &Conversation{CharacterID: characterID}, Zone: user.Zone()}
	if s.Docs, err = svc.characters.Documents(tx.Characters, character.WantedBy(user, "", characterID), nil); err != nil {
		return nil, err
	}
	return s, s.complete(user)
}

func (s *Setup) complete(user *character.UserSettings) error {
	d := s.Docs
	if global := character.SettingOf(user.CustomSetting); global != nil {
		s.Settings = append(s.Settings, *global)
	}
	if own := character.SettingOf(d.Settings.User.CustomSetting); own != nil && !own.Global {
		s.Settings = append(s.Settings, *own)
	}

	p, chosen := d.Personas[s.Conversation.PersonaID]
	if !chosen {
		id := cmp.Or(d.Bound, user.PersonaID)
		p = d.Personas[id]
		p.Name = cmp.Or(d.Settings.User.Name, p.Name)
	}
	p.Name = cmp.Or(p.Name, user.UserName, "User")
	s.Persona = p

	s.Note = d.Note
	if !op.IsNull(s.Conversation.AuthorNote) {
		note, err := card.ParseAuthorNote(s.Conversation.AuthorNote)
		if err != nil {
			return fmt.Errorf("author's note of conversation %s: %w", s.Conversation.ID, err)
		}
		s.Note = note
	}
	return nil
}

// MemoryScene returns the memory settings of a character and the names in one of its
// conversations, "" = in none: memory.Options.Scenes.
func (svc *Service) MemoryScene(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
	s, err := svc.memorySetup(ctx, userID, characterID, conversationID)
	if err != nil {
		return memory.Scene{}, err
	}
	return s.MemoryScene(), nil
}

// DreamScene returns the settings of a character's documents: dream.Options.Scenes.
func (svc *Service) DreamScene(ctx context.Context, userID, characterID string) (dream.Scene, error) {
	s, err := svc.memorySetup(ctx, userID, characterID, "")
	if err != nil {
		return dream.Scene{}, err
	}
	scene, set := s.MemoryScene(), s.Docs.Settings
	d := dream.Scene{Names: scene.Names, Language: s.Docs.Language, Mode: set.Dream.Mode, At: set.Dream.At, Least: set.Dream.NewMessages, Zone: scene.Location()}
	if !set.Memory.Enabled && d.Mode == dream.Full {
		d.Mode = dream.RecallOnly
	}
	return d, nil
}

// memorySetup reads the setup of a conversation, played by a character ("" = its own), or
// without one that of a character.
func (svc *Service) memorySetup(ctx context.Context, userID, characterID, conversationID string) (s *Setup, err error) {
	err = svc.store.View(ctx, userID, func(tx Tx) error {
		if conversationID == "" {
			s, err = svc.setupOf(tx, characterID)
			return err
		}
		conv, err := tx.Conversation(conversationID)
		if err == nil {
			s, err = svc.ReadSetup(tx, conv, character.TurnOptions{CharacterID: characterID})
		}
		return err
	})
	return s, err
}

// MemoryScene is the part of a setup that the memory uses.
func (s *Setup) MemoryScene() memory.Scene {
	set := s.Docs.Settings
	return memory.Scene{
		Names:   lang.Names{User: s.Persona.Name, Character: s.Docs.Card.Name},
		Enabled: set.Memory.Enabled, ExtractEvery: set.Memory.ExtractEvery,
		Recall: set.Retrieval.Enabled, Limit: set.Retrieval.Limit, Share: set.Retrieval.ShareAcrossConversations,
		Feedback: set.Retrieval.Feedback,
		Zone:     s.Zone,
	}
}

// MemorySettings are the settings of a character that an export of its memory has:
// memory.Options.Settings.
func (svc *Service) MemorySettings(ctx context.Context, userID, characterID string) (memory.ExportedSettings, error) {
	var line memory.ExportedSettings
	full, _, err := svc.characters.Settings(ctx, userID, characterID)
	if err != nil {
		return line, err
	}
	if err := json.Unmarshal(full, &line); err != nil {
		return line, fmt.Errorf("settings of character %s: %w", characterID, err)
	}
	return line, nil
}
