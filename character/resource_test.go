package character_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/sharedtest"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store/storetest"
)

func TestResourceLifecycle(t *testing.T) {
	t.Parallel()
	for _, kind := range nodesttest.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			h := nodesttest.NewWithoutModel(t)
			ch := h.Character(nodesttest.Alice)
			h.TakeEventTypes()
			made, err := h.Characters.CreateResource(t.Context(), h.Call(), kind, character.ResourceInput{
				Document: nodesttest.Documents[kind], Characters: []string{ch.ID, ch.ID},
			})
			nodesttest.Must(t, err)
			r, err := h.Characters.Resource(t.Context(), nodesttest.Ann, kind, made.ID)
			nodesttest.Must(t, err)
			nodesttest.SameJSON(t, "document", r.Document, nodesttest.Documents[kind])
			if r.Version != 1 || r.Name == "" || r.Dialect != "nodest" || !slices.Equal(r.Characters, []string{ch.ID}) {
				t.Errorf("made %+v", r)
			}

			all := true
			r, err = h.Characters.UpdateResource(t.Context(), h.Call(), kind, r.ID, character.ResourceInput{Name: "Other", BindAll: &all}, false, 1)
			nodesttest.Must(t, err)
			if r.Name != "Other" || !r.BindAll || len(r.Characters) != 1 || r.Version != 2 {
				t.Errorf("after the patch: %+v", r)
			}
			r, err = h.Characters.UpdateResource(t.Context(), h.Call(), kind, r.ID, character.ResourceInput{Name: "Third", Document: nodesttest.Documents[kind]}, true, 2)
			nodesttest.Must(t, err)
			if r.Name != "Third" || r.BindAll || len(r.Characters) != 0 || r.Version != 3 {
				t.Errorf("after the replacement: %+v", r)
			}
			_, err = h.Characters.UpdateResource(t.Context(), h.Call(), kind, r.ID, character.ResourceInput{Name: "Late"}, false, 2)
			nodesttest.WantError(t, err, fault.PreconditionFailed, "")

			page, err := h.Characters.Resources(t.Context(), nodesttest.Ann, kind, "", 0)
			nodesttest.Must(t, err)
			if len(page.Items) != 1 {
				t.Errorf("%d in the list, want 1", len(page.Items))
			}
			data, name, err := h.Characters.ExportResource(t.Context(), nodesttest.Ann, kind, r.ID)
			nodesttest.Must(t, err)
			nodesttest.SameJSON(t, "export", data, nodesttest.Documents[kind])
			if filepath.Ext(name) != ".json" {
				t.Errorf("file name = %q", name)
			}
			nodesttest.Must(t, h.Characters.DeleteResource(t.Context(), h.Call(), kind, r.ID))
			_, err = h.Characters.Resource(t.Context(), nodesttest.Ann, kind, r.ID)
			nodesttest.WantError(t, err, fault.NotFound, "")
			want := []string{"resource.updated", "resource.updated", "resource.updated", "resource.deleted"}
			if events := h.TakeEventTypes(); !slices.Equal(events, want) {
				t.Errorf("events = %v, want %v", events, want)
			}
		})
	}
}

func TestInvalidResourcesAreRefused(t *testing.T) {
	t.Parallel()
	doc := func(s string) character.ResourceInput { return character.ResourceInput{Document: json.RawMessage(s)} }
	h := nodesttest.NewWithoutModel(t)
	theirs, err := h.Characters.Create(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.Input{})
	nodesttest.Must(t, err)
	tests := []struct {
		name  string
		kind  character.ResourceKind
		in    character.ResourceInput
		code  fault.Code
		field string
	}{
		{"nothing", character.WorldBook, character.ResourceInput{Name: "x"}, fault.Invalid, "document"},
		{"a book that is a list", character.WorldBook, doc(`[]`), fault.Invalid, "document"},
		{"a book without a body", character.WorldBook, doc(`{"entries":"x"}`), fault.InvalidWorldBook, "document"},
		{"a preset that is a text", character.Preset, doc(`"x"`), fault.Invalid, "document"},
		{"scripts that are a number", character.RegexScript, doc(`4`), fault.Invalid, "document"},
		{"a persona without a name", character.Persona, doc(`{"description":"x"}`), fault.Invalid, "name"},
		{"a persona whose name is a number", character.Persona, doc(`{"name":3}`), fault.Invalid, "document.name"},
		{"a persona at a place that is a text", character.Persona, doc(`{"name":"Mia","position":"4"}`), fault.Invalid, "document.position"},
		{"a persona at a place that is none", character.Persona, doc(`{"name":"Mia","position":1}`), fault.Invalid, "document.position"},
		{"a persona in half a message", character.Persona, doc(`{"name":"Mia","depth":1.5}`), fault.Invalid, "document.depth"},
		{"a persona behind the end", character.Persona, doc(`{"name":"Mia","position":4,"depth":-1}`), fault.Invalid, "document.depth"},
		{"a persona too far from the end", character.Persona, doc(`{"name":"Mia","depth":1e300}`), fault.Invalid, "document.depth"},
		{"a persona that nobody says", character.Persona, doc(`{"name":"Mia","role":3}`), fault.Invalid, "document.role"},
		{"a kind that does not exist", "spaceship", doc(`{}`), fault.NotFound, ""},
		{"a name of two lines", character.WorldBook, character.ResourceInput{Name: "a\nb", Document: nodesttest.Documents[character.WorldBook]}, fault.Invalid, "name"},
		{"a character that does not exist", character.WorldBook,
			character.ResourceInput{Document: nodesttest.Documents[character.WorldBook], Characters: []string{"nobody"}}, fault.NotFound, "characterIds[0]"},
		{"another user's character", character.WorldBook,
			character.ResourceInput{Document: nodesttest.Documents[character.WorldBook], Characters: []string{theirs.ID}}, fault.NotFound, "characterIds[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Characters.CreateResource(t.Context(), h.Call(), tt.kind, tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	for _, kind := range nodesttest.Kinds {
		page, err := h.Characters.Resources(t.Context(), nodesttest.Ann, kind, "", 0)
		nodesttest.Must(t, err)
		if len(page.Items) > 0 {
			t.Errorf("%d of kind %s are stored, want none", len(page.Items), kind)
		}
	}
}

func TestADeletedResourceIsRemovedFromTheSettings(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ids := map[character.ResourceKind]string{}
	for _, kind := range nodesttest.Kinds {
		r, err := h.Characters.CreateResource(t.Context(), h.Call(), kind, character.ResourceInput{Document: nodesttest.Documents[kind]})
		nodesttest.Must(t, err)
		ids[kind] = r.ID
	}
	_, err := h.Characters.PutUserSettings(t.Context(), h.Call(), character.UserSettings{
		PersonaID:       ids[character.Persona],
		GlobalPreset:    character.GlobalResource{Enabled: true, ID: ids[character.Preset]},
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: ids[character.WorldBook], Priority: "角色优先"},
	}, 0)
	nodesttest.Must(t, err)
	for _, kind := range nodesttest.Kinds {
		nodesttest.Must(t, h.Characters.DeleteResource(t.Context(), h.Call(), kind, ids[kind]))
	}
	s, err := h.Characters.UserSettings(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	if s.PersonaID != "" || s.GlobalPreset.Enabled || s.GlobalPreset.ID != "" || s.GlobalWorldBook.Enabled {
		t.Errorf("settings still name them: %+v", s)
	}
	if s.Version != 4 {
		t.Errorf("version = %d, want 4: one for the settings and one for each of the three", s.Version)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	before, err := h.Characters.UserSettings(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	if before.Version != 0 {
		t.Errorf("version = %d before anything was stored", before.Version)
	}
	warm := 0.7
	s := character.UserSettings{UserName: "Mia", CustomSetting: json.RawMessage(`{"comment":"自设","content":"tall","position":4,"depth":1}`)}
	s.Temperature = &warm
	after, err := h.Characters.PutUserSettings(t.Context(), h.Call(), s, 0)
	nodesttest.Must(t, err)
	stored, err := h.Characters.UserSettings(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	if after.Version != 1 || stored.Version != 1 || *stored.Temperature != 0.7 || stored.UserName != "Mia" {
		t.Errorf("stored %+v", stored)
	}
	_, err = h.Characters.PutUserSettings(t.Context(), h.Call(), s, 3)
	nodesttest.WantError(t, err, fault.PreconditionFailed, "")
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"resource.updated"}) {
		t.Errorf("events = %v", events)
	}
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	hot, none := 2.5, 0
	book, err := h.Characters.CreateResource(t.Context(), h.Call(), character.WorldBook, character.ResourceInput{Document: nodesttest.Documents[character.WorldBook]})
	nodesttest.Must(t, err)
	tests := []struct {
		name   string
		change func(s *character.UserSettings)
		code   fault.Code
		field  string
	}{
		{"temperature 2.5", func(s *character.UserSettings) { s.Temperature = &hot }, fault.Invalid, "temperature"},
		{"a reply of no tokens", func(s *character.UserSettings) { s.MaxTokens = &none }, fault.Invalid, "maxTokens"},
		{"a character", func(s *character.UserSettings) { s.CharacterID = "x" }, fault.Invalid, "characterId"},
		{"an unknown persona", func(s *character.UserSettings) { s.PersonaID = "x" }, fault.NotFound, "personaId"},
		{"a book as preset", func(s *character.UserSettings) { s.GlobalPreset.ID = book.ID }, fault.NotFound, "globalPreset.id"},
		{"a preset without id", func(s *character.UserSettings) { s.GlobalPreset.Enabled = true }, fault.Invalid, "globalPreset.id"},
		{"an unknown priority", func(s *character.UserSettings) { s.GlobalWorldBook.Priority = "me" }, fault.Invalid, "globalWorldBook.priority"},
		{"a priority of a preset", func(s *character.UserSettings) { s.GlobalPreset.Priority = "全局优先" }, fault.Invalid, "globalPreset.priority"},
		{"a name of two lines", func(s *character.UserSettings) { s.UserName = "a\nb" }, fault.Invalid, "userName"},
		{"a position that does not exist", func(s *character.UserSettings) { s.CustomSetting = json.RawMessage(`{"position":5}`) }, fault.Invalid, "customSetting.position"},
		{"half a position", func(s *character.UserSettings) { s.CustomSetting = json.RawMessage(`{"position":1.5}`) }, fault.Invalid, "customSetting.position"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s character.UserSettings
			tt.change(&s)
			_, err := h.Characters.PutUserSettings(t.Context(), h.Call(), s, 0)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
}

// Every shared world book and preset can be imported, exported and imported again.
func TestEverySharedResourceImportsAndExports(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	for kind, folder := range map[character.ResourceKind]string{character.WorldBook: "worldbooks", character.Preset: "presets"} {
		for _, file := range sharedtest.Files(t, "data/"+folder+"/*") {
			kind := kind
			if filepath.Base(file) == "regex_scripts.json" {
				kind = character.RegexScript
			}
			if filepath.Ext(file) != ".json" {
				continue // a folder of templates
			}
			t.Run(filepath.Base(file), func(t *testing.T) {
				r, err := h.Characters.ImportResource(t.Context(), h.Call(), kind, nodesttest.ReadFile(t, file), filepath.Base(file), "")
				nodesttest.Must(t, err)
				data, name, err := h.Characters.ExportResource(t.Context(), nodesttest.Ann, kind, r.Resource.ID)
				nodesttest.Must(t, err)
				again, err := h.Characters.ImportResource(t.Context(), h.Call(), kind, data, name, "")
				nodesttest.Must(t, err)
				nodesttest.SameJSON(t, "document", again.Resource.Document, r.Resource.Document)
			})
		}
	}
	_, err := h.Characters.ImportResource(t.Context(), h.Call(), character.Persona, []byte(`{}`), "x.json", "")
	nodesttest.WantError(t, err, fault.InvalidImport, "")
}

// Files of other programs keep the place that they name, even one that a client could not choose.
func TestAPersonaFromAFileMayHaveAnyPlace(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	for _, file := range []string{`{"name":"Mia","position":"4","depth":[],"role":7}`, `{"name":"Mia","position":9,"depth":10000,"role":2}`} {
		r, err := h.Characters.ImportResource(t.Context(), h.Call(), character.Persona, []byte(file), "p.json", "")
		nodesttest.Must(t, err)
		nodesttest.SameJSON(t, "document", r.Resource.Document, json.RawMessage(file))
	}
	for _, doc := range []string{`{"name":"Mia","position":9,"depth":10000,"role":2}`, `{"name":"Mia","position":null,"depth":null,"role":null}`} {
		_, err := h.Characters.CreateResource(t.Context(), h.Call(), character.Persona, character.ResourceInput{Document: json.RawMessage(doc)})
		nodesttest.Must(t, err)
	}
}

func TestAnImportedGroupForAllIsBoundToAll(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	for bind, want := range map[string]bool{"all": true, "character": false} {
		group := `{"id":"g","name":"Shouts","bindType":"` + bind + `","scripts":[{"scriptName":"shout","findRegex":"a","placement":[2]}]}`
		r, err := h.Characters.ImportResource(t.Context(), h.Call(), character.RegexScript, []byte(group), "g.json", "")
		nodesttest.Must(t, err)
		if r.Resource.BindAll != want {
			t.Errorf("bindType %s: bound to all is %v", bind, r.Resource.BindAll)
		}
	}
}

// A document is checked before the transaction that stores it: checking a large one takes a while, in
// which nobody else can write on SQLite. Here a transaction that does not end holds the writer.
func TestADocumentIsCheckedBeforeItHoldsUpOthers(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModelOn(t, storetest.OpenWith)
	wrong := character.ResourceInput{Document: json.RawMessage(`{"entries":"x"}`)}
	made, err := h.Characters.CreateResource(t.Context(), h.Call(), character.WorldBook, character.ResourceInput{Document: nodesttest.Documents[character.WorldBook]})
	nodesttest.Must(t, err)
	nodesttest.Must(t, h.DB.Update(t.Context(), nodesttest.Ann, func(nodest.Tx) error {
		waits, cancel := context.WithTimeout(t.Context(), 10*time.Second) // only if it asks for the writer
		defer cancel()
		_, created := h.Characters.CreateResource(waits, h.Call(), character.WorldBook, wrong)
		_, replaced := h.Characters.UpdateResource(waits, h.Call(), character.WorldBook, made.ID, wrong, true, 0)
		if !fault.Is(created, fault.InvalidWorldBook) || !fault.Is(replaced, fault.InvalidWorldBook) {
			t.Errorf("%v, %v", created, replaced)
		}
		return nil
	}))
}
