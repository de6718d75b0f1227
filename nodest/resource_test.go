package nodest_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"nodest/fault"
	"nodest/nodest"
	"nodest/op"
)

var kinds = []nodest.ResourceKind{nodest.WorldBook, nodest.Preset, nodest.RegexScript, nodest.Persona}

// documents has a document of each kind.
var documents = map[nodest.ResourceKind]json.RawMessage{
	nodest.WorldBook:   json.RawMessage(`{"name":"Tea","entries":{"9":{"content":"x"},"1":{"mine":[1]}}}`),
	nodest.Preset:      json.RawMessage(`{"name":"Plain","prompts":[{"identifier":"main","content":"x"}]}`),
	nodest.RegexScript: json.RawMessage(`[{"scriptName":"shout","findRegex":"a"}]`),
	nodest.Persona:     json.RawMessage(`{"name":"Mia","description":"A pilot.","mine":1}`),
}

func TestAResourceFromItsCreationToItsEnd(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			h := newHome(t)
			ch := h.character(t, alice)
			h.told()
			made, err := h.CreateResource(t.Context(), h.call(), kind, nodest.ResourceInput{
				Document: documents[kind], Characters: []string{ch.ID, ch.ID},
			})
			must(t, err)
			r, err := h.Resource(t.Context(), me, kind, made.ID)
			must(t, err)
			sameJSON(t, "document", r.Document, documents[kind])
			if r.Version != 1 || r.Name == "" || r.Dialect != "nodest" || !slices.Equal(r.Characters, []string{ch.ID}) {
				t.Errorf("made %+v", r)
			}

			all := true
			r, err = h.UpdateResource(t.Context(), h.call(), kind, r.ID, nodest.ResourceInput{Name: "Other", BindAll: &all}, false, 1)
			must(t, err)
			if r.Name != "Other" || !r.BindAll || len(r.Characters) != 1 || r.Version != 2 {
				t.Errorf("after the patch: %+v", r)
			}
			r, err = h.UpdateResource(t.Context(), h.call(), kind, r.ID, nodest.ResourceInput{Name: "Third", Document: documents[kind]}, true, 2)
			must(t, err)
			if r.Name != "Third" || r.BindAll || len(r.Characters) != 0 || r.Version != 3 {
				t.Errorf("after the replacement: %+v", r)
			}
			_, err = h.UpdateResource(t.Context(), h.call(), kind, r.ID, nodest.ResourceInput{Name: "Late"}, false, 2)
			refused(t, err, fault.PreconditionFailed, "")

			page, err := h.Resources(t.Context(), me, kind, "", 0)
			must(t, err)
			if len(page.Items) != 1 {
				t.Errorf("%d in the list, want 1", len(page.Items))
			}
			data, name, err := h.ExportResource(t.Context(), me, kind, r.ID)
			must(t, err)
			sameJSON(t, "export", data, documents[kind])
			if filepath.Ext(name) != ".json" {
				t.Errorf("file name = %q", name)
			}
			must(t, h.DeleteResource(t.Context(), h.call(), kind, r.ID))
			_, err = h.Resource(t.Context(), me, kind, r.ID)
			refused(t, err, fault.NotFound, "")
			want := []string{"resource.updated", "resource.updated", "resource.updated", "resource.deleted"}
			if told := h.told(); !slices.Equal(told, want) {
				t.Errorf("events = %v, want %v", told, want)
			}
		})
	}
}

func TestResourcesThatCannotBeUsedAreRefused(t *testing.T) {
	doc := func(s string) nodest.ResourceInput { return nodest.ResourceInput{Document: json.RawMessage(s)} }
	h := newHome(t)
	theirs, err := h.CreateCharacter(t.Context(), &op.Call{UserID: stranger}, nodest.CharacterInput{})
	must(t, err)
	tests := []struct {
		name  string
		kind  nodest.ResourceKind
		in    nodest.ResourceInput
		code  fault.Code
		field string
	}{
		{"nothing", nodest.WorldBook, nodest.ResourceInput{Name: "x"}, fault.Invalid, "document"},
		{"a book that is a list", nodest.WorldBook, doc(`[]`), fault.Invalid, "document"},
		{"a book without a body", nodest.WorldBook, doc(`{"entries":"x"}`), fault.InvalidWorldBook, "document"},
		{"a preset that is a text", nodest.Preset, doc(`"x"`), fault.Invalid, "document"},
		{"scripts that are a number", nodest.RegexScript, doc(`4`), fault.Invalid, "document"},
		{"a persona without a name", nodest.Persona, doc(`{"description":"x"}`), fault.Invalid, "name"},
		{"a persona whose name is a number", nodest.Persona, doc(`{"name":3}`), fault.Invalid, "document.name"},
		{"a kind that does not exist", "spaceship", doc(`{}`), fault.NotFound, ""},
		{"a name of two lines", nodest.WorldBook, nodest.ResourceInput{Name: "a\nb", Document: documents[nodest.WorldBook]}, fault.Invalid, "name"},
		{"a character that does not exist", nodest.WorldBook,
			nodest.ResourceInput{Document: documents[nodest.WorldBook], Characters: []string{"nobody"}}, fault.NotFound, "characterIds[0]"},
		{"another user's character", nodest.WorldBook,
			nodest.ResourceInput{Document: documents[nodest.WorldBook], Characters: []string{theirs.ID}}, fault.NotFound, "characterIds[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.CreateResource(t.Context(), h.call(), tt.kind, tt.in)
			refused(t, err, tt.code, tt.field)
		})
	}
	for _, kind := range kinds {
		page, err := h.Resources(t.Context(), me, kind, "", 0)
		must(t, err)
		if len(page.Items) > 0 {
			t.Errorf("%d of kind %s are stored, want none", len(page.Items), kind)
		}
	}
}

func TestADeletedResourceLeavesTheSettings(t *testing.T) {
	h := newHome(t)
	ids := map[nodest.ResourceKind]string{}
	for _, kind := range kinds {
		r, err := h.CreateResource(t.Context(), h.call(), kind, nodest.ResourceInput{Document: documents[kind]})
		must(t, err)
		ids[kind] = r.ID
	}
	_, err := h.PutSettings(t.Context(), h.call(), nodest.Settings{
		PersonaID:       ids[nodest.Persona],
		GlobalPreset:    nodest.GlobalResource{Enabled: true, ID: ids[nodest.Preset]},
		GlobalWorldBook: nodest.GlobalResource{Enabled: true, ID: ids[nodest.WorldBook], Priority: "角色优先"},
	}, 0)
	must(t, err)
	for _, kind := range kinds {
		must(t, h.DeleteResource(t.Context(), h.call(), kind, ids[kind]))
	}
	s, err := h.Settings(t.Context(), me)
	must(t, err)
	if s.PersonaID != "" || s.GlobalPreset.Enabled || s.GlobalPreset.ID != "" || s.GlobalWorldBook.Enabled {
		t.Errorf("settings still name them: %+v", s)
	}
	if s.Version != 4 {
		t.Errorf("version = %d, want 4: one for the settings and one for each of the three", s.Version)
	}
}

func TestSettings(t *testing.T) {
	h := newHome(t)
	before, err := h.Settings(t.Context(), me)
	must(t, err)
	if before.Version != 0 {
		t.Errorf("version = %d before anything was stored", before.Version)
	}
	warm := 0.7
	s := nodest.Settings{UserName: "Mia", CustomSetting: json.RawMessage(`{"comment":"自设","content":"tall","position":4,"depth":1}`)}
	s.Temperature = &warm
	after, err := h.PutSettings(t.Context(), h.call(), s, 0)
	must(t, err)
	stored, err := h.Settings(t.Context(), me)
	must(t, err)
	if after.Version != 1 || stored.Version != 1 || *stored.Temperature != 0.7 || stored.UserName != "Mia" {
		t.Errorf("stored %+v", stored)
	}
	_, err = h.PutSettings(t.Context(), h.call(), s, 3)
	refused(t, err, fault.PreconditionFailed, "")
	if told := h.told(); !slices.Equal(told, []string{"resource.updated"}) {
		t.Errorf("events = %v", told)
	}
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	h := newHome(t)
	hot, none := 2.5, 0
	book, err := h.CreateResource(t.Context(), h.call(), nodest.WorldBook, nodest.ResourceInput{Document: documents[nodest.WorldBook]})
	must(t, err)
	tests := []struct {
		name   string
		change func(s *nodest.Settings)
		code   fault.Code
		field  string
	}{
		{"temperature 2.5", func(s *nodest.Settings) { s.Temperature = &hot }, fault.Invalid, "temperature"},
		{"a reply of no tokens", func(s *nodest.Settings) { s.MaxTokens = &none }, fault.Invalid, "maxTokens"},
		{"a character", func(s *nodest.Settings) { s.CharacterID = "x" }, fault.Invalid, "characterId"},
		{"an unknown persona", func(s *nodest.Settings) { s.PersonaID = "x" }, fault.NotFound, "personaId"},
		{"a book as preset", func(s *nodest.Settings) { s.GlobalPreset.ID = book.ID }, fault.NotFound, "globalPreset.id"},
		{"a preset without id", func(s *nodest.Settings) { s.GlobalPreset.Enabled = true }, fault.Invalid, "globalPreset.id"},
		{"an unknown priority", func(s *nodest.Settings) { s.GlobalWorldBook.Priority = "me" }, fault.Invalid, "globalWorldBook.priority"},
		{"a priority of a preset", func(s *nodest.Settings) { s.GlobalPreset.Priority = "全局优先" }, fault.Invalid, "globalPreset.priority"},
		{"a name of two lines", func(s *nodest.Settings) { s.UserName = "a\nb" }, fault.Invalid, "userName"},
		{"a position that does not exist", func(s *nodest.Settings) { s.CustomSetting = json.RawMessage(`{"position":5}`) }, fault.Invalid, "customSetting.position"},
		{"half a position", func(s *nodest.Settings) { s.CustomSetting = json.RawMessage(`{"position":1.5}`) }, fault.Invalid, "customSetting.position"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s nodest.Settings
			tt.change(&s)
			_, err := h.PutSettings(t.Context(), h.call(), s, 0)
			refused(t, err, tt.code, tt.field)
		})
	}
}

// TestEverySharedResourceImportsAndExports imports every world book and preset
// of the shared data; what is none is refused with a code.
func TestEverySharedResourceImportsAndExports(t *testing.T) {
	h := newHome(t)
	for kind, folder := range map[nodest.ResourceKind]string{nodest.WorldBook: "worldbooks", nodest.Preset: "presets"} {
		for _, file := range shared(t, folder) {
			kind := kind
			if filepath.Base(file) == "regex_scripts.json" {
				kind = nodest.RegexScript
			}
			if filepath.Ext(file) != ".json" {
				continue // a folder of templates
			}
			t.Run(filepath.Base(file), func(t *testing.T) {
				r, _, err := h.ImportResource(t.Context(), h.call(), kind, readFile(t, file), filepath.Base(file))
				must(t, err)
				data, name, err := h.ExportResource(t.Context(), me, kind, r.ID)
				must(t, err)
				again, _, err := h.ImportResource(t.Context(), h.call(), kind, data, name)
				must(t, err)
				sameJSON(t, "document", again.Document, r.Document)
			})
		}
	}
	_, _, err := h.ImportResource(t.Context(), h.call(), nodest.Persona, []byte(`{}`), "x.json")
	refused(t, err, fault.NotFound, "")
}

func TestAnImportedGroupForAllIsBoundToAll(t *testing.T) {
	h := newHome(t)
	for bind, want := range map[string]bool{"all": true, "character": false} {
		group := `{"id":"g","name":"Shouts","bindType":"` + bind + `","scripts":[{"scriptName":"shout","findRegex":"a","placement":[2]}]}`
		r, _, err := h.ImportResource(t.Context(), h.call(), nodest.RegexScript, []byte(group), "g.json")
		must(t, err)
		if r.BindAll != want {
			t.Errorf("bindType %s: bound to all is %v", bind, r.BindAll)
		}
	}
}
