package archive_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/sharedtest"
	"nodest/nodest/nodesttest"
)

func TestAChatLogBecomesAConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	h.TakeEventTypes()
	imported, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, []byte(nodesttest.SmallLog), `C:\logs\A rainy day.jsonl`)
	nodesttest.Must(t, err)
	conv := imported.Conversation
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 3 {
		t.Fatalf("%d messages, want 3", len(page.Items))
	}
	first, second, third := page.Items[0], page.Items[1], page.Items[2]
	if len(first.Swipes) != 2 || first.Text() != "Hi" || first.Chosen().Model != "m2" || !first.Greeting {
		t.Errorf("first = %+v", first)
	}
	if second.Role != chat.RoleUser || second.Name != "Mia" || second.CreatedAt.Minute() != 1 {
		t.Errorf("second = %+v", second)
	}
	if !third.Hidden || second.Hidden {
		t.Error("is_system was not imported")
	}
	if conv.Title != "A rainy day" || conv.HeadID != third.ID {
		t.Errorf("conversation = %+v", conv)
	}
	nodesttest.SameJSON(t, "note", conv.AuthorNote, []byte(`{"content":"It rains.","role":"user","injection_depth":3}`))
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.created"}) {
		t.Errorf("events = %v", events)
	}
}

// Messages stay in their order and at their time when lines lack a date, and the file is
// exported with the lines that it had.
func TestLinesWithoutADateStayAmongTheirNeighbours(t *testing.T) {
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	log := `{"user_name":"Mia","character_name":"Alice","create_date":"2024-04-01"}
{"name":"Alice","is_user":false,"mes":"one","send_date":"Jun 19, 2023 2:20 PM"}
{"name":"Mia","is_user":true,"mes":"two","send_date":""}
{"name":"Alice","is_user":false,"mes":"three","swipes":["three"],"swipe_info":[{"send_date":"soon"}]}
{"name":"Mia","is_user":true,"mes":"four","send_date":1714111111}
`
	imported, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, []byte(log), "old.jsonl")
	nodesttest.Must(t, err)
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, imported.Conversation.ID, "", 0)
	nodesttest.Must(t, err)
	var got []string
	for _, m := range page.Items {
		got = append(got, m.Text()+" "+m.CreatedAt.UTC().Format("2006-01-02 15:04"))
	}
	want := []string{"one 2023-06-19 14:20", "two 2023-06-19 14:20", "three 2023-06-19 14:20", "four 2024-04-26 05:58"}
	if !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
	if !slices.ContainsFunc(imported.Warnings, func(w card.Warning) bool { return w.Code == "unreadable_date" && strings.Contains(w.Detail, "2 of 4") }) {
		t.Errorf("warnings %v", imported.Warnings)
	}
	file, _, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, imported.Conversation.ID)
	nodesttest.Must(t, err)
	if _, exported, _ := bytes.Cut(file, []byte("\n")); string(exported) != log[strings.IndexByte(log, '\n')+1:] {
		t.Errorf("exported %s", exported)
	}
}

// An imported chat log is exported as it was.
func TestAChatLogRoundTripChangesNothing(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	for _, file := range append([]string{""}, sharedtest.Find("data/chats/*")...) {
		name, data := "small.jsonl", []byte(nodesttest.SmallLog)
		if file != "" {
			name, data = filepath.Base(file), nodesttest.ReadFile(t, file)
		}
		t.Run(name, func(t *testing.T) {
			imported, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, data, name)
			nodesttest.Must(t, err)
			once, filename, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, imported.Conversation.ID)
			nodesttest.Must(t, err)
			if filepath.Ext(filename) != ".jsonl" {
				t.Errorf("file name = %q", filename)
			}
			if filepath.Ext(name) == ".jsonl" {
				sameLines(t, once, data)
				return
			}
			imported, err = h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, once, filename)
			nodesttest.Must(t, err)
			twice, _, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, imported.Conversation.ID)
			nodesttest.Must(t, err)
			sameLines(t, twice, once)
		})
	}
}

// sameLines compares two logs as JSON, line by line.
func sameLines(t *testing.T, got, want []byte) {
	t.Helper()
	a, b := bytes.Split(bytes.TrimSpace(got), []byte("\n")), bytes.Split(bytes.TrimSpace(want), []byte("\n"))
	if len(a) != len(b) {
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
	for i := range a {
		var x, y any
		nodesttest.Must(t, json.Unmarshal(a[i], &x))
		nodesttest.Must(t, json.Unmarshal(b[i], &y))
		one, _ := json.Marshal(x) // decoded values always encode
		two, _ := json.Marshal(y)
		if string(one) != string(two) {
			t.Errorf("line %d = %s\nwant %s", i+1, one, two)
		}
	}
}

func TestAnExportedLogHasEditsAndTheAuthorsNote(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 2)
	_, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[1].ID, Text: "edited"})
	nodesttest.Must(t, err)
	_, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{
		ID: conv.ID, AuthorNote: json.RawMessage(`{"content":"Dusk.","role":"model","injection_depth":5}`),
	})
	nodesttest.Must(t, err)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 4 || !strings.Contains(lines[2], `"edited"`) {
		t.Errorf("the log reads %s", data)
	}
	for _, part := range []string{`"note_prompt":"Dusk."`, `"note_depth":5`, `"note_role":2`, `"note_position":1`} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("the header lacks %s: %s", part, lines[0])
		}
	}
}

func TestInvalidChatLogsAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	for _, data := range []string{"", "hello", `{"name":`, "\x89PNG"} {
		_, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, []byte(data), "x.jsonl")
		nodesttest.WantError(t, err, fault.InvalidImport, "")
	}
	_, err := h.Archives.ImportChat(t.Context(), h.Call(), "nobody", []byte(nodesttest.SmallLog), "x.jsonl")
	nodesttest.WantError(t, err, fault.NotFound, "characterId")
}
