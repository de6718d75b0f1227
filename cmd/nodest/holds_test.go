package main

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"nodest/internal/cli"
)

// longLog is a chat log with messages that have swipes.
func longLog(messages, swipes int) []byte {
	var log bytes.Buffer
	log.WriteString(`{"chat_metadata":{},"user_name":"Mia","character_name":"Mira"}`)
	for i := range messages {
		fmt.Fprintf(&log, "\n"+`{"name":"Mira","is_user":false,"send_date":"2025-03-14T09:00:00.000Z","mes":"text %d of a long chat beside the harbour","extra":{}`, i)
		if swipes > 1 {
			fmt.Fprintf(&log, `,"swipe_id":0,"swipes":["text %d of a long chat beside the harbour"`, i)
			for s := 1; s < swipes; s++ {
				fmt.Fprintf(&log, `,"text %d in other words, number %d"`, i, s)
			}
			log.WriteString("]")
		}
		log.WriteString("}")
	}
	return log.Bytes()
}

// TestMeasureLongChatsBesideWrites changes chats of 20,000 messages, and of 400 with 1,000 swipes each,
// while another user writes.
func TestMeasureLongChatsBesideWrites(t *testing.T) {
	p, other := measured(t)
	c := p.client
	for _, size := range []struct{ messages, swipes int }{{20_000, 1}, {400, 1000}} {
		character := sampleCharacter(t, c)
		var chat cli.Item
		beside := func(name string, do func()) {
			stop := writing(t, other)
			begun := time.Now()
			do()
			t.Logf("%d messages × %d: %s in %s: %s", size.messages, size.swipes, name, time.Since(begun).Round(time.Millisecond), spread(stop()))
		}
		call := func(method, path string, body, out any) {
			if err := c.Call(t.Context(), method, "/api/v1"+path, body, out); err != nil {
				t.Fatal(err)
			}
		}
		beside("import", func() {
			if err := c.Upload(t.Context(), "/api/v1/conversations/import", "log.jsonl", longLog(size.messages, size.swipes), map[string]string{"characterId": character}, &chat); err != nil {
				t.Fatal(err)
			}
		})
		at := "/conversations/" + chat.ID
		var save cli.Item
		beside("save point", func() { call(http.MethodPost, at+"/saves", map[string]any{}, &save) })
		var before struct{ HeadID string }
		call(http.MethodGet, at, nil, &before)
		var tree struct{ Items []cli.Item }
		call(http.MethodGet, at+"/tree", nil, &tree)
		root := tree.Items[0].ID
		beside("edit as branch", func() {
			call(http.MethodPatch, "/messages/"+root, map[string]any{"text": "another way", "mode": "branch"}, nil)
		})
		beside("choose head", func() { call(http.MethodPut, at+"/head", map[string]any{"messageId": before.HeadID}, nil) })
		beside("tree", func() { call(http.MethodGet, at+"/tree", nil, nil) })
		var gone struct{ MessageIDs []string }
		for range 3 {
			beside("delete after", func() { call(http.MethodDelete, "/messages/"+root+"?scope=after", nil, &gone) })
			if len(gone.MessageIDs) != size.messages {
				t.Fatalf("gone.MessageIDs has %d, want %d: %q", len(gone.MessageIDs), size.messages, gone.MessageIDs)
			}
			beside("restore message", func() { call(http.MethodPost, "/messages/"+root+"/restore", nil, &gone) })
			if len(gone.MessageIDs) != size.messages {
				t.Fatalf("gone.MessageIDs has %d, want %d: %q", len(gone.MessageIDs), size.messages, gone.MessageIDs)
			}
			beside("delete after", func() { call(http.MethodDelete, "/messages/"+root+"?scope=after", nil, &gone) })
			beside("restore save", func() { call(http.MethodPost, "/saves/"+save.ID+"/restore", nil, nil) })
		}
		if size.swipes > 1 {
			for _, id := range gone.MessageIDs {
				call(http.MethodPost, "/messages/"+id+"/swipe", map[string]any{"swipe": "next"}, nil)
			}
			beside("restore save that changes all texts", func() { call(http.MethodPost, "/saves/"+save.ID+"/restore", nil, nil) })
		}
		beside("sync", func() { wholeLog(t, c) })
		beside("export", func() { getBody(t, c, "/api/v1"+at+"/export?format=json") })
		beside("reset", func() { call(http.MethodPost, at+"/reset", nil, nil) })
		beside("choose head after reset", func() { call(http.MethodPut, at+"/head", map[string]any{"messageId": before.HeadID}, nil) })
		beside("delete chat", func() { call(http.MethodDelete, at, nil, nil) })
	}
	p.stop(t)
}
