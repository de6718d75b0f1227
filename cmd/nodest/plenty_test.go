package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/store"
)

// plenty is a user who owns a lot, beside another one who writes.
type plenty struct {
	*testing.T
	p     *process
	c     *cli.Client // the user's
	other *cli.Client
	rest  int // memory in MiB before the first operation
	rows  []string

	character, chat, branched, base, book, post string
	root, head                                  string // the ends of the chat
	document                                    []byte // document of the book
}

// least is a number at the scale of NODEST_LONG, or a fifth of it.
func (o *plenty) least(n int) int { return scaled(o.T, n/5, n) }

// ask sends a request and returns the code of its error, "" for none.
func (o *plenty) ask(method, path string, body any) fault.Code {
	res, err := o.c.Send(o.Context(), method, "/api/v1"+path, body, "application/json")
	if err != nil {
		return fault.Public(err).Code
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return ""
}

func (o *plenty) call(method, path string, body, out any) {
	o.Helper()
	if err := o.c.Call(o.Context(), method, "/api/v1"+path, body, out); err != nil {
		o.Errorf("%s %s: %v", method, path, err)
	}
}

func (o *plenty) beside(name string, do func()) {
	o.Helper()
	o.p.resetPeak(o.T)
	stop := writing(o.T, o.other)
	begun := time.Now()
	do()
	took := time.Since(begun)
	if took < time.Second { // so that the writes that it made wait are seen
		time.Sleep(time.Second - took) //nolint:forbidigo // a measurement
	}
	writes := stop()
	_, most := o.p.rss(o.T)
	row := fmt.Sprintf("| %s | %s | %s | %d MiB |", name, took.Round(time.Millisecond), spread(writes), most-o.rest)
	o.rows = append(o.rows, row)
	o.Log(row)
}

// at measures one request.
func (o *plenty) at(name, method, path string, body any) {
	o.Helper()
	o.beside(name, func() { o.call(method, path, body, nil) })
}

// many measures requests that are sent at once.
func (o *plenty) many(n int, name, method, path string, body func(i int) any) {
	o.Helper()
	outcomes := map[fault.Code]int{}
	o.beside(fmt.Sprintf("%d × %s", n, name), func() {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				var b any
				at := path
				if body != nil {
					b = body(i)
				}
				if strings.Contains(path, "%d") {
					at = fmt.Sprintf(path, i)
				}
				code := o.ask(method, at, b)
				mu.Lock()
				defer mu.Unlock()
				outcomes[code]++
			})
		}
		all.Wait()
	})
	o.Log("   ", outcomes)
}

func (o *plenty) until(what string, done func() bool) {
	o.Helper()
	for end := time.Now().Add(10 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // a measurement
		if !time.Now().Before(end) {
			o.Fatal(what)
		}
	}
}

// lines are memories as a file.
func (o *plenty) lines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"text":"Mia keeps boat %d in harbour %d beside the old light number %d","kind":"profile","subject":"user"}`+"\n", i, i%97, i*7)
	}
	return b.Bytes()
}

// bookOf is a world book with entries.
func bookOf(n int) map[string]any {
	entries := map[string]any{}
	for i := range n {
		entries[fmt.Sprint(i)] = map[string]any{
			"uid": i, "key": []string{fmt.Sprintf("harbour%d", i), fmt.Sprintf("light%d", i)}, "content": strings.Repeat("The keeper tells of the storm. ", 20), "comment": fmt.Sprint("entry ", i),
		}
	}
	return map[string]any{"name": "Harbour", "entries": entries}
}

func (o *plenty) archiveOf(files int) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range files {
		w, err := z.Create(fmt.Sprintf("folder %d/page %d.md", i%7, i))
		if err != nil {
			o.Fatal(err)
		}
		fmt.Fprintf(w, "# Harbour %d\n\n", i)
		for p := range 60 {
			fmt.Fprintf(w, "Boat %d of keeper %d lies beside pier %d, near word%d and word%d.\n\n", p, i, i*p%101, i*31+p, p*i%5000)
		}
	}
	if err := z.Close(); err != nil {
		o.Fatal(err)
	}
	return b.Bytes()
}

// TestMeasurePlentyBesideWrites carries out what reads, copies or removes much of what a user owns
// while another user writes. NODEST_LONG=1 has the full size, else it is a fifth.
func TestMeasurePlentyBesideWrites(t *testing.T) {
	p, other := measured(t, "NODEST_LOG_LEVEL=error")
	o := &plenty{T: t, p: p, c: p.member(t, "rich"), other: other}
	o.carriesOut(o.stores, o.reads, o.searches, o.exports, o.memories, o.removes, o.leaves)
}

// TestMeasureMaintenanceBesideWrites does the same with what a server removes when it returns.
func TestMeasureMaintenanceBesideWrites(t *testing.T) {
	p, other := measured(t, "NODEST_LOG_LEVEL=error")
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip("skipped: it makes what is stored older with sqlite3")
	}
	o := &plenty{T: t, p: p, c: p.member(t, "rich"), other: other}
	o.carriesOut(o.stores, o.returns)
}

// TestMeasureACircleBesideWrites does the same with a circle of many members, posts and comments.
func TestMeasureACircleBesideWrites(t *testing.T) {
	p, other := measured(t, "NODEST_LOG_LEVEL=error")
	o := &plenty{T: t, p: p, c: p.member(t, "rich"), other: other}
	o.carriesOut(o.stores, o.circle, o.leaves)
}

func (o *plenty) carriesOut(parts ...func()) {
	o.rest, _ = o.p.rss(o.T)
	for _, part := range parts {
		part()
	}
	o.p.stop(o.T)
	o.Log("\n| operation | took | writes of another user | memory above rest |\n| --- | --- | --- | --- |\n" + strings.Join(o.rows, "\n"))
}

func (o *plenty) stores() {
	o.character = sampleCharacter(o.T, o.c)
	var chat cli.Item
	o.beside("import of a chat", func() {
		if err := o.c.Upload(o.Context(), "/api/v1/conversations/import", "log.jsonl", longLog(o.least(20_000), 1), map[string]string{"characterId": o.character}, &chat); err != nil {
			o.Fatal(err)
		}
	})
	o.chat = chat.ID
	var state struct{ HeadID string }
	o.call(http.MethodGet, "/conversations/"+o.chat, nil, &state)
	var tree struct{ Items []cli.Item }
	o.call(http.MethodGet, "/conversations/"+o.chat+"/tree", nil, &tree)
	o.root, o.head = tree.Items[0].ID, state.HeadID
	o.beside("import of memories", func() {
		if err := o.c.Upload(o.Context(), "/api/v1/characters/"+o.character+"/memories/import", "m.jsonl", o.lines(o.least(5000)), nil, new(json.RawMessage)); err != nil {
			o.Fatal(err)
		}
	})
	var base cli.Item
	o.call(http.MethodPost, "/knowledge-bases", map[string]any{"name": "Harbours"}, &base)
	o.base = base.ID
	o.beside("import of documents, until they are searchable", func() {
		if err := o.c.Upload(o.Context(), "/api/v1/knowledge-bases/"+o.base+"/import", "all.zip", o.archiveOf(o.least(500)), nil, new(json.RawMessage)); err != nil {
			o.Fatal(err)
		}
		o.until("documents", func() bool {
			var busy struct{ Items []cli.Item }
			o.call(http.MethodGet, "/jobs?state=running&limit=1", nil, &busy)
			if len(busy.Items) > 0 {
				return false
			}
			o.call(http.MethodGet, "/jobs?state=queued&limit=1", nil, &busy)
			return len(busy.Items) == 0
		})
	})
	book := bookOf(o.least(10_000))
	var made cli.Item
	o.beside("create a world book", func() { o.call(http.MethodPost, "/worldbooks", map[string]any{"document": book}, &made) })
	o.book = made.ID
	o.document, _ = json.Marshal(book)
	o.at("replace it", http.MethodPut, "/worldbooks/"+o.book, map[string]any{"document": book})
	o.at("test it", http.MethodPost, "/worldbooks/test", map[string]any{"document": book, "messages": []any{map[string]any{"role": "user", "text": "harbour5 light77"}}})
	o.at("change its name", http.MethodPatch, "/worldbooks/"+o.book, map[string]any{"name": "Harbours"})
	o.at("bind it to all", http.MethodPatch, "/worldbooks/"+o.book, map[string]any{"bindAll": true})
	o.at("prompt with it", http.MethodPost, "/conversations/"+o.chat+"/prompt", map[string]any{"text": "harbour5 light77"})
	var large cli.Item
	o.beside("create a character with such a book", func() {
		o.call(http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": "Mira", "first_mes": "Hello."}, "worldBook": book}, &large)
	})
	o.at("change its card", http.MethodPatch, "/characters/"+large.ID, map[string]any{"roleCard": map[string]any{"name": "Mira", "first_mes": "Hi."}})
	o.at("let it join the circle", http.MethodPost, "/circle/characters/"+large.ID+"/init", map[string]any{})
	o.many(20, "begin a chat with it", http.MethodPost, "/conversations", func(int) any { return map[string]any{"characterId": large.ID} })
	o.many(100, "begin a chat with a small one", http.MethodPost, "/conversations", func(int) any { return map[string]any{"characterId": o.character} })
	o.beside("branches, one request each", func() {
		var short cli.Item
		if err := o.c.Upload(o.Context(), "/api/v1/conversations/import", "log.jsonl", longLog(4, 1), map[string]string{"characterId": o.character}, &short); err != nil {
			o.Fatal(err)
		}
		o.branched = short.ID
		o.call(http.MethodGet, "/conversations/"+o.branched+"/tree", nil, &tree)
		for i := range o.least(5000) {
			o.call(http.MethodPatch, "/messages/"+tree.Items[0].ID, map[string]any{"text": fmt.Sprint("another way ", i), "mode": "branch"}, nil)
		}
	})
	o.beside("save points, one request each", func() {
		for range o.least(2000) {
			o.call(http.MethodPost, "/conversations/"+o.chat+"/saves", map[string]any{}, nil)
		}
	})
}

func (o *plenty) reads() {
	chat, branched := "/conversations/"+o.chat, "/conversations/"+o.branched
	for _, r := range []struct{ name, path string }{
		{"branches", branched + "/branches?limit=200"}, {"tree with branches", branched + "/tree"}, {"tree", chat + "/tree"},
		{"save points", chat + "/saves?limit=200"}, {"page of messages", chat + "/messages?limit=200"}, {"conversation", chat}, {"snapshot", "/sync"},
		{"world book", "/worldbooks/" + o.book}, {"files", "/files?limit=200"}, {"documents of a base", "/knowledge-bases/" + o.base + "/files?limit=200"},
		{"jobs", "/jobs?limit=200"}, {"quotas", "/me"}, {"summaries", chat + "/summaries"}, {"memories", "/characters/" + o.character + "/memories?limit=200"},
		{"tools", "/tools"},
	} {
		o.many(100, r.name, http.MethodGet, r.path, nil)
	}
	o.beside("whole log of events", func() { wholeLog(o.T, o.c) })
	o.many(50, "prompt", http.MethodPost, chat+"/prompt", func(i int) any { return map[string]any{"text": fmt.Sprint("harbour", i)} })
}

func (o *plenty) searches() {
	o.many(100, "search of messages, frequent words", http.MethodGet, "/messages/search?q=harbour%%20%d", nil)
	o.many(100, "search of messages, rare words", http.MethodGet, "/messages/search?q=lighthouse%d", nil)
	o.many(100, "search of memories", http.MethodGet, "/characters/"+o.character+"/memories?q=boat%%20%d", nil)
	o.many(100, "search of documents", http.MethodPost, "/knowledge-bases/search", func(i int) any { return map[string]any{"query": fmt.Sprintf("boat keeper word%d", i*31)} })
}

func (o *plenty) exports() {
	chat := "/conversations/" + o.chat
	o.many(20, "archive of a chat", http.MethodGet, chat+"/export?format=json", nil)
	o.many(20, "chat log", http.MethodGet, chat+"/export?format=jsonl", nil)
	o.many(20, "memories as a file", http.MethodGet, "/characters/"+o.character+"/memories/export", nil)
	o.many(20, "character as a file", http.MethodGet, "/characters/"+o.character+"/export", nil)
	o.beside("backup", func() { getBody(o.T, o.p.client, "/api/v1/backup") })
	archive := getBody(o.T, o.c, "/api/v1"+chat+"/export?format=json")
	o.beside("5 × import of an archive", func() {
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				err := o.c.Upload(o.Context(), "/api/v1/conversations/import", "a.json", []byte(archive), map[string]string{"characterId": o.character}, new(json.RawMessage))
				if err != nil && !fault.Is(err, fault.RateLimited) {
					o.Error(err)
				}
			})
		}
		all.Wait()
	})
	o.many(20, "lint of a world book", http.MethodPost, "/lint", func(int) any { return json.RawMessage(o.document) })
}

func (o *plenty) circle() {
	members := make([]string, o.least(200))
	o.beside("characters join the circle", func() {
		for i := range members {
			members[i] = sampleCharacter(o.T, o.c)
			o.call(http.MethodPost, "/circle/characters/"+members[i]+"/init", map[string]any{}, nil)
		}
	})
	var post cli.Item
	o.beside("a post to all of them", func() {
		o.call(http.MethodPost, "/circle/posts", map[string]any{"text": "The harbour is open."}, &post)
	})
	o.post = post.ID
	text := strings.Repeat("The keeper sees the storm. ", 30)
	o.beside("comments, one request each", func() {
		for i := range o.least(1000) {
			o.call(http.MethodPost, "/circle/posts/"+o.post+"/comments", map[string]any{"text": fmt.Sprint(text, i)}, nil)
		}
	})
	o.beside("posts, one request each", func() {
		for i := range o.least(1000) {
			o.call(http.MethodPost, "/circle/posts", map[string]any{"text": fmt.Sprint(text, i)}, nil)
		}
	})
	o.many(100, "feed", http.MethodGet, "/circle/posts?limit=200", nil)
	o.many(100, "post with comments", http.MethodGet, "/circle/posts/"+o.post, nil)
	o.many(100, "relationships", http.MethodGet, "/circle/relationships", nil)
	o.many(100, "turns", http.MethodGet, "/circle/turns?limit=200", nil)
	o.at("delete the post", http.MethodDelete, "/circle/posts/"+o.post, nil)
	o.at("delete a member", http.MethodDelete, "/characters/"+members[0], nil)
}

func (o *plenty) memories() {
	at := "/characters/" + o.character + "/memories"
	all := map[string]any{"all": true}
	o.many(50, "dry run of a change of all", http.MethodPost, at+"/bulk", func(int) any { return map[string]any{"action": "pin", "filter": all, "dryRun": true} })
	o.at("pin all", http.MethodPost, at+"/bulk", map[string]any{"action": "pin", "filter": all})
	o.at("retire all", http.MethodPost, at+"/bulk", map[string]any{"action": "retire", "filter": all})
	o.many(50, "dry run of forgetting", http.MethodPost, at+"/forget", func(i int) any { return map[string]any{"query": fmt.Sprint("boat ", i), "dryRun": true} })
	o.at("restore all", http.MethodPost, at+"/bulk", map[string]any{"action": "restore", "filter": all})
	o.at("purge all facts", http.MethodPost, at+"/bulk", map[string]any{"action": "purge", "filter": all})
	o.at("forget everything", http.MethodPost, at+"/forget", map[string]any{"all": true})
}

func (o *plenty) removes() {
	o.at("delete the base", http.MethodDelete, "/knowledge-bases/"+o.base, nil)
	var files struct{ Items []cli.Item }
	o.call(http.MethodGet, "/files?limit=200", nil, &files)
	o.beside("delete files, one request each", func() {
		for _, f := range files.Items[:len(files.Items)/2] {
			o.call(http.MethodDelete, "/files/"+f.ID, nil, nil)
		}
	})
	o.at("delete a chat", http.MethodDelete, "/conversations/"+o.chat, nil)
	o.at("delete the world book", http.MethodDelete, "/worldbooks/"+o.book, nil)
	o.at("delete the character", http.MethodDelete, "/characters/"+o.character, nil)
	var me struct{ ID string }
	o.call(http.MethodGet, "/me", nil, &me)
	o.beside("make room: purge all that was deleted", func() {
		limits := func(bytes int64) {
			if err := o.p.client.Call(o.Context(), http.MethodPatch, "/api/v1/users/"+me.ID, map[string]any{"limits": map[string]any{"bytes": bytes}}, nil); err != nil {
				o.Fatal(err)
			}
		}
		limits(1)
		_ = o.ask(http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": "Mira"}})
		limits(1 << 40)
	})
}

// leaves deletes the account with all that it has.
func (o *plenty) leaves() {
	var me struct{ ID string }
	o.call(http.MethodGet, "/me", nil, &me)
	o.beside("delete the user", func() {
		if err := o.p.client.Call(o.Context(), http.MethodDelete, "/api/v1/users/"+me.ID, nil, nil); err != nil {
			o.Fatal(err)
		}
	})
}

// returns stops the server for as long as nothing lasts that is kept for a time, and starts it again.
func (o *plenty) returns() {
	program, env := o.p.cmd.Path, o.p.cmd.Env
	o.call(http.MethodDelete, "/conversations/"+o.chat, nil, nil)
	o.call(http.MethodDelete, "/worldbooks/"+o.book, nil, nil)
	o.p.stop(o.T)
	inst := &installation{program: program, env: append(env, "NODEST_EVENT_COUNT=1")}
	for _, pair := range env {
		if dir, ok := strings.CutPrefix(pair, "HOME="); ok {
			inst.dir = dir
		}
	}
	file := filepath.Join(inst.options().Dir, "nodest.db")
	sqlite := func(statement string) string {
		out, err := exec.Command("sqlite3", file, statement).CombinedOutput()
		if err != nil {
			o.Fatalf("%s: %v", string(out), err)
		}
		return strings.TrimSpace(string(out))
	}
	const long = "5184000000" // 60 days in ms
	sqlite("UPDATE conversations SET deleted_at = deleted_at - " + long + "; UPDATE resources SET deleted_at = deleted_at - " + long +
		"; UPDATE call_keys SET created_at = created_at - " + long + "; UPDATE jobs SET updated_at = updated_at - " + long + ", created_at = created_at - " + long + " WHERE state = 'done'")
	db, err := store.Open(o.Context(), inst.options())
	if err != nil {
		o.Fatal(err)
	}
	if err := db.Enqueue(o.Context(), store.Upkeep); err != nil {
		o.Fatal(err)
	} // else it comes after an hour
	if err := db.Close(); err != nil {
		o.Fatal(err)
	}
	tokens, other := o.c.Token, o.other.Token
	o.p = inst.start(o.T)
	o.c, o.other = newTestClient(o.p.client.Base, tokens), newTestClient(o.p.client.Base, other)
	o.beside("maintenance after a long absence", func() {
		o.until("maintenance", func() bool {
			return sqlite("PRAGMA busy_timeout=5000; SELECT COUNT(*) FROM conversations WHERE deleted_at IS NOT NULL") == "5000\n0"
		})
	})
}
