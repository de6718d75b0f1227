package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func export(w *nodesttest.FullChat, s *chat.Save) []byte {
	w.T.Helper()
	data, filename, err := nodesttest.Written(w.T.Context(), w.Archives.ExportSave, nodesttest.Ann, s.ID)
	w.Must(err)
	if !strings.HasSuffix(filename, ".json") {
		w.T.Errorf("file name = %q", filename)
	}
	return data
}

func importSave(w *nodesttest.FullChat, data string) *chat.Save {
	w.T.Helper()
	s, err := w.Archives.ImportSave(w.T.Context(), w.Call(), w.ID, []byte(data))
	w.Must(err)
	return s
}

// decodeObject decodes a JSON object.
func decodeObject(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return m
}

// withoutIDs removes what every import creates anew: ids, versions, times.
func withoutIDs(t *testing.T, data []byte) string {
	t.Helper()
	f := decodeObject(t, data)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"id", "parentId", "headId", "revisionId", "seq", "rev", "version", "messageIds", "importedAt"} {
				delete(v, name)
			}
			for name := range v {
				if name != "pins" { // document ids do not change
					walk(v[name])
				}
			}
		case []any:
			for i := range v {
				walk(v[i])
			}
		}
	}
	walk(f)
	out, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestASavePointFileRoundTripChangesNothing(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.DeleteMessage(w.Second, "one")
	shown, prompt := w.Texts(), w.Preview()
	data := export(w, w.Save())
	want := withoutIDs(t, data)

	w.PutCard(`{"name":"Alicia","description":"Another."}`)
	w.DeleteResource(w.Book)
	w.PatchChat(chat.ConversationPatch{AuthorNote: nodesttest.Note("another note"), Settings: json.RawMessage(`{"temperature":1}`)})
	w.SayAndWait(w.Conversation, "More.")
	before, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)

	save := importSave(w, string(data))
	if got := withoutIDs(t, export(w, save)); got != want {
		t.Errorf("the file of the import differs at %s", firstDifference(got, want))
	}
	after, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)
	if after.HeadID != before.HeadID || string(after.AuthorNote) != string(before.AuthorNote) || save.ImportedAt == nil {
		t.Errorf("the import changed what is shown: %+v", after)
	}
	preview, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
	w.Must(err)
	w.WantSamePrompt("preview of the imported save point", preview.Messages, prompt)
	restored := w.Restore(save)
	if w.Texts() != shown {
		t.Errorf("shown: %s\nwant %s", w.Texts(), shown)
	}
	w.WantSamePrompt("preview", w.Preview(), prompt)
	if !strings.Contains(string(restored.Conversation.Settings), "0.5") {
		t.Errorf("settings = %s", restored.Conversation.Settings)
	}
	if again := importSave(w, string(data)); again.ID == save.ID || again.HeadID == save.HeadID {
		t.Error("a second import is not a save point of its own")
	}
}

const (
	appMessages = `[{"id":"m1","text":"Welcome.","sender":"bot","timestamp":1700000000000,"rating":4,"metadata":{"aiIndex":0,"isContinue":true}},
		{"id":"m2","text":"Where am I?","sender":"user","timestamp":1700000001000,"status":"sent"},
		{"id":"m3","text":"At home.","sender":"bot","timestamp":1700000002000},
		{"id":"m4","text":"","sender":"bot","isLoading":true}]`
	appHistory = `{"name":"Chat History","role":"system","identifier":"chatHistory","parts":[
		{"role":"model","parts":[{"text":"Welcome."}],"is_first_mes":true},
		{"role":"user","parts":[{"text":"An injected text."}],"is_d_entry":true},
		{"role":"user","parts":[{"text":"Where am I?"}],"timestamp":1700000001000},
		{"role":"model","parts":[{"text":"At home."}]}]}`
	appSave = `"id":"save_1700000003000","conversationId":"c","characterId":"x","timestamp":1700000003000,
		"description":"of the app","previewText":"At home.","backupTimestamp":7,"app":{"theme":"dark"}`
)

// A save point file of the app becomes one history, whether it has messages, a chat
// history or both, and keeps the app's own members.
func TestImportingASavePointOfTheApp(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	const shown = "Welcome. | Where am I? | At home."
	for _, tt := range []struct{ name, file, shown string }{
		{"messages", `{` + appSave + `,"messages":` + appMessages + `}`, shown},
		{"a history", `{` + appSave + `,"nodestChatHistory":` + appHistory + `}`, shown},
		{"both", "\ufeff" + `{` + appSave + `,"messages":` + appMessages + `,"nodestChatHistory":` + appHistory + `}`, shown},
		{"a history with more in it", `{"messages":[{"text":"At home.","sender":"bot"}],"nodestChatHistory":` + appHistory + `}`, shown},
		{"messages, and an empty history", `{"messages":` + appMessages + `,"nodestChatHistory":{"parts":[]}}`, shown},
		{"none", `{"messages":[]}`, "Hello, traveller."},
		{"an empty history", `{"nodestChatHistory":{"parts":[]},"messages":null}`, "Hello, traveller."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.T = t
			save := importSave(w, tt.file)
			w.Restore(save)
			if w.Texts() != tt.shown {
				t.Errorf("shown: %s\nwant %s", w.Texts(), tt.shown)
			}
			w.SayAndWait(w.Conversation, "Thanks.")
			for text := range strings.SplitSeq(tt.shown, " | ") {
				if n := strings.Count(w.Model.LastRequest(), text); n != 1 {
					t.Errorf("%q is in the prompt %d times:\n%s", text, n, w.Model.LastRequest())
				}
			}
		})
	}
	w.T = t
	save := importSave(w, `{`+appSave+`,"messages":`+appMessages+`}`)
	if save.Description != "of the app" || save.PreviewText != "At home." || save.MessageCount != 3 || save.CreatedAt.UnixMilli() != 1700000003000 {
		t.Errorf("save = %+v", save)
	}
	f := decodeObject(t, export(w, save))
	first := f["messages"].([]any)[0].(map[string]any)
	if f["backupTimestamp"] != 7.0 || fmt.Sprint(f["app"]) != "map[theme:dark]" || first["rating"] != 4.0 ||
		fmt.Sprint(first["metadata"]) != "map[aiIndex:0 isContinue:true]" || first["timestamp"] != 1700000000000.0 {
		t.Errorf("what the app had said is lost: %v", f)
	}
}

// A ChatSave has the members of the app.
func TestTheWireFormOfASavePoint(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	view, err := w.Engine.Chats.Save(t.Context(), nodesttest.Ann, save.ID, "", 0)
	w.Must(err)
	data, err := json.Marshal(archive.WireChatSave(view))
	w.Must(err)
	f := decodeObject(t, data)
	if f["conversationId"] != w.ID || f["characterId"] != w.CharacterID || f["description"] != "here" ||
		f["timestamp"] != float64(save.CreatedAt.UnixMilli()) || f["headId"] != save.HeadID || f["messageCount"] != 7.0 {
		t.Errorf("save = %s", data)
	}
	messages := f["messages"].([]any)
	for i, want := range []string{
		"bot sent Hello, traveller. map[aiIndex:0]", "user sent Message 0, now. <nil>", "bot sent Reply 0. map[aiIndex:1]",
		"user sent Message 1, now. <nil>", "bot sent Reply 1. map[aiIndex:2]",
	} {
		m := messages[i].(map[string]any)
		if got := fmt.Sprint(m["sender"], " ", m["status"], " ", m["text"], " ", m["metadata"]); got != want || m["id"] != f["messageIds"].([]any)[i] {
			t.Errorf("message %d is %s, want %s", i, got, want)
		}
	}
	if n := len(f["nodestChatHistory"].(map[string]any)["parts"].([]any)); n != len(messages) {
		t.Errorf("the history has %d parts, there are %d messages", n, len(messages))
	}
	if list, _ := json.Marshal(chat.WireSave(save)); strings.Contains(string(list), "messages") {
		t.Errorf("in a list: %s", list)
	}
}

func TestDamagedSavePointsAreRefused(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	good := string(export(w, w.Save()))
	before, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)
	w.Events.Clear()
	message := func(m string) string { return `{"messages":[{"text":"a","sender":"bot"},` + m + `]}` }
	exact := func(old, change string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the file has no %q: %s", old, good)
		}
		return strings.Replace(good, old, change, 1)
	}
	for _, tt := range []struct {
		name, file string
		code       fault.Code
		field      string
	}{
		{"nothing", "", fault.InvalidImport, ""},
		{"cut off", good[:len(good)/2], fault.InvalidImport, ""},
		{"no object", `[]`, fault.InvalidImport, ""},
		{"null", `null`, fault.InvalidImport, ""},
		{"something else", `{"name":"Alice"}`, fault.InvalidImport, "messages"},
		{"another format", `{"format":"nodest.conversation","formatVersion":1,"messages":[]}`, fault.InvalidImport, "format"},
		{"no version", `{"format":"nodest.save","messages":[]}`, fault.InvalidImport, "formatVersion"},
		{"a newer version", `{"format":"nodest.save","formatVersion":2,"messages":"?"}`, fault.NewerVersion, "formatVersion"},
		{"messages of another type", `{"messages":{}}`, fault.InvalidImport, "messages"},
		{"a message of another type", message(`7`), fault.InvalidImport, "messages[1]"},
		{"a text of another type", message(`{"text":7,"sender":"bot"}`), fault.InvalidImport, "messages[1].text"},
		{"no sender", message(`{"text":"b"}`), fault.InvalidImport, "messages[1].sender"},
		{"an unknown sender", message(`{"text":"b","sender":"system"}`), fault.InvalidImport, "messages[1].sender"},
		{"a swipe that is not there", exact(`"swipeIndex":0`, `"swipeIndex":9`), fault.InvalidImport, "nodest.messages[0].swipeIndex"},
		{"an unknown role", exact(`"seq":1,"role":"assistant"`, `"seq":1,"role":"king"`), fault.InvalidImport, "nodest.messages[0].role"},
		{"swipes of another type", exact(`"swipes":[`, `"swipes":3,"x":[`), fault.InvalidImport, "nodest.messages.swipes"},
		{"no object for an archive", `{"messages":[],"nodest":7}`, fault.InvalidImport, "nodest"},
		{"an empty archive", `{"messages":[],"nodest":{}}`, fault.InvalidImport, "nodest.conversation.version"},
		{"a history of another type", `{"nodestChatHistory":7}`, fault.InvalidImport, "nodestChatHistory"},
		{"a history with invalid parts", `{"nodestChatHistory":{"parts":[{"role":1}]}}`, fault.InvalidImport, "nodestChatHistory.parts.role"},
		{"a description of another type", `{"messages":[],"description":{}}`, fault.InvalidImport, "description"},
		{"an invalid note", exact(`"authorNote":{`, `"authorNote":{"role":"king"},"x":{`), fault.InvalidImport, "nodest.conversation.authorNote.role"},
		{"invalid settings", exact(`"temperature":0.5`, `"temperature":9`), fault.InvalidImport, "nodest.conversation.settings.temperature"},
		{"invalid pins", exact(`"pins":{`, `"pins":7,"x":{`), fault.InvalidImport, "nodest.conversation.pins"},
		{"invalid settings in pins", exact(`"pins":{`, `"pins":{"settings":{"temperature":9}},"x":{`), fault.InvalidImport, "nodest.conversation.pins.settings.temperature"},
		{"too many messages", `{"messages":[` + strings.Repeat(`{},`, 10_000) + `{}]}`, fault.TooLarge, ""},
		{"too many messages in the archive", `{"messages":[],"nodest":{"messages":[` + strings.Repeat(`{},`, 10_000) + `{}]}}`, fault.TooLarge, ""},
		{"trailing data", good + "{}", fault.InvalidImport, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.Archives.ImportSave(t.Context(), w.Call(), w.ID, []byte(tt.file))
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	after, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)
	if after.Version != before.Version || w.Events.Types() != "" {
		t.Errorf("a refused file changed something: version %d, events = %s", after.Version, w.Events.Types())
	}
	_, err = w.Archives.ImportSave(t.Context(), w.Call(), "nowhere", []byte(good))
	w.WantCode(err, fault.NotFound)
}

// In an edited save point file the app's part decides which messages there are and
// what they say; the archive supplies the rest.
func TestImportingAnEditedSavePointFile(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	var f map[string]any
	w.Must(json.Unmarshal(export(w, w.Save()), &f))
	messages := f["messages"].([]any)
	messages[1].(map[string]any)["text"] = "Changed."
	again := map[string]any{"id": messages[1].(map[string]any)["id"], "text": "Twice.", "sender": "user"}
	f["messages"] = append(messages[:3:3], again, map[string]any{"text": "Added.", "sender": "bot"}, messages[6])
	data, err := json.Marshal(f)
	w.Must(err)
	save := importSave(w, string(data))
	w.Restore(save)
	if want := "Hello, traveller. | Changed. | Reply 0. | Twice. | Added. | Another reply 2."; w.Texts() != want {
		t.Errorf("shown: %s, want %s", w.Texts(), want)
	}
	view, err := w.Engine.Chats.Save(t.Context(), nodesttest.Ann, save.ID, "", 0)
	w.Must(err)
	if last := view.Messages[5]; len(last.Swipes) != 2 || last.SwipeIndex != 1 || !view.Messages[0].Greeting || save.MessageCount != 6 {
		t.Errorf("the last message has %d swipes, the first is %+v", len(last.Swipes), view.Messages[0])
	}
	delete(f, "messages") // only the chat history is left of the app's part
	data, err = json.Marshal(f)
	w.Must(err)
	w.Restore(importSave(w, string(data)))
	if want := "Hello, traveller. | Message 0, now. | Reply 0. | Message 1, now. | Reply 1. | Message 2, now. | Another reply 2."; w.Texts() != want {
		t.Errorf("shown: %s, want %s", w.Texts(), want)
	}
}

// The archive inside a save point file can be imported as a conversation.
func TestTheArchiveInASavePointFileCanBeImported(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.DeleteMessage(w.Second, "one")
	shown, prompt := w.Texts(), w.Preview()
	save := w.Save()
	w.EditText(w.First, "Edited.")
	var f struct{ Nodest map[string]any }
	w.Must(json.Unmarshal(export(w, save), &f))
	f.Nodest["format"], f.Nodest["formatVersion"] = "nodest.conversation", 1
	data, err := json.Marshal(f.Nodest)
	w.Must(err)
	if w.Conversation, err = w.Archives.ImportArchive(t.Context(), w.Call(), w.CharacterID, data); err != nil {
		t.Fatal(err)
	}
	if w.Texts() != shown {
		t.Errorf("shown: %s, want %s", w.Texts(), shown)
	}
	w.WantSamePrompt("preview", w.Preview(), prompt)
}
