package character_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/sharedtest"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store/storetest"
)

func TestACharacterKeepsItsDocumentsUnchanged(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	in := character.Input{
		RoleCard:   json.RawMessage(nodesttest.Alice),
		WorldBook:  json.RawMessage(`{"entries":{"b":{"content":"x","mine":true},"a":{}}}`),
		Preset:     json.RawMessage(`{"prompts":[],"temperature":1,"prompt_order":[]}`),
		AuthorNote: json.RawMessage(`{"charname":"Alice","username":"U","content":"","injection_depth":2}`),
	}
	made, err := h.Characters.Create(t.Context(), h.Call(), in)
	nodesttest.Must(t, err)
	ch, err := h.Characters.Get(t.Context(), nodesttest.Ann, made.ID)
	nodesttest.Must(t, err)
	nodesttest.SameJSON(t, "role card", ch.RoleCard, in.RoleCard)
	nodesttest.SameJSON(t, "world book", ch.WorldBook, in.WorldBook)
	nodesttest.SameJSON(t, "preset", ch.Preset, in.Preset)
	nodesttest.SameJSON(t, "author's note", ch.AuthorNote, in.AuthorNote)
	if ch.Name != "Alice" || ch.Dialect != "nodest" || ch.Version != 1 {
		t.Errorf("name %q, dialect %q, version %d; want Alice, nodest, 1", ch.Name, ch.Dialect, ch.Version)
	}
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"character.created"}) {
		t.Errorf("events = %v", events)
	}
}

func TestACharacterWithoutDocumentsGetsDefaults(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch, err := h.Characters.Create(t.Context(), h.Call(), character.Input{})
	nodesttest.Must(t, err)
	if ch.Name != "Unnamed Character" || ch.RoleCard != nil || ch.Preset != nil {
		t.Errorf("character = %q with role card %s, preset %s", ch.Name, ch.RoleCard, ch.Preset)
	}
	conv, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{CharacterID: ch.ID})
	nodesttest.Must(t, err)
	if conv.LastMessage.Text != "Hello!" {
		t.Errorf("greeting = %q, want Hello!", conv.LastMessage.Text)
	}
}

func TestInvalidDocumentsAreRefusedByName(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name  string
		in    character.Input
		code  fault.Code
		field string
	}{
		{"a role card that is a list", character.Input{RoleCard: raw(`[]`)}, fault.Invalid, "roleCard"},
		{"a role card that is no JSON", character.Input{RoleCard: raw(`{"name"`)}, fault.Invalid, "roleCard"},
		{"a role card without a name", character.Input{RoleCard: raw(`{"first_mes":"x"}`)}, fault.UnsupportedCard, "roleCard.name"},
		{"a role card with a blank name", character.Input{RoleCard: raw(`{"name":" \n"}`)}, fault.UnsupportedCard, "roleCard.name"},
		{"a V2 card without a name", character.Input{RoleCard: raw(`{"spec":"chara_card_v2","data":{}}`)}, fault.UnsupportedCard, "roleCard.name"},
		{"a world book that is a text", character.Input{RoleCard: raw(nodesttest.Alice), WorldBook: raw(`"x"`)}, fault.Invalid, "worldBook"},
		{"a world book whose entries are a number", character.Input{RoleCard: raw(nodesttest.Alice), WorldBook: raw(`{"entries":4}`)}, fault.InvalidWorldBook, "worldBook"},
		{"a preset that is a list", character.Input{RoleCard: raw(nodesttest.Alice), Preset: raw(`[]`)}, fault.Invalid, "preset"},
		{"a note with an unknown role", character.Input{RoleCard: raw(nodesttest.Alice), AuthorNote: raw(`{"content":"x","role":"boss"}`)}, fault.Invalid, "authorNote.role"},
		{"a note with a negative depth", character.Input{RoleCard: raw(nodesttest.Alice), AuthorNote: raw(`{"injection_depth":-1}`)}, fault.Invalid, "authorNote.injection_depth"},
		{"a note whose content is a number", character.Input{RoleCard: raw(nodesttest.Alice), AuthorNote: raw(`{"content":1}`)}, fault.Invalid, "authorNote.content"},
		{"scripts that are a text", character.Input{RoleCard: raw(nodesttest.Alice), RegexScripts: raw(`"x"`)}, fault.Invalid, "regexScripts"},
		{"a dialect that does not exist", character.Input{RoleCard: raw(nodesttest.Alice), Dialect: "latin"}, fault.Invalid, "dialect"},
	}
	h := nodesttest.NewWithoutModel(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Characters.Create(t.Context(), h.Call(), tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	page, err := h.Characters.List(t.Context(), nodesttest.Ann, character.Filter{}, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 0 || len(h.TakeEventTypes()) != 0 {
		t.Errorf("%d characters are stored, want none", len(page.Items))
	}
}

func TestACardBringsItsBookAndItsScripts(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.AliceWithGreetings)
	if !strings.Contains(string(ch.WorldBook), "Tea is green.") {
		t.Errorf("world book = %s, want the card's", ch.WorldBook)
	}
	groups, err := h.Characters.Resources(t.Context(), nodesttest.Ann, character.RegexScript, "", 0)
	nodesttest.Must(t, err)
	if len(groups.Items) != 1 {
		t.Fatalf("%d groups of scripts, want the card's own", len(groups.Items))
	}
	group := groups.Items[0]
	if group.Name != "Alice (Auto-Applied)" || !slices.Equal(group.Characters, []string{ch.ID}) || group.BindAll {
		t.Errorf("group %q is bound to %v", group.Name, group.Characters)
	}
	group, err = h.Characters.Resource(t.Context(), nodesttest.Ann, character.RegexScript, group.ID)
	nodesttest.Must(t, err)
	scripts, err := card.ParseRegexScripts(group.Document)
	nodesttest.Must(t, err)
	if len(scripts) != 1 || scripts[0].Flags != "g" || !slices.Equal(scripts[0].Placement, []int{card.PlaceAIOutput}) {
		t.Errorf("scripts = %+v, want one for the reply with flag g", scripts)
	}
	s, err := h.Characters.UserSettings(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	if !s.GlobalRegexEnabled {
		t.Error("scripts are not switched on")
	}
}

func TestNewScriptsOfACharacterReplaceItsGroup(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.AliceWithGreetings)
	own, err := h.Characters.CreateResource(t.Context(), h.Call(), character.RegexScript, character.ResourceInput{
		Document: json.RawMessage(`[{"scriptName":"mine","findRegex":"b"}]`), Characters: []string{ch.ID},
	})
	nodesttest.Must(t, err)
	groups := func() (names []string) {
		page, err := h.Characters.Resources(t.Context(), nodesttest.Ann, character.RegexScript, "", 0)
		nodesttest.Must(t, err)
		for _, r := range page.Items {
			full, err := h.Characters.Resource(t.Context(), nodesttest.Ann, character.RegexScript, r.ID)
			nodesttest.Must(t, err)
			names = append(names, r.Name+" "+string(full.Document))
		}
		return names
	}
	_, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{
		RegexScripts: json.RawMessage(`[{"scriptName":"whisper","findRegex":"A"}]`),
	}, false, 0)
	nodesttest.Must(t, err)
	if g := groups(); len(g) != 2 || !strings.Contains(strings.Join(g, ""), "whisper") || strings.Contains(strings.Join(g, ""), "shout") {
		t.Errorf("groups = %v, want mine and the new one", g)
	}
	_, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{RegexScripts: json.RawMessage(`null`)}, false, 0)
	nodesttest.Must(t, err)
	if g := groups(); len(g) != 1 {
		t.Errorf("groups = %v, want mine alone", g)
	}
	nodesttest.Must(t, h.DeleteCharacter(t.Context(), h.Call(), ch.ID))
	left, err := h.Characters.Resource(t.Context(), nodesttest.Ann, character.RegexScript, own.ID)
	nodesttest.Must(t, err)
	if len(left.Characters) != 0 {
		t.Errorf("the group is still bound to %v", left.Characters)
	}
}

func TestUpdateReplacesOrPatches(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch, err := h.Characters.Create(t.Context(), h.Call(), character.Input{
		RoleCard: json.RawMessage(nodesttest.Alice), WorldBook: json.RawMessage(`{"entries":{}}`), Preset: json.RawMessage(`{"prompts":[]}`),
	})
	nodesttest.Must(t, err)
	bob := json.RawMessage(`{"name":"Bob"}`)

	ch, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{RoleCard: bob, Dialect: "sillytavern"}, false, 1)
	nodesttest.Must(t, err)
	if ch.Name != "Bob" || ch.WorldBook == nil || ch.Preset == nil || ch.Dialect != "sillytavern" || ch.Version != 2 {
		t.Errorf("after the patch: %+v", ch)
	}
	ch, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{WorldBook: json.RawMessage("null")}, false, 0)
	nodesttest.Must(t, err)
	if ch.WorldBook != nil || ch.Name != "Bob" {
		t.Errorf("after the removal: %+v", ch)
	}
	ch, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{RoleCard: json.RawMessage(nodesttest.Alice)}, true, 3)
	nodesttest.Must(t, err)
	if ch.Name != "Alice" || ch.Preset != nil || ch.Version != 4 {
		t.Errorf("after the replacement: %+v", ch)
	}
	_, err = h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{RoleCard: bob}, true, 3)
	nodesttest.WantError(t, err, fault.PreconditionFailed, "")
}

func TestDeletingACharacterDeletesItsConversations(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 2)
	nodesttest.Must(t, h.DeleteCharacter(t.Context(), h.Call(), conv.CharacterID))
	_, err := h.Characters.Get(t.Context(), nodesttest.Ann, conv.CharacterID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
}

func TestAvatars(t *testing.T) {
	t.Parallel()
	webp := append([]byte("RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), 63, 0, 0, 63, 0, 0)
	tests := []struct {
		name  string
		data  []byte
		code  fault.Code // "" = accepted
		media string
	}{
		{"a PNG", nodesttest.PNGOfSize(t, 4, 4), "", "image/png"},
		{"a WebP", webp, "", "image/webp"},
		{"a GIF", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "", "image/gif"},
		{"a PNG of 9,000 pixels", nodesttest.PNGOfSize(t, 9000, 1), fault.TooLarge, ""},
		{"a text", []byte("<svg/>"), fault.UnsupportedMedia, ""},
		{"nothing", nil, fault.UnsupportedMedia, ""},
		{"a cut PNG", nodesttest.PNGOfSize(t, 4, 4)[:20], fault.UnsupportedMedia, ""},
		{"more than 10 MiB", make([]byte, 10<<20+1), fault.TooLarge, ""},
	}
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	_, err := h.Characters.Avatar(t.Context(), nodesttest.Ann, ch.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := h.Characters.PutAvatar(t.Context(), h.Call(), ch.ID, tt.data)
			if tt.code != "" {
				nodesttest.WantError(t, err, tt.code, "")
				return
			}
			nodesttest.Must(t, err)
			a, err := h.Characters.Avatar(t.Context(), nodesttest.Ann, ch.ID)
			nodesttest.Must(t, err)
			if !got.HasAvatar || a.ContentType != tt.media || string(a.Data) != string(tt.data) || a.ETag == "" {
				t.Errorf("avatar is %s with %d bytes, want %s", a.ContentType, len(a.Data), tt.media)
			}
		})
	}
}

func TestCharactersAreListedInPages(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	var made []string
	for range 5 {
		made = append(made, h.Character(nodesttest.Alice).ID)
	}
	slices.Reverse(made)
	var listed []string
	cursor := ""
	for {
		page, err := h.Characters.List(t.Context(), nodesttest.Ann, character.Filter{}, cursor, 2)
		nodesttest.Must(t, err)
		for _, ch := range page.Items {
			listed = append(listed, ch.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	slices.Sort(made) // characters of the same millisecond have no order
	slices.Sort(listed)
	if !slices.Equal(listed, made) {
		t.Errorf("listed %v, want %v", listed, made)
	}
	for _, limit := range []int{-1, 201} {
		_, err := h.Characters.List(t.Context(), nodesttest.Ann, character.Filter{}, "", limit)
		nodesttest.WantError(t, err, fault.Invalid, "limit")
	}
}

// Settings have defaults, keep unknown members, and can be sent back as they were
// read.
func TestCharacterSettings(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	raw, version, err := h.Characters.Settings(t.Context(), nodesttest.Ann, ch.ID)
	nodesttest.Must(t, err)
	nodesttest.SameJSON(t, "defaults", raw, []byte(`{"memory":{"enabled":true,"summaryShare":50,"summaryTokens":32000,"summaryThreshold":6000,"summaryLength":1000,
		"lastSummarizedAt":0,"extractEvery":5,"scanSummary":false},
		"retrieval":{"enabled":true,"limit":10,"shareAcrossConversations":true,"includeCircle":true,"feedback":true},
		"knowledge":{"citations":"inline"},"tools":{"servers":[]},
		"cognition":{"goals":false,"extract":false,"autoCommit":false,"logMemoryQueries":false},
		"circle":{"enabled":false,"postsPerDay":1,"interactionFrequency":"medium","scheduledTimes":[]},
		"dream":{"mode":"full","at":"04:00","newMessages":20},
		"prompt":{"depthMode":"messages","scanDepth":20,"language":"auto","cardFields":"all","recount":true,"filterKeyed":false,
		"pinExamples":false,"cardSystemPrompt":true,"cardPostHistory":true},
		"worldInfo":{"depth":2,"budget":25,"budgetCap":0,"minActivations":0,"minActivationsDepth":0,"maxRecursionSteps":0,
		"recursive":true,"includeNames":true,"caseSensitive":false,"matchWholeWords":true,"useGroupScoring":false,"strategy":"character"},
		"scripts":{"card":true,"preset":false},
		"user":{"name":"","customSetting":null}}`))

	set := json.RawMessage(`{"memory":{"summaryThreshold":3000,"lastSummarizedAt":77,"mine":"kept"},"circle":{"scheduledTimes":["08:15"]}}`)
	raw, version, err = h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, set, version)
	nodesttest.Must(t, err)
	for _, part := range []string{`"summaryThreshold":3000`, `"lastSummarizedAt":0`, `"mine":"kept"`, `["08:15"]`, `"summaryLength":1000`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("settings lack %s: %s", part, raw)
		}
	}
	if version != 2 {
		t.Errorf("version = %d, want 2", version)
	}
	_, _, err = h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, raw, version)
	nodesttest.Must(t, err) // the settings that were read can be sent back
	_, _, err = h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, raw, version)
	nodesttest.WantError(t, err, fault.PreconditionFailed, "")
}

// Who sets the length at which chats are summarised wants it to count, and not a share of the context.
func TestASetThresholdOfSummariesCounts(t *testing.T) {
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	for sent, want := range map[string]int{
		`{}`:                                    50,
		`{"memory":{"summaryTokens":20000}}`:    50,
		`{"memory":{"summaryThreshold":60000}}`: 0,
		`{"memory":{"summaryThreshold":6000}}`:  0,
		`{"memory":{"summaryThreshold":6000,"summaryShare":50}}`: 50,
	} {
		raw, _, err := h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, json.RawMessage(sent), 0)
		nodesttest.Must(t, err)
		again, _, err := h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, raw, 0)
		nodesttest.Must(t, err)
		for _, settings := range []json.RawMessage{raw, again} {
			if part := fmt.Sprintf(`"summaryShare":%d,`, want); !strings.Contains(string(settings), part) {
				t.Errorf("%s gives no %s: %s", sent, part, settings)
			}
		}
	}
}

// Settings that were stored when they had more members are read without them, and can be sent
// back as they were read.
func TestStoredSettingsLoseMembersThatAreNoneAnyMore(t *testing.T) {
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	nodesttest.Must(t, h.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		stored, err := tx.Characters.Character(ch.ID)
		if err != nil {
			return err
		}
		stored.Settings = json.RawMessage(`{"dreams":{"enabled":false,"at":"05:00"},"weather":{"autoCommit":true},"retrieval":{"limit":3,"shareAcrossCharacters":true},"memory":{"mine":"kept"}}`)
		return character.Put(tx.Characters, h.Call(), stored)
	}))
	raw, version, err := h.Characters.Settings(t.Context(), nodesttest.Ann, ch.ID)
	nodesttest.Must(t, err)
	for _, gone := range []string{"dreams", "weather", "shareAcrossCharacters"} {
		if strings.Contains(string(raw), gone) {
			t.Errorf("settings have %s: %s", gone, raw)
		}
	}
	for _, part := range []string{`"limit":3`, `"mine":"kept"`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("settings lack %s: %s", part, raw)
		}
	}
	again, _, err := h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, raw, version)
	nodesttest.Must(t, err)
	nodesttest.SameJSON(t, "sent back", again, raw)
}

func TestCharacterSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	for sent, field := range map[string]string{
		`[]`:                                   "settings",
		`{"memory":[]}`:                        "memory",
		`{"memory":{"summaryThreshold":2999}}`: "memory.summaryThreshold",
		`{"memory":{"summaryThreshold":1000001}}`:      "memory.summaryThreshold",
		`{"memory":{"summaryThreshold":"6000"}}`:       "memory.summaryThreshold",
		`{"memory":{"summaryShare":91}}`:               "memory.summaryShare",
		`{"memory":{"summaryTokens":999}}`:             "memory.summaryTokens",
		`{"memory":{"summaryLength":500.5}}`:           "memory.summaryLength",
		`{"memory":{"extractEvery":0}}`:                "memory.extractEvery",
		`{"memory":{"enabled":1}}`:                     "memory.enabled",
		`{"memory":{"enabled":null}}`:                  "memory.enabled",
		`{"retrieval":{"limit":11}}`:                   "retrieval.limit",
		`{"retrieval":{"Limit":1}}`:                    "retrieval.Limit",
		`{"knowledge":{"citations":"loud"}}`:           "knowledge.citations",
		`{"tools":{"servers":["weather"]}}`:            "tools.servers[0]",
		`{"tools":{"servers":"weather"}}`:              "tools.servers",
		`{"cognition":{"logMemoryQueries":1}}`:         "cognition.logMemoryQueries",
		`{"cognition":{"extract":"on"}}`:               "cognition.extract",
		`{"cognition":{"autoCommit":null}}`:            "cognition.autoCommit",
		`{"retrieval":{"shareAcrossCharacters":true}}`: "retrieval.shareAcrossCharacters",
		`{"circle":{"interactionFrequency":"always"}}`: "circle.interactionFrequency",
		`{"circle":{"scheduledTimes":["8:15"]}}`:       "circle.scheduledTimes[0]",
		`{"circle":{"scheduledTimes":"08:15"}}`:        "circle.scheduledTimes",
		`{"prompt":{"depthMode":"words"}}`:             "prompt.depthMode",
		`{"prompt":{"scanDepth":0}}`:                   "prompt.scanDepth",
		`{"prompt":{"language":"de"}}`:                 "prompt.language",
		`{"prompt":{"cardFields":"none"}}`:             "prompt.cardFields",
		`{"prompt":{"recount":"no"}}`:                  "prompt.recount",
		`{"user":{"customSetting":{"position":9}}}`:    "user.customSetting.position",
		`{"user":{"customSetting":"me"}}`:              "user.customSetting",
		`{"weather":{}}`:                               "weather",
		`{"dream":{"at":"4 am"}}`:                      "dream.at",
	} {
		_, _, err := h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, json.RawMessage(sent), 0)
		nodesttest.WantError(t, err, fault.Invalid, field)
		if t.Failed() {
			t.Fatalf("sent %s", sent)
		}
	}
}

// Every shared card can be imported, exported and imported again. The export formats
// take turns, because package card tests each format with every card; NODEST_LONG=1
// exports every card in all formats.
func TestEverySharedCardImportsAndExports(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ways := [][2]string{{"json", "v3"}, {"png", ""}, {"json", "v2"}, {"charx", "v3"}}
	for i, file := range sharedtest.Files(t, "data/cards/*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			made, err := h.Characters.Import(t.Context(), h.Call(), nodesttest.ReadFile(t, file), filepath.Base(file))
			if strings.Contains(file, "invalid") {
				nodesttest.WantError(t, err, fault.UnsupportedCard, "")
				return
			}
			nodesttest.Must(t, err)
			ch, err := h.Characters.Get(t.Context(), nodesttest.Ann, made.Character.ID)
			nodesttest.Must(t, err)
			if ch.Name == "" || ch.RoleCard == nil {
				t.Fatalf("character %q with card %.40s", ch.Name, ch.RoleCard)
			}
			conv, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{CharacterID: ch.ID})
			nodesttest.Must(t, err)
			if conv.LastMessage == nil || conv.LastMessage.Text == "" {
				t.Error("no greeting")
			}
			for turn := range nodesttest.Long(1, len(ways)) {
				as := ways[(i+turn)%len(ways)]
				data, media, name, err := h.Characters.Export(t.Context(), nodesttest.Ann, ch.ID, as[0], as[1])
				nodesttest.Must(t, err)
				if media == "" || filepath.Ext(name) != "."+as[0] {
					t.Errorf("export as %s is %q (%s)", as[0], name, media)
				}
				again, err := card.Import(data, name, card.Limits{})
				nodesttest.Must(t, err)
				if again.Name != ch.Name {
					t.Errorf("%s came back as %q", as, again.Name)
				}
				if as[0] != "json" && ch.HasAvatar && len(again.Avatar) == 0 {
					t.Errorf("%s lost the picture", as)
				}
				nodesttest.SameJSON(t, as[0]+": world book", again.WorldBook, ch.WorldBook)
			}
		})
	}
}

func TestAnUnknownExportFormatIsRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	_, _, _, err := h.Characters.Export(t.Context(), nodesttest.Ann, ch.ID, "docx", "")
	nodesttest.WantError(t, err, fault.Invalid, "format")
	_, _, _, err = h.Characters.Export(t.Context(), nodesttest.Ann, ch.ID, "json", "v9")
	nodesttest.WantError(t, err, fault.Invalid, "spec")
}

// Who begins a chat reads the card and not the other documents, which may be large: nobody else can
// write on SQLite meanwhile. It does not run beside other tests, as it looks at what is allocated.
func TestAChatBeginsWithoutReadingLargeDocuments(t *testing.T) {
	h := nodesttest.NewWithoutModelOn(t, storetest.OpenWith)
	const size = 8 << 20
	book := json.RawMessage(`{"entries":{},"x":"` + strings.Repeat("b", size) + `"}`)
	ch, err := h.Characters.Create(t.Context(), h.Call(), character.Input{RoleCard: json.RawMessage(nodesttest.Alice), WorldBook: book})
	nodesttest.Must(t, err)
	for name, begin := range map[string]func() error{
		"a chat": func() error {
			_, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{CharacterID: ch.ID})
			return err
		},
		"a book for the character": func() error {
			_, err := h.Characters.CreateResource(t.Context(), h.Call(), character.WorldBook,
				character.ResourceInput{Document: nodesttest.Documents[character.WorldBook], Characters: []string{ch.ID}})
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		nodesttest.Must(t, begin())
		runtime.ReadMemStats(&after)
		if read := after.TotalAlloc - before.TotalAlloc; read >= size {
			t.Errorf("%s took %d bytes", name, read)
		}
	}
}
