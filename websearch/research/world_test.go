package research_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/logtool"
	"nodest/internal/op"
	"nodest/internal/outbound"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/provider"
	"nodest/websearch/provider/providertest"
	"nodest/websearch/reader"
	"nodest/websearch/research"
)

func TestMain(m *testing.M) { storetest.Exit(m.Run()) }

// web is a search engine and some pages, at addresses that look public.
type web struct {
	search *websearch.Service
	mu     sync.Mutex
	gets   map[string]int // by address
}

// towns are what the pages are about. Each page names the next one.
var towns = []string{"arven", "belmor", "corvik", "dunholt", "esker"}

func newWeb(t *testing.T, db *store.DB) *web {
	t.Helper()
	w := &web{gets: map[string]int{}}
	pages := httptest.NewServer(w)
	engine := &providertest.Server{}
	server := httptest.NewServer(engine)
	var results []providertest.Result
	for i, town := range towns {
		results = append(results, providertest.Result{Title: "The bridge of " + town, URL: "http://" + town + ".test/bridge", Content: fmt.Sprintf("About the bridge of %s, opened in 19%d0.", town, i+3)})
	}
	engine.Answer("", results...)
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, pages.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := provider.New(provider.Config{Names: []string{provider.SearXNG}, BaseURL: server.URL, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	read := reader.New(guard, reader.Config{})
	t.Cleanup(func() {
		_ = chain.Close()
		read.Close()
		server.Close()
		pages.Close()
	})
	w.search = websearch.New(db.WebSearch(), websearch.Options{Chain: chain, Reader: read, ReadTime: time.Minute})
	return w
}

// ServeHTTP is a page of a town.
func (w *web) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	town, _, _ := strings.Cut(req.Host, ".")
	for i, name := range towns {
		if name == town && req.URL.Path == "/bridge" {
			w.mu.Lock()
			w.gets[req.Host]++
			w.mu.Unlock()
			next := towns[(i+1)%len(towns)]
			out.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(out, `<!DOCTYPE html><html lang="en"><head><title>The bridge of %[1]s</title></head><body><article><h1>The bridge of %[1]s</h1>
				<p>The bridge of %[1]s was opened on 3 May 19%[2]d0 after four years of work, and it carries the road to <a href="http://%[3]s.test/bridge">%[3]s</a>.</p>
				<p>Its %[2]d arches are made of granite from the quarry above the town, which closed in the year in which the bridge was opened.</p></article></body></html>`, name, i+3, next)
			return
		}
	}
	http.NotFound(out, req)
}

// read returns how often each host was asked for its page.
func (w *web) read() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.gets)
}

// world is a user who researches.
type world struct {
	*testing.T
	db   *store.DB
	web  *web
	user string
	chat string

	mu    sync.Mutex
	asked map[string]int // how often the model was asked something
	calls int
	model func(p llm.Prompt) string // nil = there is none
	log   *slog.Logger              // nil = slog.Default()
}

func newWorld(t *testing.T, db *store.DB, of *web) *world {
	t.Helper()
	w := &world{T: t, db: db, web: of, user: storetest.User(t, db), asked: map[string]int{}, model: curious}
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(t.Context(), &op.Call{UserID: w.user}, character.Input{RoleCard: []byte(`{"name":"Wren","first_mes":"Ask me about bridges."}`)})
	w.must(err)
	conv, err := chat.New(db.Chats(), characters, chat.Options{}).CreateConversation(t.Context(), &op.Call{UserID: w.user}, chat.ConversationInput{CharacterID: ch.ID})
	w.must(err)
	w.chat = conv.ID
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Ask implements llm.Asker.
func (w *world) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	key := fingerprint(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[key]++
	w.calls++
	return w.model(p), nil
}

// nonce matches the word around sources, which each run draws anew.
var nonce = regexp.MustCompile(`⟦/?(\w{8})`)

// fingerprint tells prompts apart.
func fingerprint(p llm.Prompt) string {
	h := fnv.New64a()
	for _, m := range p.Messages {
		for _, found := range nonce.FindAllStringSubmatch(m.Text, -1) {
			m.Text = strings.ReplaceAll(m.Text, found[1], "")
		}
		h.Write([]byte(m.Text))
	}
	return fmt.Sprintf("%s %x", p.Task, h.Sum64())
}

// curious is a model that reads, asks back and searches before it answers, and is not content at once. Its reply
// depends on nothing but the prompt.
func curious(p llm.Prompt) string {
	h := fnv.New64a()
	h.Write([]byte(fingerprint(p)))
	n := h.Sum64()
	town := towns[n%uint64(len(towns))]
	switch p.Task {
	case "research.question":
		return `{"needsDefinitive":true,"needsCompleteness":true}`
	case "research.check":
		return fmt.Sprintf(`{"think":"It says it.","pass":%v,"improvement_plan":"For the best answer, you must name %s."}`, n%3 > 0, town)
	case "research.rewrite":
		return `{"queries":[{"q":"bridge ` + town + ` year"}]}`
	case "research.split":
		return `{"subproblems":["When was the bridge of Arven opened?","When was the bridge of Belmor opened?"]}`
	case "research.verify":
		return fmt.Sprintf(`{"verdicts":[{"n":1,"verdict":"%s"}]}`, []string{"supported", "not supported", "cannot tell"}[n%3])
	case "research.cluster":
		return `{"clusters":[]}`
	case "research.analysis":
		return `{"recap":"It was searched.","blame":"A name is missing.","improvement":"Name it."}`
	case "research.step":
		system := p.Messages[0].Text
		for i := range uint64(4) {
			switch action := []string{"search", "visit", "reflect", "answer"}[(n+i)%4]; {
			case !strings.Contains(system, "\n"+action+" – "):
			case action == "search":
				return `{"think":"I look for more.","action":"search","searchRequests":["bridge of ` + town + `"]}`
			case action == "visit":
				return `{"think":"I read it.","action":"visit","URLTargets":[1,2]}`
			case action == "reflect":
				return `{"think":"Something is missing.","action":"reflect","questionsToAnswer":["Who built the bridge of ` + town + `?"]}`
			}
		}
		return `{"think":"I know it.","action":"answer","answer":"The bridge of ` + town + ` was opened on 3 May. [1]"}`
	}
	return "The bridge of " + town + " was opened on 3 May. [1]"
}

// service is deep research on a store; ended is told of each run that has answered.
func (w *world) service(of research.Store) *research.Service {
	return research.New(of, research.Options{
		Web: w.web.search, Ended: []func(research.Tx, *research.Run) error{logtool.LogResearch},
		Model: func(context.Context, string) (llm.Asker, error) {
			if w.model == nil {
				return nil, nil
			}
			return w, nil
		},
		Embedder: func(context.Context, string) (llm.Embedder, error) { return offline.Embedder{}, nil },
		Log:      w.log,
	})
}

// start starts a run.
func (w *world) start(o research.Order) (id string) {
	w.Helper()
	o.Question = new("When were the bridges of Arven and Belmor opened?")
	run, err := w.service(w.db.Research()).Plan(w.Context(), &op.Call{UserID: w.user}, w.chat, o, true)
	w.must(err)
	return run.ID
}

// work runs the job that is due, as a runner does.
func (w *world) work(of research.Store) error {
	w.Helper()
	claimed, err := w.db.ClaimJobs(w.Context(), w.user, time.Hour, []jobs.Want{{Kind: research.JobRun, Free: 1, PerUser: 1}})
	w.must(err)
	if len(claimed) == 0 {
		w.Fatal("no job is due")
	}
	j := claimed[0]
	if err := w.service(of).Kinds()[0].Run(w.Context(), j); err != nil {
		return err
	}
	_ = w.db.EndJob(w.Context(), j, jobs.Outcome{State: jobs.Done}) // mostly it has ended
	return nil
}

// takeOver is what another process does when it finds that the one with the job has died.
func (w *world) takeOver() {
	w.Helper()
	w.must(w.db.RecoverJobs(w.Context(), map[string]int{research.JobRun: w.service(w.db.Research()).Kinds()[0].Attempts}, "another"))
}

func (w *world) run(id string) *research.Run {
	w.Helper()
	run, err := w.service(w.db.Research()).Get(w.Context(), w.user, id)
	w.must(err)
	return run
}
