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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/circle"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/account"
	"nodest/internal/attachment"
	"nodest/internal/jobs"
	"nodest/internal/kbtool"
	"nodest/internal/logtool"
	"nodest/internal/mcptool"
	"nodest/internal/op"
	"nodest/internal/researchtool"
	"nodest/internal/rights"
	"nodest/internal/stream"
	"nodest/internal/tavern"
	"nodest/internal/webtool"
	"nodest/knowledge"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/extract"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/server/api"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/research"
)

// testTimeout is how long a test waits for something that must happen; only a failing
// test waits that long.
const testTimeout = 60 * time.Second

// testServer is a complete server with a database of its own, real sockets and a
// scripted model.
type testServer struct {
	t          testing.TB
	db         *store.DB
	hub        *stream.Hub
	accounts   *account.Service
	characters *character.Service
	chats      *chat.Service
	engine     *nodest.Engine
	memory     *memory.Service
	dreams     *dream.Service
	dreamer    llm.Asker // nil = there is no model
	researcher llm.Asker // likewise
	circle     *circle.Service
	knowledge  *knowledge.Service
	research   *research.Service
	jobs       *jobs.Runner
	server     *Server
	http       *httptest.Server
	model      *scriptedModel
	web        *testWeb
	log        *syncBuffer

	user  *account.User
	token string
	keys  int
}

// parts are what a test replaces in its server; the zero value replaces nothing.
type parts struct {
	models nodest.Models    // instead of the scripted model
	now    func() time.Time // the clock of the store; it may leap
	tools  *mcptool.Service // instead of one without servers
	room   int64            // bytes of a user's documents; 0 = the default
	quotas account.Quotas   // quotas of each user; the zero value = no limits
	data   *store.Options   // where a database is already; nil = a new one
	beside *testServer      // whose database it serves, as another process would; nil = its own
}

// newTestServer starts a server; change may be nil.
func newTestServer(t testing.TB, change func(*Options)) *testServer {
	t.Helper()
	return newTestServerOf(t, parts{}, change)
}

// newTestServerOf is newTestServer with other parts.
func newTestServerOf(t testing.TB, own parts, change func(*Options)) *testServer {
	t.Helper()
	h := &testServer{t: t, model: &scriptedModel{}, web: &testWeb{}, log: &syncBuffer{}}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx := context.Background()
	var err error
	lease := time.Duration(0)
	if own.now != nil {
		lease = 1000 * time.Hour // a leap must not take a job away from its process
	}
	if own.beside != nil {
		h.db = own.beside.db
	} else {
		o, open := store.Options{Log: log, Now: own.now, Quotas: own.quotas}, database(t)
		if own.data != nil {
			o.Dir, o.URL, open = own.data.Dir, own.data.URL, storetest.OpenWith
		}
		o.Committed = func(userID string, events []*stream.Event) { h.hub.Committed(userID, events) }
		o.Jobs = func(cancelled []string) { h.jobs.Changed(cancelled) }
		h.db = open(t, o)
	}
	h.jobs = jobs.New(h.db, jobs.Options{Alone: true, Lease: lease, Log: log})
	h.memory = memory.New(h.db.Memory(), memory.Options{Scenes: h.scene, Settings: h.settings, Log: log})
	h.dreams = dream.New(h.db.Dreams(), dream.Options{
		Scenes: func(ctx context.Context, userID, characterID string) (dream.Scene, error) {
			return h.chats.DreamScene(ctx, userID, characterID)
		},
		Facts: h.memory.Profile,
		Model: func(context.Context, string, string) (llm.Asker, error) { return h.dreamer, nil },
	})
	h.hub = stream.NewHub(h.db, stream.HubOptions{Log: log})
	quick := &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	h.accounts, err = account.New(h.db, bytes.Repeat([]byte{7}, 32), account.Options{
		AdminToken: "admin-token-of-the-test", Password: quick, Log: log, Left: func(userID string) { h.engine.StopAll(userID) },
		BuiltIn: []string{"gemini"},
	})
	h.must(err)
	if own.tools == nil {
		own.tools = mcptool.New(mcptool.Options{})
	}
	h.characters = character.New(h.db.Characters(), character.Options{Replan: circle.Replan, HasToolServer: own.tools.Has})
	cognitive := cognition.NewService(h.db.Cognition())
	branches := side.New(h.db.Side(), side.Options{Log: log, Model: func(ctx context.Context, userID string) (llm.Asker, string, error) {
		m, err := h.engine.CircleModel(ctx, userID)
		if m == nil {
			return nil, "", err
		}
		return m, m.Name, err
	}})
	h.chats = chat.New(h.db.Chats(), h.characters, chat.Options{Memory: true, Log: log,
		Before: func(ctx context.Context, userID, conversationID string) {
			branches.BeforeSummary(ctx, userID, conversationID)
		},
	})
	search := h.web.service(t, h.db.WebSearch(), log)
	if own.models == nil {
		own.models = fixedModel{h.model}
	}
	h.knowledge = knowledge.New(h.db.Knowledge(), knowledge.Options{Answered: logtool.LogAnswer, ReadPage: pageOf(search), MaxBytes: own.room, Pipeline: knowledge.Pipeline{
		Embedder: offlineEmbedder, Transient: h.hub.Transient, Log: log,
		Model: func(ctx context.Context, userID string) (*knowledge.Model, error) {
			m, err := h.engine.CircleModel(ctx, userID)
			if m == nil {
				return nil, err
			}
			return &knowledge.Model{Asker: m.Asker, Provider: m.Provider, Name: m.Name}, err
		},
	}})
	h.research = research.New(h.db.Research(), research.Options{
		Web: search, Documents: h.knowledge, Embedder: offlineEmbedder, Ended: []func(research.Tx, *research.Run) error{logtool.LogResearch, researchtool.Ended}, Transient: h.hub.Transient, Log: log,
		Model: func(context.Context, string) (llm.Asker, error) { return h.researcher, nil },
	})
	h.engine = nodest.New(nodest.Deps{
		Store: h.db, Characters: h.characters, Chats: h.chats, Models: own.models, Publisher: h.hub,
	}, nodest.Options{
		Alone: true, Log: log, Embedder: offlineEmbedder,
		Ended:   []func(nodest.Tx, *nodest.Ended) error{logtool.LogQueries},
		Sources: []nodest.Source{nodest.WithDocuments(nodest.Memories(h.memory, testTimeout), h.dreams), webtool.Source(search, testTimeout), researchtool.Source(h.research, testTimeout)},
		Tools:   []nodest.Toolbox{kbtool.Toolbox(h.knowledge, testTimeout), webtool.Toolbox(search, testTimeout), researchtool.Toolbox(h.research, search, testTimeout), logtool.Goals(cognitive, branches, testTimeout), own.tools.Toolbox()},
	})
	extractor := extract.New(h.db.Memory(), extract.Options{Scenes: h.scene})
	attachments := attachment.New(h.db.Attachments())
	folders := tavern.New(h.db.Tavern(), tavern.Options{Characters: h.characters, Archives: archive.New(h.db.Chats()), Chats: h.chats, Memories: h.memory.Export, TempDir: t.TempDir(), Log: log})
	h.circle = circle.New(h.db.Circle(), circle.Options{
		Characters: h.characters, Memory: h.memory, Image: circle.ImagesOf(attachments), Pause: time.Millisecond, Log: log,
		Model: func(ctx context.Context, userID string) (*circle.Model, error) {
			m, err := h.engine.CircleModel(ctx, userID)
			return (*circle.Model)(m), err
		},
		LastChats: h.engine.LastChats,
		Greet: func(ctx context.Context, userID, conversationID, key string) error {
			_, err := h.engine.Greet(ctx, &op.Call{UserID: userID, Key: key, Hash: "circle.greet"}, nodest.GreetInput{ConversationID: conversationID})
			return err
		},
	})
	h.jobs.Handle(slices.Concat(h.memory.Kinds(), branches.Kinds(), extractor.Kinds(), h.dreams.Kinds(), h.chats.Kinds(), h.circle.Kinds(), h.knowledge.Kinds(), h.research.Kinds(), researchtool.Kinds(h.research, h.engine), folders.Kinds())...)
	h.jobs.Start()
	opts := Options{Log: log, Version: "test", Limits: Limits{CommandsPer10s: 1e9, Burst: 1e9}}
	if change != nil {
		change(&opts)
	}
	services := api.Services{
		Engine: h.engine, Characters: h.characters, Chats: h.chats, Archives: archive.New(h.db.Chats()), Memory: h.memory, Dreams: h.dreams,
		Circle: h.circle, Cognition: cognitive, Side: branches, Knowledge: h.knowledge, Attachments: attachments, Tavern: folders, Web: search, Research: h.research, Tools: own.tools, Hub: h.hub,
		Rights: rights.New(h.db, rights.Options{Program: "test", TempDir: t.TempDir(), DeleteChat: h.engine.DeleteConversation, Log: log, Imported: h.knowledge.IndexWords}),
	}
	h.server = New(Deps{
		Services: services, App: app.New(h.db.App(), h.chats, services.Archives, h.engine), Accounts: h.accounts, Providers: oneProvider{},
	}, opts)
	h.server.memory.patience, h.server.disk.patience = testTimeout, testTimeout // on a machine that does much else
	h.http = httptest.NewServer(h.server.Handler())
	h.http.Client().Transport = contractTransport{t, h.http.Client().Transport}
	t.Cleanup(h.close)
	who, err := h.accounts.Authenticate(ctx, "admin-token-of-the-test")
	h.must(err)
	h.user = who.User
	h.token = h.newToken(h.user.ID)
	return h
}

func (h *testServer) close() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	// With a cancelled context, what still runs is stopped at once.
	_ = h.server.Drain(now, h.engine.Close)
	_ = h.jobs.Close(now)
	h.http.CloseClientConnections()
	h.http.Close()
	h.hub.Close()
	h.must(h.db.Close())
}

func (h *testServer) scene(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
	return h.chats.MemoryScene(ctx, userID, characterID, conversationID)
}

func (h *testServer) settings(ctx context.Context, userID, characterID string) (memory.ExportedSettings, error) {
	return h.chats.MemorySettings(ctx, userID, characterID)
}

func (h *testServer) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *testServer) newToken(userID string) string {
	h.t.Helper()
	secret, _, err := h.accounts.CreateToken(context.Background(), &account.Identity{User: &account.User{ID: userID}}, "test", 0)
	h.must(err)
	return secret
}

// newMember creates another user and returns a token.
func (h *testServer) newMember(name string) string {
	h.t.Helper()
	password := "a long enough password"
	u, err := h.accounts.CreateUser(context.Background(), h.user, account.NewUser{Username: name, Password: password})
	h.must(err)
	return h.newToken(u.ID)
}

func (h *testServer) newKey() string {
	h.keys++
	return fmt.Sprintf("key-%d", h.keys)
}

const alicesCard = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide of few words.","personality":"calm"}`

// newChat starts a conversation with Alice and returns its id.
func (h *testServer) newChat() string { return h.newChatOf(h.user.ID) }

func (h *testServer) newChatOf(userID string) string {
	h.t.Helper()
	ctx := context.Background()
	call := func() *op.Call { return &op.Call{UserID: userID, Key: h.newKey(), Hash: "test"} }
	ch, err := h.characters.Create(ctx, call(), character.Input{RoleCard: json.RawMessage(alicesCard)})
	h.must(err)
	c, err := h.chats.CreateConversation(ctx, call(), chat.ConversationInput{CharacterID: ch.ID})
	h.must(err)
	return c.ID
}

// characterOf returns the id of the character of a conversation.
func (h *testServer) characterOf(chat string) string {
	h.t.Helper()
	return stringAt(h.rest("GET", "/conversations/"+chat, "").wants(h.t, 200), "characterId")
}

// restResponse is the response to a REST request.
type restResponse struct {
	status int
	header http.Header
	body   []byte
}

func (a *restResponse) object(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// rest makes a request below /api/v1, with the user's token; header lines replace the
// default ones.
func (h *testServer) rest(method, path, body string, header ...string) *restResponse {
	h.t.Helper()
	lines := []string{"Authorization: Bearer " + h.token}
	if body != "" {
		lines = append(lines, "Content-Type: application/json")
	}
	if !strings.HasPrefix(path, "/api/") {
		path = base + path
	}
	return h.request(method, path, body, append(lines, header...)...)
}

// request makes a request; header lines are "Name: value", and an empty value removes
// the header.
func (h *testServer) request(method, path, body string, header ...string) *restResponse {
	h.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, h.http.URL+path, strings.NewReader(body))
	h.must(err)
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
	return &restResponse{res.StatusCode, res.Header, data}
}

func (h *testServer) newCharacter() string {
	h.t.Helper()
	a := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`}`)
	if a.status != 201 {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.object(h.t)["id"].(string)
}

// oneProvider lists one provider, offline.
type oneProvider struct{}

func (oneProvider) Providers(context.Context, string) ([]ProviderInfo, error) {
	healthy := true
	return []ProviderInfo{{
		Name: "offline", Default: true, Configured: true, Healthy: &healthy, DefaultModel: "voice",
		Models: []ProviderModel{{ID: "voice", Name: "Voice", ContextTokens: 8192}},
	}}, nil
}

func (oneProvider) HasProvider(_ context.Context, name string) (bool, error) {
	return name == "offline" || name == "gemini", nil
}

func (oneProvider) TakesKey(_ context.Context, provider string) (bool, error) {
	return provider == "gemini", nil
}

func (oneProvider) TestServer(_ context.Context, baseURL, key string) (*ServerCheck, error) {
	return &ServerCheck{Models: []string{baseURL, strconv.Itoa(len(key))}}, nil
}

// fixedModel resolves every request to the same model.
type fixedModel struct{ model *scriptedModel }

func (s fixedModel) Resolve(_ context.Context, _, _, _, apiKey string) (nodest.Model, error) {
	s.model.mu.Lock()
	s.model.keys = append(s.model.keys, apiKey)
	s.model.mu.Unlock()
	return nodest.Model{Generator: s.model, Provider: "offline", Name: "voice", Offline: true}, nil
}

// scriptedModel is a model that answers each request with the next script in its
// queue, or with "Yes." if there is none.
type scriptedModel struct {
	mu      sync.Mutex
	scripts []*script
	keys    []string // API keys of the requests, "" = none
	asked   []llm.Request
}

// last is the last message of the newest request.
func (v *scriptedModel) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	messages := v.asked[len(v.asked)-1].Messages
	return messages[len(messages)-1].Text
}

// script is one reply. With a gate, each piece waits to receive from it.
type script struct {
	pieces    []string
	gate      chan struct{}
	calls     []llm.ToolCall
	fails     error         // after the pieces
	usd       float64       // its price; 0 = not told
	hangs     bool          // after the pieces, until it is cancelled
	requested chan struct{} // closed when the request arrives
	ended     chan struct{} // closed when the request has ended
}

func (v *scriptedModel) enqueue(s *script) *script {
	s.requested, s.ended = make(chan struct{}), make(chan struct{})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.scripts = append(v.scripts, s)
	return s
}

func (v *scriptedModel) next() *script {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.scripts) == 0 {
		return &script{pieces: []string{"Yes."}, requested: make(chan struct{}), ended: make(chan struct{})}
	}
	s := v.scripts[0]
	v.scripts = v.scripts[1:]
	return s
}

// Stream plays the next script.
func (v *scriptedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	v.mu.Lock()
	v.asked = append(v.asked, req)
	v.mu.Unlock()
	return func(yield func(llm.Chunk, error) bool) {
		s := v.next()
		close(s.requested)
		defer close(s.ended)
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
		used := &llm.Usage{PromptTokens: 3, CompletionTokens: len(s.pieces)}
		if s.usd > 0 {
			used.CostUSD = &s.usd
		}
		yield(llm.Chunk{Last: true, Calls: s.calls, Finish: llm.FinishStop, Usage: used}, nil)
	}
}

// await waits until it receives from a channel, or the channel is closed.
func await[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("%s never happened", what)
		panic("not reached")
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.After(testTimeout)
	for !holds() {
		select {
		case <-late:
			t.Fatalf("%s: never happened", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// syncBuffer is a buffer that goroutines can share.
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

// pageOf reads pages for files as the server does.
func pageOf(search *websearch.Service) func(ctx context.Context, userID, url string) (*knowledge.WebPage, error) {
	return func(ctx context.Context, userID, url string) (*knowledge.WebPage, error) {
		page, err := search.Read(ctx, userID, url, "")
		if err != nil {
			return nil, err
		}
		return &knowledge.WebPage{URL: page.URL, Title: page.Title, Markdown: page.Markdown}, nil
	}
}
