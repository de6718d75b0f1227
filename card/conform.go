package card

import (
	"encoding/json"
	"slices"
	"strconv"
)

// The specifications of V2 and V3 require members that many cards do not have, and types
// that many cards do not keep to. conform makes the data of an exported card valid by
// them. It tells what it has changed, so that an import of the file gives the card as it
// was.

// specMember is a member that a specification gives a type.
type specMember struct {
	key      string
	fix      func(json.RawMessage) (json.RawMessage, bool) // false: no value of the type is meant
	required any                                           // the value where it is missing; nil = it may be missing
	v3       bool                                          // required in V3 alone
}

var dataMembers = []specMember{
	{key: "name", fix: asText, required: ""}, {key: "description", fix: asText, required: ""},
	{key: "personality", fix: asText, required: ""}, {key: "scenario", fix: asText, required: ""},
	{key: "first_mes", fix: asText, required: ""}, {key: "mes_example", fix: asText, required: ""},
	{key: "creator_notes", fix: asText, required: ""}, {key: "system_prompt", fix: asText, required: ""},
	{key: "post_history_instructions", fix: asText, required: ""},
	{key: "alternate_greetings", fix: asTexts, required: []string{}},
	{key: "tags", fix: asCommaTexts, required: []string{}},
	{key: "creator", fix: asText, required: ""}, {key: "character_version", fix: asText, required: ""},
	{key: "extensions", fix: asObject, required: map[string]any{}},
	{key: "group_only_greetings", fix: asTexts, required: []string{}, v3: true},
	{key: "character_book", fix: asObject}, {key: "nickname", fix: asText}, {key: "source", fix: asTexts},
	{key: "creator_notes_multilingual", fix: asTextsByName}, {key: "assets", fix: asAssets},
	{key: "creation_date", fix: asNumber}, {key: "modification_date", fix: asNumber},
}

var bookMembers = []specMember{
	{key: "name", fix: asText}, {key: "description", fix: asText},
	{key: "scan_depth", fix: asNumber}, {key: "token_budget", fix: asNumber}, {key: "recursive_scanning", fix: asFlag},
	{key: "extensions", fix: asObject, required: map[string]any{}},
	{key: "entries", fix: asEntries, required: []any{}},
}

var entryMembers = []specMember{
	{key: "keys", fix: asKeys, required: []string{}}, {key: "content", fix: asText, required: ""},
	{key: "extensions", fix: asObject, required: map[string]any{}},
	{key: "enabled", fix: asFlag, required: true}, {key: "insertion_order", fix: asNumber, required: 100},
	{key: "use_regex", fix: asFlag, required: false, v3: true},
	{key: "case_sensitive", fix: asFlag}, {key: "name", fix: asText}, {key: "priority", fix: asNumber},
	{key: "id", fix: asNumber}, {key: "comment", fix: asText}, {key: "selective", fix: asFlag},
	{key: "secondary_keys", fix: asKeys}, {key: "constant", fix: asFlag}, {key: "position", fix: asPosition},
}

// entryPath begins the path of a member of an entry.
const entryPath = "character_book.entries."

// filled are the changes of conform, by the paths of members in data. The paths of the entries
// are joined: each has the changes by the number of the entry, 0 for other members.
type filled struct {
	Added map[string][]int          `json:"added,omitempty"` // was missing
	Was   map[string]map[int]change `json:"was,omitempty"`   // had a value of another type
}

type change struct {
	Value json.RawMessage `json:"value"`
	At    *int            `json:"at,omitempty"` // its place in the object that it was removed from
}

func (f *filled) add(path string, entry int) {
	if f.Added == nil {
		f.Added = map[string][]int{}
	}
	f.Added[path] = append(f.Added[path], entry)
}

func (f *filled) note(path string, entry int, was change) {
	if f.Was == nil {
		f.Was = map[string]map[int]change{}
	}
	if f.Was[path] == nil {
		f.Was[path] = map[int]change{}
	}
	f.Was[path][entry] = was
}

func (f *filled) empty() bool { return f == nil || len(f.Added)+len(f.Was) == 0 }

// conform makes data valid. A text that is missing in it is taken from the top level of the
// card, where older programs keep it.
func conform(card, data *object, spec Spec) *filled {
	changes := &filled{}
	own := newObject()
	copyMembers(own, data)
	for _, key := range promptFields {
		if top := card.get(key); !data.has(key) && top != nil {
			text, _ := asText(top)
			own.set(key, valueOr(text, ""))
			changes.add(key, 0)
		}
	}
	changes.fix(own, dataMembers, "", 0, spec)
	if book := own.object("character_book"); book != nil {
		changes.fix(book, bookMembers, "character_book.", 0, spec)
		entries := book.list("entries")
		for i, doc := range entries {
			entry, err := parseObject(doc)
			if err != nil {
				continue // asEntries has left objects alone
			}
			changes.entry(entry, i, spec)
			entries[i] = entry.encode()
		}
		book.set("entries", encodeList(entries))
		own.set("character_book", book.encode())
	}
	data.keys, data.fields = own.keys, own.fields
	return changes
}

// entry is fix for an entry of a card's book. Keys of world info serve one that has no others.
func (f *filled) entry(entry *object, i int, spec Spec) {
	for _, key := range []extensionField{{info: "key", card: "keys"}, {info: "keysecondary", card: "secondary_keys"}} {
		if keys, ok := asKeys(entry.get(key.info)); ok && !entry.has(key.card) {
			entry.set(key.card, keys)
			f.add(entryPath+key.card, i)
		}
	}
	if spec == SpecV3 && !entry.has("use_regex") && slices.ContainsFunc(keysOf(entry.get("keys")), isRegexKey) {
		entry.put("use_regex", true)
		f.add(entryPath+"use_regex", i)
	}
	f.fix(entry, entryMembers, entryPath, i, spec)
}

func (f *filled) fix(o *object, members []specMember, path string, entry int, spec Spec) {
	order := slices.Clone(o.keys)
	for _, m := range members {
		was := change{Value: o.get(m.key)}
		now, ok := m.fix(was.Value)
		required := m.required != nil && (!m.v3 || spec == SpecV3)
		switch {
		case was.Value == nil && required:
			o.put(m.key, m.required)
			f.add(path+m.key, entry)
			continue
		case was.Value == nil, ok && sameJSON(now, was.Value):
			continue
		case ok:
			o.set(m.key, now)
		case required:
			o.put(m.key, m.required)
		default:
			at := slices.Index(order, m.key)
			was.At = &at
			o.remove(m.key)
		}
		f.note(path+m.key, entry, was)
	}
}

// undo takes back what conform has changed in data, except where another program has
// changed it since.
func (f *filled) undo(data *object) {
	book := data.object("character_book")
	if book != nil && f.Was["character_book"] == nil {
		var entries []*object
		for _, doc := range book.list("entries") {
			if entry, err := parseObject(doc); err == nil {
				entries = append(entries, entry)
			}
		}
		f.undoIn(entries, entryMembers, entryPath)
		f.undoEntries(book, entries)
		f.undoIn([]*object{book}, bookMembers, "character_book.")
		data.set("character_book", book.encode())
	}
	f.undoIn([]*object{data}, dataMembers, "")
}

// undoIn takes back the changes of the members of objects.
func (f *filled) undoIn(objects []*object, members []specMember, path string) {
	for _, m := range members {
		for _, i := range f.Added[path+m.key] {
			if i >= 0 && i < len(objects) {
				objects[i].remove(m.key)
			}
		}
	}
	for i, o := range objects {
		var removed []specMember
		at := func(m specMember) int { return *f.Was[path+m.key][i].At }
		for _, m := range members {
			switch was, changed := f.Was[path+m.key][i]; {
			case was.Value == nil: // conform notes no change without one
			case changed && was.At != nil && !o.has(m.key):
				removed = append(removed, m)
			case changed && sameJSON(o.get(m.key), m.made(was.Value)):
				o.set(m.key, was.Value)
			}
		}
		slices.SortFunc(removed, func(a, b specMember) int { return at(a) - at(b) })
		for _, m := range removed {
			o.insert(at(m), m.key, f.Was[path+m.key][i].Value)
		}
	}
}

func (f *filled) undoEntries(book *object, entries []*object) {
	if !book.has("entries") {
		return
	}
	list := make([]json.RawMessage, len(entries))
	for i, entry := range entries {
		list[i] = entry.encode()
	}
	book.set("entries", encodeList(list))
}

// made is what conform makes of a value of another type.
func (m specMember) made(was json.RawMessage) json.RawMessage {
	if now, ok := m.fix(was); ok {
		return now
	}
	return encode(m.required)
}

func asText(doc json.RawMessage) (json.RawMessage, bool) {
	if startsWith(doc, '"') {
		return doc, true
	}
	s, ok := textOf(doc)
	return encode(s), ok
}

func asTexts(doc json.RawMessage) (json.RawMessage, bool) {
	if s, ok := textOf(doc); ok && s != "" {
		return encode([]string{s}), true
	}
	return encode(append([]string{}, textsOf(listOf(doc))...)), startsWith(doc, '[')
}

func asCommaTexts(doc json.RawMessage) (json.RawMessage, bool) {
	if s, ok := textOf(doc); ok {
		return encode(append([]string{}, splitComma(s)...)), true
	}
	return asTexts(doc)
}

func asKeys(doc json.RawMessage) (json.RawMessage, bool) {
	if text, ok := textOf(doc); ok {
		return encode(append([]string{}, splitKeys(text)...)), true
	}
	return asTexts(doc)
}

func asObject(doc json.RawMessage) (json.RawMessage, bool) { return doc, fieldsOf(doc) != nil }

func asFlag(doc json.RawMessage) (json.RawMessage, bool) {
	yes := fields{"": doc}.optFlag("")
	return encode(yes), yes != nil
}

func asNumber(doc json.RawMessage) (json.RawMessage, bool) {
	f := fields{"": doc}
	if _, ok := f.number(""); ok {
		return doc, true
	}
	n, ok := f.looseNumber("")
	return json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64)), ok
}

func asPosition(doc json.RawMessage) (json.RawMessage, bool) {
	s, _ := textOf(doc)
	return doc, s == "before_char" || s == "after_char"
}

// asEntries makes the list of entries of an object, and leaves out what is no entry.
func asEntries(doc json.RawMessage) (json.RawMessage, bool) {
	members, err := bookEntries(doc)
	list := []json.RawMessage{}
	for _, m := range members {
		if fieldsOf(m.doc) != nil {
			list = append(list, m.doc)
		}
	}
	return encodeList(list), err == nil && !absent(doc)
}

func asTextsByName(doc json.RawMessage) (json.RawMessage, bool) {
	o, err := parseObject(doc)
	if err != nil {
		return nil, false
	}
	for _, key := range slices.Clone(o.keys) {
		if text, ok := asText(o.get(key)); ok {
			o.set(key, text)
		} else {
			o.remove(key)
		}
	}
	return o.encode(), true
}

// asAssets gives each asset the four texts that it must have.
func asAssets(doc json.RawMessage) (json.RawMessage, bool) {
	list := []json.RawMessage{}
	for _, element := range listOf(doc) {
		asset, err := parseObject(element)
		if err != nil {
			continue
		}
		for _, key := range []string{"type", "uri", "name", "ext"} {
			text, ok := asText(asset.get(key))
			if !ok {
				text = encode("")
			}
			asset.set(key, text)
		}
		list = append(list, asset.encode())
	}
	return encodeList(list), startsWith(doc, '[')
}
