package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/sharedtest"
	"nodest/nodest/nodesttest"
)

// written are the files of a conversation, by name.
type written struct {
	names []string
	files map[string]*bytes.Buffer
	taken []string
}

func (w *written) Name(wanted string) string {
	for slices.Contains(w.taken, wanted) {
		wanted += " (2)"
	}
	w.taken = append(w.taken, wanted)
	return wanted
}

func (w *written) File(name string) (io.Writer, error) {
	w.names = append(w.names, name)
	w.files[name] = &bytes.Buffer{}
	return w.files[name], nil
}

func writeLogs(t *testing.T, h *nodesttest.Fixture, conversationID string, taken ...string) *written {
	t.Helper()
	w := &written{files: map[string]*bytes.Buffer{}, taken: taken}
	nodesttest.Must(t, h.Archives.WriteLogs(t.Context(), nodesttest.Ann, conversationID, w))
	return w
}

// said is a line of a log.
func said(text, more string) string {
	name, user := "Alice", false
	if strings.HasPrefix(text, "u") {
		name, user = "Mia", true
	}
	return fmt.Sprintf(`{"name":%q,"is_user":%t,"is_system":false,"send_date":"2025-03-14T09:00:00.000Z","mes":%q,"extra":{}%s}`, name, user, text, more)
}

// logOf is a log as SillyTavern writes it: without a line break at the end.
func logOf(metadata string, lines ...string) string {
	return `{"chat_metadata":` + metadata + `,"user_name":"unused","character_name":"unused"}` + "\n" + strings.Join(lines, "\n")
}

// branched are the files of a chat with a branch, a checkpoint, a branch of the branch, and a branch whose beginning was edited.
func branched() map[string]string {
	first, u1, a1, u2 := said("a <0>", ""), said("u1", ""), said("a1", `,"swipe_id":0,"swipes":["a1","a1 too"],"swipe_info":[{"extra":{"model":"m"}},{}]`), said("u2", "")
	at1 := strings.Replace(u1, `"extra":{}`, `"extra":{"branches":["Branch #1","Edited"],"bookmark_link":"Checkpoint #1"}`, 1)
	main := logOf(`{"integrity":"i","note_prompt":"Rain.","note_interval":1,"note_position":1,"note_depth":4,"note_role":0,"variables":{"x":1},"tainted":true}`,
		first, at1, a1, u2, said("a2", ""))
	branch := logOf(`{"integrity":"i","main_chat":"Alice - 1","note_prompt":"Sun.","note_interval":1,"note_position":1,"note_depth":4,"note_role":0,"variables":{"x":2}}`,
		first, u1, said("a1", `,"swipe_id":0,"swipes":["a1","a1 three"]`), said("u2 else", ""), said("a9", ""))
	return map[string]string{
		"Alice - 1.jsonl":     main,
		"Branch #1.jsonl":     branch,
		"Checkpoint #1.jsonl": logOf(`{"main_chat":"Alice - 1","scenario":"At sea."}`, first, u1) + "\n",
		"Deeper.jsonl":        logOf(`{"main_chat":"Branch #1"}`, first, u1, said("a1", ""), said("u2 else", ""), said("a9", ""), said("u10", "")),
		"Edited.jsonl":        logOf(`{"main_chat":"Alice - 1"}`, first, said("u1 edited", ""), said("a1", "")),
	}
}

func importFiles(t *testing.T, h *nodesttest.Fixture, c *op.Call, files map[string]string) *archive.ImportedChat {
	t.Helper()
	var in []archive.LogFile
	for name, text := range files { // in any order
		in = append(in, archive.LogFile{Name: name, Read: func() ([]byte, error) { return []byte(text), nil }})
	}
	got, err := h.Archives.ImportLogs(t.Context(), c, h.Character(nodesttest.Alice).ID, in...)
	nodesttest.Must(t, err)
	return got
}

func wantFiles(t *testing.T, got *written, want map[string]string) {
	t.Helper()
	for name, text := range want {
		file := got.files[strings.TrimSuffix(name, ".jsonl")]
		if file == nil {
			t.Errorf("no file %q in %q", name, got.names)
		} else if file.String() != text {
			t.Errorf("%s is\n%s\nwant\n%s", name, file, text)
		}
	}
	if len(got.names) != len(want) {
		t.Errorf("files %q", got.names)
	}
}

// The files of branches become one conversation, and are the same when they are written, byte for byte.
func TestBranchFilesAreOneConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	files, call := branched(), h.Call()
	h.TakeEventTypes()
	got := importFiles(t, h, call, files)
	conv := got.Conversation
	if conv.Title != "Alice - 1" || len(got.Branches) != 4 || !strings.Contains(string(conv.AuthorNote), "Rain.") {
		t.Errorf("%+v", got)
	}
	all := h.ReadAll(t, conv.ID, 200)
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Text())
	}
	if s := strings.Join(texts, "|"); s != "a <0>|u1|a1|u2|a2" {
		t.Errorf("shown: %s", s)
	}
	if len(all[2].Swipes) != 3 || all[2].SwipeIndex != 0 {
		t.Errorf("swipes %+v", all[2].Swipes)
	}
	wantFiles(t, writeLogs(t, h, conv.ID), files)

	again := importFilesOnce(t, h, nodesttest.RetryOf(call), files, conv.CharacterID)
	if again.Conversation.ID != conv.ID || len(again.Branches) != 4 {
		t.Error("the same call made another conversation")
	}

	// An archive keeps all of it.
	file, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), h.Call(), conv.CharacterID, file)
	nodesttest.Must(t, err)
	wantFiles(t, writeLogs(t, h, loaded.ID), files)
}

func importFilesOnce(t *testing.T, h *nodesttest.Fixture, c *op.Call, files map[string]string, characterID string) *archive.ImportedChat {
	t.Helper()
	var in []archive.LogFile
	for name, text := range files {
		in = append(in, archive.LogFile{Name: name, Read: func() ([]byte, error) { return []byte(text), nil }})
	}
	got, err := h.Archives.ImportLogs(t.Context(), c, characterID, in...)
	nodesttest.Must(t, err)
	return got
}

// A save point brings a branch back with its note and its variables; what is written there goes on in its file.
func TestABranchIsFoundByItsNameAndGoesOn(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	files := branched()
	got := importFiles(t, h, h.Call(), files)
	conv := got.Conversation
	saves, err := h.Chats.Saves(t.Context(), nodesttest.Ann, conv.ID, false, "", 0)
	nodesttest.Must(t, err)
	at := slices.IndexFunc(saves.Items, func(s *chat.Save) bool { return s.Description == "Branch #1" })
	if len(saves.Items) != 4 || at < 0 || saves.Items[at].MessageCount != 5 {
		t.Fatalf("save points %+v", saves.Items)
	}
	_, err = h.Chats.RestoreSave(t.Context(), h.Call(), saves.Items[at].ID)
	nodesttest.Must(t, err)
	now, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if !strings.Contains(string(now.AuthorNote), "Sun.") || now.Play == nil || string(now.Play.Variables) != `{"x":2}` {
		t.Errorf("restored: note %s, play %+v", now.AuthorNote, now.Play)
	}
	wantFiles(t, writeLogs(t, h, conv.ID), files)

	now = h.AddMessage(t, conv.ID, now.HeadID, "and on")
	out := writeLogs(t, h, conv.ID)
	if s := out.files["Branch #1"].String(); !strings.HasPrefix(s, files["Branch #1.jsonl"]) || !strings.Contains(s[len(files["Branch #1.jsonl"]):], `"and on"`) {
		t.Errorf("the branch is %s", s)
	}
	// Writing in a branch changes no other file, and a last message that is replaced stays in its file.
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), now.HeadID, "one")
	nodesttest.Must(t, err)
	wantFiles(t, writeLogs(t, h, conv.ID), files)
	delete(files, "Branch #1.jsonl")
	for name, text := range files {
		if s := out.files[strings.TrimSuffix(name, ".jsonl")].String(); s != text {
			t.Errorf("%s is %s", name, s)
		}
	}
}

// Branches that came in no file get one, named where they part.
func TestABranchOfOursGetsAFile(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	conv = h.AddMessage(t, conv.ID, all[1].ID, "otherwise")
	_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, AuthorNote: json.RawMessage(`{"content":"Dusk."}`)})
	nodesttest.Must(t, err)
	out := writeLogs(t, h, conv.ID)
	if len(out.names) != 2 || out.names[0] != conv.Title || !strings.HasPrefix(out.names[1], "Branch #1 - 20") {
		t.Fatalf("files %q", out.names)
	}
	main, branch := out.files[out.names[0]].String(), out.files[out.names[1]].String()
	if !strings.Contains(main, `"branches":["`+out.names[1]+`"]`) || strings.Contains(main, "main_chat") || !strings.Contains(main, "otherwise") {
		t.Errorf("main %s", main)
	}
	if !strings.Contains(branch, `"main_chat":"`+conv.Title+`"`) || strings.Contains(branch, "otherwise") || strings.Count(branch, "\n") != 6 || !strings.Contains(branch, "Dusk.") {
		t.Errorf("branch %s", branch)
	}
	// In again, they are the same.
	files := map[string]string{}
	for name, file := range out.files {
		files[name+".jsonl"] = file.String()
	}
	got := importFiles(t, h, h.Call(), files)
	wantFiles(t, writeLogs(t, h, got.Conversation.ID), files)

	// Under another name, the branch names that.
	renamed := writeLogs(t, h, got.Conversation.ID, conv.Title)
	if s := renamed.files[out.names[1]].String(); !strings.Contains(s, `"main_chat":"`+conv.Title+` (2)"`) {
		t.Errorf("branch of a renamed file: %s", s)
	}
}

// Logs that go in come out as they were.
func TestSampleLogsComeOutAsTheyWere(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	for _, file := range sharedtest.Find("data/chats/*.jsonl") {
		data := nodesttest.ReadFile(t, file)
		got, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, data, file)
		nodesttest.Must(t, err)
		wantFiles(t, writeLogs(t, h, got.Conversation.ID), map[string]string{strings.TrimSuffix(filepath.Base(file), ".jsonl"): string(data)})
	}
}

// An import in pieces is whole.
func TestLongBranchesAreImportedInPieces(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	var lines []string
	for i := range 700 {
		lines = append(lines, said(fmt.Sprintf("u%d", i), ""))
	}
	files := map[string]string{"main.jsonl": logOf(`{}`, lines...)}
	for i := range 3 {
		files[fmt.Sprintf("b%d.jsonl", i)] = logOf(`{"main_chat":"main"}`, append(slices.Clone(lines[:200*i+1]), said("a"+fmt.Sprint(i), ""))...)
	}
	got := importFiles(t, h, h.Call(), files)
	if n := len(h.ReadAll(t, got.Conversation.ID, 200)); n != 700 {
		t.Errorf("%d messages are shown", n)
	}
	wantFiles(t, writeLogs(t, h, got.Conversation.ID), files)
}

func TestLogsThatCannotBeOneConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	file := func(name, text string) archive.LogFile {
		return archive.LogFile{Name: name, Read: func() ([]byte, error) { return []byte(text), nil }}
	}
	ok := file("a.jsonl", nodesttest.SmallLog)
	for name, c := range map[string]struct {
		files []archive.LogFile
		code  fault.Code
		words string
	}{
		"none":           {nil, fault.TooLarge, "1 to"},
		"one is damaged": {[]archive.LogFile{ok, file("b.jsonl", "{")}, fault.InvalidImport, "b.jsonl: "},
		"a large header": {[]archive.LogFile{ok, file("b.jsonl", logOf(`{"main_chat":"a","x":"`+strings.Repeat("x", 300<<10)+`"}`))}, fault.TooLarge, "b.jsonl: "},
	} {
		_, err := h.Archives.ImportLogs(t.Context(), h.Call(), ch.ID, c.files...)
		if !fault.Is(err, c.code) || !strings.Contains(fault.Public(err).Message, c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got := importFiles(t, h, h.Call(), branched())
	err := h.Archives.WriteLogs(t.Context(), nodesttest.Bob, got.Conversation.ID, &written{})
	nodesttest.WantError(t, err, fault.NotFound, "")
}
