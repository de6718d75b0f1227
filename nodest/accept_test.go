package nodest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

// heldStore is a database that stops before the commit of a transaction: nothing of it is on the disk.
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
			h.reached <- struct{}{}
			<-h.release
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

// sendHeld sends a message, and returns when its commit is held back.
func (s *fixture) sendHeld(h *heldStore, c *chat.Conversation, call *op.Call) <-chan sendResult {
	s.T.Helper()
	h.hold.Store(true)
	answered := make(chan sendResult, 1)
	go func() {
		sent, err := s.Send(s.T.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Second"})
		answered <- sendResult{sent, err}
	}()
	<-h.reached
	return answered
}

// Before the commit nobody is asked, told or answered.
func TestNothingOfATurnIsNoticedBeforeItsMessageIsCommitted(t *testing.T) {
	t.Parallel()
	s, h, _ := withHeldStore(t)
	c := s.Chat()
	s.SayAndWait(c, "First")
	before, requests := len(s.Events.All()), len(s.Model.AllRequests())
	s.Model.Enqueue(nodesttest.Reply("Here", " I am."))
	answered := s.sendHeld(h, c, s.Call())
	select {
	case r := <-answered:
		t.Fatalf("acknowledged before the commit: %+v", r)
	default:
	}
	if after := s.Events.All()[before:]; len(after) > 0 || len(s.Model.AllRequests()) > requests {
		t.Errorf("before the commit: %d events, %d requests", len(after), len(s.Model.AllRequests())-requests)
	}
	h.release <- struct{}{}
	r := <-answered
	s.Must(r.err)
	s.Await(r.sent.GenerationID)
	if got := s.Model.LastRequest(); !strings.Contains(got, "[user] Second") || !strings.Contains(got, "[user] First") {
		t.Errorf("the model was asked:\n%s", got)
	}
	if got := s.Events.Deltas(t, r.sent.GenerationID, "text", 0); got != "Here I am." {
		t.Errorf("deltas: %q", got)
	}
	var order []string
	for _, ev := range s.Events.All()[before:] {
		order = append(order, ev.Type)
	}
	const want = "message.created message.created gen.stage gen.started gen.context gen.stage gen.delta gen.delta message.updated gen.done"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("events: %s", got)
	}
}

// A prompt is stored before the model is asked.
func TestAPromptIsStoredBeforeTheModelIsAsked(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	reply := nodesttest.Reply("Yes.").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(s.Chat(), "First")
	<-reply.Started
	s.View(func(tx nodest.Tx) error {
		g, err := tx.Generation(sent.GenerationID)
		if err == nil && (g.Status != chat.GenWaiting || g.StartedAt == nil) {
			t.Errorf("the model was asked for %+v", g)
		}
		_, missing := tx.Prompt(g.PromptID)
		return errors.Join(err, missing)
	})
	reply.Release()
	s.Await(sent.GenerationID)
}

func TestACommitThatFailsLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s, h, dir := withHeldStore(t)
	c := s.Chat()
	first := s.SayAndWait(c, "First")
	before, requests := len(s.Events.All()), len(s.Model.AllRequests())
	call := s.Call()
	answered := s.sendHeld(h, c, call)
	file := filepath.Join(dir, sqldb.File) // a database whose file is gone commits nothing
	s.Must(os.Rename(file, file+".away"))
	h.release <- struct{}{}
	if r := <-answered; r.err == nil {
		t.Errorf("acknowledged %+v, and the commit had failed", r.sent)
	}
	s.Must(os.Rename(file+".away", file))
	s.Must(s.Recover(t.Context()))
	if after := s.Events.All()[before:]; len(after) > 0 || len(s.Model.AllRequests()) > requests {
		t.Errorf("it left %d events and %d requests", len(after), len(s.Model.AllRequests())-requests)
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

// The prompt of a message is the one that a regenerate of its reply reads: in a new chat, behind
// messages, at another place of the tree, and with and without what is remembered of the chat.
func TestAPromptIsThatOfTheStoredChat(t *testing.T) {
	t.Parallel()
	for _, cold := range []bool{false, true} {
		t.Run(fmt.Sprintf("cold %v", cold), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, nodest.Options{})
			c := s.Chat()
			var last *chat.Message
			for i := range 4 {
				last = s.SayAndWait(c, fmt.Sprintf("Line %d", i))
			}
			if cold {
				s.Engine = s.AnotherEngine()
			}
			reply := s.SayAndWait(c, "Second")
			sent := s.Model.LastRequest()
			s.RegenerateReply(reply.ID, "")
			if again := s.Model.LastRequest(); sent != again {
				t.Errorf("for the message:\n%s\nfor another text:\n%s", sent, again)
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
// go before the first token; the reply with all that follows from it.
func TestATurnIsThreeTransactionsWhateverItsLength(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	counted := &countedStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(counted, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	for _, tokens := range []int{1, 400} {
		c := s.Chat() // a chat of its own, because a long one is summarised
		s.Model.Enqueue(nodesttest.Reply(slices.Repeat([]string{"a "}, tokens)...))
		before := counted.updates.Load()
		sent := s.Say(c, "Go on")
		s.Await(sent.GenerationID)
		if n := counted.updates.Load() - before; n != 3 {
			t.Errorf("a reply of %d tokens took %d transactions", tokens, n)
		}
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

// A source is asked about a message once, when that is stored: one that is refused, or was sent before,
// is told to no source and no model.
func TestARefusedMessageIsToldToNobody(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{testSource("memory", func(_ context.Context, q *nodest.Question) (nodest.Findings, error) {
		told <- q.Text
		return nodest.Findings{}, nil
	})}})
	c := s.Chat()
	send := func(call *op.Call, in nodest.SendInput) (*nodest.Sent, error) {
		in.ConversationID = c.ID
		return s.Send(t.Context(), call, in)
	}
	call, running := s.Call(), nodesttest.Reply("Yes.").Gated()
	s.Model.Enqueue(running)
	first, err := send(call, nodest.SendInput{Text: "First"})
	s.Must(err)
	<-running.Started
	before := len(s.Events.All())
	_, err = send(s.Call(), nodest.SendInput{Text: "In between"})
	nodesttest.WantError(t, err, fault.Busy, "")
	again, err := send(nodesttest.RetryOf(call), nodest.SendInput{Text: "First"})
	s.Must(err)
	reused := nodesttest.RetryOf(call)
	reused.Hash = "other"
	_, err = send(reused, nodest.SendInput{Text: "Other"})
	nodesttest.WantError(t, err, fault.KeyReused, "")
	if again.GenerationID != first.GenerationID || len(s.Events.All()) > before {
		t.Errorf("repeated: %+v; refused messages left %d events", again, len(s.Events.All())-before)
	}
	running.Release()
	s.Await(first.GenerationID)
	s.Must(s.Close(t.Context()))
	if got := <-told; got != "First" || len(told) > 0 || len(s.Model.AllRequests()) != 1 {
		t.Errorf("told %q and %d texts more; the model was asked %d times", got, len(told), len(s.Model.AllRequests()))
	}
}

// If the chat changes before a message is accepted, the prompt has the change.
func TestAPromptHasWhatWasStoredBeforeItsMessage(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	gated := &gatedStore{DB: s.DB}
	s.Engine = nodesttest.NewEngine(gated, s, s.Events, s.Options)
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // has nothing to stop
	c := s.Chat()
	gate, answered := gated.shut(), make(chan sendResult, 1)
	go func() {
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Second"})
		answered <- sendResult{sent, err}
	}()
	<-gate.reached
	_, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "First", NoReply: true})
	s.Must(err)
	close(gate.opened)
	r := <-answered
	s.Must(r.err)
	s.Await(r.sent.GenerationID)
	if got := s.Model.LastRequest(); !strings.Contains(got, "First") || !strings.Contains(got, "Second") {
		t.Errorf("the model was asked:\n%s", got)
	}
}
