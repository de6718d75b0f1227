package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store"
)

// Kinds of requests to the provider.
const (
	forReply     = "reply"
	forFacts     = "facts"
	forDecisions = "decisions"
	forSummary   = "summary"
	forVectors   = "vectors"
)

// memoryProvider is a provider that answers all requests of the memory. It can hold
// the next request of a kind.
type memoryProvider struct {
	*llmtest.Fake
	t *testing.T

	mu       sync.Mutex
	held     map[string]chan chan struct{} // by kind; receives the channel that releases the request
	counts   map[string]int
	embedded map[string]int // how often each text was embedded
	summary  int
}

func newMemoryProvider(t *testing.T) *memoryProvider {
	n := &memoryProvider{Fake: llmtest.NewOpenAI(t), t: t, held: map[string]chan chan struct{}{}, counts: map[string]int{}, embedded: map[string]int{}}
	n.Always(n.answer)
	return n
}

// holdNext holds the next request of a kind. The channel delivers another one, which
// releases the request when closed.
func (n *memoryProvider) holdNext(kind string) <-chan chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[kind] = make(chan chan struct{}, 1)
	return n.held[kind]
}

func (n *memoryProvider) answer(req llmtest.Request) llmtest.Reply {
	prompt := ""
	if len(req.Messages) > 0 {
		prompt = req.Messages[len(req.Messages)-1].Text
	}
	kind := forReply
	switch {
	case strings.HasSuffix(req.Path, "/embeddings"):
		kind = forVectors
	case strings.Contains(prompt, `{"facts":[`):
		kind = forFacts
	case strings.Contains(prompt, `{"memory":[`):
		kind = forDecisions
	case strings.Contains(prompt, "<transcript>"):
		kind = forSummary
	}
	reply := n.record(kind, req, prompt)
	n.mu.Lock()
	held := n.held[kind]
	delete(n.held, kind)
	n.mu.Unlock()
	if held != nil {
		gate := make(chan struct{})
		held <- gate
		select {
		case <-gate:
		case <-n.t.Context().Done():
		}
	}
	return reply
}

func (n *memoryProvider) record(kind string, req llmtest.Request, prompt string) llmtest.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[kind]++
	switch kind {
	case forFacts:
		return llmtest.Say(factsOf(prompt))
	case forDecisions:
		return llmtest.Say(allNew(prompt))
	case forSummary:
		n.summary++
		// Long enough for any range, and without numbers, because the chat has none.
		return llmtest.Say(fmt.Sprintf("Notes %c%c: many a boat was named", 'a'+n.summary/26, 'a'+n.summary%26) +
			strings.Repeat(", one after the other, and nobody has chosen one yet", 5) + ".")
	case forVectors:
		var in struct{ Input []string }
		_ = json.Unmarshal(req.Body, &in) // the fake has already decoded it
		for _, text := range in.Input {
			n.embedded[text]++
		}
	}
	return llmtest.Say("All is well.")
}

var (
	shownLine = regexp.MustCompile(`(?m)^\{"seq":(\d+),"who":"user".*"text":"(.*)"\}$`)
	newLine   = regexp.MustCompile(`(?m)^\{"new":(\d+),"text":"(.*)"`)
)

// factsOf returns every user message of a prompt as a fact, word for word.
func factsOf(prompt string) string {
	var facts []string
	for _, m := range shownLine.FindAllStringSubmatch(prompt, -1) {
		facts = append(facts, fmt.Sprintf(`{"text":"%s","subject":"user","kind":"other","importance":0.5,"event_time":null,"seqs":[%s]}`, m[2], m[1]))
	}
	return `{"facts":[` + strings.Join(facts, ",") + `]}`
}

// allNew decides that all facts of a prompt are new.
func allNew(prompt string) string {
	var added []string
	for _, m := range newLine.FindAllStringSubmatch(prompt, -1) {
		added = append(added, fmt.Sprintf(`{"new":%s,"id":null,"event":"ADD","text":"%s"}`, m[1], m[2]))
	}
	return `{"memory":[` + strings.Join(added, ",") + `]}`
}

// awaitHeld waits for a held request and returns the channel that releases it.
func awaitHeld(t *testing.T, what string, held <-chan chan struct{}) chan struct{} {
	t.Helper()
	select {
	case gate := <-held:
		return gate
	case <-time.After(testTimeout):
		t.Fatalf("no request for %s", what)
		return nil
	}
}

// memoryServer is a server with one chat; it survives restarts.
type memoryServer struct {
	t            *testing.T
	inst         *installation
	p            *process
	character    string
	conversation string
	sent         []string
}

func newMemoryServer(t *testing.T, url string, env ...string) *memoryServer {
	r := &memoryServer{t: t, inst: newInstallation(t, url, env...).fast(t)}
	r.p = r.inst.start(t)
	r.character = sampleCharacter(t, r.p.client)
	r.conversation = newConversation(t, r.p.client, r.character)
	return r
}

// sendMessage sends messages without a reply.
func (r *memoryServer) sendMessage(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.post("/conversations/"+r.conversation+"/messages", map[string]any{"text": text, "reply": false})
		r.sent = append(r.sent, text)
	}
}

func (r *memoryServer) post(path string, body any) {
	r.t.Helper()
	if err := r.p.client.Call(r.t.Context(), http.MethodPost, "/api/v1"+path, body, nil); err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
}

// killAndRestart kills the server, releases its request, and starts it again.
func (r *memoryServer) killAndRestart(gate chan struct{}) {
	r.t.Helper()
	r.p.kill(r.t)
	close(gate)
	r.p = r.inst.start(r.t)
}

// awaitIdle waits until no job about the character is due.
func (r *memoryServer) awaitIdle() {
	r.t.Helper()
	eventually(r.t, "the background jobs", func() error {
		for _, j := range dueJobs(r.t, r.p.client, r.character, 20*time.Second) { // not those that wait for idle time
			return fmt.Errorf("%s is %s: %w", j.Kind, j.State, errNotYet)
		}
		return nil
	})
}

type wireJobs struct {
	Kind, State, Subject string
	Attempt              int
	NotBefore            *time.Time
	Error                json.RawMessage
}

// dueJobs returns the jobs about a character that run or are due soon.
func dueJobs(t *testing.T, c *cli.Client, character string, soon time.Duration) []wireJobs {
	t.Helper()
	var page cli.PageOf[wireJobs]
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/characters/"+character+"/memory/jobs?limit=60", nil, &page); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(page.Items, func(j wireJobs) bool {
		later := j.NotBefore != nil && time.Until(*j.NotBefore) > soon
		return j.State != "running" && (j.State != "queued" || later)
	})
}

// verify checks that every message is stored once and, if facts is true, every
// fact.
func (r *memoryServer) verify(facts bool) {
	r.t.Helper()
	r.awaitIdle()
	var texts []string
	for _, m := range history(r.t, r.p.client, r.conversation) {
		if m.Role == "user" {
			texts = append(texts, m.Text)
		}
	}
	if !reflect.DeepEqual(texts, r.sent) {
		r.t.Fatalf("the chat: texts is %q, want %q", texts, r.sent)
	}
	memories, err := cli.All[struct{ Text, Status string }](r.t.Context(), r.p.client, "/api/v1/characters/"+r.character+"/memories?status=any")
	if err != nil {
		r.t.Fatal(err)
	}
	var known []string
	for _, m := range memories {
		if m.Status != "active" {
			r.t.Fatalf("%s: m.Status is %q, want %q", m.Text, m.Status, "active")
		}
		known = append(known, m.Text)
	}
	if facts {
		wantSame(r.t, "what is remembered", known, r.sent)
	}
}

// boatFacts returns independent statements.
func boatFacts(from, n int) []string {
	names := []string{"Albatross", "Barnacle", "Cormorant", "Dolphin", "Egret", "Fulmar", "Gannet", "Heron", "Ibis", "Jackdaw", "Kestrel", "Lapwing"}
	out := make([]string, n)
	for i := range out {
		k := from + i
		out[i] = fmt.Sprintf("My %s boat number %d is called %s.", []string{"red", "blue", "green", "old"}[k%4], 100+k, names[k%len(names)])
	}
	return out
}

// TestKillDuringExtraction kills the server during extraction, at each model call and
// right after it. The messages are extracted again, and every fact is stored once.
func TestKillDuringExtraction(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		cycles := scaled(t, 1, 20)
		model := newMemoryProvider(t)
		r := newMemoryServer(t, url, "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+model.URL, "NODEST_EMBEDDINGS=offline")
		r.sendAndExtract(boatFacts(0, 3)) // with known facts, an extraction takes two model calls
		for cycle := range cycles {
			for i, kill := range []struct {
				at    string
				after bool // after the response
			}{{forFacts, false}, {forDecisions, false}, {forFacts, true}, {forDecisions, true}} {
				r.sendMessage(boatFacts(3+3*(4*cycle+i), 3)...)
				held := model.holdNext(kill.at)
				r.post("/conversations/"+r.conversation+"/memory/extract", nil)
				gate := awaitHeld(t, kill.at, held)
				if kill.after {
					close(gate)
					gate = make(chan struct{})
				}
				r.killAndRestart(gate)
				r.verify(true)
			}
		}
		r.p.stop(t)
	})
}

// sendAndExtract sends messages and waits until their facts are stored.
func (r *memoryServer) sendAndExtract(texts []string) {
	r.t.Helper()
	r.sendMessage(texts...)
	r.post("/conversations/"+r.conversation+"/memory/extract", nil)
	r.verify(true)
}

// TestKillWhileReembedding changes the embedding model and kills the server between two
// batches. In the end every text has one embedding, of the new model; at most one batch
// per kill was embedded twice; and texts are found in the meantime.
func TestKillWhileReembedding(t *testing.T) {
	t.Parallel()
	model := newMemoryProvider(t)
	texts := scaled(t, 150, 600)
	r := newMemoryServer(t, "")
	r.sendMessage(boatFacts(0, texts)...)
	r.awaitIdle()
	r.p.stop(t)

	held := model.holdNext(forVectors)
	r.inst.env = append(r.inst.env, "NODEST_EMBEDDINGS=openai", "NODEST_EMBEDDING_MODEL=fake-embedding", "OPENAI_BASE_URL="+model.URL)
	r.p = r.inst.start(t)
	kills := 0
	for ; kills < 2; kills++ { // before the first batch is stored, then before the second
		gate := awaitHeld(t, "vectors", held)
		held = model.holdNext(forVectors)
		if kills == 1 {
			close(gate)
			gate = awaitHeld(t, "vectors", held)
			held = model.holdNext(forVectors)
		}
		r.killAndRestart(gate)
	}
	close(awaitHeld(t, "vectors", held))
	r.wantFound("boat number 105", boatFacts(5, 1)[0])
	r.verify(false)
	r.wantFound("boat number 105", boatFacts(5, 1)[0])
	r.p.stop(t)

	model.mu.Lock()
	made := 0
	for text, times := range model.embedded {
		made += times
		if times > 1+kills+2 {
			t.Fatalf("%s: times is %d, want at most %d", text, times, 1+kills+2)
		} // queries are embedded, too
	}
	model.mu.Unlock()
	if made > texts+(kills+1)*64+8 {
		t.Fatalf("texts that vectors were made for: made is %d, want at most %d", made, texts+(kills+1)*64+8)
	}
	r.wantVectors("openai:fake-embedding", texts)
}

// wantFound searches for a message. The fake embeddings mean nothing, so it may be
// anywhere in the list.
func (r *memoryServer) wantFound(query, want string) {
	r.t.Helper()
	var page cli.PageOf[struct{ Text string }]
	path := "/api/v1/characters/" + r.character + "/memories?mode=recall&q=" + strings.ReplaceAll(query, " ", "+")
	if err := r.p.client.Call(r.t.Context(), http.MethodGet, path, nil, &page); err != nil {
		r.t.Fatal(err)
	}
	var texts []string
	for _, hit := range page.Items {
		texts = append(texts, hit.Text)
	}
	if !slices.Contains(texts, want) {
		r.t.Fatalf("texts is %q, want it with %q", texts, want)
	}
}

// wantVectors checks the embeddings in the database of a stopped server.
func (r *memoryServer) wantVectors(model string, texts int) {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), store.Options{Dir: filepath.Join(r.inst.dir, "data")})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			r.t.Fatal(err)
		}
	}()
	left, err := db.Memory().Unembedded(r.t.Context(), model, memory.Scope{}, 10)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(left) != 0 {
		r.t.Fatalf("characters without vectors: left is %+v, want none", left)
	}
	users, err := db.Users(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := db.Memory().View(r.t.Context(), users[0].ID, func(tx memory.Tx) error {
		all, err := tx.MemoryChanges(r.character, 0, 0, 0)
		if err != nil {
			return err
		}
		said := 0
		for i := range all.Units {
			u := &all.Units[i]
			if len(u.Vectors) != 1 || u.Vectors[0].Model != model {
				r.t.Fatalf("%s: the vectors are %+v, want one of %q", u.Text, u.Vectors, model)
			}
			if u.Speaker == lang.RoleUser {
				said++
			}
		}
		if said != texts {
			r.t.Fatalf("the user said %d texts, want %d", said, texts)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// TestKillDuringASummary kills the server while a model writes a summary, and right
// after it. Each time one more summary exists, the latest is active, and no message is
// lost.
func TestKillDuringASummary(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		cycles := 2 * scaled(t, 1, 15)
		model := newMemoryProvider(t)
		r := newMemoryServer(t, url, "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+model.URL, "NODEST_EMBEDDINGS=offline")
		next := 0
		for cycle := range cycles {
			for _, text := range boatFacts(next, 10) {
				r.sendMessage(text + strings.Repeat(" It sails well, and far.", 20))
			}
			next += 10
			held := model.holdNext(forSummary)
			r.post("/conversations/"+r.conversation+"/summaries", nil)
			gate := awaitHeld(t, "a summary", held)
			if cycle%2 == 1 {
				close(gate)
				gate = make(chan struct{})
			}
			r.killAndRestart(gate)
			r.wantGenerations(cycle + 1)
			r.verify(false)
		}
		r.p.stop(t)
	})
}

// wantGenerations waits for the summary of a generation and checks all summaries.
func (r *memoryServer) wantGenerations(generation int) {
	r.t.Helper()
	var list cli.PageOf[struct {
		Summary    string
		Generation int
		Active     bool
	}]
	eventually(r.t, "the summary", func() error {
		path := "/api/v1/conversations/" + r.conversation + "/summaries"
		if err := r.p.client.Call(r.t.Context(), http.MethodGet, path, nil, &list); err != nil {
			r.t.Fatal(err)
		}
		if len(list.Items) < generation {
			return errNotYet
		}
		return nil
	})
	if len(list.Items) != generation {
		r.t.Fatalf("list.Items has %d, want %d: %+v", len(list.Items), generation, list.Items)
	}
	for i, s := range list.Items {
		if want := generation - i; s.Generation != want {
			r.t.Fatalf("s.Generation is %d, want %d", s.Generation, want)
		}
		if want := i == 0; s.Active != want {
			r.t.Fatalf("summary %d is active: s.Active is %v, want %v", s.Generation, s.Active, want)
		}
		if !strings.HasPrefix(s.Summary, "Notes ") {
			r.t.Fatal(s.Summary)
		}
	}
}
