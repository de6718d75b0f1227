package app

import (
	"bytes"
	"encoding/json"

	"nodest/card"
	"nodest/character"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// documents are what an app sends in jsonString.
type documents struct {
	roleCard, worldBook, preset, authorNote, scripts json.RawMessage // nil = not given
	history                                          []archive.Entry
	others                                           map[string]json.RawMessage // members that are not ours, for export
}

// readDocuments reads a jsonString: an object, or the text of one. All parts
// may be absent; package character fills in defaults.
func readDocuments(raw json.RawMessage) (*documents, error) {
	const field = "jsonString"
	if op.IsNull(raw) {
		return nil, fault.InvalidField(field, "required", "required")
	}
	if bytes.TrimSpace(raw)[0] == '"' {
		var text string
		if err := op.DecodeStrict(field, raw, &text); err != nil {
			return nil, err
		}
		raw = json.RawMessage(text)
	}
	members := map[string]json.RawMessage{}
	if err := op.DecodeStrict(field, raw, &members); err != nil {
		return nil, err
	}
	take := func(name string) json.RawMessage {
		doc := members[name]
		delete(members, name)
		return doc
	}
	d := &documents{
		roleCard: take("roleCard"), worldBook: take("worldBook"), preset: take("preset"),
		authorNote: take("authorNote"), scripts: take("regexScripts"),
	}
	if history := take("chatHistory"); !op.IsNull(history) {
		var err error
		if d.history, err = archive.ReadHistory(field+".chatHistory", history); err != nil {
			return nil, err
		}
	}
	d.others = members
	if _, err := card.ExtraGreetings(op.MustJSON(members)); err != nil {
		return nil, op.InField(field, err)
	}
	return d, d.nameCard()
}

// nameCard gives a role card without a name that of the basic card: the app lets
// cards be nameless.
func (d *documents) nameCard() error {
	const field = "jsonString.roleCard"
	err := op.CheckKind(field, d.roleCard, "{")
	if err != nil || op.IsNull(d.roleCard) || character.CardName(d.roleCard) != "" {
		return err
	}
	basic, err := card.ParseRoleCard(nil)
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := op.DecodeStrict(field, d.roleCard, &members); err != nil {
		return err
	}
	members["name"] = op.MustJSON(basic.Name)
	d.roleCard = op.MustJSON(members)
	return nil
}

// input is the character that the documents describe. What is inside a card goes
// with it: its regex scripts always, its book if no other is given.
func (d *documents) input(isCradle *bool) (character.Input, error) {
	in := character.Input{
		RoleCard: d.roleCard, WorldBook: d.worldBook, Preset: d.preset, AuthorNote: d.authorNote,
		RegexScripts: d.scripts, IsCradle: isCradle, Dialect: string(card.NodeST),
	}
	if op.IsNull(d.roleCard) {
		return in, nil
	}
	book, scripts, err := character.EmbeddedIn(d.roleCard)
	if len(in.WorldBook) == 0 {
		in.WorldBook = book
	}
	if len(in.RegexScripts) == 0 {
		in.RegexScripts = json.RawMessage("null")
		if scripts != nil {
			in.RegexScripts = scripts
		}
	}
	return in, err
}

// kept is what a character keeps of the other members; nil for nothing.
func (d *documents) kept() json.RawMessage {
	if len(d.others) == 0 {
		return nil
	}
	return op.MustJSON(character.Source{Extra: op.MustJSON(d.others)})
}
