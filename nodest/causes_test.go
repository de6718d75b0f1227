package nodest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
)

// unstoredOnce is a database of which one transaction that writes is not committed.
type unstoredOnce struct {
	*store.DB
	after atomic.Int32 // how many transactions begin until then; 0 = all are committed
}

var errNotCommitted = errors.New("the transaction is rolled back")

func (u *unstoredOnce) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	if u.after.Load() == 0 || u.after.Add(-1) > 0 {
		return u.DB.Update(ctx, userID, fn)
	}
	err := u.DB.Update(ctx, userID, func(tx nodest.Tx) error { return errors.Join(fn(tx), errNotCommitted) })
	return fault.Wrap(err, fault.StorageDown, "the database does not answer")
}

// ofPhase is a generation in a phase, and lets it go on.
type ofPhase struct {
	*fixture
	db   *unstoredOnce
	sent *nodest.Sent
	goOn func()
}

var errProvider = fault.New(fault.UpstreamDown, "the provider is away")

func inPhase(t *testing.T, phase string, reply *nodesttest.ScriptedReply, timeout time.Duration) *ofPhase {
	asked, found := make(chan struct{}), make(chan struct{})
	s := newFixture(t, nodest.Options{GenerationsPerUser: 1, TurnTimeout: timeout, Sources: []nodest.Source{
		testSource("slow", func(ctx context.Context, q *nodest.Question) (nodest.Findings, error) {
			if q.Text == "building" {
				close(asked)
				select {
				case <-found:
				case <-ctx.Done():
				}
			}
			return nodest.Findings{}, nil
		}),
	}})
	p := &ofPhase{fixture: s, db: &unstoredOnce{DB: s.DB}}
	s.Engine = nodesttest.NewEngine(p.db, s, s.Events, s.Options)
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Close(now)
	})
	before := nodesttest.Reply("Before.").Gated()
	if phase == "accepted" { // it waits for this one
		s.Model.Enqueue(before)
		s.Say(s.Chat(), "Before")
		<-before.Started
	}
	s.Model.Enqueue(reply)
	p.sent = s.Say(s.Chat(), phase)
	p.goOn = sync.OnceFunc(func() {
		close(found)
		before.Release()
		reply.Release()
	})
	switch phase {
	case "building":
		<-asked
	case "waiting":
		<-reply.Started
	case "streaming":
		<-reply.Started
		reply.Step(1)
		s.Eventually("the first token", func() bool { return s.Events.Deltas(t, p.sent.GenerationID, "text", 0) != "" })
	}
	return p
}

// However far a reply has come, and whatever ends it: it ends once, as it should, its message is stored, and
// the chat goes on.
func TestAReplyEndsInEveryPhaseForEveryCause(t *testing.T) {
	t.Parallel()
	all := []string{"accepted", "building", "waiting", "streaming"}
	asked := all[2:]
	causes := []struct {
		name    string
		phases  []string
		timeout time.Duration
		fails   error
		cause   func(p *ofPhase)
		status  func(phase string) []string // how it may end
	}{
		{"cancel", all, 0, nil, func(p *ofPhase) {
			status, err := p.Cancel(p.T.Context(), nodesttest.Ann, p.sent.GenerationID)
			if p.Must(err); status != chat.GenCancelled {
				p.T.Errorf("cancelled: %s", status)
			}
		}, always(chat.GenCancelled)},
		{"stop", all, 0, nil, func(p *ofPhase) {
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_ = p.Close(now) // returns the error of the cancelled context
			p.Engine = p.AnotherEngine()
		}, always(chat.GenInterrupted)},
		{"lost lease", all, 0, nil, func(p *ofPhase) {
			first := p.Engine
			p.Crash() // another process has the database, and this one does not know it
			p.goOn()
			p.Must(first.Close(p.T.Context()))
		}, func(phase string) []string {
			if phase == "accepted" { // the end of the other reply may give it its turn, and a new lease, before it is ended itself
				return []string{chat.GenInterrupted, chat.GenDone}
			}
			return []string{chat.GenInterrupted}
		}},
		{"failed commit", all, 0, nil, func(p *ofPhase) {
			p.db.after.Store(1)
			if p.sent.UserMessage.Text() == "accepted" {
				p.db.after.Store(2) // behind the end of the reply that it waits for
			}
			p.goOn()
		}, func(phase string) []string {
			if phase == "accepted" || phase == "building" {
				return []string{chat.GenInterrupted}
			}
			return []string{chat.GenDone} // the end is stored with the next attempt
		}},
		{"provider error", asked, 0, errProvider, func(p *ofPhase) { p.goOn() }, always(chat.GenFailed)},
		{"timeout", all[1:], time.Second, nil, func(*ofPhase) {}, always(chat.GenFailed)},
	}
	for _, c := range causes {
		for _, phase := range c.phases {
			t.Run(c.name+" while "+phase, func(t *testing.T) {
				t.Parallel()
				reply := nodesttest.Reply("One", " two.").Gated()
				reply.Err = c.fails
				p := inPhase(t, phase, reply, c.timeout)
				c.cause(p)
				g := p.Await(p.sent.GenerationID)
				if want := c.status(phase); !slices.Contains(want, g.Status) || g.EndedAt == nil {
					t.Errorf("it ended as %s (%v), want %s", g.Status, g.Error, want)
				}
				if stored := p.Generation(g.ID); stored.Status != g.Status {
					t.Errorf("stored as %s", stored.Status)
				}
				if m := p.Message(p.sent.UserMessage.ID); m.Text() != phase {
					t.Errorf("the message is %q", m.Text())
				}
				ends := 0
				for _, ev := range p.Events.OfGeneration(g.ID) {
					if ev.Type == "gen.done" || ev.Type == "gen.failed" {
						ends++
					}
				}
				if ends != 1 {
					t.Errorf("its end was told %d times", ends)
				}
				p.goOn()
				next, err := p.Send(t.Context(), p.Call(), nodest.SendInput{ConversationID: p.sent.UserMessage.ConversationID, Text: "Next", WhenBusy: "queue"})
				p.Must(err)
				if g := p.Await(next.GenerationID); g.Status != chat.GenDone {
					t.Errorf("the next reply is %s: %v", g.Status, g.Error)
				}
			})
		}
	}
}

func always(status string) func(string) []string {
	return func(string) []string { return []string{status} }
}
