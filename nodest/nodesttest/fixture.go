package nodesttest

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
const WaitLimit = 60 * time.Second

// fixture is an engine on a database of its own, with two users and a scripted model.
type Fixture struct {
	*Engine
	T         *testing.T
	DB        *store.DB
	Model     *ScriptedModel
	RealModel *nodest.Model // used instead of the scripted model; nil = none
	noModel   bool          // no provider is set up
	Options   nodest.Options
	Memory    *memory.Service // used by the engine; nil = none
	Events    *EventLog
	Calls     int
}

var DiscardLog = slog.New(slog.DiscardHandler)

const Ann, Bob = "019a0000-0000-7000-8000-00000000000a", "019a0000-0000-7000-8000-00000000000b"

func New(t *testing.T, opts nodest.Options) *Fixture {
	t.Helper()
	return NewWithClock(t, opts, time.Now)
}

// newFixtureWithClock is newFixture with a clock of its own.
func NewWithClock(t *testing.T, opts nodest.Options, now func() time.Time) *Fixture {
	t.Helper()
	return NewOn(t, opts, func(o store.Options) *store.DB {
		o.Now = now
		return database(t)(t, o)
	})
}

// newFixtureOn is newFixture on a database that the test opens.
func NewOn(t *testing.T, opts nodest.Options, open func(store.Options) *store.DB) *Fixture {
	t.Helper()
	s := &Fixture{T: t, Model: &ScriptedModel{}, Options: opts, Events: &EventLog{}}
	s.DB = open(store.Options{Committed: s.Events.Committed, Log: DiscardLog})
	for _, id := range []string{Ann, Bob} {
		s.Must(s.DB.InsertUser(t.Context(), &account.User{ID: id, Username: id, CreatedAt: time.Now()}))
	}
	t.Cleanup(func() { s.Events.compare(t, s.DB) })
	t.Cleanup(s.comparePrompts)
	s.Options.Alone = true
	if s.Options.Log == nil {
		s.Options.Log = DiscardLog
	}
	s.Engine = s.AnotherEngine()
	return s
}

// engine makes an engine on the same database and stops it after the test.
func (s *Fixture) AnotherEngine() *Engine {
	e := NewEngine(s.DB, s, s.Events, s.Options)
	s.T.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(now) // returns the error of the cancelled context
	})
	return e
}

// crash replaces the engine as after a crash: the old one stores nothing any more,
// and the new one recovers.
func (s *Fixture) Crash() {
	s.T.Helper()
	s.Engine = s.AnotherEngine()
	s.Must(s.Recover(s.T.Context()))
}

func (s *Fixture) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// wantCode checks the code of an error and returns the error.
func (s *Fixture) WantCode(err error, code fault.Code) *fault.Error {
	s.T.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		s.T.Fatalf("error = %v, want code %s", err, code)
	}
	return e
}

// call is a call of ann with a key of its own.
func (s *Fixture) Call() *op.Call {
	s.Calls++
	return &op.Call{UserID: Ann, Device: "phone", Key: fmt.Sprintf("key-%d", s.Calls), Hash: "h"}
}

const PlainAlice = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide of few words.","personality":"calm"}`

func (s *Fixture) Character(card string) *character.Character {
	s.T.Helper()
	ch, err := s.Characters.Create(s.T.Context(), s.Call(), character.Input{RoleCard: json.RawMessage(card)})
	s.Must(err)
	return ch
}

// chat begins a conversation with Alice.
func (s *Fixture) Chat() *chat.Conversation {
	s.T.Helper()
	return s.ChatWith(s.Character(PlainAlice).ID)
}

func (s *Fixture) ChatWith(characterID string) *chat.Conversation {
	s.T.Helper()
	c, err := s.Chats.CreateConversation(s.T.Context(), s.Call(), chat.ConversationInput{CharacterID: characterID})
	s.Must(err)
	return c
}

// send sends a message without waiting for the reply.
func (s *Fixture) Say(c *chat.Conversation, text string) *nodest.Sent {
	s.T.Helper()
	sent, err := s.Send(s.T.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: text})
	s.Must(err)
	return sent
}

// sendAndWait sends a message and returns the reply when it has ended.
func (s *Fixture) SayAndWait(c *chat.Conversation, text string) *chat.Message {
	s.T.Helper()
	sent := s.Say(c, text)
	s.Await(sent.GenerationID)
	return s.Message(sent.Message.ID)
}

func (s *Fixture) Await(generationID string) *chat.Generation {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), WaitLimit)
	defer cancel()
	g, err := s.Wait(ctx, Ann, generationID)
	s.Must(err)
	return g
}

// message returns a message as it is stored, deleted or not.
func (s *Fixture) Message(id string) (m *chat.Message) {
	s.T.Helper()
	s.View(func(tx nodest.Tx) (err error) {
		m, err = tx.Chats.Message(id)
		return err
	})
	return m
}

func (s *Fixture) Generation(id string) (g *chat.Generation) {
	s.T.Helper()
	s.View(func(tx nodest.Tx) (err error) {
		g, err = tx.Generation(id)
		return err
	})
	return g
}

func (s *Fixture) View(fn func(tx nodest.Tx) error) {
	s.T.Helper()
	s.Must(s.DB.View(s.T.Context(), Ann, fn))
}

// eventually waits until ok reports true. ok has no side effects.
func (s *Fixture) Eventually(what string, ok func() bool) {
	s.T.Helper()
	for end := time.Now().Add(WaitLimit); !ok(); {
		if time.Now().After(end) {
			s.T.Fatalf("never happened: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// scriptedModel is a model that follows a script. A request without a scripted reply
// gets "Fine.".
type ScriptedModel struct {
	mu       sync.Mutex
	Script   []*ScriptedReply
	requests []llm.Request
	closed   int // requests whose reader went away or whose context ended
}

// scriptedReply is one reply of a scriptedModel.
type ScriptedReply struct {
	Chunks  []llm.Chunk
	Calls   []llm.ToolCall
	Err     error         // returned instead of the end
	Gate    chan struct{} // received from before each chunk and before the end; nil = no waiting
	Started chan struct{} // closed when the request arrives
	Ended   chan struct{} // closed when the reply has ended in any way
}

// replyWith is a complete reply in the given pieces.
func Reply(pieces ...string) *ScriptedReply {
	l := ReplyOfChunks()
	for _, p := range pieces {
		l.Chunks = append(l.Chunks, llm.Chunk{Text: p})
	}
	return l
}

func ReplyOfChunks(chunks ...llm.Chunk) *ScriptedReply {
	return &ScriptedReply{Chunks: chunks, Started: make(chan struct{}), Ended: make(chan struct{})}
}

// failing makes the reply end with an error.
func (l *ScriptedReply) Failing(err error) *ScriptedReply {
	l.Err = err
	return l
}

// gated makes the reply wait for step or release.
func (l *ScriptedReply) Gated() *ScriptedReply {
	l.Gate = make(chan struct{})
	return l
}

// step lets n pieces pass (the end counts as one), or fewer if the reader goes away.
func (l *ScriptedReply) Step(n int) {
	for range n {
		select {
		case l.Gate <- struct{}{}:
		case <-l.Ended:
		}
	}
}

func (l *ScriptedReply) Release() { close(l.Gate) }

// enqueue scripts the replies to the next requests.
func (p *ScriptedModel) Enqueue(lines ...*ScriptedReply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Script = append(p.Script, lines...)
}

func (p *ScriptedModel) AllRequests() []llm.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]llm.Request(nil), p.requests...)
}

// lastRequest is the newest request, as one text.
func (p *ScriptedModel) LastRequest() string {
	all := p.AllRequests()
	if len(all) == 0 {
		return ""
	}
	return PromptText(all[len(all)-1].Messages)
}

// promptText is a prompt as one text.
func PromptText(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s] %s\n", m.Role, m.Text)
	}
	return b.String()
}

func (p *ScriptedModel) ClosedRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *ScriptedModel) take(req llm.Request) *ScriptedReply {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
	if len(p.Script) == 0 {
		return Reply("Fine.")
	}
	l := p.Script[0]
	p.Script = p.Script[1:]
	return l
}

func (p *ScriptedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		l := p.take(req)
		close(l.Started)
		defer close(l.Ended)
		done := false
		defer func() {
			if !done {
				p.mu.Lock()
				p.closed++
				p.mu.Unlock()
			}
		}()
		for _, c := range l.Chunks {
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
		if l.Err != nil {
			yield(llm.Chunk{}, l.Err)
			return
		}
		usage := &llm.Usage{PromptTokens: 10, CompletionTokens: len(l.Chunks)}
		yield(llm.Chunk{Last: true, Calls: l.Calls, Finish: llm.FinishStop, Model: "scripted-1", Usage: usage}, nil)
	}
}

func (l *ScriptedReply) awaitGate(ctx context.Context) error {
	if l.Gate == nil {
		if ctx.Err() != nil {
			return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
		}
		return nil
	}
	select {
	case <-l.Gate:
		return nil
	case <-ctx.Done():
		return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
	}
}

// Resolve returns the scripted model for every name, or the real model of the test.
func (s *Fixture) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if s.RealModel != nil {
		return *s.RealModel, nil
	}
	if s.noModel {
		return NoModels{}.Resolve(context.Background(), "", provider, model, "")
	}
	return ScriptedModels{s.Model}.Resolve(context.Background(), "", provider, model, "")
}

// scriptedModels resolves every model to the scripted one.
type ScriptedModels struct{ *ScriptedModel }

func (p ScriptedModels) Resolve(_ context.Context, _, provider, model, _ string) (nodest.Model, error) {
	if provider == "missing" {
		return nodest.Model{}, fault.New(fault.NotConfigured, "no key").With("what", provider)
	}
	if model == "" {
		model = "scripted"
	}
	return nodest.Model{Generator: p.ScriptedModel, Provider: "scripted", Name: model, ContextTokens: 8000}, nil
}

// eventLog records every published event, in order.
type EventLog struct {
	mu          sync.Mutex
	list        []*stream.Event
	AfterCommit func([]*stream.Event) // called after each commit, before the writer continues; nil = none
}

func (e *EventLog) Committed(_ string, events []*stream.Event) {
	e.add(events...)
	if e.AfterCommit != nil {
		e.AfterCommit(events)
	}
}

func (e *EventLog) Transient(ev *stream.Event) { e.add(ev) }

func (e *EventLog) add(events ...*stream.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, events...)
}

// compare checks that ann's log repeats the events as they were published. References of
// replies are left out: files that they name are not there in these tests, so later they are
// marked as gone.
func (e *EventLog) compare(t *testing.T, db *store.DB) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	published := slices.DeleteFunc(slices.Clone(e.list), func(ev *stream.Event) bool { return ev.Type == "gen.references" })
	storetest.CompareLog(t, db, Ann, published)
}

// ofGeneration returns the events of a generation and its messages so far, in order.
func (e *EventLog) OfGeneration(generationID string) []*stream.Event {
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
func (e *EventLog) TypesOf(generationID string) string {
	var types []string
	for _, ev := range e.OfGeneration(generationID) {
		if ev.Durable() {
			types = append(types, ev.Type)
		}
	}
	return strings.Join(types, " ")
}

// deltas joins the text deltas of a part and checks that each starts where the
// previous one ended.
func (e *EventLog) Deltas(t *testing.T, generationID, part string, start int) string {
	t.Helper()
	var text strings.Builder
	at := start
	for _, ev := range e.OfGeneration(generationID) {
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
func (e *EventLog) All() []*stream.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// lastTypes returns the types of the newest events.
func (e *EventLog) LastTypes(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, ev := range e.list[max(0, len(e.list)-n):] {
		types = append(types, ev.Type)
	}
	return strings.Join(types, " ")
}

// clear removes the events recorded so far.
func (e *EventLog) Clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}

// types returns the types of the recorded durable events.
func (e *EventLog) Types() string {
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
func (e *EventLog) Data(kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Type == kind {
			return string(ev.Data)
		}
	}
	return ""
}

// comparePrompts fails the test unless each prompt that is still stored is read as it was sent, whatever has
// become of its chat.
func (s *Fixture) comparePrompts() {
	ctx := context.Background()
	for _, ev := range s.Events.All() {
		if ev.Type != "gen.started" {
			continue
		}
		var started struct{ PromptID string }
		if err := json.Unmarshal(ev.Data, &started); err != nil {
			s.T.Error(err)
		}
		err := s.DB.View(ctx, ev.UserID, func(tx nodest.Tx) error {
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
			s.T.Errorf("a prompt cannot be read any more: %v", err)
		}
	}
}

// regenerate requests another text of a reply, waits for it, and returns the
// message that has it.
func (s *Fixture) RegenerateReply(messageID, wish string) *chat.Message {
	s.T.Helper()
	done, err := s.Regenerate(s.T.Context(), s.Call(), nodest.GenerateInput{MessageID: messageID, Wish: wish})
	s.Must(err)
	s.Await(done.GenerationID)
	return s.Message(done.Message.ID)
}
