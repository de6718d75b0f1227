package tavern_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/sharedtest"
	"nodest/internal/tavern"
	"nodest/internal/tavern/folder"
	"nodest/internal/tavern/taverntest"
	"nodest/nodest/nodesttest"
)

// mover moves folders in and out.
type mover struct {
	*nodesttest.Fixture
	*tavern.Service
	t *testing.T
}

func newMover(t *testing.T) *mover {
	t.Helper()
	h := nodesttest.NewWithoutModel(t)
	return &mover{h, tavern.New(h.DB.Tavern(), tavern.Options{
		Characters: h.Characters, Archives: h.Archives, Chats: h.Chats, TempDir: t.TempDir(),
		Memories: func(_ context.Context, userID, characterID string, out io.Writer) error {
			_, err := io.WriteString(out, "what "+characterID+" remembers of "+userID)
			return err
		},
		Beside: []tavern.Beside{{Name: "circle.md", Write: func(_ context.Context, userID string, out io.Writer) error {
			_, err := io.WriteString(out, "the circle of "+userID)
			return err
		}}},
	}), t}
}

// in imports files, and returns what became of each.
func (m *mover) in(userID string, files taverntest.Files) map[string]*tavern.File {
	m.t.Helper()
	data := files.Zip("default-user/")
	archive := m.Intake(m.t.Context(), userID)
	defer archive.Drop()
	_, err := archive.Write(data)
	nodesttest.Must(m.t, err)
	imp, err := m.Start(m.t.Context(), &op.Call{UserID: userID, Device: "pc"}, tavern.Upload{Name: "SillyTavern.zip", Archive: archive, MakeCharacters: true})
	nodesttest.Must(m.t, err)
	claimed, err := m.DB.ClaimJobs(m.t.Context(), "test", time.Minute, []jobs.Want{{Kind: tavern.JobImport, Free: 1, PerUser: 1}})
	nodesttest.Must(m.t, err)
	if len(claimed) != 1 {
		m.t.Fatalf("%d jobs", len(claimed))
	}
	nodesttest.Must(m.t, m.Kinds()[0].Run(m.t.Context(), claimed[0]))
	imp, err = m.Get(m.t.Context(), userID, imp.ID)
	nodesttest.Must(m.t, err)
	if imp.State != jobs.Done {
		m.t.Fatalf("the import is %s: %+v", imp.State, imp.Error)
	}
	became := map[string]*tavern.File{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := m.Files(m.t.Context(), userID, imp.ID, tavern.Filter{}, cursor, 200)
		nodesttest.Must(m.t, err)
		for _, f := range page.Items {
			became[f.Path] = f
		}
		cursor = page.NextCursor
	}
	return became
}

// out exports everything of a user.
func (m *mover) out(userID string) taverntest.Files {
	m.t.Helper()
	var b bytes.Buffer
	nodesttest.Must(m.t, m.Export(m.t.Context(), userID, &b))
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	nodesttest.Must(m.t, err)
	files := taverntest.Files{}
	for _, f := range z.File {
		if !folder.Safe(f.Name) || files[f.Name] != nil {
			m.t.Errorf("the archive has %q, which is unsafe or there twice", f.Name)
		}
		r, err := f.Open()
		nodesttest.Must(m.t, err)
		files[f.Name], err = io.ReadAll(r)
		nodesttest.Must(m.t, err)
	}
	if n := len(z.File); n == 0 || z.File[n-1].Name != "NodeST/report.json" {
		m.t.Error("the report is not the last file")
	}
	return files
}

// report is that of an export.
func reportOf(t *testing.T, files taverntest.Files) (written map[string]tavern.Written, left []tavern.LeftOut) {
	t.Helper()
	var r struct {
		Files   []tavern.Written
		LeftOut []tavern.LeftOut
	}
	nodesttest.Must(t, json.Unmarshal(files["NodeST/report.json"], &r))
	written = map[string]tavern.Written{}
	for _, f := range r.Files {
		written[f.Path] = f
		if int64(len(files[f.Path])) != f.Size {
			t.Errorf("%s has %d bytes; the report says %d", f.Path, len(files[f.Path]), f.Size)
		}
	}
	if len(written) != len(files)-1 {
		t.Errorf("the report has %d files of %d", len(written), len(files)-1)
	}
	return written, r.LeftOut
}

func indent(v any) []byte {
	text, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		panic(err) // a mistake in the test
	}
	return text
}

func chatLine(name, text string, user bool, more string) string {
	return fmt.Sprintf(`{"name":%q,"is_user":%t,"is_system":false,"send_date":"2025-03-14T09:00:00.000Z","mes":%q,"extra":{%s}}`, name, user, text, more)
}

func chatLog(metadata string, lines ...string) []byte {
	return []byte(`{"chat_metadata":` + metadata + `,"user_name":"unused","character_name":"unused"}` + "\n" + strings.Join(lines, "\n"))
}

// folderOfUser is the folder of a user as SillyTavern 1.19 lays it out.
func folderOfUser() taverntest.Files {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var book map[string]any
	_ = json.Unmarshal(taverntest.Book(r, 5), &book)
	first, u1 := chatLine("Made 000", "Hello, Ann.", false, ""), chatLine("Ann", "Hi <you>.", true, "")
	at1 := chatLine("Ann", "Hi <you>.", true, `"branches":["Branch #1 - 2025-3-14@09h00m00s0ms"],"bookmark_link":"Checkpoint"`)
	picture := taverntest.Card("x", "y", "")
	settings := map[string]any{
		"username": "Ann", "user_avatar": "ann.png", "main_api": "openai", "theme": "dark", "unknown": map[string]any{"kept": []int{1, 2}},
		"power_user": map[string]any{
			"personas":             map[string]any{"ann.png": "Ann", "bo.png": "Bo"},
			"persona_descriptions": map[string]any{"ann.png": map[string]any{"description": "A traveller.", "position": 0, "depth": 2, "role": 0, "lorebook": "Eldoria"}},
			"default_persona":      "ann.png", "waifuMode": true,
		},
		"extension_settings":  map[string]any{"regex": []any{map[string]any{"id": "1", "scriptName": "stars", "findRegex": "/\\*/g", "replaceString": "", "placement": []int{2}, "disabled": false, "markdownOnly": true}}, "note": map[string]any{"default": ""}},
		"world_info_settings": map[string]any{"world_info_depth": 2, "world_info": map[string]any{"globalSelect": []string{"Eldoria"}}},
		"oai_settings":        map[string]any{"preset_settings_openai": "Mine"},
	}
	return taverntest.Files{
		"characters/Made 000.png":                             taverntest.Card("Made 000", "A guide.", "Eldoria"),
		"characters/Made 001.png":                             taverntest.Card("Made 001", "A baker.", ""),
		"characters/Made 000/joy.png":                         picture,
		"worlds/Eldoria.json":                                 indent(book),
		"OpenAI Settings/Mine.json":                           indent(map[string]any{"temperature": 1, "prompts": []any{}, "prompt_order": []any{}}),
		"chats/Made 000/Made 000 - 2025-3-14@09h00m00s.jsonl": chatLog(`{"integrity":"i","note_prompt":"","variables":{"x":1}}`, first, at1, chatLine("Made 000", "And on.", false, "")),
		"chats/Made 000/Branch #1 - 2025-3-14@09h00m00s0ms.jsonl": chatLog(`{"integrity":"i","note_prompt":"","variables":{"x":2},"main_chat":"Made 000 - 2025-3-14@09h00m00s"}`,
			first, u1, chatLine("Made 000", "Or not.", false, "")),
		"chats/Made 000/Checkpoint.jsonl": chatLog(`{"main_chat":"Made 000 - 2025-3-14@09h00m00s"}`, first, u1),
		"chats/Made 001/Made 001 - 2025-3-15@09h00m00s.jsonl": chatLog(`{}`, chatLine("Made 001", "Bread?", false, ""),
			`{"name":"Made 001","is_user":false,"is_system":true,"send_date":"March 14, 2025 9:00am","mes":"It rains.","extra":{"type":"narrator"}}`),
		"groups/1700000000000.json": indent(map[string]any{"id": "1700000000000", "name": "Both", "members": []string{"Made 000.png", "Made 001.png"},
			"chats": []string{"1700000000000"}, "chat_id": "1700000000000", "allow_self_responses": false}),
		"group chats/1700000000000.jsonl": chatLog(`{}`, chatLine("Made 000", "One.", false, ""), chatLine("Made 001", "Two.", false, "")),
		"User Avatars/ann.png":            picture, "User Avatars/bo.png": picture,
		"backgrounds/tavern day.png":     picture,
		"user/images/Made 000/1.png":     picture,
		"settings.json":                  indent(settings),
		"secrets.json":                   []byte(`{"api_key_openai":"sk-secret"}`),
		"themes/Dark.json":               []byte(`{}`),
		"thumbnails/avatar/Made 000.png": picture,
	}
}

// wantSame compares the files that were taken with those that went out.
func wantSame(t *testing.T, in, out taverntest.Files, became map[string]*tavern.File) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		f := became[name]
		switch {
		case f == nil:
			t.Errorf("no word about %s", name)
		case f.Outcome == tavern.NotTaken && out[name] != nil && name != "settings.json":
			t.Errorf("%s was not taken (%s), and went out", name, f.Reason)
		case f.Outcome == tavern.NotTaken:
			t.Logf("not taken: %s: %s", name, f.Reason)
		case !bytes.Equal(out[name], in[name]):
			t.Errorf("%s is %.700q\nwant %.700q", name, out[name], in[name])
		}
	}
}

// A folder that went in comes out byte for byte, and goes in again the same.
func TestAFolderComesOutAsItWas(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	in := folderOfUser()
	became := m.in(nodesttest.Ann, in)
	out := m.out(nodesttest.Ann)
	wantSame(t, in, out, became)
	written, _ := reportOf(t, out)
	for name := range out {
		if in[name] == nil && !strings.HasPrefix(name, "NodeST/") {
			t.Errorf("%s is new", name)
		}
		if f := written[name]; in[name] != nil && !f.Original {
			t.Errorf("the report says that %s is another: %+v", name, f)
		}
		if strings.Contains(string(out[name]), "sk-secret") {
			t.Errorf("%s has a secret", name)
		}
	}
	again := taverntest.Files{}
	for name, data := range out {
		if !strings.HasPrefix(name, "NodeST/") {
			again[name] = data
		}
	}
	m.again(nodesttest.Bob, again)
}

// again imports files for a user, and exports them: they are the same.
func (m *mover) again(userID string, files taverntest.Files) {
	m.t.Helper()
	became := m.in(userID, files)
	wantSame(m.t, files, m.out(userID), became)
}

// Nothing of another user is in an export.
func TestAnExportHasNothingOfOthers(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	m.in(nodesttest.Ann, folderOfUser())
	out := m.out(nodesttest.Bob)
	for name, data := range out {
		if name != "settings.json" && !strings.HasPrefix(name, "NodeST/") || strings.Contains(string(data), "Made") || strings.Contains(string(data), nodesttest.Ann) {
			t.Errorf("the folder of another user has %s: %.300s", name, data)
		}
	}
}

// Changed documents go out as they are now, others as they came; chats go on in their files.
func TestChangesGoOut(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	in := folderOfUser()
	became := m.in(nodesttest.Ann, in)
	ctx := t.Context()
	book := became["worlds/Eldoria.json"]
	_, err := m.Characters.UpdateResource(ctx, m.Call(), character.WorldBook, book.ObjectID, character.ResourceInput{Document: json.RawMessage(`{"entries":{"0":{"key":["sea"],"content":"Salt & <foam>."}}}`)}, false, 0)
	nodesttest.Must(t, err)
	_, _, err = m.Characters.PutSettings(ctx, m.Call(), became["characters/Made 001.png"].ObjectID, json.RawMessage(`{"scripts":{"card":true}}`), 0)
	nodesttest.Must(t, err)
	_, err = m.Characters.Update(ctx, m.Call(), became["characters/Made 000.png"].ObjectID, character.Input{RoleCard: json.RawMessage(`{"name":"Made 000","description":"A thief."}`)}, false, 0)
	nodesttest.Must(t, err)
	conv, err := m.Chats.Conversation(ctx, nodesttest.Ann, became["chats/Made 000/Checkpoint.jsonl"].ObjectID)
	nodesttest.Must(t, err)
	m.AddMessage(t, conv.ID, conv.HeadID, "written here")
	_, err = m.Chats.CreateSave(ctx, m.Call(), chat.SaveInput{ConversationID: conv.ID, Description: "before the storm/../x"})
	nodesttest.Must(t, err)
	other := m.Character(nodesttest.Alice)
	_, err = m.Chats.CreateConversation(ctx, m.Call(), chat.ConversationInput{CharacterID: other.ID, Title: "../../evil"})
	nodesttest.Must(t, err)

	out := m.out(nodesttest.Ann)
	written, left := reportOf(t, out)
	if s := string(out["worlds/Eldoria.json"]); !strings.Contains(s, `Salt & <foam>.`) || !strings.Contains(s, "\n    \"entries\"") || written["worlds/Eldoria.json"].Original {
		t.Errorf("the book is %s", s)
	}
	if !bytes.Equal(out["characters/Made 001.png"], in["characters/Made 001.png"]) {
		t.Error("a card changes with the settings of its character")
	}
	if bytes.Equal(out["characters/Made 000.png"], in["characters/Made 000.png"]) || !bytes.HasPrefix(out["characters/Made 000.png"], []byte("\x89PNG")) {
		t.Error("a changed card went out as it came")
	}
	main := "chats/Made 000/Made 000 - 2025-3-14@09h00m00s.jsonl"
	if s := string(out[main]); !strings.HasPrefix(s, string(in[main])) || !strings.Contains(s, "written here") {
		t.Errorf("the chat is %s", s)
	}
	if name := "chats/Made 000/Checkpoint.jsonl"; !bytes.Equal(out[name], in[name]) {
		t.Errorf("the checkpoint is %s", out[name])
	}
	saves := 0
	for name := range out {
		if strings.HasPrefix(name, "NodeST/save points/Made 000/") {
			saves++
		}
	}
	if saves != 1 || out["characters/Alice.png"] == nil || len(left) == 0 || string(out["NodeST/circle.md"]) != "the circle of "+nodesttest.Ann {
		t.Errorf("files %q, left out %v", slices.Sorted(maps.Keys(out)), left)
	}
}

// The book of a persona is bound to it, and goes out with the name that it has then.
func TestTheBookOfAPersonaGoesInAndOut(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	became := m.in(nodesttest.Ann, folderOfUser())
	book := became["worlds/Eldoria.json"].ObjectID
	page, err := m.Characters.Resources(t.Context(), nodesttest.Ann, character.Persona, "", 0)
	nodesttest.Must(t, err)
	lorebook := func() string {
		t.Helper()
		var s struct {
			PowerUser struct {
				Personas map[string]struct{ Lorebook string } `json:"persona_descriptions"`
			} `json:"power_user"`
		}
		nodesttest.Must(t, json.Unmarshal(m.out(nodesttest.Ann)["settings.json"], &s))
		return s.PowerUser.Personas["ann.png"].Lorebook
	}
	found := false
	for _, head := range page.Items {
		r, err := m.Characters.Resource(t.Context(), nodesttest.Ann, character.Persona, head.ID)
		nodesttest.Must(t, err)
		var doc struct{ Name, WorldBookID string }
		nodesttest.Must(t, json.Unmarshal(r.Document, &doc))
		if doc.Name != "Ann" {
			continue
		}
		if found = true; doc.WorldBookID != book || lorebook() != "Eldoria" {
			t.Errorf("the persona is %s, and goes out with %q", r.Document, lorebook())
		}
		_, err = m.Characters.UpdateResource(t.Context(), m.Call(), character.Persona, r.ID, character.ResourceInput{Document: json.RawMessage(`{"name":"Ann","description":"A traveller.","avatar":"ann.png"}`)}, false, 0)
		nodesttest.Must(t, err)
		if got := lorebook(); got != "" {
			t.Errorf("without its book it goes out with %q", got)
		}
	}
	if !found {
		t.Error("the persona is missing")
	}
}

// All samples beside the project come out as they went in.
func TestSamplesComeOutAsTheyWere(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	in := taverntest.Files{}
	for pattern, dir := range map[string]string{
		"data/cards/*.png": "characters", "data/chats/*.jsonl": "chats/Seraphina", "data/worldbooks/*.json": "worlds", "data/presets/*.json": "OpenAI Settings",
		"data/presets/context/*.json": "context", "data/presets/instruct/*.json": "instruct", "data/presets/sysprompt/*.json": "sysprompt",
		"data/presets/reasoning/*.json": "reasoning", "data/presets/textgen/*.json": "TextGen Settings",
	} {
		for _, name := range sharedtest.Find(pattern) {
			in[path.Join(dir, filepath.Base(name))] = nodesttest.ReadFile(t, name)
		}
	}
	delete(in, "OpenAI Settings/regex_scripts.json")
	if len(in) == 0 {
		t.Skip("the samples are not there")
	}
	became := m.in(nodesttest.Ann, in)
	out := m.out(nodesttest.Ann)
	wantSame(t, in, out, became)
	again := taverntest.Files{}
	for name, data := range out {
		if !strings.HasPrefix(name, "NodeST/") && name != "settings.json" {
			again[name] = data
		}
		if in[name] == nil && became[name] == nil && again[name] != nil && !strings.HasPrefix(name, "characters/") {
			t.Errorf("%s is new", name)
		}
	}
	m.again(nodesttest.Bob, again)
}
