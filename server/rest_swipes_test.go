package server

import (
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
)

// A page of messages has 4 MiB at most, whatever the swipes of its messages; each text can still be
// read, and shown.
func TestManySwipesDoNotMakeAPageLarge(t *testing.T) {
	h := newTestServer(t, nil)
	id := h.newChat()
	var many *chat.Message
	h.must(h.db.Update(t.Context(), h.user.ID, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(id)
		if err != nil {
			return err
		}
		parent := conv.HeadID
		for i := range 16 { // one with 8 MB of texts, then many short ones
			m := &chat.Message{ID: op.NewID(), ConversationID: id, ParentID: parent, Role: chat.RoleAssistant, Name: "Mira", Status: chat.StatusComplete, SwipeIndex: 500}
			length := 20
			if i == 0 {
				many, length = m, 8<<10
			}
			for n := range 1000 {
				m.Swipes = append(m.Swipes, chat.Swipe{Text: fmt.Sprint("text ", n, " ", strings.Repeat("x", length))})
			}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			parent = m.ID
		}
		conv.HeadID = parent
		conv.Version++
		return tx.Chats.UpdateConversation(conv)
	}))
	seen, before := 0, ""
	for {
		path := "/conversations/" + id + "/messages?limit=200"
		if before != "" {
			path += "&before=" + before
		}
		got := h.rest("GET", path, "")
		if len(got.body) > 4<<20 {
			t.Errorf("a page has %d bytes", len(got.body))
		}
		page := got.wants(t, 200)
		items := page["items"].([]any)
		seen += len(items)
		for _, item := range items {
			m := item.(map[string]any)
			swipes := m["swipes"].([]any)
			if shown := swipes[int(m["swipeIndex"].(float64))].(map[string]any); len(swipes) > 500 && (shown["text"] == "" || shown["text"] != m["text"]) {
				t.Errorf("%d swipes, the shown one is %v", len(swipes), shown)
			}
		}
		next, more := page["nextCursor"].(string)
		if before = next; !more {
			break
		}
	}
	if seen != 17 { // with the greeting
		t.Errorf("the pages have %d messages", seen)
	}
	swipe := func(path string, i int) map[string]any {
		return h.rest("GET", path, "").wants(t, 200)["swipes"].([]any)[i].(map[string]any)
	}
	if far := swipe("/messages/"+many.ID, 3); far["omitted"] != true || far["text"] != "" || far["id"] != many.Swipes[3].ID {
		t.Errorf("a swipe far from the shown one is %.200v", far)
	}
	if near := swipe("/messages/"+many.ID, 501); near["omitted"] != nil || near["text"] != many.Swipes[501].Text {
		t.Errorf("a swipe beside the shown one is %.200v", near)
	}
	if asked := swipe("/messages/"+many.ID+"?swipe="+many.Swipes[3].ID, 3); asked["text"] != many.Swipes[3].Text {
		t.Errorf("the swipe that was asked for is %.200v", asked)
	}
	h.rest("GET", "/messages/"+many.ID+"?swipe="+op.NewID(), "").refuses(t, 404, "not_found")
	chosen := h.rest("POST", "/messages/"+many.ID+"/swipe", `{"swipe":"`+many.Swipes[3].ID+`"}`)
	if got := chosen.wants(t, 200); len(chosen.body) > 1<<20 || !strings.Contains(string(chosen.body), many.Swipes[3].Text) {
		t.Errorf("the chosen swipe: %d bytes, %.300v", len(chosen.body), got)
	}
}
