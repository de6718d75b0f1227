package framework

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"nodest/card"
	"nodest/internal/sharedtest"
)

// golden runs the vectors of one file through run, which returns the product's result
// for an input. Objects are compared without regard to key order; an absent member
// equals null.
func golden(t *testing.T, file string, run func(t *testing.T, input json.RawMessage) any) {
	t.Helper()
	sharedtest.Replay(t, "nodest/"+file, func(t *testing.T, v sharedtest.Vector[json.RawMessage, json.RawMessage]) {
		got, err := json.Marshal(run(t, v.Input))
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(got, v.Output) {
			t.Errorf("got  %s\nwant %s", got, v.Output)
		}
	})
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(withoutNulls(x), withoutNulls(y))
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

func decode(t *testing.T, data json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// documents are the documents of an input.
type documents struct {
	Preset, RoleCard, WorldBook, AuthorNote json.RawMessage
}

func (d documents) sources(t *testing.T) (s Sources, note *card.AuthorNote) {
	t.Helper()
	role, err := card.ParseRoleCard(d.RoleCard)
	if err != nil {
		t.Fatal(err)
	}
	preset, err := card.ParsePreset(d.Preset)
	if err != nil {
		t.Fatal(err)
	}
	book, err := card.ParseWorldBook(d.WorldBook, card.NodeST)
	if err != nil {
		t.Fatal(err)
	}
	if note, err = card.ParseAuthorNote(d.AuthorNote); err != nil {
		t.Fatal(err)
	}
	return Sources{Card: role, Preset: &preset, Book: book, CardFields: ListedFields, Language: Chinese}, note
}

type object = map[string]any

func textParts(text string) []object { return []object{{"text": text}} }

// vectorRole returns the role that the original sends.
func vectorRole(role string) string {
	if roleOf(role) == "assistant" {
		return "model"
	}
	return "user"
}

func TestGoldenBuildFramework(t *testing.T) {
	golden(t, "build_framework.json", func(t *testing.T, input json.RawMessage) any {
		var in documents
		decode(t, input, &in)
		s, _ := in.sources(t)
		f := Compile(s).frame
		f.likeTheApp()
		entries := []object{}
		for _, it := range f.all() {
			entries = append(entries, frameObject(&f, it, *s.Preset))
		}
		out := object{"framework": entries}
		if q := promptOf(*s.Preset, f.historyID); q != nil && q.Enable && !isInjection(q) {
			out["chatHistory"] = object{"name": q.Name, "role": q.Role, "parts": []any{}, "identifier": q.Identifier}
		}
		return out
	})
}

// likeTheApp removes the entries around the character's description if the preset has
// no place for it; we put them before the chat.
func (f *frame) likeTheApp() {
	if f.anchor < 0 {
		f.before, f.after = nil, nil
	}
}

func frameObject(f *frame, it *item, p card.Preset) object {
	if it == placeOfChat {
		return object{"name": historyName, "role": "system", "parts": []any{}, "identifier": f.historyID, "is_chat_history_placeholder": true}
	}
	e := object{"name": it.name, "role": vectorRole(it.role), "parts": textParts(it.text)}
	if it.position != noPosition {
		e["position"], e["insertion_order"] = it.position, it.order
		return e
	}
	e["identifier"] = it.id
	for _, q := range p.Prompts { // the frame does not keep what it does not use
		if q.Identifier == it.id && q.Enable && !isInjection(&q) {
			if q.InjectionPosition != nil {
				e["injection_position"] = *q.InjectionPosition
			}
			if q.InjectionDepth != nil {
				e["injection_depth"] = *q.InjectionDepth
			}
		}
	}
	return e
}

func TestGoldenExtractDEntries(t *testing.T) {
	golden(t, "extract_d_entries.json", func(t *testing.T, input json.RawMessage) any {
		var in documents
		decode(t, input, &in)
		s, note := in.sources(t)
		out := []object{}
		for _, it := range injections(*s.Preset, overrides{}) {
			out = append(out, object{
				"name": it.name, "parts": textParts(it.text), "role": it.role, "injection_depth": it.depth,
				"identifier": it.id, "is_d_entry": true, "position": it.position, "constant": it.constant,
			})
		}
		if note != nil {
			out = append(out, object{
				"name": "Author Note", "parts": textParts(note.Text), "role": note.Role, "injection_depth": note.Depth,
				"is_d_entry": true, "is_author_note": true, "is_first_mes": false,
			})
		}
		items, _, _ := resolveBooks(s)
		for _, it := range items {
			if it.position < beforeNote || it.position != atDepth && note == nil {
				continue
			}
			keys := it.keys
			if keys == nil {
				keys = []string{}
			}
			out = append(out, object{
				"name": it.name, "parts": textParts(it.text), "role": it.role, "is_d_entry": true, "position": it.position,
				"key": keys, "constant": it.constant, "injection_depth": it.depth, "insertion_order": it.order,
			})
		}
		return out
	})
}

// dEntry is an entry of insert_d_entries.
type dEntry struct {
	Name      string
	Role      string
	Note      bool                    `json:"is_author_note"`
	Position  *int                    `json:"position"`
	Key       []string                `json:"key"`
	Constant  *bool                   `json:"constant"`
	Depth     any                     `json:"injection_depth"`
	Order     *float64                `json:"insertion_order"`
	ID        string                  `json:"identifier"`
	Inserted  bool                    `json:"is_d_entry"`
	TextParts []struct{ Text string } `json:"parts"`
}

// The layout of the chat is tested on its own, because the vectors contain entries
// that Compile never makes.
func TestGoldenInsertDEntries(t *testing.T) {
	golden(t, "insert_d_entries.json", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			History     []object
			DEntries    []object
			UserMessage string
		}
		decode(t, input, &in)
		clean, texts, base := cleanHistory(t, in.History, in.UserMessage)
		if base < 0 {
			return clean
		}
		var c Compiled
		var inject, book []*item
		var note *item
		source := map[*item]object{}
		for _, o := range in.DEntries {
			var d dEntry
			recode(t, o, &d)
			it := itemOf(d)
			if it == nil {
				continue
			}
			source[it] = o
			switch {
			case d.Note && note == nil:
				note = it
			case d.ID != "":
				inject = append(inject, it)
			case !d.Note:
				book = append(book, it)
			}
		}
		c.index(book)
		hits, _ := c.keys.Search(t.Context(), texts[max(0, len(texts)-defaultScanDepth):], nil)
		l := arrange(inject, book)
		runs := l.insertions(base, note, placeByMessages(base))
		var out []object
		for i := 0; i <= len(clean); i++ {
			for len(runs) > 0 && runs[0].at <= i {
				for _, it := range runs[0].items {
					if _, _, ok := it.active(hits); ok {
						out = append(out, source[it])
					}
				}
				runs = runs[1:]
			}
			if i < len(clean) {
				out = append(out, clean[i])
			}
		}
		return out
	})
}

func recode(t *testing.T, from, to any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, data, to)
}

// itemOf returns nil for an entry that is never inserted.
func itemOf(d dEntry) *item {
	it := &item{id: d.ID, name: d.Name, role: d.Role, keys: d.Key, position: atDepth}
	if d.Position != nil {
		it.position = *d.Position
	}
	if f, ok := d.Depth.(float64); ok {
		it.depth = int(f)
	}
	if d.Order != nil {
		it.order = *d.Order
	}
	switch {
	case d.Note || d.Name == "Author Note":
		it.constant = true
	case d.Constant == nil:
		return nil
	default:
		it.constant = *d.Constant
	}
	return it
}

func cleanHistory(t *testing.T, history []object, userMessage string) (clean []object, texts []string, base int) {
	t.Helper()
	base = -1
	clean = []object{}
	for _, o := range history {
		var m dEntry
		recode(t, o, &m)
		if m.Inserted {
			continue
		}
		text := ""
		if len(m.TextParts) > 0 {
			text = m.TextParts[0].Text
		}
		if m.Role == "user" && text == userMessage {
			base = len(clean)
		}
		clean = append(clean, o)
		texts = append(texts, text)
	}
	return clean, texts, base
}

// vectorMessage is a message of the app's history.
type vectorMessage struct {
	Role     string
	Parts    []struct{ Text string }
	Summary  bool `json:"isMemorySummary"`
	First    bool `json:"is_first_mes"`
	Inserted bool `json:"is_d_entry"`
}

// messagesOf leaves out inserted entries, which we do not store.
func messagesOf(history []vectorMessage) []Message {
	var out []Message
	for _, m := range history {
		if m.Inserted {
			continue
		}
		role := m.Role
		if m.Summary {
			role = RoleSummary
		}
		text := ""
		if len(m.Parts) > 0 {
			text = m.Parts[0].Text
		}
		out = append(out, Message{Role: role, Text: text, Greeting: m.First})
	}
	return out
}

func TestGoldenAssemble(t *testing.T) {
	golden(t, "assemble.json", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			documents
			History               []vectorMessage
			UserMessage, UserName string
		}
		decode(t, input, &in)
		s, note := in.sources(t)
		c := Compile(s)
		c.frame.likeTheApp()
		p, err := Build(t.Context(), Input{
			Compiled: c, Note: note, Persona: Persona{Name: in.UserName}, Options: Options{Language: Chinese},
			History: messagesOf(in.History), User: Message{Text: in.UserMessage},
		})
		if err != nil {
			t.Fatal(err)
		}
		out := []object{}
		for _, m := range p.Messages {
			out = append(out, object{"role": vectorRole(string(m.Role)), "parts": textParts(m.Text)})
		}
		return out
	})
}

func TestGoldenPlaceholders(t *testing.T) {
	golden(t, "placeholders.json", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Text, UserMessage, CharName, UserName string }
		decode(t, input, &in)
		m := macros{Char: in.CharName, User: in.UserName, LastUserMessage: in.UserMessage}
		return m.expand(in.Text)
	})
}

func TestGoldenAugment(t *testing.T) {
	golden(t, "augment.json", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			UserMessage string
			Memories    []string
			Search      string
		}
		decode(t, input, &in)
		message := in.UserMessage
		for _, p := range augmentation(in.Memories, in.Search, "", &Options{Language: Chinese, Recount: true}, false) {
			message += p.text
		}
		return message
	})
}

// patient is a limit that no script of a vector reaches, even on a busy machine.
const patient = time.Minute

func TestGoldenRegexGlobal(t *testing.T) {
	golden(t, "regex_global.json", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Text        string
			Scripts     json.RawMessage
			Placement   int
			CharacterID string
		}
		decode(t, input, &in)
		var bound []struct {
			BindType    string `json:"groupBindType"`
			CharacterID string `json:"groupBindCharacterId"`
		}
		_ = json.Unmarshal(in.Scripts, &bound) // one vector has no array: then there is no script
		var scripts []card.RegexScript
		for i, raw := range rawList(in.Scripts) {
			b := bound[i] // the store finds what is bound to a character
			if b.BindType != "" && b.BindType != "all" && (b.BindType != "character" || b.CharacterID == "" || b.CharacterID != in.CharacterID) {
				continue
			}
			group, err := card.ParseRegexScripts(raw)
			if err != nil {
				t.Fatal(err)
			}
			scripts = append(scripts, group...)
		}
		return runAll(compileScripts(card.NodeST, scripts, patient), in.Text, in.Placement)
	})
}

func rawList(data json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(data, &list)
	return list
}

// runAll runs every script of a placement, as the original does: it has no scripts for
// display or request only, and no depth range.
func runAll(s *Scripts, text string, placement int) string {
	return s.Run(nil).apply(text, slices.DeleteFunc(slices.Clone(s.list), func(sc *script) bool {
		return !slices.Contains(sc.Placement, placement)
	}))
}

func TestGoldenRegexCard(t *testing.T) {
	golden(t, "regex_card.json", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Text    string
			Scripts json.RawMessage
		}
		decode(t, input, &in)
		scripts, err := card.ParseRegexScripts(in.Scripts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range scripts {
			if scripts[i].Placement == nil {
				scripts[i].Placement = []int{card.PlaceAIOutput}
			}
		}
		return runAll(compileScripts(card.NodeST, scripts, patient), in.Text, card.PlaceAIOutput)
	})
}
