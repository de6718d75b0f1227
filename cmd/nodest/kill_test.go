package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"nodest/internal/cli"
)

func newTestClient(base, token string) *cli.Client {
	return &cli.Client{Base: base, Token: token, HTTP: &http.Client{Transport: &http.Transport{}}}
}

// writer is a client that sends one message after another to its own chat.
type writer struct {
	conversation string
	sequence     int
	acked        map[string]string // text -> message id
	unanswered   string            // text that was sent but not acknowledged
	reply        bool
}

// TestKillLosesNothingAcknowledged kills the server under load, again and again.
// Every acknowledged message is stored once, and so is one that is sent again with its
// key. The event log has no gap, and no reply is left unfinished.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		cycles := scaled(t, 2, 30)
		rng := newRand(t)
		inst := newInstallation(t, url, "NODEST_GENERATIONS=8")
		p := inst.start(t)
		writers := make([]*writer, 4)
		character := sampleCharacter(t, p.client)
		for i := range writers {
			writers[i] = &writer{conversation: newConversation(t, p.client, character), acked: map[string]string{}, reply: i%2 == 0}
		}
		for range cycles {
			sendUntilKilled(t, p, writers, 10+rng.IntN(30))
			p = inst.start(t)
			for _, w := range writers {
				w.resend(t, p.client)
			}
		}
		total := 0
		for _, w := range writers {
			w.verify(t, p.client)
			total += len(w.acked)
		}
		verifyLog(t, p.client)
		t.Logf("%d kills, %d messages acknowledged, 0 lost", cycles, total)
		p.stop(t)
	})
}

// sendUntilKilled lets all writers send, and kills the server after some
// acknowledgements.
func sendUntilKilled(t *testing.T, p *process, writers []*writer, acks int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan struct{}, 1024)
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() {
			for w.send(ctx, p.client, fmt.Sprintf("%d/%d", i, w.sequence)) == nil {
				answers <- struct{}{}
			}
		})
	}
	for range acks {
		select {
		case <-answers:
		case err := <-p.exited:
			t.Fatalf("the server ended by itself: %v\n%s", err, p.stderr)
		}
	}
	p.kill(t)
	wg.Wait()
}

// send sends one message; nil means that it was acknowledged.
func (w *writer) send(ctx context.Context, c *cli.Client, text string) error {
	w.unanswered = text
	id, err := w.post(ctx, c, text)
	if err != nil {
		return err
	}
	w.acked[text], w.unanswered = id, ""
	w.sequence++
	return nil
}

// post sends text with a key of its own.
func (w *writer) post(ctx context.Context, c *cli.Client, text string) (id string, err error) {
	body, err := json.Marshal(map[string]any{"text": text, "reply": w.reply, "whenBusy": "cancel"})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/api/v1/conversations/"+w.conversation+"/messages", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Prefer", "respond-async")
	req.Header.Set("Idempotency-Key", "key-"+w.conversation[len(w.conversation)-8:]+"-"+text)
	res, err := c.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 400 {
		return "", cli.ProblemOf(res)
	}
	var out struct {
		UserMessage chatMessage `json:"userMessage"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return "", err
	}
	if out.UserMessage.ID == "" {
		return "", errors.New("an answer without a message")
	}
	return out.UserMessage.ID, nil
}

// resend repeats the unacknowledged message three times; it must be stored once.
func (w *writer) resend(t *testing.T, c *cli.Client) {
	t.Helper()
	if w.unanswered == "" {
		return
	}
	text, ids := w.unanswered, map[string]bool{}
	for range 3 {
		id, err := w.post(t.Context(), c, text)
		if err != nil {
			t.Fatalf("sending %s again: %v", text, err)
		}
		ids[id] = true
		w.acked[text] = id
	}
	if len(ids) != 1 {
		t.Fatalf("one key, one message: ids has %d, want %d: %+v", len(ids), 1, ids)
	}
	w.unanswered = ""
	w.sequence++
}

// verify compares the stored chat with what was acknowledged.
func (w *writer) verify(t *testing.T, c *cli.Client) {
	t.Helper()
	eventually(t, "the end of all replies", func() error {
		for _, m := range history(t, c, w.conversation) {
			if m.Status == "pending" || m.Status == "streaming" {
				return fmt.Errorf("message %s is %s: %w", m.ID, m.Status, errNotYet)
			}
		}
		return nil
	})
	seen := map[string]int{}
	for _, m := range history(t, c, w.conversation) {
		if m.Role == "user" {
			seen[m.Text]++
			if m.ID != w.acked[m.Text] {
				t.Fatalf("message %q: m.ID is %q, want %q", m.Text, m.ID, w.acked[m.Text])
			}
		}
	}
	for text := range w.acked {
		if seen[text] != 1 {
			t.Fatalf("message %q: seen[text] is %d, want %d", text, seen[text], 1)
		}
	}
	if len(seen) != len(w.acked) {
		t.Fatalf("seen has %d, want %d: %+v", len(seen), len(w.acked), seen)
	}
}

// history reads a whole chat, oldest first.
func history(t *testing.T, c *cli.Client, conversation string) []chatMessage {
	t.Helper()
	var whole []chatMessage
	before := ""
	for {
		var page cli.PageOf[chatMessage]
		path := "/api/v1/conversations/" + conversation + "/messages?limit=200"
		if before != "" {
			path += "&before=" + before
		}
		if err := c.Call(t.Context(), http.MethodGet, path, nil, &page); err != nil {
			t.Fatal(err)
		}
		whole = append(page.Items, whole...)
		if page.NextCursor == nil || *page.NextCursor == "" || len(page.Items) == 0 {
			return whole
		}
		before = page.Items[0].ID
	}
}

// verifyLog checks that the user's log has every seq once, in order.
func verifyLog(t *testing.T, c *cli.Client) {
	t.Helper()
	log := wholeLog(t, c)
	if len(log) == 0 {
		t.Fatalf("the log has no events: log is %+v, want more", log)
	}
	for i, f := range log {
		if want := int64(i + 1); f.Seq != want {
			t.Fatalf("a gap in the log: f.Seq is %d, want %d", f.Seq, want)
		}
	}
}

func sampleCharacter(t *testing.T, c *cli.Client) string {
	t.Helper()
	var ch cli.Item
	body := map[string]any{"roleCard": map[string]any{"name": "Mira", "first_mes": "Hello, {{user}}.", "description": "A lighthouse keeper."}}
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/characters", body, &ch); err != nil {
		t.Fatal(err)
	}
	return ch.ID
}

func newConversation(t *testing.T, c *cli.Client, character string) string {
	t.Helper()
	var conv cli.Item
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": character}, &conv); err != nil {
		t.Fatal(err)
	}
	return conv.ID
}
