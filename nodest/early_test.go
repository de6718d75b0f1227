package nodest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/account"
	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/op"
	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

// heldStore is a database that stops before the commit of transactions that accept a
// generation: everything is written, and nothing is on the disk.
type heldStore struct {
	*store.DB
	hold    atomic.Bool
	reached chan struct{} // sent to when a commit is about to begin
	release chan struct{} // received from before it begins
}

func (h *heldStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return h.DB.Update(ctx, userID, func(tx nodest.Tx) error {
		err := fn(tx)
		if err == nil && h.hold.CompareAndSwap(true, false) {
			tx.BeforeCommit(func() { // behind that of the engine
				h.reached <- struct{}{}
				<-h.release
			})
		}
		return err
	})
}

// withHeldStore is a fixture on SQLite in dir whose commits can be held back.
func withHeldStore(t *testing.T) (s *fixture, h *heldStore, dir string) {
	dir = storetest.Dir(t)
	s = newFixtureOn(t, nodest.Options{}, func(o store.Options) *store.DB {
		o.Dir = dir
		return storetest.OpenWith(t, o)
	})
	h = &heldStore{DB: s.DB, reached: make(chan struct{}), release: make(chan struct{})}
	s.Engine = nodesttest.NewEngine(h, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	return s, h, dir
}

type sendResult struct {
	sent *nodest.Sent
	err  error
}

// sendHeld sends a message whose commit is held back, and returns when the model has
// been asked.
func (s *fixture) sendHeld(h *heldStore, c *chat.Conversation, call *op.Call, reply *nodesttest.ScriptedReply) <-chan sendResult {
	s.T.Helper()
	s.Model.Enqueue(reply)
	h.hold.Store(true)
	answered := make(chan sendResult, 1)
	go func() {
		sent, err := s.Send(s.T.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Second"})
		answered <- sendResult{sent, err}
	}()
	<-h.reached
	<-reply.Started
	return answered
}

func TestTheModelIsAskedWhileTheMessageIsCommitted(t *testing.T) {
	t.Parallel()
	s, h, _ := withHeldStore(t)
	c := s.Chat()
	s.SayAndWait(c, "First")
	before := len(s.Events.All())
	reply := nodesttest.Reply("Here", " I am.").Gated()
	answered := s.sendHeld(h, c, s.Call(), reply)
	reply.Step(1)
	select {
	case r := <-answered:
		t.Fatalf("acknowledged before the commit: %+v", r)
	default:
	}
	if after := s.Events.All()[before:]; len(after) > 0 {
		t.Errorf("%s was published before the commit", after[0].Type)
	}
	if got := s.Model.LastRequest(); !strings.Contains(got, "[user] Second") || !strings.Contains(got, "[user] First") {
		t.Errorf("the model was asked:\n%s", got)
	}
	h.release <- struct{}{}
	r := <-answered
	s.Must(r.err)
	reply.Release()
	s.Await(r.sent.GenerationID)
	if got := s.Events.Deltas(t, r.sent.GenerationID, "text", 0); got != "Here I am." {
		t.Errorf("deltas: %q", got)
	}
	var order []string
	for _, ev := range s.Events.All()[before:] {
		if ev.Type != "gen.stage" { // before or after the start
			order = append(order, ev.Type)
		}
	}
	if got := strings.Join(order, " "); got != "message.created message.created gen.started gen.context gen.delta gen.delta message.updated gen.done" {
		t.Errorf("events: %s", got)
	}
}

func TestACommitThatFailsCancelsTheRequest(t *testing.T) {
	t.Parallel()
	s, h, dir := withHeldStore(t)
	c := s.Chat()
	first := s.SayAndWait(c, "First")
	before := len(s.Events.All())
	reply := nodesttest.Reply("Here", " I am.").Gated()
	call := s.Call()
	answered := s.sendHeld(h, c, call, reply)
	reply.Step(1)

	file := filepath.Join(dir, sqldb.File) // a database whose file is gone commits nothing
	s.Must(os.Rename(file, file+".away"))
	h.release <- struct{}{}
	if r := <-answered; r.err == nil {
		t.Errorf("acknowledged %+v, and the commit had failed", r.sent)
	}
	<-reply.Ended // its context ended: the gate was never opened
	s.Must(os.Rename(file+".away", file))
	if got := s.Model.ClosedRequests(); got != 1 {
		t.Errorf("%d requests were cancelled", got)
	}
	s.Must(s.Recover(t.Context()))
	if after := s.Events.All()[before:]; len(after) > 0 {
		t.Errorf("%s was published", after[0].Type)
	}
	s.View(func(tx nodest.Tx) error {
		conv, err := tx.Chats.Conversation(c.ID)
		if err == nil && conv.HeadID != first.ID {
			t.Errorf("the chat ends with %s, not with the first reply", conv.HeadID)
		}
		return err
	})
	again, err := s.Send(t.Context(), nodesttest.RetryOf(call), nodest.SendInput{ConversationID: c.ID, Text: "Second"})
	s.Must(err)
	s.Await(again.GenerationID)
	if m := s.Message(again.Message.ID); m.Text() != "Fine." {
		t.Errorf("the repeated message got %q", m.Text())
	}
}

// failingStore is a database whose transactions fail at their end while fails is set, when the
// model has been asked.
type failingStore struct {
	*store.DB
	fails atomic.Pointer[nodesttest.ScriptedReply]
}

var errUnstored = fault.New(fault.Internal, "the message cannot be stored")

func (f *failingStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return f.DB.Update(ctx, userID, func(tx nodest.Tx) error {
		err := fn(tx)
		if asked := f.fails.Swap(nil); err == nil && asked != nil {
			tx.AtEnd(func() error {
				<-asked.Started
				return errUnstored
			})
		}
		return err
	})
}

// The model is asked as soon as all checks are passed, before everything is written.
func TestTheModelIsAskedWhenAMessageIsChecked(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	failing := &failingStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(failing, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	c := s.Chat()
	first := s.SayAndWait(c, "First")
	before := len(s.Events.All())
	reply := nodesttest.Reply("Here", " I am.").Gated()
	s.Model.Enqueue(reply)
	failing.fails.Store(reply)
	call := s.Call()
	if sent, err := s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Second"}); !errors.Is(err, errUnstored) {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	<-reply.Ended // its context ended: the gate was never opened
	if after := s.Events.All()[before:]; len(after) > 0 {
		t.Errorf("%s was published", after[0].Type)
	}
	again, err := s.Send(t.Context(), nodesttest.RetryOf(call), nodest.SendInput{ConversationID: c.ID, Text: "Second"})
	s.Must(err)
	s.Await(again.GenerationID)
	if m := s.Message(again.UserMessage.ID); m.ParentID != first.ID {
		t.Errorf("the repeated message is behind %q, not behind the first reply", m.ParentID)
	}
}

func TestAMessageBeyondTheQuotaIsNotToldToTheModel(t *testing.T) {
	t.Parallel()
	s := newFixtureOn(t, nodest.Options{}, func(o store.Options) *store.DB {
		o.Quotas = account.Quotas{Messages: 4}
		return storetest.OpenWith(t, o)
	})
	c := s.Chat()
	s.SayAndWait(c, "First")
	requests := len(s.Model.AllRequests())
	for { // until the quota is reached
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "More"})
		if fault.Is(err, fault.QuotaExceeded) {
			break
		}
		s.Must(err)
		s.Await(sent.GenerationID)
		requests++
	}
	if got := len(s.Model.AllRequests()); got != requests {
		t.Errorf("the model was asked %d times for %d messages", got, requests)
	}
}

// The prompt that is built before the commit is the one that would be read after it: in a
// new chat, behind messages, at another place of the tree, and with and without what is
// remembered of the chat.
func TestAPromptBuiltBeforeTheCommitIsComplete(t *testing.T) {
	t.Parallel()
	for _, cold := range []bool{false, true} {
		t.Run(fmt.Sprintf("cold %v", cold), func(t *testing.T) {
			s, h, _ := withHeldStore(t)
			c := s.Chat()
			var last *chat.Message
			for i := range 4 {
				last = s.SayAndWait(c, fmt.Sprintf("Line %d", i))
			}
			if cold {
				s.Engine = nodesttest.NewEngine(h, s, s.Events, s.Options)
				t.Cleanup(func() { _ = s.Close(context.Background()) })
			}
			answered := s.sendHeld(h, c, s.Call(), nodesttest.Reply("Yes."))
			early := s.Model.LastRequest()
			h.release <- struct{}{}
			r := <-answered
			s.Must(r.err)
			s.Await(r.sent.GenerationID)
			s.RegenerateReply(r.sent.Message.ID, "") // reads the chat after the commit
			if late := s.Model.LastRequest(); early != late {
				t.Errorf("before the commit:\n%s\nafter it:\n%s", early, late)
			}
			next, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Aside", ParentID: last.ID})
			s.Must(err)
			s.Await(next.GenerationID)
			if got := s.Model.LastRequest(); strings.Contains(got, "Second") || !strings.Contains(got, "Line 3") || !strings.Contains(got, "[user] Aside") {
				t.Errorf("on another branch the model was asked:\n%s", got)
			}
		})
	}
}

// countedStore counts the transactions that write.
type countedStore struct {
	*store.DB
	updates atomic.Int64
}

func (c *countedStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	c.updates.Add(1)
	return c.DB.Update(ctx, userID, fn)
}

// The three are: the message and the place of its reply; the prompt with the events that
// go before the first token; the reply with all that follows from it. The second is a part of the
// first one if the prompt is ready in time.
func TestATurnIsTwoOrThreeTransactionsWhateverItsLength(t *testing.T) {
	t.Parallel()
	var late atomic.Bool
	var stored chan struct{}
	slow := nodest.Source{
		Name: "slow", Limit: nodesttest.WaitLimit, Wanted: func(*nodest.Question) bool { return late.Load() },
		Find: func(context.Context, *nodest.Question) (nodest.Findings, error) {
			<-stored
			return nodest.Findings{}, nil
		},
	}
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{slow}})
	counted := &countedStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(counted, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	turn := func(tokens int) int64 {
		c := s.Chat() // of its own, because a long one is summarised
		var pieces []string
		for range tokens {
			pieces = append(pieces, "a ")
		}
		s.Model.Enqueue(nodesttest.Reply(pieces...))
		before := counted.updates.Load()
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Go on"})
		s.Must(err)
		if late.Load() {
			close(stored)
		}
		s.Await(sent.GenerationID)
		var kinds []string
		for _, ev := range s.Events.All() {
			if ev.GenerationID == sent.GenerationID && strings.HasPrefix(ev.Type, "gen.") && ev.Seq > 0 {
				kinds = append(kinds, ev.Type)
			}
		}
		if got := strings.Join(kinds, " "); got != "gen.started gen.context gen.done" {
			t.Errorf("events of a reply: %s", got)
		}
		if g := s.Generation(sent.GenerationID); g.Status != chat.GenDone || g.PromptID == "" || g.StartedAt == nil {
			t.Errorf("the reply is %+v", g)
		}
		return counted.updates.Load() - before
	}
	for _, tokens := range []int{1, 400} {
		late.Store(false)
		n := turn(tokens)
		for tries := 0; n == 3 && tries < 100; tries++ { // the prompt was not ready
			n = turn(tokens)
		}
		if n != 2 {
			t.Errorf("a reply of %d tokens took %d transactions", tokens, n)
		}
		stored = make(chan struct{})
		late.Store(true)
		if n := turn(tokens); n != 3 {
			t.Errorf("a reply of %d tokens whose prompt was late took %d transactions", tokens, n)
		}
	}
}

// A prompt is compared with the newest of its chat, whichever process has sent that.
func TestAPromptIsComparedWithTheNewest(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	one, other := s.Engine, s.AnotherEngine()
	before := ""
	for i, engine := range []*nodesttest.Engine{one, one, other, one, other, other, one} {
		s.Engine = engine
		generation := s.SayAndWait(c, fmt.Sprintf("Line %d", i)).GenerationID
		sent, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(generation).PromptID)
		s.Must(err)
		p := sent.Prompt
		if p.Prefix.GenerationID != before || before != "" && p.Prefix.Messages == 0 {
			t.Errorf("prompt %d was compared with that of %q, and not %q; %d messages were the same", i, p.Prefix.GenerationID, before, p.Prefix.Messages)
		}
		before = generation
	}
}

// gatedStore is a database whose next transaction that writes waits for a gate.
type gatedStore struct {
	*store.DB
	gate atomic.Pointer[gate]
}

type gate struct {
	reached, opened chan struct{}
}

// shut makes the next transaction wait.
func (g *gatedStore) shut() *gate {
	made := &gate{make(chan struct{}), make(chan struct{})}
	g.gate.Store(made)
	return made
}

func (g *gatedStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	if gate := g.gate.Swap(nil); gate != nil {
		close(gate.reached)
		<-gate.opened
	}
	return g.DB.Update(ctx, userID, fn)
}

// asked is a source that says when it is asked.
func asked(name string, outside bool) (nodest.Source, chan string) {
	texts := make(chan string, 10)
	return nodest.Source{
		Name: name, Limit: nodesttest.WaitLimit, Outside: outside,
		Wanted: func(*nodest.Question) bool { return true },
		Find: func(_ context.Context, q *nodest.Question) (nodest.Findings, error) {
			texts <- q.Text
			return nodest.Findings{}, nil
		},
	}, texts
}

// The sources within the program are asked before a message is accepted, and the model and the
// sources outside only then: a message that is refused, or was sent before, is not told to them.
func TestAPromptIsMadeWhileTheMessageIsStored(t *testing.T) {
	t.Parallel()
	inside, told := asked("memory", false)
	outside, toldOutside := asked("websearch", true)
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{inside, outside}})
	gated := &gatedStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(gated, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	c := s.Chat()
	send := func(call *op.Call, text string) <-chan sendResult {
		gate, answered, requests := gated.shut(), make(chan sendResult, 1), len(s.Model.AllRequests())
		go func() {
			sent, err := s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: text})
			answered <- sendResult{sent, err}
		}()
		if got := <-told; got != text {
			t.Errorf("asked about %q", got)
		}
		<-gate.reached
		if len(toldOutside) > 0 || len(s.Model.AllRequests()) > requests {
			t.Errorf("%q was told outside before it was accepted", text)
		}
		close(gate.opened)
		return answered
	}
	call := s.Call()
	first := <-send(call, "First")
	s.Must(first.err)
	s.Await(first.sent.GenerationID)
	if got := <-toldOutside; got != "First" || !strings.Contains(s.Model.LastRequest(), "[user] First") {
		t.Errorf("the source outside was told %q, the model:\n%s", got, s.Model.LastRequest())
	}
	before := len(s.Events.All())
	again := <-send(nodesttest.RetryOf(call), "First")
	s.Must(again.err)
	reused := nodesttest.RetryOf(call)
	reused.Hash = "other"
	other := <-send(reused, "Other")
	if again.sent.GenerationID != first.sent.GenerationID || !fault.Is(other.err, fault.KeyReused) {
		t.Errorf("repeated: %+v; with another text: %v", again.sent, other.err)
	}
	s.Must(s.Close(t.Context()))
	if after := s.Events.All()[before:]; len(after) > 0 || len(toldOutside) > 0 {
		t.Errorf("refused messages left %d events, and %d were told outside", len(after), len(toldOutside))
	}
}

// If the chat changes before a message is accepted, its prompt is made anew.
func TestAPromptThatWasMadeTooEarlyIsMadeAnew(t *testing.T) {
	t.Parallel()
	inside, told := asked("memory", false)
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{inside}})
	gated := &gatedStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(gated, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	c := s.Chat()
	gate, answered, call := gated.shut(), make(chan sendResult, 1), s.Call()
	go func() {
		sent, err := s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Second"})
		answered <- sendResult{sent, err}
	}()
	<-told
	<-gate.reached
	_, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "First", NoReply: true})
	s.Must(err)
	close(gate.opened)
	r := <-answered
	s.Must(r.err)
	s.Await(r.sent.GenerationID)
	if got := s.Model.LastRequest(); !strings.Contains(got, "First") || !strings.Contains(got, "Second") || len(told) != 1 {
		t.Errorf("the sources were asked %d times more, the model:\n%s", len(told), got)
	}
}
