package folder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// UserSettings are the parts of settings.json that mean something here.
type UserSettings struct {
	UserName string
	Avatar   string // file of the persona in use; "" = none
	Default  string // file of the default persona; "" = none
	Personas []PersonaOf
	Scripts  json.RawMessage // the global scripts, an array; nil = none
	World    json.RawMessage // the members world_info_…, an object; nil = none
	Global   []string        // names of the world books for all characters
	Extra    map[string][]string
	Preset   string // name of the preset of chat completion in use; "" = none
	Note     *Note  // the default note of new chats; nil = none
	Notes    map[string]*Note
	Tags     map[string][]string // names of tags by the file of a card, or the id of a group
	// Allowed are files of cards whose scripts may run.
	Allowed   []string
	Variables json.RawMessage // that macros share in all chats, an object; nil = none
	Rest      []string        // members that mean nothing here
}

// PersonaOf is a persona of settings.json.
type PersonaOf struct {
	Avatar      string // its file
	Name        string
	Description string
	Position    *int
	Depth       *int
	Role        *int
	Lorebook    string // name of its world book; "" = none
	Title       string
	Connections json.RawMessage
}

// Note is an author's note.
type Note struct {
	Text     string
	Position *int
	Depth    *int
	Role     *int
	Interval *int
}

// known are the members of settings.json that ReadSettings reads.
var known = []string{"username", "user_avatar", "power_user", "world_info_settings", "world_info", "extension_settings", "oai_settings", "tags", "tag_map"}

// ReadSettings reads settings.json. A member of an odd type counts as absent.
func ReadSettings(data []byte) (*UserSettings, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &all); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	s := &UserSettings{UserName: text(all["username"]), Avatar: text(all["user_avatar"])}
	s.readPersonas(object(all["power_user"]))
	s.readWorld(all)
	s.readExtensions(object(all["extension_settings"]))
	s.Preset = text(object(all["oai_settings"])["preset_settings_openai"])
	s.readTags(all)
	for name := range all {
		if !slices.Contains(known, name) {
			s.Rest = append(s.Rest, name)
		}
	}
	slices.Sort(s.Rest)
	return s, nil
}

func (s *UserSettings) readPersonas(power map[string]json.RawMessage) {
	s.Default = text(power["default_persona"])
	names, described := object(power["personas"]), object(power["persona_descriptions"])
	for avatar, name := range names {
		p := PersonaOf{Avatar: avatar, Name: text(name)}
		d := object(described[avatar])
		p.Description, p.Lorebook, p.Title = text(d["description"]), text(d["lorebook"]), text(d["title"])
		p.Position, p.Depth, p.Role = number(d["position"]), number(d["depth"]), number(d["role"])
		if c := bytes.TrimSpace(d["connections"]); len(c) > 2 {
			p.Connections = c
		}
		s.Personas = append(s.Personas, p)
	}
	slices.SortFunc(s.Personas, func(a, b PersonaOf) int { return cmp.Compare(a.Avatar, b.Avatar) })
}

// readWorld reads the settings of world books, which older versions have at the top.
func (s *UserSettings) readWorld(all map[string]json.RawMessage) {
	from := object(all["world_info_settings"])
	if from == nil {
		from = all
	}
	set := map[string]json.RawMessage{}
	for name, value := range from {
		if len(name) > len("world_info_") && name[:len("world_info_")] == "world_info_" && name != "world_info_settings" {
			set[name] = value
		}
	}
	if len(set) > 0 {
		s.World, _ = json.Marshal(set)
	}
	info := object(from["world_info"])
	s.Global = texts(info["globalSelect"])
	var lore []struct {
		Name  string   `json:"name"`
		Books []string `json:"extraBooks"`
	}
	if json.Unmarshal(info["charLore"], &lore) != nil {
		return
	}
	s.Extra = map[string][]string{}
	for _, l := range lore {
		s.Extra[l.Name] = l.Books
	}
}

func (s *UserSettings) readExtensions(ext map[string]json.RawMessage) {
	if raw := bytes.TrimSpace(ext["regex"]); len(raw) > 2 && raw[0] == '[' {
		s.Scripts = raw
	}
	s.Allowed = texts(ext["character_allowed_regex"])
	if raw := bytes.TrimSpace(object(ext["variables"])["global"]); len(raw) > 2 && raw[0] == '{' {
		s.Variables = raw
	}
	note := object(ext["note"])
	if t := text(note["default"]); t != "" {
		s.Note = &Note{t, number(note["defaultPosition"]), number(note["defaultDepth"]), number(note["defaultRole"]), number(note["defaultInterval"])}
	}
	var chars []map[string]json.RawMessage
	if json.Unmarshal(note["chara"], &chars) != nil {
		return
	}
	s.Notes = map[string]*Note{}
	for _, c := range chars {
		use := string(bytes.TrimSpace(c["useChara"])) == "true"
		if name, t := text(c["name"]), text(c["prompt"]); use && name != "" && t != "" {
			s.Notes[name] = &Note{Text: t}
		}
	}
}

func (s *UserSettings) readTags(all map[string]json.RawMessage) {
	var tags []map[string]json.RawMessage
	if json.Unmarshal(all["tags"], &tags) != nil {
		return
	}
	names := map[string]string{}
	for _, t := range tags {
		names[text(t["id"])] = text(t["name"])
	}
	s.Tags = map[string][]string{}
	for of, ids := range object(all["tag_map"]) {
		for _, id := range texts(ids) {
			if name := names[id]; name != "" {
				s.Tags[of] = append(s.Tags[of], name)
			}
		}
	}
}

// object reads an object; nil = it is none.
func object(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m) // it counts as absent
	return m
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // likewise
	return s
}

// texts reads an array of texts, and leaves out what is none.
func texts(raw json.RawMessage) []string {
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all) // likewise
	var list []string
	for _, one := range all {
		if s := text(one); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func number(raw json.RawMessage) *int {
	var n *int
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}
