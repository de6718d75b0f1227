package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// Measurements of one member beside another one: NODEST_MEASURE=1 go test ./cmd/nodest -run TestMeasure -v.
// NODEST_MEASURE_PROGRAM measures another build. They print, and fail only where a request does.

// measured starts a server with a second user.
func measured(t *testing.T, env ...string) (p *process, other *cli.Client) {
	t.Helper()
	if os.Getenv("NODEST_MEASURE") == "" {
		t.Skip("skipped: set NODEST_MEASURE=1 to measure")
	}
	inst := newInstallation(t, "", env...)
	if path := os.Getenv("NODEST_MEASURE_PROGRAM"); path != "" {
		inst.program = path
	}
	p = inst.start(t)
	return p, p.member(t, "mia")
}

// member is the client of a new user.
func (p *process) member(t *testing.T, name string) *cli.Client {
	t.Helper()
	const password = "a long enough password"
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/users", map[string]any{"username": name, "password": password}, nil); err != nil {
		t.Fatal(err)
	}
	var session struct {
		Token string `json:"token"`
	}
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/auth/login",
		map[string]any{"username": name, "password": password}, &session); err != nil {
		t.Fatal(err)
	}
	return newTestClient(p.client.Base, session.Token)
}

// rss is the memory that the process has now, and had at most, in MiB.
func (p *process) rss(t *testing.T) (now, most int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) int {
		_, rest, _ := strings.Cut(string(status), name+":")
		kib, _ := strconv.Atoi(strings.Fields(rest)[0])
		return kib >> 10
	}
	return of("VmRSS"), of("VmHWM")
}

// resetPeak lets VmHWM begin anew.
func (p *process) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writing stores messages of a user every 20 ms until stop is called, which returns how long each took.
func writing(t *testing.T, c *cli.Client) (stop func() []time.Duration) {
	t.Helper()
	character := sampleCharacter(t, c)
	var chat cli.Item
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": character}, &chat); err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan []time.Duration, 1)
	go func() {
		var took []time.Duration
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				ended <- took
				return
			case <-tick.C:
			}
			begun := time.Now()
			if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+chat.ID+"/messages", map[string]any{"text": "hello", "reply": false}, nil); err != nil {
				t.Error(err)
			}
			took = append(took, time.Since(begun))
		}
	}()
	return func() []time.Duration { close(done); return <-ended }
}

func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "no write"
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d writes, p50 %s, p95 %s, max %s", len(took), at(0.5), at(0.95), at(1))
}

// TestMeasureAForkBesideWrites forks a chat of 400 messages with 1,000 swipes each while another user writes.
func TestMeasureAForkBesideWrites(t *testing.T) {
	p, other := measured(t)
	messages, swipes := scaled(t, 400, 400), 1000
	var log bytes.Buffer
	log.WriteString(`{"chat_metadata":{},"user_name":"Mia","character_name":"Mira"}`)
	for i := range messages {
		fmt.Fprintf(&log, "\n"+`{"name":"Mira","is_user":false,"send_date":"2025-03-14T09:00:00.000Z","mes":"text %d","extra":{},"swipe_id":0,"swipes":["text %d"`, i, i)
		for s := 1; s < swipes; s++ {
			fmt.Fprintf(&log, `,"text %d in other words, number %d"`, i, s)
		}
		log.WriteString("]}")
	}
	character := sampleCharacter(t, p.client)
	stop := writing(t, other)
	begun := time.Now()
	var source cli.Item
	if err := p.client.Upload(t.Context(), "/api/v1/conversations/import", "log.jsonl", log.Bytes(), map[string]string{"characterId": character}, &source); err != nil {
		t.Fatal(err)
	}
	t.Logf("import of %d messages with %d swipes each, in %s: %s", messages, swipes, time.Since(begun).Round(time.Millisecond), spread(stop()))
	time.Sleep(5 * time.Second) //nolint:forbidigo // a measurement begins at rest
	p.resetPeak(t)
	rest, _ := p.rss(t)
	stop = writing(t, other)
	begun = time.Now()
	var fork cli.Item
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+source.ID+"/fork", map[string]any{}, &fork); err != nil {
		t.Fatal(err)
	}
	answered := time.Since(begun)
	for {
		err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+fork.ID, nil, nil)
		if err == nil {
			break
		}
		if !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a measurement
	}
	took := time.Since(begun)
	_, most := p.rss(t)
	t.Logf("fork answered after %s, complete after %s: %s; memory %d MiB at rest, %d MiB at most",
		answered.Round(time.Millisecond), took.Round(time.Millisecond), spread(stop()), rest, most)
	before := time.Now()
	var page struct {
		Items []struct{ ID string } `json:"items"`
	}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+fork.ID+"/messages?limit=200", nil, &page); err != nil {
		t.Fatal(err)
	}
	t.Logf("a page of it has %d messages, in %s", len(page.Items), time.Since(before).Round(time.Millisecond))
	stop = writing(t, other)
	begun = time.Now()
	if err := p.client.Call(t.Context(), http.MethodDelete, "/api/v1/conversations/"+fork.ID, nil, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("deleted in %s: %s", time.Since(begun).Round(time.Millisecond), spread(stop()))
	p.stop(t)
}

// TestMeasureASmallFileBesideSlowDocuments uploads large documents of one user, then a small one of
// another one; then the first user searches the large ones 100 times at once while the other writes.
func TestMeasureASmallFileBesideSlowDocuments(t *testing.T) {
	p, other := measured(t)
	words := newRand(t)
	document := func(bytes int) []byte {
		var b strings.Builder
		for b.Len() < bytes {
			fmt.Fprintf(&b, "<h2>Part %d</h2><p>", words.IntN(1000))
			for range 100 {
				fmt.Fprintf(&b, "word%d ", words.IntN(20_000))
			}
			b.WriteString("</p>")
		}
		return []byte("<html><body>" + b.String() + "</body></html>")
	}
	upload := func(c *cli.Client, name string, data []byte) string {
		var got struct{ File struct{ ID string } }
		if err := c.Upload(t.Context(), "/api/v1/files", name, data, nil, &got); err != nil {
			t.Fatal(err)
		}
		return got.File.ID
	}
	ready := func(c *cli.Client, id string) bool {
		var f struct{ State string }
		if err := c.Call(t.Context(), http.MethodGet, "/api/v1/files/"+id, nil, &f); err != nil {
			t.Fatal(err)
		}
		if f.State == "failed" {
			t.Fatalf("got %q, want another", f.State)
		}
		return f.State == "ready"
	}
	wait := func(c *cli.Client, id string) {
		for !ready(c, id) {
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a measurement
		}
	}
	var large []string
	begun := time.Now()
	for i := range 4 {
		large = append(large, upload(p.client, fmt.Sprint("large ", i, ".html"), document(3<<20)))
	}
	small := time.Now()
	wait(other, upload(other, "small.md", []byte("# The harbour\n\nThe keeper lives beside the light.")))
	t.Logf("a small file beside four documents of 3 MiB was ready after %s", time.Since(small).Round(10*time.Millisecond))
	for _, id := range large {
		wait(p.client, id)
	}
	t.Logf("the documents were ready after %s", time.Since(begun).Round(10*time.Millisecond))
	p.resetPeak(t)
	rest, _ := p.rss(t)
	stop := writing(t, other)
	begun = time.Now()
	answers := make(chan time.Duration, 100)
	refused := make(chan error, 100)
	for i := range 100 {
		go func() {
			begun := time.Now()
			err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/knowledge-bases/search", map[string]any{"query": fmt.Sprintf("word%d word%d", i, 100*i)}, nil)
			if refused <- err; true {
				answers <- time.Since(begun)
			}
		}()
	}
	failed := 0
	var took []time.Duration
	for range 100 {
		if err := <-refused; err != nil {
			failed++
			if !fault.Is(err, fault.RateLimited) {
				t.Log(err)
			}
		}
		took = append(took, <-answers)
	}
	_, most := p.rss(t)
	slices.Sort(took)
	t.Logf("100 searches at once in %s, the slowest %s, %d refused; beside them %s; memory %d MiB at rest, %d MiB at most",
		time.Since(begun).Round(time.Millisecond), took[99].Round(time.Millisecond), failed, spread(stop()), rest, most)
	p.stop(t)
}
