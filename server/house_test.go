package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"nodest/account"
	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/jobs"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/extract"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/op"
	"nodest/store"
	"nodest/stream"
)

// patience is how long a test waits for something that must happen. It only
// matters when that never happens.
const patience = 60 * time.Second

// house is a whole server on a database of its own: real engine, real sockets,
// and a model that says what the test tells it to.
type house struct {
	t          testing.TB
	db         *store.DB
	hub        *stream.Hub
	accounts   *account.Service
	characters *character.Service
	chats      *chat.Service
	engine     *nodest.Engine
	memory     *memory.Service
	jobs       *jobs.Runner
	server     *Server
	http       *httptest.Server
	voice      *voice
	log        *syncBuffer

	user  *account.User
	token string
	keys  int
}

// build makes a house; change may be nil.
func build(t testing.TB, change func(*Options)) *house {
	t.Helper()
	h := &house{t: t, voice: &voice{}, log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx := context.Background()
	var err error
	h.db = database(t)(t, store.Options{Log: log, Committed: func(userID string, events []*stream.Event) {
		h.hub.Committed(userID, events)
	}, Jobs: func(cancelled []string) { h.jobs.Changed(cancelled) }})
	h.jobs = jobs.New(h.db, jobs.Options{Alone: true, Log: log})
	h.memory = memory.New(h.db.Memory(), memory.Options{Scenes: h.scene, Settings: h.settings, Log: log})
	h.hub = stream.NewHub(h.db, stream.HubOptions{Log: log})
	quick := &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	h.accounts, err = account.New(h.db, bytes.Repeat([]byte{7}, 32), account.Options{
		AdminToken: "admin-token-of-the-test", Password: quick, Log: log,
	})
	h.must(err)
	h.characters = character.New(h.db.Characters(), character.Options{})
	h.chats = chat.New(h.db.Chats(), h.characters, chat.Options{Memory: true, Log: log})
	h.engine = nodest.New(nodest.Deps{
		Store: h.db, Characters: h.characters, Chats: h.chats, Models: voices{h.voice}, Publisher: h.hub,
	}, nodest.Options{Alone: true, Sources: []nodest.Source{nodest.Memories(h.memory, patience)}, Log: log})
	extractor := extract.New(h.db.Memory(), extract.Options{Scenes: h.scene})
	h.jobs.Handle(slices.Concat(h.memory.Kinds(), extractor.Kinds(), h.chats.Kinds())...)
	h.jobs.Start()
	opts := Options{Log: log, Version: "test", CommandsPer10s: 1e9, Burst: 1e9}
	if change != nil {
		change(&opts)
	}
	h.server = New(Deps{
		Engine: h.engine, Characters: h.characters, Chats: h.chats, Archives: archive.New(h.db.Chats()), App: app.New(h.db.App(), h.chats, h.engine), Memory: h.memory,
		Accounts: h.accounts, Hub: h.hub, Providers: oneProvider{},
	}, opts)
	h.http = httptest.NewServer(h.server.Handler())
	h.http.Client().Transport = witness{t, h.http.Client().Transport}
	t.Cleanup(h.close)
	who, err := h.accounts.Authenticate(ctx, "admin-token-of-the-test")
	h.must(err)
	h.user = who.User
	h.token = h.newToken(h.user.ID)
	return h
}

func (h *house) close() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	// What still runs is cut off at once: the test is over.
	_ = h.server.Drain(now, h.engine.Close)
	_ = h.jobs.Close(now)
	h.http.CloseClientConnections()
	h.http.Close()
	h.hub.Close()
	h.must(h.db.Close())
}

// scene tells the memory how a character's is set.
func (h *house) scene(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
	return h.chats.MemoryScene(ctx, userID, characterID, conversationID)
}

func (h *house) settings(ctx context.Context, userID, characterID string) (memory.ExportedSettings, error) {
	return h.chats.MemorySettings(ctx, userID, characterID)
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) newToken(userID string) string {
	h.t.Helper()
	secret, _, err := h.accounts.CreateToken(context.Background(), userID, "test", 0)
	h.must(err)
	return secret
}

// member makes another user and returns a token of that user.
func (h *house) member(name string) string {
	h.t.Helper()
	password := "a long enough password"
	u, err := h.accounts.CreateUser(context.Background(), h.user, account.NewUser{Username: name, Password: password})
	h.must(err)
	return h.newToken(u.ID)
}

func (h *house) key() string {
	h.keys++
	return fmt.Sprintf("key-%d", h.keys)
}

const alicesCard = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide of few words.","personality":"calm"}`

// chat begins a conversation with Alice and returns its id.
func (h *house) chat() string { return h.chatOf(h.user.ID) }

func (h *house) chatOf(userID string) string {
	h.t.Helper()
	ctx := context.Background()
	call := func() *op.Call { return &op.Call{UserID: userID, Key: h.key(), Hash: "test"} }
	ch, err := h.characters.Create(ctx, call(), character.Input{RoleCard: json.RawMessage(alicesCard)})
	h.must(err)
	c, err := h.chats.CreateConversation(ctx, call(), chat.ConversationInput{CharacterID: ch.ID})
	h.must(err)
	return c.ID
}

// answered is an answer of REST.
type restAnswer struct {
	status int
	header http.Header
	body   []byte
}

func (a *restAnswer) object(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// rest makes a request with the house's token; header lines are "Name: value".
func (h *house) rest(method, path, body string, header ...string) *restAnswer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, h.http.URL+"/api/v1"+path, strings.NewReader(body))
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
	}
	res, err := h.http.Client().Do(req)
	h.must(err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	h.must(err)
	return &restAnswer{res.StatusCode, res.Header, data}
}

func (h *house) character() string {
	h.t.Helper()
	a := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`}`)
	if a.status != 201 {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.object(h.t)["id"].(string)
}

// oneProvider is the list of providers of the house.
type oneProvider struct{}

func (oneProvider) Providers(context.Context, string) ([]ProviderInfo, error) {
	healthy := true
	return []ProviderInfo{{
		Name: "offline", Default: true, Configured: true, Healthy: &healthy, DefaultModel: "voice",
		Models: []ProviderModel{{ID: "voice", Name: "Voice", ContextTokens: 8192}},
	}}, nil
}

func (oneProvider) TakesKey(provider string) bool { return provider == "gemini" }

// voices is the one model for every turn.
type voices struct{ v *voice }

func (s voices) Resolve(_ context.Context, _, _, _, apiKey string) (nodest.Model, error) {
	s.v.mu.Lock()
	s.v.keys = append(s.v.keys, apiKey)
	s.v.mu.Unlock()
	return nodest.Model{Generator: s.v, Provider: "offline", Name: "voice", Offline: true}, nil
}

// voice is a model: it plays the scripts that were laid out, one per request, and
// says "Yes." when there is none.
type voice struct {
	mu      sync.Mutex
	scripts []*script
	keys    []string // of the requests for which it was chosen; "" = none was given
}

// script is one reply. With a gate each piece waits for one word from it.
type script struct {
	pieces []string
	gate   chan struct{}
	fails  error         // after the pieces
	hangs  bool          // after the pieces, until it is cancelled
	asked  chan struct{} // closed when the model is asked
	left   chan struct{} // closed when the request is over
}

func (v *voice) lay(s *script) *script {
	s.asked, s.left = make(chan struct{}), make(chan struct{})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.scripts = append(v.scripts, s)
	return s
}

func (v *voice) next() *script {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.scripts) == 0 {
		return &script{pieces: []string{"Yes."}, asked: make(chan struct{}), left: make(chan struct{})}
	}
	s := v.scripts[0]
	v.scripts = v.scripts[1:]
	return s
}

// Stream plays a script.
func (v *voice) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		s := v.next()
		close(s.asked)
		defer close(s.left)
		for _, piece := range s.pieces {
			if s.gate != nil {
				select {
				case <-s.gate:
				case <-ctx.Done():
					yield(llm.Chunk{}, ctx.Err())
					return
				}
			}
			if !yield(llm.Chunk{Text: piece}, nil) {
				return
			}
		}
		if s.hangs {
			<-ctx.Done()
			yield(llm.Chunk{}, ctx.Err())
			return
		}
		if s.fails != nil {
			yield(llm.Chunk{}, s.fails)
			return
		}
		yield(llm.Chunk{Last: true, Finish: llm.FinishStop, Usage: &llm.Usage{PromptTokens: 3, CompletionTokens: len(s.pieces)}}, nil)
	}
}

// awaits waits for a channel to be closed or to give something.
func awaits[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s never happened", what)
		panic("not reached")
	}
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
