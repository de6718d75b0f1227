package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/account"
	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/record"
	"nodest/op"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/stream"
)

// waitLimit is how long a test waits for something that must happen. It only matters
// when that never happens.
const waitLimit = 60 * time.Second

// fixture is an engine on a database of its own, with two users and a scripted model.
type fixture struct {
	*Engine
	t         *testing.T
	db        *store.DB
	model     *scriptedModel
	realModel *nodest.Model // used instead of the scripted model; nil = none
	noModel   bool          // no provider is set up
	opts      nodest.Options
	memory    *memory.Service // used by the engine; nil = none
	events    *eventLog
	calls     int
}

var discardLog = slog.New(slog.DiscardHandler)

const ann, bob = "019a0000-0000-7000-8000-00000000000a", "019a0000-0000-7000-8000-00000000000b"

func newFixture(t *testing.T, opts nodest.Options) *fixture {
	t.Helper()
	return newFixtureWithClock(t, opts, time.Now)
}

// newFixtureWithClock is newFixture with a clock of its own.
func newFixtureWithClock(t *testing.T, opts nodest.Options, now func() time.Time) *fixture {
	t.Helper()
	return newFixtureOn(t, opts, func(o store.Options) *store.DB {
		o.Now = now
		return database(t)(t, o)
	})
}

// newFixtureOn is newFixture on a database that the test opens.
func newFixtureOn(t *testing.T, opts nodest.Options, open func(store.Options) *store.DB) *fixture {
	t.Helper()
	s := &fixture{t: t, model: &scriptedModel{}, opts: opts, events: &eventLog{}}
	s.db = open(store.Options{Committed: s.events.committed, Log: discardLog})
	for _, id := range []string{ann, bob} {
		s.must(s.db.InsertUser(t.Context(), &account.User{ID: id, Username: id, CreatedAt: time.Now()}))
	}
	t.Cleanup(func() { s.events.compare(t, s.db) })
	t.Cleanup(s.comparePrompts)
	s.opts.Alone = true
	if s.opts.Log == nil {
		s.opts.Log = discardLog
	}
	s.Engine = s.engine()
	return s
}

// engine makes an engine on the same database and stops it after the test.
func (s *fixture) engine() *Engine {
	e := newEngine(s.db, s, s.events, s.opts)
	s.t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(now) // returns the error of the cancelled context
	})
	return e
}

// crash replaces the engine as after a crash: the old one stores nothing any more,
// and the new one recovers.
func (s *fixture) crash() {
	s.t.Helper()
	s.Engine = s.engine()
	s.must(s.Recover(s.t.Context()))
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// wantCode checks the code of an error and returns the error.
func (s *fixture) wantCode(err error, code fault.Code) *fault.Error {
	s.t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		s.t.Fatalf("error = %v, want code %s", err, code)
	}
	return e
}

// call is a call of ann with a key of its own.
func (s *fixture) call() *op.Call {
	s.calls++
	return &op.Call{UserID: ann, Device: "phone", Key: fmt.Sprintf("key-%d", s.calls), Hash: "h"}
}

const alicesCard = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide of few words.","personality":"calm"}`

func (s *fixture) character(card string) *character.Character {
	s.t.Helper()
	ch, err := s.Characters.Create(s.t.Context(), s.call(), character.Input{RoleCard: json.RawMessage(card)})
	s.must(err)
	return ch
}

// chat begins a conversation with Alice.
func (s *fixture) chat() *chat.Conversation {
	s.t.Helper()
	return s.chatWith(s.character(alicesCard).ID)
}

func (s *fixture) chatWith(characterID string) *chat.Conversation {
	s.t.Helper()
	c, err := s.Chats.CreateConversation(s.t.Context(), s.call(), chat.ConversationInput{CharacterID: characterID})
	s.must(err)
	return c
}

// send sends a message without waiting for the reply.
func (s *fixture) send(c *chat.Conversation, text string) *nodest.Sent {
	s.t.Helper()
	sent, err := s.Send(s.t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: text})
	s.must(err)
	return sent
}

// sendAndWait sends a message and returns the reply when it has ended.
func (s *fixture) sendAndWait(c *chat.Conversation, text string) *chat.Message {
	s.t.Helper()
	sent := s.send(c, text)
	s.wait(sent.GenerationID)
	return s.message(sent.Message.ID)
}

func (s *fixture) wait(generationID string) *chat.Generation {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitLimit)
	defer cancel()
	g, err := s.Wait(ctx, ann, generationID)
	s.must(err)
	return g
}

// message returns a message as it is stored, deleted or not.
func (s *fixture) message(id string) (m *chat.Message) {
	s.t.Helper()
	s.view(func(tx nodest.Tx) (err error) {
		m, err = tx.Chats.Message(id)
		return err
	})
	return m
}

func (s *fixture) generation(id string) (g *chat.Generation) {
	s.t.Helper()
	s.view(func(tx nodest.Tx) (err error) {
		g, err = tx.Generation(id)
		return err
	})
	return g
}

func (s *fixture) view(fn func(tx nodest.Tx) error) {
	s.t.Helper()
	s.must(s.db.View(s.t.Context(), ann, fn))
}

// eventually waits until ok reports true. ok has no side effects.
func (s *fixture) eventually(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(waitLimit); !ok(); {
		if time.Now().After(end) {
			s.t.Fatalf("never happened: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// scriptedModel is a model that follows a script. A request without a scripted reply
// gets "Fine.".
type scriptedModel struct {
	mu       sync.Mutex
	script   []*scriptedReply
	requests []llm.Request
	closed   int // requests whose reader went away or whose context ended
}

// scriptedReply is one reply of a scriptedModel.
type scriptedReply struct {
	chunks  []llm.Chunk
	calls   []llm.ToolCall
	err     error         // returned instead of the end
	gate    chan struct{} // received from before each chunk and before the end; nil = no waiting
	started chan struct{} // closed when the request arrives
	ended   chan struct{} // closed when the reply has ended in any way
}

// replyWith is a complete reply in the given pieces.
func replyWith(pieces ...string) *scriptedReply {
	l := replyWithChunks()
	for _, p := range pieces {
		l.chunks = append(l.chunks, llm.Chunk{Text: p})
	}
	return l
}

func replyWithChunks(chunks ...llm.Chunk) *scriptedReply {
	return &scriptedReply{chunks: chunks, started: make(chan struct{}), ended: make(chan struct{})}
}

// failing makes the reply end with an error.
func (l *scriptedReply) failing(err error) *scriptedReply {
	l.err = err
	return l
}

// gated makes the reply wait for step or release.
func (l *scriptedReply) gated() *scriptedReply {
	l.gate = make(chan struct{})
	return l
}

// step lets n pieces pass (the end counts as one), or fewer if the reader goes away.
func (l *scriptedReply) step(n int) {
	for range n {
		select {
		case l.gate <- struct{}{}:
		case <-l.ended:
		}
	}
}

func (l *scriptedReply) release() { close(l.gate) }

// enqueue scripts the replies to the next requests.
func (p *scriptedModel) enqueue(lines ...*scriptedReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, lines...)
}

func (p *scriptedModel) allRequests() []llm.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]llm.Request(nil), p.requests...)
}

// lastRequest is the newest request, as one text.
func (p *scriptedModel) lastRequest() string {
	all := p.allRequests()
	if len(all) == 0 {
		return ""
	}
	return promptText(all[len(all)-1].Messages)
}

// promptText is a prompt as one text.
func promptText(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s] %s\n", m.Role, m.Text)
	}
	return b.String()
}

func (p *scriptedModel) closedRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *scriptedModel) take(req llm.Request) *scriptedReply {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
	if len(p.script) == 0 {
		return replyWith("Fine.")
	}
	l := p.script[0]
	p.script = p.script[1:]
	return l
}

func (p *scriptedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		l := p.take(req)
		close(l.started)
		defer close(l.ended)
		done := false
		defer func() {
			if !done {
				p.mu.Lock()
				p.closed++
				p.mu.Unlock()
			}
		}()
		for _, c := range l.chunks {
			if err := l.awaitGate(ctx); err != nil {
				yield(llm.Chunk{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := l.awaitGate(ctx); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		done = true
		if l.err != nil {
			yield(llm.Chunk{}, l.err)
			return
		}
		usage := &llm.Usage{PromptTokens: 10, CompletionTokens: len(l.chunks)}
		yield(llm.Chunk{Last: true, Calls: l.calls, Finish: llm.FinishStop, Model: "scripted-1", Usage: usage}, nil)
	}
}

func (l *scriptedReply) awaitGate(ctx context.Context) error {
	if l.gate == nil {
		if ctx.Err() != nil {
			return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
		}
		return nil
	}
	select {
	case <-l.gate:
		return nil
	case <-ctx.Done():
		return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
	}
}

// Resolve returns the scripted model for every name, or the real model of the test.
func (s *fixture) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if s.realModel != nil {
		return *s.realModel, nil
	}
	if s.noModel {
		return noModels{}.Resolve(context.Background(), "", provider, model, "")
	}
	return scriptedModels{s.model}.Resolve(context.Background(), "", provider, model, "")
}

// scriptedModels resolves every model to the scripted one.
type scriptedModels struct{ *scriptedModel }

func (p scriptedModels) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if provider == "missing" {
		return nodest.Model{}, fault.New(fault.NotConfigured, "no key").With("what", provider)
	}
	if model == "" {
		model = "scripted"
	}
	return nodest.Model{Generator: p.scriptedModel, Provider: "scripted", Name: model, ContextTokens: 8000}, nil
}

// eventLog records every published event, in order.
type eventLog struct {
	mu          sync.Mutex
	list        []*stream.Event
	afterCommit func([]*stream.Event) // called after each commit, before the writer continues; nil = none
}

func (e *eventLog) committed(_ string, events []*stream.Event) {
	e.add(events...)
	if e.afterCommit != nil {
		e.afterCommit(events)
	}
}

func (e *eventLog) Transient(ev *stream.Event) { e.add(ev) }

func (e *eventLog) add(events ...*stream.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, events...)
}

// compare checks that ann's log repeats the events as they were published. References of
// replies are left out: files that they name are not there in these tests, so later they are
// marked as gone.
func (e *eventLog) compare(t *testing.T, db *store.DB) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	published := slices.DeleteFunc(slices.Clone(e.list), func(ev *stream.Event) bool { return ev.Type == "gen.references" })
	storetest.CompareLog(t, db, ann, published)
}

// ofGeneration returns the events of a generation and its messages so far, in order.
func (e *eventLog) ofGeneration(generationID string) []*stream.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*stream.Event
	for _, ev := range e.list {
		if ev.GenerationID == generationID {
			list = append(list, ev)
		}
	}
	return list
}

// typesOf returns the types of the stored events of a generation.
func (e *eventLog) typesOf(generationID string) string {
	var types []string
	for _, ev := range e.ofGeneration(generationID) {
		if ev.Durable() {
			types = append(types, ev.Type)
		}
	}
	return strings.Join(types, " ")
}

// deltas joins the text deltas of a part and checks that each starts where the
// previous one ended.
func (e *eventLog) deltas(t *testing.T, generationID, part string, start int) string {
	t.Helper()
	var text strings.Builder
	at := start
	for _, ev := range e.ofGeneration(generationID) {
		if ev.Type == "gen.rewind" && part == "text" {
			text.Reset()
			at = ev.Off
		}
		if ev.Type != "gen.delta" {
			continue
		}
		d := ev.Delta()
		if d.Part != part {
			continue
		}
		if ev.Off != at {
			t.Fatalf("a delta begins at %d, the text before ends at %d", ev.Off, at)
		}
		text.WriteString(d.Text)
		at += len([]rune(d.Text))
	}
	return text.String()
}

// all returns the events so far, in order.
func (e *eventLog) all() []*stream.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// lastTypes returns the types of the newest events.
func (e *eventLog) lastTypes(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, ev := range e.list[max(0, len(e.list)-n):] {
		types = append(types, ev.Type)
	}
	return strings.Join(types, " ")
}

// clear removes the events recorded so far.
func (e *eventLog) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}

// types returns the types of the recorded durable events.
func (e *eventLog) types() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, ev := range e.list {
		if ev.Durable() {
			types = append(types, ev.Type)
		}
	}
	return strings.Join(types, " ")
}

// data returns the data of the first event of a type.
func (e *eventLog) data(kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Type == kind {
			return string(ev.Data)
		}
	}
	return ""
}

// database returns the function that opens the database of a test: PostgreSQL for the
// subtests of TestOnPostgres (skipped where there is none), SQLite for all others.
func database(t *testing.T) storetest.Opener {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return storetest.OpenPostgres
	}
	return storetest.OpenWith
}

// comparePrompts fails the test unless each prompt that is still stored is read as it was sent, whatever has
// become of its chat.
func (s *fixture) comparePrompts() {
	ctx := context.Background()
	for _, ev := range s.events.all() {
		if ev.Type != "gen.started" {
			continue
		}
		var started struct{ PromptID string }
		if err := json.Unmarshal(ev.Data, &started); err != nil {
			s.t.Error(err)
		}
		err := s.db.View(ctx, ev.UserID, func(tx nodest.Tx) error {
			stored, err := tx.Prompt(started.PromptID)
			if fault.Is(err, fault.NotFound) {
				return nil // it was purged
			}
			if err == nil {
				_, err = record.Unpack(tx.Chats, stored.ConversationID, stored.Body)
			}
			return err
		})
		if err != nil {
			s.t.Errorf("a prompt cannot be read any more: %v", err)
		}
	}
}

// regenerate requests another text of a reply, waits for it, and returns the
// message that has it.
func (s *fixture) regenerate(messageID, wish string) *chat.Message {
	s.t.Helper()
	done, err := s.Regenerate(s.t.Context(), s.call(), nodest.GenerateInput{MessageID: messageID, Wish: wish})
	s.must(err)
	s.wait(done.GenerationID)
	return s.message(done.Message.ID)
}
