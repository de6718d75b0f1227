package archive

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// ImportArchive makes a conversation with a character of what ExportArchive wrote,
// under new ids: all branches, revisions and states, and the save points, which
// restore as they did. Persona, pins and the character of the settings stay where the user
// has them, pins also only with the character that they were set for; clientMsgIds stay.
//
// Errors: NotFound for the character (field characterId); InvalidImport with the
// field (and details.path) of what is damaged or contradicts itself; NewerVersion for
// a format that came after this program; TooLarge for more than 200,000 messages.
func (svc *Service) ImportArchive(ctx context.Context, c *op.Call, characterID string, data []byte) (*chat.Conversation, error) {
	if known, err := svc.Answered(ctx, c); known || err != nil {
		return replayed[chat.Conversation](ctx, svc, c, err)
	}
	a := &contents{}
	if err := readFile(data, archiveFormat, false, archiveLimits, a); err != nil {
		return nil, err
	}
	if _, err := a.check(""); err != nil {
		return nil, err
	}
	if err := svc.store.View(ctx, c.UserID, func(tx chat.Tx) error { return a.fit(tx, characterID) }); err != nil {
		return nil, err
	}
	p := a.conversation()
	return Import(ctx, svc, c, p, func() (*chat.Conversation, error) {
		return op.Once(ctx, svc.store, c, func(tx chat.Tx) (*chat.Conversation, error) { return a.finish(tx, c, p) })
	})
}

// finish stores the last piece and makes the conversation visible.
func (a *contents) finish(tx chat.Tx, c *op.Call, p *Pieces) (*chat.Conversation, error) {
	if err := p.Finish(tx); err != nil {
		return nil, err
	}
	conv := a.Conversation.Conversation
	if _, err := tx.Characters.CharacterCard(conv.CharacterID); err != nil { // again: it may be gone
		return nil, op.InField("characterId", err)
	}
	conv.UpdatedAt = tx.Now()
	if err := tx.FinishLoad(&conv, a.States, a.Rewinds); err != nil {
		return nil, err
	}
	if err := tx.LoadSummaries(conv.ID, a.Summaries); err != nil {
		return nil, err
	}
	if err := a.insertPlays(tx, conv.ID); err != nil {
		return nil, err
	}
	for _, s := range a.Saves {
		save := *s
		if err := tx.InsertSave(&save); err != nil {
			return nil, err
		}
	}
	return &conv, tx.Emit(chat.ConversationEvent(c.UserID, "chat.created", c.By(), &conv))
}

func (a *contents) insertPlays(tx chat.Tx, conversationID string) error {
	for _, p := range a.Plays {
		p.ConversationID = conversationID
		if err := tx.InsertPlay(p); err != nil {
			return err
		}
	}
	return nil
}

// fit assigns a checked archive to the character and removes references to what the user
// does not have.
func (a *contents) fit(tx chat.Tx, characterID string) error {
	if _, err := tx.Characters.CharacterCard(characterID); err != nil {
		return op.InField("characterId", err)
	}
	known := a.owned(tx, characterID)
	conv := &a.Conversation.Conversation
	conv.CharacterID = characterID
	for _, c := range append([]*chat.Conversation{conv}, a.States...) {
		if err := known.fit(c); err != nil {
			return err
		}
	}
	for _, s := range a.Saves {
		x, err := importedWith(s)
		if err != nil {
			return err
		}
		x.State.Pins = s.Pins
		if err := known.fit(&x.State); err != nil {
			return err
		}
		s.CharacterID, s.Pins, x.State.Pins = characterID, x.State.Pins, nil
		if len(s.Extra) > 0 {
			s.Extra = encoded(x)
		}
	}
	return nil
}

func (a *contents) owned(tx chat.Tx, characterID string) *ownership {
	known := &ownership{tx: tx, have: map[character.ResourceStamp]bool{}}
	if characterID == a.Character.ID {
		known.character = characterID
	}
	return known
}

// ownership looks up which characters and documents of an archive the user has.
type ownership struct {
	tx        chat.Tx
	character string                           // whose pins may stay; "" = none may
	have      map[character.ResourceStamp]bool // by kind "" a character, by version 0 any version
}

// fit removes from a state what the user does not have: pinned documents, a
// persona that neither exists nor is pinned, the character of the settings.
func (o *ownership) fit(c *chat.Conversation) (err error) {
	if c.Pins, err = o.pins(c.Pins); err != nil {
		return err
	}
	if c.Pins == nil || !slices.Contains(c.Pins.IDs(), c.PersonaID) {
		if ok, err := o.has(character.ResourceStamp{Kind: character.Persona, ID: c.PersonaID}); err != nil {
			return err
		} else if !ok {
			c.PersonaID = ""
		}
	}
	settings, err := chat.SettingsOf(c)
	if err != nil {
		return err
	}
	if ok, err := o.has(character.ResourceStamp{ID: settings.CharacterID}); ok || err != nil {
		return err
	}
	settings.CharacterID = ""
	c.Settings = op.MustJSON(settings)
	return nil
}

// pins are p as far as the user has the versions that it names; nil without that
// of the character.
func (o *ownership) pins(p *character.Pins) (*character.Pins, error) {
	if p == nil || o.character == "" {
		return nil, nil
	}
	ok, err := o.has(character.ResourceStamp{ID: cmp.Or(p.CharacterID, o.character), Version: p.Character})
	if !ok || err != nil {
		return nil, err
	}
	own := *p
	own.Resources = nil
	for _, r := range p.Resources {
		ok, err := o.has(character.ResourceStamp{Kind: r.Kind, ID: r.ID, Version: r.Version})
		if err != nil {
			return nil, err
		}
		if ok {
			own.Resources = append(own.Resources, r)
		}
	}
	return &own, nil
}

func (o *ownership) has(s character.ResourceStamp) (bool, error) {
	if s.ID == "" {
		return true, nil
	}
	if ok, known := o.have[s]; known {
		return ok, nil
	}
	var err error
	switch {
	case s.Kind == "" && s.Version == 0:
		_, err = o.tx.Characters.CharacterCard(s.ID)
	case s.Kind == "":
		_, err = o.tx.Characters.CharacterVersion(s.ID, s.Version)
	case s.Version == 0:
		_, err = o.tx.Characters.Resource(s.Kind, s.ID)
	default:
		_, err = o.tx.Characters.ResourceVersion(s.Kind, s.ID, s.Version)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	o.have[s] = err == nil
	return err == nil, nil
}

// idLike makes an id that sorts like id, because search orders messages by id.
func idLike(id string) string {
	old, err := uuid.Parse(id)
	if err != nil || old.Version() != 7 {
		return op.NewID()
	}
	made := uuid.Must(uuid.NewV7())
	copy(made[:8], old[:8]) // the time and the version
	return made.String()
}
