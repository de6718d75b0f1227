package archive_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// numberIDs replaces the ids in an archive by numbers, in order of appearance, and
// removes the export time.
func numberIDs(t *testing.T, archive []byte) string {
	t.Helper()
	var doc map[string]any
	nodesttest.Must(t, json.Unmarshal(archive, &doc))
	delete(doc, "exportedAt")
	numbers := map[string]string{}
	var walk func(v any, isID bool) any
	walk = func(v any, isID bool) any {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"id", "parentId", "headId", "conversationId", "revisionId"} { // in this order
				if s, ok := v[key].(string); ok && s != "" {
					v[key] = walk(s, true)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				value := walk(v[key], false)
				delete(v, key)
				v[cmp.Or(numbers[key], key)] = value
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i], false)
			}
		case string:
			if isID {
				if numbers[v] == "" {
					numbers[v] = "#" + strconv.Itoa(len(numbers)+1)
				}
				return numbers[v]
			}
		}
		return v
	}
	for _, part := range []string{"messages", "conversation", "states", "rewinds", "saves"} {
		doc[part] = walk(doc[part], false)
	}
	out, err := json.MarshalIndent(doc, "", " ")
	nodesttest.Must(t, err)
	return string(out)
}

// eventfulChat makes a conversation with swipes, edits, deleted messages and swipes,
// branches, a failed reply, save points and a restore.
func eventfulChat(t *testing.T, h *nodesttest.Fixture) *chat.Conversation {
	t.Helper()
	conv, all := h.NewChat(t, 6)
	persona, err := h.Characters.CreateResource(t.Context(), h.Call(), character.Persona, character.ResourceInput{Document: json.RawMessage(`{"name":"Mia"}`)})
	nodesttest.Must(t, err)
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[3].ID, Text: "edited <b>once</b>"})
	nodesttest.Must(t, err)
	first, err := h.Chats.CreateSave(t.Context(), h.Call(), chat.SaveInput{ConversationID: conv.ID, Description: "first"})
	nodesttest.Must(t, err)
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[3].ID, Text: "edited & again"})
	nodesttest.Must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[2].ID, "one")
	nodesttest.Must(t, err)
	h.AddMessage(t, conv.ID, all[4].ID, "a swipe", "another", "a third")
	conv, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{
		ID: conv.ID, PersonaID: &persona.ID, AuthorNote: json.RawMessage(`{"content":"It rains."}`),
		Settings: json.RawMessage(`{"maxTokens":50}`),
	})
	nodesttest.Must(t, err)
	_, err = h.Chats.CreateSave(t.Context(), h.Call(), chat.SaveInput{ConversationID: conv.ID, Description: "second", Thumbnail: "https://example.com/2.png"})
	nodesttest.Must(t, err)
	file, _, err := nodesttest.Written(t.Context(), h.Archives.ExportSave, nodesttest.Ann, first.ID)
	nodesttest.Must(t, err)
	file = bytes.Replace(file, []byte(`"sender"`), []byte(`"mood":"calm","sender"`), 1)
	file = bytes.Replace(file, []byte(`"description":"first"`), []byte(`"description":"from a file","chapter":3`), 1)
	_, err = h.Archives.ImportSave(t.Context(), h.Call(), conv.ID, file)
	nodesttest.Must(t, err)
	_, err = h.Chats.RestoreSave(t.Context(), h.Call(), first.ID)
	nodesttest.Must(t, err)
	conv, err = h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	conv = h.AddMessage(t, conv.ID, conv.HeadID, "after the restore")
	nodesttest.Must(t, h.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		m := &chat.Message{
			ID: nodesttest.NewID(tx), ConversationID: conv.ID, ParentID: conv.HeadID, ClientMsgID: "mine-1", Role: chat.RoleAssistant, Name: "Alice",
			AuthorID: "guest", Hidden: true, Rev: 1, Status: chat.StatusError, Dates: chat.Dates{CreatedAt: tx.Now()}, Extra: json.RawMessage(`{"mes":"<x>"}`),
			Error: fault.New(fault.UpstreamDown, "no answer").With("provider", "p"),
		}
		return tx.Chats.InsertMessage(m)
	}))
	return conv
}

// An archive that is exported, imported and exported again is the same, and the
// imported conversation can be continued.
func TestAnArchiveRoundTripKeepsTheWholeConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv := eventfulChat(t, h)
	first, filename, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if filepath.Ext(filename) != ".json" {
		t.Errorf("file name = %q", filename)
	}
	h.TakeEventTypes()
	call := h.Call()
	loaded, err := h.Archives.ImportArchive(t.Context(), call, conv.CharacterID, first)
	nodesttest.Must(t, err)
	if events := strings.Join(h.TakeEventTypes(), " "); events != "chat.created" {
		t.Errorf("events = %s", events)
	}
	second, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, loaded.ID)
	nodesttest.Must(t, err)
	if a, b := numberIDs(t, first), numberIDs(t, second); a != b {
		t.Errorf("the archive of the import differs at %s", firstDifference(a, b))
	}
	nodesttest.SameMessages(t, "the import", h.ReadAll(t, loaded.ID, 200), h.ReadAll(t, conv.ID, 200))
	if loaded.ID == conv.ID || loaded.Title != conv.Title || loaded.Version != conv.Version || loaded.PersonaID != conv.PersonaID {
		t.Errorf("conversation = %+v", loaded)
	}
	same, err := h.Archives.ImportArchive(t.Context(), nodesttest.RetryOf(call), conv.CharacterID, first)
	nodesttest.Must(t, err)
	if same.ID != loaded.ID || len(h.TakeEventTypes()) != 0 {
		t.Error("the same call made another conversation")
	}
	more := h.AddMessage(t, loaded.ID, loaded.HeadID, "and on")
	if more.Version != loaded.Version+1 {
		t.Errorf("version = %d", more.Version)
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return strings.Join(x[max(0, i-8):i], "\n") + "\n< " + x[i] + "\n> " + y[i]
		}
	}
	return "its end"
}

// The save points of an imported archive restore the same state as the originals.
func TestImportedSavePointsRestore(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv := eventfulChat(t, h)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), h.Call(), conv.CharacterID, data)
	nodesttest.Must(t, err)
	list := func(id string) []*chat.Save {
		page, err := h.Chats.Saves(t.Context(), nodesttest.Ann, id, true, "", 200)
		nodesttest.Must(t, err)
		return page.Items
	}
	old, fresh := list(conv.ID), list(loaded.ID)
	if len(old) < 4 || len(old) != len(fresh) {
		t.Fatalf("%d save points, want the %d of the original", len(fresh), len(old))
	}
	for i := range old {
		if old[i].ImportedAt != nil { // unknown members of the file are kept
			file, _, err := nodesttest.Written(t.Context(), h.Archives.ExportSave, nodesttest.Ann, fresh[i].ID)
			nodesttest.Must(t, err)
			if !bytes.Contains(file, []byte(`"mood":"calm"`)) || !bytes.Contains(file, []byte(`"chapter":3`)) {
				t.Errorf("the exported save point is %s", file)
			}
		}
		if old[i].Description != fresh[i].Description || old[i].Automatic != fresh[i].Automatic || old[i].MessageCount != fresh[i].MessageCount ||
			old[i].Thumbnail != fresh[i].Thumbnail || !old[i].CreatedAt.Equal(fresh[i].CreatedAt) || fresh[i].CharacterID != conv.CharacterID {
			t.Errorf("save point %+v, want %+v", fresh[i], old[i])
		}
		_, err := h.Chats.RestoreSave(t.Context(), h.Call(), old[i].ID)
		nodesttest.Must(t, err)
		_, err = h.Chats.RestoreSave(t.Context(), h.Call(), fresh[i].ID)
		nodesttest.Must(t, err)
		was, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
		nodesttest.Must(t, err)
		is, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, loaded.ID)
		nodesttest.Must(t, err)
		if was.PersonaID != is.PersonaID || string(was.AuthorNote) != string(is.AuthorNote) || string(was.Settings) != string(is.Settings) ||
			(was.Pins == nil) != (is.Pins == nil) {
			t.Errorf("after %q: %+v, want %+v", fresh[i].Description, is, was)
		}
		nodesttest.SameMessages(t, "after "+fresh[i].Description+" the import", withoutEditTimes(h.ReadAll(t, loaded.ID, 200)), withoutEditTimes(h.ReadAll(t, conv.ID, 200)))
	}
}

// withoutEditTimes clears the edit times, which a restore sets.
func withoutEditTimes(messages []*chat.Message) []*chat.Message {
	for _, m := range messages {
		m.EditedAt = nil
	}
	return messages
}

// An archive imported under another user's character brings its texts, but no
// document or setting of its owner.
func TestAnotherUsersArchiveBringsOnlyItsTexts(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv := eventfulChat(t, h)
	settings := json.RawMessage(`{"characterId":"` + conv.CharacterID + `"}`)
	_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, Settings: settings})
	nodesttest.Must(t, err)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	_, _, err = nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Bob, conv.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	theirs := &op.Call{UserID: nodesttest.Bob}
	_, err = h.Archives.ImportArchive(t.Context(), theirs, conv.CharacterID, data)
	nodesttest.WantError(t, err, fault.NotFound, "characterId")

	bobs, err := h.Characters.Create(t.Context(), theirs, character.Input{RoleCard: json.RawMessage(`{"name":"Bob"}`)})
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), theirs, bobs.ID, data)
	nodesttest.Must(t, err)
	if loaded.CharacterID != bobs.ID || loaded.PersonaID != "" || loaded.Pins != nil || string(loaded.Settings) != "{}" {
		t.Errorf("conversation = %+v", loaded)
	}
	page, err := h.Chats.Saves(t.Context(), nodesttest.Bob, loaded.ID, true, "", 200)
	nodesttest.Must(t, err)
	for _, s := range page.Items {
		if s.Pins != nil || s.CharacterID != bobs.ID {
			t.Errorf("save point %+v", s)
		}
		_, err := h.Chats.RestoreSave(t.Context(), theirs, s.ID)
		nodesttest.Must(t, err)
	}
	if found, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: "restore", ConversationID: conv.ID}); err != nil || len(found.Items) != 1 {
		t.Errorf("of the original %d are found, %v", len(found.Items), err)
	}
}

// An archive made while a reply is being written has that reply as an interrupted
// one.
func TestAnArchiveMarksAReplyBeingWrittenAsInterrupted(t *testing.T) {
	t.Parallel()
	s := nodesttest.New(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("Half").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Tell me")
	<-reply.Started
	data, _, err := nodesttest.Written(t.Context(), s.Archives.ExportArchive, nodesttest.Ann, c.ID)
	s.Must(err)
	reply.Release()
	s.Await(sent.GenerationID)
	loaded, err := s.Archives.ImportArchive(t.Context(), s.Call(), c.CharacterID, data)
	s.Must(err)
	m := s.Message(loaded.HeadID)
	if m.Status != chat.StatusInterrupted || m.Role != chat.RoleAssistant {
		t.Errorf("the reply is %+v", m)
	}
	s.SayAndWait(loaded, "And now?")
}

// changingStore is a store that calls beforeView before each read.
type changingStore struct {
	nodest.Store
	beforeView func()
}

func (r changingStore) View(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	r.beforeView()
	return r.Store.View(ctx, userID, fn)
}

// An archive of a conversation that keeps changing is a snapshot of one moment.
func TestAnArchiveIsASnapshot(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 3)
	said := 0
	e := nodesttest.NewEngine(changingStore{h.DB, func() {
		said++
		conv = h.AddMessage(t, conv.ID, conv.HeadID, "meanwhile "+strconv.Itoa(said))
	}}, nodesttest.NoModels{}, h.Events, nodest.Options{Alone: true})
	defer func() { nodesttest.Must(t, e.Close(context.WithoutCancel(t.Context()))) }()
	data, _, err := nodesttest.Written(t.Context(), e.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), h.Call(), conv.CharacterID, data)
	nodesttest.Must(t, err)
	all := h.ReadAll(t, loaded.ID, 200)
	if last := all[len(all)-1]; last.ID != loaded.HeadID || last.Text() != "meanwhile "+strconv.Itoa(said) || len(all) != 4+said {
		t.Errorf("%d messages and the last says %q, after %d", len(all), last.Text(), said)
	}
}

func TestAnImportedLogSurvivesAnArchiveRoundTrip(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	imported, err := h.Archives.ImportChat(t.Context(), h.Call(), ch.ID, []byte(nodesttest.SmallLog), "log.jsonl")
	nodesttest.Must(t, err)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, imported.Conversation.ID)
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), h.Call(), ch.ID, data)
	nodesttest.Must(t, err)
	log, _, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, loaded.ID)
	nodesttest.Must(t, err)
	sameLines(t, log, []byte(nodesttest.SmallLog))
}

func TestAnArchiveOfAnEmptyConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 0)
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[0].ID, "one")
	nodesttest.Must(t, err)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	loaded, err := h.Archives.ImportArchive(t.Context(), h.Call(), conv.CharacterID, data)
	nodesttest.Must(t, err)
	if loaded.HeadID != "" || len(h.ReadAll(t, loaded.ID, 50)) != 0 {
		t.Errorf("conversation = %+v", loaded)
	}
	fork, err := h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: loaded.ID})
	nodesttest.Must(t, err)
	if fork.HeadID != "" {
		t.Errorf("fork = %+v", fork)
	}
}

// A damaged archive is refused with the path of the fault, and nothing is stored.
func TestADamagedArchiveChangesNothing(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	tests := []struct {
		name     string
		old, new string // old is replaced by new once
		code     fault.Code
		path     string // details.path
	}{
		{"no JSON", nodesttest.SmallArchive, "hello", fault.InvalidImport, "format"},
		{"nothing", nodesttest.SmallArchive, "", fault.InvalidImport, "format"},
		{"an array", nodesttest.SmallArchive, "[1]", fault.InvalidImport, "format"},
		{"cut off", `"messageCount":2,"createdAt":"2026-01-02T03:04:07Z"}]}`, "", fault.InvalidImport, ""},
		{"another format", "nodest.conversation", "nodest.character", fault.InvalidImport, "format"},
		{"a newer version", `"formatVersion":1`, `"formatVersion":2`, fault.NewerVersion, ""},
		{"no version", `"formatVersion":1`, `"formatVersion":0`, fault.InvalidImport, "formatVersion"},
		{"another type", `"seq":1`, `"seq":"1"`, fault.InvalidImport, "messages.seq"},
		{"a member that is null", `"messages":[`, `"messages":[null,`, fault.InvalidImport, "messages[0]"},
		{"a long title", `"Small"`, `"` + strings.Repeat("x", 201) + `"`, fault.InvalidImport, "conversation.title"},
		{"version 0", `"version":9`, `"version":0`, fault.InvalidImport, "conversation.version"},
		{"a head that is not there", `"headId":"m2","version":9`, `"headId":"m9","version":9`, fault.InvalidImport, "conversation.headId"},
		{"settings out of range", `"settings":{},"createdAt"`, `"settings":{"topP":7},"createdAt"`, fault.InvalidImport, "conversation.settings.topP"},
		{"a note that is an array", `"version":9`, `"version":9,"authorNote":[]`, fault.InvalidImport, "conversation.authorNote"},
		{"the same id twice", `"id":"m2"`, `"id":"m1"`, fault.InvalidImport, "messages[1].id"},
		{"no id", `"id":"m1"`, `"id":""`, fault.InvalidImport, "messages[0].id"},
		{"a parent that is not there", `"parentId":"m1"`, `"parentId":"m9"`, fault.InvalidImport, "messages[1].parentId"},
		{"its own parent", `"parentId":"m1"`, `"parentId":"m2"`, fault.InvalidImport, "messages[1].parentId"},
		{"a cycle of parents", `"id":"m1"`, `"id":"m1","parentId":"m2"`, fault.InvalidImport, "messages[0].parentId"},
		{"a seq twice", `"seq":3`, `"seq":1`, fault.InvalidImport, "messages[1]"},
		{"a seq beyond all", `"seq":3`, `"seq":9000000000000000000`, fault.InvalidImport, "messages[1]"},
		{"an unknown role", `"role":"user"`, `"role":"summary"`, fault.InvalidImport, "messages[1].role"},
		{"an unknown status", `"status":"complete"`, `"status":"odd"`, fault.InvalidImport, "messages[0].status"},
		{"a swipe that is not there", `"swipeIndex":0`, `"swipeIndex":1`, fault.InvalidImport, "messages[0].swipeIndex"},
		{"a negative swipe", `"swipeIndex":0`, `"swipeIndex":-2`, fault.InvalidImport, "messages[0].swipeIndex"},
		{"an unknown finish", `"id":"s1","rev":1`, `"id":"s1","finish":"odd","rev":1`, fault.InvalidImport, "messages[0].texts[0].finish"},
		{"an unknown tag", `"id":"s1","rev":1`, `"id":"s1","blocks":[{"part":"odd"}],"rev":1`, fault.InvalidImport, "messages[0].texts[0].blocks[0].part"},
		{"an invalid author", `"id":"m1"`, `"id":"m1","authorId":"not an id"`, fault.InvalidImport, "messages[0].authorId"},
		{"an unknown error", `"id":"m1"`, `"id":"m1","error":{"code":"odd"}`, fault.InvalidImport, "messages[0].error.code"},
		{"an invalid clientMsgId", `"k1"`, `"k 1"`, fault.InvalidImport, "messages[1].clientMsgId"},
		{"a duplicate clientMsgId", `"id":"m1"`, `"id":"m1","clientMsgId":"k1"`, fault.InvalidImport, "messages[1].clientMsgId"},
		{"a swipe without a text", `{"id":"s2",`, `{"id":"s3"},{"id":"s2",`, fault.InvalidImport, "messages[1].swipes[0]"},
		{"a text of another swipe", `"id":"s2","rev"`, `"id":"s1","rev"`, fault.InvalidImport, "messages[1].texts[0].id"},
		{"a text twice", `"revisionId":"t3","id"`, `"revisionId":"t1","id"`, fault.InvalidImport, "messages[1].texts[0].revisionId"},
		{"a rev twice", `"id":"s1","rev":2`, `"id":"s1","rev":1`, fault.InvalidImport, "messages[0].texts[1].rev"},
		{"a state with an unknown text", `"revisionId":"t2","status"`, `"revisionId":"t9","status"`, fault.InvalidImport, "messages[0].states[1].revisionId"},
		{"a state with a text of another message", `"revisionId":"t3","status"`, `"revisionId":"t1","status"`, fault.InvalidImport, "messages[1].states[0].revisionId"},
		{"a state of the future", `{"version":5,`, `{"version":10,`, fault.InvalidImport, "messages[0].states[1].version"},
		{"states out of order", `{"version":5,`, `{"version":1,`, fault.InvalidImport, "messages[0].states[1].version"},
		{"a message without states", `{"version":4,"rev":1,"revisionId":"t3","status":"complete"}`, ``, fault.InvalidImport, "messages[1].states"},
		{"a rewind to the future", `{"at":7,"to":4}`, `{"at":7,"to":7}`, fault.InvalidImport, "rewinds[0]"},
		{"a rewind beyond the end", `{"at":7,"to":4}`, `{"at":70,"to":4}`, fault.InvalidImport, "rewinds[0]"},
		{"two rewinds at once", `{"at":7,"to":4}`, `{"at":7,"to":4},{"at":7,"to":3}`, fault.InvalidImport, "rewinds[1]"},
		{"a state of the conversation twice", `"states":[{"version":4,"headId":"m2"`, `"states":[{"version":4},{"version":4,"headId":"m2"`, fault.InvalidImport, "states[1]"},
		{"a save point of an unknown version", `{"id":"p1","version":4`, `{"id":"p1","version":3`, fault.InvalidImport, "saves[0]"},
		{"a save point of an unknown message", `"headId":"m2","description"`, `"headId":"m8","description"`, fault.InvalidImport, "saves[0].headId"},
		{"a negative count", `"messageCount":2`, `"messageCount":-2`, fault.InvalidImport, "saves[0].messageCount"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(nodesttest.SmallArchive, tt.old, tt.new, 1)
			if changed == nodesttest.SmallArchive {
				t.Fatalf("the archive has no %q", tt.old)
			}
			_, err := h.Archives.ImportArchive(t.Context(), h.Call(), ch.ID, []byte(changed))
			nodesttest.WantError(t, err, tt.code, "")
			if tt.path != "" && fault.Public(err).Details["path"] != tt.path {
				t.Errorf("details = %v, want path %q", fault.Public(err).Details, tt.path)
			}
		})
	}
	_, err := h.Archives.ImportArchive(t.Context(), h.Call(), "x", []byte(nodesttest.SmallArchive))
	nodesttest.WantError(t, err, fault.NotFound, "characterId")
	page, err := h.Chats.Conversations(t.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 0 {
		t.Errorf("%d conversations are stored, want none", len(page.Items))
	}
	conv, err := h.Archives.ImportArchive(t.Context(), h.Call(), ch.ID, append([]byte("\ufeff"), nodesttest.SmallArchive...))
	nodesttest.Must(t, err)
	if all := h.ReadAll(t, conv.ID, 50); len(all) != 2 || all[0].Text() != "Hello" || all[1].ClientMsgID != "k1" {
		t.Errorf("the undamaged one shows %s", nodesttest.DescribeMessages(t, all))
	}
}

// An import removes the characters that a database cannot store as text.
func TestImportRemovesCharactersTheDatabaseCannotStore(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	odd := strings.NewReplacer(`"Hello"`, `"He\u0000llo"`, `"Mia"`, `"M\u0000ia"`, `"d"`, `"\u0000d"`, `"Hey"`, `"\ud800Hey"`)
	conv, err := h.Archives.ImportArchive(t.Context(), h.Call(), ch.ID, []byte(odd.Replace(nodesttest.SmallArchive)))
	nodesttest.Must(t, err)
	if all := h.ReadAll(t, conv.ID, 50); all[0].Text() != "Hello" || all[1].Name != "Mia" || !strings.HasSuffix(all[1].Text(), "Hey") {
		t.Errorf("it shows %s", nodesttest.DescribeMessages(t, all))
	}
}

func TestALongArchive(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv := h.ImportLongChat(t, h.Character(nodesttest.Alice).ID, 2500)
	data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if n := bytes.Count(data, []byte(`"seq":`)); n != 2500 {
		t.Errorf("%d messages are exported", n)
	}
	page, err := h.Chats.Branches(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 1 || page.Items[0].MessageCount != 2500 {
		t.Errorf("%d branches, %d messages", len(page.Items), page.Items[0].MessageCount)
	}
}
