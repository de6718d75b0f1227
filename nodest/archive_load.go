package nodest

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"nodest/fault"
)

const (
	loadPage = 1_000 // messages that one transaction stores
	loadRows = 8_000 // of them at most about as many texts and states
)

// ImportArchive makes a conversation with a character of what ExportArchive wrote,
// under new ids: all branches, revisions and states, and the save points, which
// restore as they did. It is stored in pieces that nobody sees, and appears with
// the last one; after a failure there is nothing. Persona, pins and the character
// of the settings stay where the user has them, pins also only with the character
// that they were set for; clientMsgIds stay.
//
// Errors: NotFound for the character (field characterId); InvalidImport with
// details.path for what is damaged or contradicts itself; NewerVersion for a
// format that came after this program; TooLarge for more than 200,000 messages.
func (e *Engine) ImportArchive(ctx context.Context, c *Call, characterID string, data []byte) (*Conversation, error) {
	answered, err := e.answered(ctx, c)
	if err != nil {
		return nil, err
	}
	if answered { // nothing need be loaded to say it again
		return once(ctx, e, c, func(Tx) (*Conversation, error) {
			return nil, fault.New(fault.InProgress, "the idempotency key has just expired; send the request again with a new one")
		})
	}
	a, err := parseArchive(data)
	if err != nil {
		return nil, err
	}
	l, err := a.loadable()
	if err != nil {
		return nil, err
	}
	err = e.store.View(ctx, c.UserID, func(tx Tx) error { return l.fit(tx, characterID, a.Character.ID) })
	if err != nil {
		return nil, err
	}
	if err := e.load(ctx, c.UserID, l); err != nil {
		return nil, err
	}
	return once(ctx, e, c, func(tx Tx) (*Conversation, error) { return l.finish(tx, c) })
}

// answered says whether the key of a call has an answer already.
func (e *Engine) answered(ctx context.Context, c *Call) (yes bool, err error) {
	if c.Key == "" {
		return false, nil
	}
	err = e.store.View(ctx, c.UserID, func(tx Tx) error {
		known, err := tx.Key(c.Key)
		yes = known != nil
		return err
	})
	return yes, err
}

// load stores the messages, hidden, in small transactions.
func (e *Engine) load(ctx context.Context, userID string, l *loadable) error {
	err := e.store.Update(ctx, userID, func(tx Tx) error {
		conv := *l.conv
		return tx.BeginLoad(&conv)
	})
	if err != nil {
		return err
	}
	for rest := l.messages; len(rest) > 0; {
		n, rows := 0, 0
		for n < len(rest) && n < loadPage && rows < loadRows {
			rows += len(rest[n].Texts) + len(rest[n].States)
			n++
		}
		err := e.store.Update(ctx, userID, func(tx Tx) error { return tx.Load(l.conv.ID, rest[:n]) })
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// finish shows what was loaded.
func (l *loadable) finish(tx Tx, c *Call) (*Conversation, error) {
	if _, err := tx.Character(l.conv.CharacterID); err != nil { // again: it may be gone
		return nil, inField("characterId", err)
	}
	conv := *l.conv
	conv.UpdatedAt = tx.Now()
	if err := tx.FinishLoad(&conv, l.states, l.rewinds); err != nil {
		return nil, err
	}
	if err := tx.LoadSummaries(conv.ID, l.summaries); err != nil {
		return nil, err
	}
	for _, s := range l.saves {
		save := *s
		if err := tx.InsertSave(&save); err != nil {
			return nil, err
		}
	}
	return &conv, tx.Emit(conversationEvent(c.UserID, "chat.created", c.by(), &conv))
}

// fit makes what was read the user's own, and a conversation of the character.
func (l *loadable) fit(tx Tx, characterID, sourceID string) error {
	if _, err := tx.Character(characterID); err != nil {
		return inField("characterId", err)
	}
	l.conv.CharacterID = characterID
	known := ownership{tx: tx, have: map[ResourceStamp]bool{}}
	if characterID == sourceID {
		known.character = characterID
	}
	for _, c := range append([]*Conversation{l.conv}, l.states...) {
		if err := known.fit(c); err != nil {
			return err
		}
	}
	for _, s := range l.saves {
		s.CharacterID = characterID
		if err := known.fitSave(s); err != nil {
			return err
		}
	}
	return nil
}

// ownership finds out what of an archive the user has.
type ownership struct {
	tx        Tx
	character string                 // whose pins may stay; "" = none may
	have      map[ResourceStamp]bool // by kind "" a character, by version 0 any version
}

func (o *ownership) fit(c *Conversation) (err error) {
	if c.PersonaID, err = o.persona(c.PersonaID); err != nil {
		return err
	}
	if c.Settings, err = o.settings(c.Settings); err != nil {
		return err
	}
	c.Pins, err = o.pins(c.Pins)
	return err
}

func (o *ownership) fitSave(s *Save) (err error) {
	if s.Pins, err = o.pins(s.Pins); err != nil || len(s.Extra) == 0 {
		return err
	}
	x, err := s.extra()
	if err != nil {
		return err
	}
	if x.State.PersonaID, err = o.persona(x.State.PersonaID); err != nil {
		return err
	}
	if x.State.Settings, err = o.settings(x.State.Settings); err != nil {
		return err
	}
	s.Extra = jsonOf(x)
	return nil
}

// persona is the id of a persona if the user has it, else "".
func (o *ownership) persona(id string) (string, error) {
	if ok, err := o.has(ResourceStamp{Kind: Persona, ID: id}); !ok || err != nil {
		return "", err
	}
	return id, nil
}

// settings are settings without a character that the user does not have.
func (o *ownership) settings(raw json.RawMessage) (json.RawMessage, error) {
	if isNull(raw) {
		return raw, nil
	}
	var settings TurnOptions
	if err := decodeKnown("settings", raw, &settings); err != nil {
		return nil, err
	}
	if ok, err := o.has(ResourceStamp{ID: settings.CharacterID}); ok || err != nil {
		return raw, err
	}
	settings.CharacterID = ""
	return jsonOf(settings), nil
}

// pins returns p if the user has all versions that it names, else nil.
func (o *ownership) pins(p *Pins) (*Pins, error) {
	if p == nil || o.character == "" {
		return nil, nil
	}
	wanted := []ResourceStamp{{ID: cmp.Or(p.CharacterID, o.character), Version: p.Character}}
	for _, r := range p.Resources {
		wanted = append(wanted, ResourceStamp{Kind: r.Kind, ID: r.ID, Version: r.Version})
	}
	for _, stamp := range wanted {
		if ok, err := o.has(stamp); !ok || err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (o *ownership) has(s ResourceStamp) (bool, error) {
	if s.ID == "" {
		return true, nil
	}
	if ok, known := o.have[s]; known {
		return ok, nil
	}
	var err error
	switch {
	case s.Kind == "" && s.Version == 0:
		_, err = o.tx.Character(s.ID)
	case s.Kind == "":
		_, err = o.tx.CharacterVersion(s.ID, s.Version)
	case s.Version == 0:
		_, err = o.tx.Resource(s.Kind, s.ID)
	default:
		_, err = o.tx.ResourceVersion(s.Kind, s.ID, s.Version)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	o.have[s] = err == nil
	return err == nil, nil
}

// idLike makes an id that sorts where id does, because messages are searched in the
// order of their ids.
func idLike(id string) string {
	old, err := uuid.Parse(id)
	if err != nil || old.Version() != 7 {
		return newID()
	}
	made := uuid.Must(uuid.NewV7())
	copy(made[:8], old[:8]) // the time and the version
	return made.String()
}
