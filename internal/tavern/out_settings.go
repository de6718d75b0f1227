package tavern

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"nodest/card"
	"nodest/character"
	"nodest/internal/tavern/folder"
)

// people are what settings.json says of the user.
type people struct {
	settings  *character.UserSettings
	personas  []personaOut // the oldest first
	gone      []string     // pictures of personas that came in and were deleted
	global    []string     // names of world books for all characters
	variables json.RawMessage
}

// personaOut is a persona as settings.json has it.
type personaOut struct {
	ID      string
	Picture string // its file, by which SillyTavern knows it
	Name    string
	personaDocument
}

// personaDocument are the members of a persona's document that SillyTavern has, too.
type personaDocument struct {
	Avatar      string `json:"avatar"`
	Description string `json:"description"`
	Position    *int   `json:"position"`
	Depth       *int   `json:"depth"`
	Role        *int   `json:"role"`
	Lorebook    string `json:"lorebook"`
	WorldBook   any    `json:"worldBookId"`
}

//go:embed persona.png
var personaPicture []byte // for a persona without one: SillyTavern forgets personas that have none

const personaFolder = "User Avatars"

// personas finds the personas, and writes a picture for those that have none.
func (o *outgoing) personas(ctx context.Context) error {
	err := o.eachResource(ctx, character.Persona, func(r *character.Resource) error {
		p := personaOut{ID: r.ID, Name: r.Name}
		_ = json.Unmarshal(r.Document, &p.personaDocument) // members of another type count as absent
		k, err := o.came(ctx, folder.Persona, r.ID)
		if err != nil {
			return err
		}
		at := o.pathOf(k)
		if at == "" {
			at = path.Join(personaFolder, p.Avatar)
			if path.Dir(at) != personaFolder || !folder.Safe(at) || folder.Classify(at) != folder.Persona || !o.names.Reserve(at) {
				at = o.names.Take(personaFolder, r.Name, ".png")
			}
		}
		p.Picture = at[len(personaFolder)+1:]
		o.people.personas = slices.Insert(o.people.personas, 0, p)
		if k != nil && k.Parts > 0 {
			return nil // it went out as it came
		}
		return o.addBytes(Written{Path: at, ObjectKind: ofPersona, ObjectID: r.ID}, personaPicture)
	})
	if err != nil {
		return err
	}
	return o.store.View(ctx, o.userID, func(tx Tx) error {
		if o.people.variables, err = tx.Characters.Variables(); err != nil {
			return err
		}
		return o.findGone(tx)
	})
}

// cameInSettings begins the path of a persona that came in with settings.json.
const cameInSettings = "settings.json#power_user.personas."

// findGone finds the personas that came in and were deleted.
func (o *outgoing) findGone(tx Tx) error {
	for cursor, more := "", true; more; more = cursor != "" {
		files, next, err := tx.KnownFiles(folder.Settings, "", false, cursor, 100)
		if err != nil {
			return err
		}
		for _, k := range files {
			alive, err := k.alive(tx)
			if err != nil {
				return err
			}
			if picture, ok := strings.CutPrefix(k.Path, cameInSettings); ok && !alive {
				o.people.gone = append(o.people.gone, picture)
			}
		}
		cursor = next
	}
	return nil
}

// settingsFile writes settings.json: the one that came in, with the members that are others now.
func (o *outgoing) settingsFile(ctx context.Context) error {
	var k *Known
	err := o.store.View(ctx, o.userID, func(tx Tx) (err error) {
		k, err = tx.KnownAt(folder.Settings, "settings.json")
		return err
	})
	if err != nil {
		return err
	}
	var came bytes.Buffer
	if k != nil && k.Parts > 0 {
		if err := o.kept(ctx, k, &came); err != nil {
			return err
		}
	}
	f := Written{Path: "settings.json", ObjectKind: ofSettings}
	o.names.Reserve(f.Path)
	base := json.RawMessage(bytes.TrimPrefix(came.Bytes(), []byte("\ufeff")))
	if !json.Valid(base) {
		base = json.RawMessage(`{"main_api":"openai"}`)
	}
	now, changed := o.mergedSettings(base)
	if f.Original = !changed && came.Len() > 0; f.Original {
		return o.addBytes(f, came.Bytes())
	}
	return o.addBytes(f, indented(now))
}

// merger changes members of a document, and leaves those that say the same.
type merger struct {
	doc     json.RawMessage
	changed bool
}

// put sets a member, given by the names that lead to it.
func (m *merger) put(value any, names ...string) {
	want, err := json.Marshal(value)
	if err != nil || sameValue(memberAt(m.doc, names...), want) {
		return
	}
	m.doc, m.changed = withMemberAt(m.doc, want, names...), true
}

func memberAt(doc json.RawMessage, names ...string) json.RawMessage {
	for _, name := range names {
		var members map[string]json.RawMessage
		if json.Unmarshal(doc, &members) != nil {
			return nil
		}
		doc = members[name]
	}
	return doc
}

func withMemberAt(doc, value json.RawMessage, names ...string) json.RawMessage {
	if len(names) == 0 {
		return value
	}
	return card.WithMember(doc, names[0], withMemberAt(memberAt(doc, names[0]), value, names[1:]...))
}

func sameValue(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x) // decoded values encode
	two, _ := json.Marshal(y)
	return bytes.Equal(one, two)
}

// mergedSettings are the settings that came in with what the user has now.
func (o *outgoing) mergedSettings(base json.RawMessage) (doc json.RawMessage, changed bool) {
	was, err := folder.ReadSettings(base)
	if err != nil {
		was, base = &folder.UserSettings{}, json.RawMessage("{}")
	}
	m, now := &merger{doc: base}, o.people.settings
	if now.UserName != "" {
		m.put(now.UserName, "username")
	}
	o.mergePersonas(m, was)
	if len(o.scripts) > 0 {
		m.put(append([]json.RawMessage{}, o.scripts...), "extension_settings", "regex")
	}
	if len(o.people.variables) > 2 {
		m.put(o.people.variables, "extension_settings", "variables", "global")
	}
	if name := o.presets[now.GlobalPreset.ID]; now.GlobalPreset.Enabled && name != "" {
		m.put(name, "oai_settings", "preset_settings_openai")
	}
	global := slices.Clone(o.people.global)
	if name := o.books[now.GlobalWorldBook.ID]; now.GlobalWorldBook.Enabled && name != "" && !slices.Contains(global, name) {
		global = append(global, name)
	}
	for _, name := range was.Global { // books that are not in the folder
		if !slices.Contains(slices.Collect(maps.Values(o.books)), name) {
			global = append(global, name)
		}
	}
	if !sameSet(global, was.Global) {
		slices.Sort(global)
		m.put(global, "world_info_settings", "world_info", "globalSelect")
	}
	return m.doc, m.changed
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// bookOfPersona is the name of its world book: as it came in, where the book was not there; "" = none.
func (o *outgoing) bookOfPersona(p personaOut) string {
	id, _ := p.WorldBook.(string)
	if id == "" {
		return p.Lorebook
	}
	return o.books[id]
}

func text(doc json.RawMessage) (s string) {
	_ = json.Unmarshal(doc, &s) // "" stands for a value of another type
	return s
}

// mergePersonas sets what a persona says. Personas that came in, and that were deleted, are removed.
func (o *outgoing) mergePersonas(m *merger, was *folder.UserSettings) {
	for _, p := range o.people.personas {
		m.put(p.Name, "power_user", "personas", p.Picture)
		at := []string{"power_user", "persona_descriptions", p.Picture}
		fresh := memberAt(m.doc, at...) == nil
		if !fresh || p.Description != "" {
			m.put(p.Description, append(at, "description")...)
		}
		for _, n := range []struct {
			name  string
			value *int
			usual int
		}{{"position", p.Position, 0}, {"depth", p.Depth, 2}, {"role", p.Role, 0}} {
			if n.value != nil {
				m.put(*n.value, append(at, n.name)...)
			} else if fresh && memberAt(m.doc, at...) != nil {
				m.put(n.usual, append(at, n.name)...)
			}
		}
		if book := o.bookOfPersona(p); book != text(memberAt(m.doc, append(at, "lorebook")...)) {
			m.put(book, append(at, "lorebook")...)
		}
		if p.ID == o.people.settings.PersonaID && p.Picture != was.Avatar && p.Picture != was.Default {
			m.put(p.Picture, "user_avatar")
			m.put(p.Picture, "power_user", "default_persona")
		}
	}
	o.removePersonas(m)
}

// removePersonas removes personas that are gone.
func (o *outgoing) removePersonas(m *merger) {
	for _, picture := range o.people.gone {
		used := slices.ContainsFunc(o.people.personas, func(p personaOut) bool { return p.Picture == picture })
		for _, list := range []string{"personas", "persona_descriptions"} {
			if used || memberAt(m.doc, "power_user", list, picture) == nil {
				continue
			}
			var members map[string]json.RawMessage
			_ = json.Unmarshal(memberAt(m.doc, "power_user", list), &members) // it has the picture, so it is an object
			delete(members, picture)
			m.put(members, "power_user", list)
		}
	}
}
