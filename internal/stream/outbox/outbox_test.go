package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/stream"
)

// testConn is an outbox with a connection that writes to a list and an engine with one
// generation.
type testConn struct {
	o       *Outbox
	woken   bool
	sent    []string // frames, shortened
	code    int
	text    string // the generation's text so far
	ended   bool
	log     []*stream.Event
	fails   error // returned by Write
	offsets []int // passed to Text
	read    int   // events that Since returned

	onText func() // runs once, after a text was read
}

func newTestConn(bytes, frames int) *testConn {
	r := &testConn{}
	r.o = New(Options{
		MaxBytes: bytes, MaxFrames: frames, Wake: func() { r.woken = true },
		Slow: Close{4408, "slow_consumer"}, Unreadable: Close{1011, "the event log cannot be read"},
	})
	return r
}

// drain writes what can be written now, if the outbox has been woken.
func (r *testConn) drain() {
	r.o.mu.Lock() // the timer wakes it, too
	woken := r.woken
	r.woken = false
	r.o.mu.Unlock()
	if woken {
		r.o.Pump(context.Background(), r)
	}
}

func (r *testConn) Write(items []*Item) error {
	if r.fails != nil {
		return r.fails
	}
	for _, it := range items {
		r.sent = append(r.sent, shortened(it))
	}
	return nil
}

func shortened(it *Item) string {
	if it.Ping {
		return "ping"
	}
	var f struct {
		ID, Ev string
		Seq    int64
		Off    int
		Data   stream.Delta
	}
	if err := json.Unmarshal(it.JSON(), &f); err != nil {
		return string(it.JSON())
	}
	switch {
	case f.Ev == "gen.delta" && f.Data.Part != "text":
		return fmt.Sprintf("%s@%d:%s", f.Data.Part, f.Off, f.Data.Text)
	case f.Ev == "gen.delta":
		return fmt.Sprintf("%d:%s", f.Off, f.Data.Text)
	case f.Seq > 0:
		return fmt.Sprintf("%s#%d", f.Ev, f.Seq)
	case f.Ev != "":
		return f.Ev
	}
	return "reply " + f.ID
}

func (r *testConn) Finish(code int, _ string) { r.code = code }

func (r *testConn) Since(_ context.Context, after, upTo int64, limit int) ([]*stream.Event, error) {
	var list []*stream.Event
	for _, e := range r.log {
		if e.Seq > after && e.Seq <= upTo && len(list) < limit {
			list = append(list, e)
		}
	}
	r.read += len(list)
	return list, nil
}

func (r *testConn) Text(_ context.Context, id string, off int) (*Text, error) {
	r.offsets = append(r.offsets, off)
	t := &Text{
		GenerationID: id, ConversationID: "c", MessageID: "m", Off: off,
		Text: string([]rune(r.text)[off:]), Ended: r.ended,
	}
	if during := r.onText; during != nil {
		r.onText = nil
		during()
	}
	return t, nil
}

// attach answers gen.attach; meanwhile runs after the text was read.
func (r *testConn) attach(off int, meanwhile func()) {
	r.o.Attach("g", func() ([]byte, *Text) {
		t, _ := r.Text(context.Background(), "g", off)
		meanwhile()
		return []byte(`{"id":"9"}`), t
	})
}

// stream delivers the next piece of the reply.
func (r *testConn) stream(piece string) {
	r.deliverDelta(len([]rune(r.text)), piece, "text")
	r.text += piece
}

func (r *testConn) deliverDelta(off int, piece, part string) {
	e := &stream.Event{ConversationID: "c", MessageID: "m", GenerationID: "g", Off: off}
	e.Say(piece, part)
	r.o.Deliver(e)
}

// rewind cuts the text at off.
func (r *testConn) rewind(off int) {
	r.text = string([]rune(r.text)[:off])
	r.o.Deliver(&stream.Event{Type: "gen.rewind", ConversationID: "c", MessageID: "m", GenerationID: "g", Off: off})
}

func (r *testConn) durable(seq int64, kind string) {
	e := &stream.Event{Seq: seq, Type: kind, ConversationID: "c", Data: []byte(`{}`)}
	if strings.HasPrefix(kind, "gen.") || kind == "message.updated" {
		e.MessageID = "m"
	}
	if strings.HasPrefix(kind, "gen.") {
		e.GenerationID = "g"
	}
	r.log = append(r.log, e)
	r.o.Deliver(e)
}

func (r *testConn) wantSent(t *testing.T, want string) {
	t.Helper()
	r.drain()
	if got := strings.Join(r.sent, " "); got != want {
		t.Errorf("sent   %s\nwanted %s", got, want)
	}
	r.sent = nil
}

func TestDeltasAreSentAtOnceWhileThereIsRoom(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Begin([]byte(`{"id":"1"}`), 0, 0)
	r.durable(1, "gen.started")
	r.stream("a")
	r.stream("b")
	r.wantSent(t, "reply 1 gen.started#1 0:a 1:b")
	r.deliverDelta(0, "hm", "reasoning")
	r.durable(2, "message.updated")
	r.durable(3, "gen.done")
	r.wantSent(t, "reasoning@0:hm message.updated#2 gen.done#3")
}

func TestDeltasAreMergedOnceAQuarterOfTheQueueIsFull(t *testing.T) {
	r := newTestConn(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for range 5 {
		r.stream("茶x")
	}
	r.wantSent(t, "gen.started#1 0:茶x 2:茶x茶x茶x茶x")
	for i := range 3 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.stream("1")
	r.o.Deliver(&stream.Event{Type: "gen.block", GenerationID: "g", ConversationID: "c"})
	r.stream("2")
	r.wantSent(t, "chat.updated#2 chat.updated#3 chat.updated#4 10:1 gen.block 11:2")
}

func TestRewind(t *testing.T) {
	r := newTestConn(1<<20, 16)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.stream("Hm, tea?")
	r.rewind(0)
	r.stream("Tea")
	r.wantSent(t, "gen.started#1 0:Hm, tea? gen.rewind 0:Tea")

	for i := range 13 { // leave no room for deltas
		r.durable(int64(2+i), "chat.updated")
	}
	r.stream(" it is, I think")
	r.rewind(0)
	r.stream("Yes")
	r.drain()
	if got := strings.Join(r.sent[13:], " "); got != "gen.behind gen.rewind 0:Yes" {
		t.Errorf("behind: sent %s", got)
	}
}

func TestDeltasAreDroppedAndCaughtUpOnceThreeQuartersAreFull(t *testing.T) {
	r := newTestConn(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.stream("one ")
	for i := range 5 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.stream("two ")
	r.stream("three ")
	r.deliverDelta(0, "thinking", "reasoning")
	r.wantSent(t, "gen.started#1 0:one  chat.updated#2 chat.updated#3 chat.updated#4 chat.updated#5 chat.updated#6 gen.behind 4:two three ")
	r.stream("four")
	r.wantSent(t, "14:four")
	if fmt.Sprint(r.offsets) != "[4]" {
		t.Errorf("attached at %v", r.offsets)
	}
}

func TestAReplyThatEndedWhileBehindIsNotCaughtUp(t *testing.T) {
	r := newTestConn(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for i := range 6 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.stream("lost")
	r.drain()
	r.sent = nil
	r.ended = true
	for i := range 6 {
		r.durable(int64(8+i), "chat.updated")
	}
	r.stream("more")
	r.wantSent(t, "chat.updated#8 chat.updated#9 chat.updated#10 chat.updated#11 chat.updated#12 chat.updated#13 4:more")
}

func TestAFullQueueEndsTheConnection(t *testing.T) {
	for name, r := range map[string]*testConn{"frames": newTestConn(1<<20, 4), "bytes": newTestConn(1000, 400)} {
		t.Run(name, func(t *testing.T) {
			r.o.Begin(nil, 0, 0)
			for i := range 8 {
				r.durable(int64(i+1), "chat.updated")
			}
			r.wantSent(t, "")
			if r.code != 4408 {
				t.Errorf("closed with %d", r.code)
			}
			r.durable(9, "chat.updated")
			r.o.Reply([]byte(`{}`))
			if len(r.o.items) > 0 || r.o.bytes > 0 {
				t.Error("a closed connection has a queue")
			}
		})
	}
	t.Run("one event larger than the queue is sent alone", func(t *testing.T) {
		r := newTestConn(100, 4)
		r.o.Begin(nil, 0, 0)
		e := &stream.Event{Seq: 1, Type: "chat.updated", Data: []byte(`{"x":"` + strings.Repeat("y", 500) + `"}`)}
		r.o.Deliver(e)
		r.wantSent(t, "chat.updated#1")
	})
}

func TestAFailedWriteEndsTheConnection(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.fails = errors.New("deadline")
	r.durable(1, "chat.updated")
	r.durable(2, "chat.updated")
	r.drain()
	if r.code != 4408 {
		t.Errorf("closed with %d", r.code)
	}
}

func TestLiveEventsWaitForTheReplay(t *testing.T) {
	r := newTestConn(1<<20, 512)
	for i := range 3 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: []byte(`{}`)})
	}
	r.durable(4, "gen.started")
	r.stream("miss")
	r.stream("ed ")
	r.o.Begin([]byte(`{"id":"1"}`), 1, 3)
	r.stream("too ")
	r.wantSent(t, "reply 1 chat.updated#2 chat.updated#3 gen.started#4 0:missed too ")
	r.stream("live")
	r.durable(5, "chat.updated")
	r.wantSent(t, "11:live chat.updated#5")
}

// TestALargeReplayIsSentInParts reads each event once, however few of them a part has.
func TestALargeReplayIsSentInParts(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Configure(Settings{Batch: true})
	big := []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`)
	for i := range 30 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: big})
	}
	r.o.Begin(nil, 0, 30)
	r.drain()
	if len(r.sent) != 30 || r.read != 30 || r.code != 0 {
		t.Errorf("%d events of %d that were read, closed with %d", len(r.sent), r.read, r.code)
	}
}

func TestAttachingInTheMiddleOfAReply(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.text = "before "
	r.stream("skipped ")
	r.wantSent(t, "")
	r.attach(3, func() { r.stream("between ") })
	r.stream("live ")
	r.wantSent(t, "reply 9 3:ore skipped  15:between live ")
	r.deliverDelta(20, "ive and more", "text") // starts before the end of what was sent
	r.wantSent(t, "28:more")
}

func TestAttachingToAnEndedReplyKeepsNoState(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.text, r.ended = "all of it", true
	r.attach(0, func() {})
	r.wantSent(t, "reply 9")
	if len(r.o.gens) != 0 {
		t.Error("an ended generation is kept")
	}
}

func TestDeltasAreMergedOverAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestConn(1<<20, 512)
		r.o.Configure(Settings{DeltaEvery: 50 * time.Millisecond})
		r.o.Begin(nil, 0, 0)
		r.durable(1, "gen.started")
		r.stream("a")
		r.wantSent(t, "gen.started#1 0:a")
		r.stream("b")
		time.Sleep(20 * time.Millisecond) // virtual, as below
		r.stream("c")
		r.wantSent(t, "")
		time.Sleep(40 * time.Millisecond)
		synctest.Wait()
		r.wantSent(t, "1:bc")
		r.stream("d")
		r.wantSent(t, "")
		r.durable(2, "message.updated")
		r.wantSent(t, "3:d message.updated#2")
		r.o.Close(1000, "", true)
	})
}

func TestFilteredEventsAreSkipped(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Configure(Settings{Filter: Filter{Want: map[string]bool{"circle": true}}})
	r.o.Begin(nil, 0, 0)
	r.durable(1, "memory.written")
	r.durable(2, "memory.written")
	r.durable(3, "chat.updated")
	r.durable(4, "file.progress")
	r.durable(5, stream.Skip)
	r.wantSent(t, "skip#2 chat.updated#3 skip#5")
}

func TestAPingIsSentOnlyWhenNothingElseIs(t *testing.T) {
	r := newTestConn(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.o.Ping()
	r.wantSent(t, "ping")
	r.durable(1, "chat.updated")
	r.o.Ping() // not needed: an event is waiting
	r.wantSent(t, "chat.updated#1")
}

func TestClassesOfEvents(t *testing.T) {
	for kind, want := range map[string]string{
		"gen.delta": "deltas", "gen.rewind": "deltas", "gen.behind": "deltas", "gen.started": "", "gen.done": "", "message.updated": "",
		"memory.written": "memory", "file.progress": "knowledge",
		"knowledge.updated": "knowledge", "research.step": "research", "circle.post": "circle", "typing": "",
	} {
		if got := ClassOf(kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestRewindWhileTheTextIsRead(t *testing.T) {
	r := newTestConn(1<<20, 16)
	r.o.Begin(nil, 0, 0, Text{GenerationID: "g", MessageID: "m"})
	r.text = "Hm, tea?"
	taken := false
	r.attach(0, func() {
		if !taken {
			taken = true
			r.rewind(0)
			r.stream("Tea")
		}
	})
	r.stream(" it is")
	r.wantSent(t, "gen.rewind reply 9 0:Tea 3: it is")
}

func TestAttachingGivesDeltasWithoutASubscription(t *testing.T) {
	r := newTestConn(1<<20, 16)
	r.o.Configure(Settings{Filter: Filter{Chats: map[string]bool{}}})
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.text = "Tea"
	r.attach(0, func() { r.stream(" it") })
	r.stream(" is")
	r.wantSent(t, "gen.started#1 reply 9 0:Tea 3: it is")
}

func TestAFailedAttachChangesNothing(t *testing.T) {
	for name, running := range map[string][]Text{"unknown": nil, "named by hello": {{GenerationID: "g", MessageID: "m"}}} {
		t.Run(name, func(t *testing.T) {
			r := newTestConn(1<<20, 16)
			r.o.Begin(nil, 0, 0, running...)
			r.text = "before "
			r.o.Attach("g", func() ([]byte, *Text) {
				r.stream("meanwhile ")
				return []byte(`{"id":"9"}`), nil
			})
			r.stream("after")
			r.wantSent(t, "reply 9")
			if len(r.o.gens) != len(running) {
				t.Errorf("%d generations are kept", len(r.o.gens))
			}
		})
	}
}

func TestAnAttachIsNotOvertakenByCatchingUp(t *testing.T) {
	r := newTestConn(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for i := range 6 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.stream("one ")
	r.onText = func() { // the client attaches after its text was read
		r.stream("two ")
		r.attach(0, func() {})
	}
	r.drain()
	r.stream("three")
	r.drain()
	if got := strings.Join(r.sent[7:], " "); got != "gen.behind reply 9 0:one two  8:three" {
		t.Errorf("sent %s", got)
	}
}

func TestNothingIsSentOnceTheQueueIsFull(t *testing.T) {
	r := newTestConn(1<<20, 4)
	for i := range 9 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: []byte(`{}`)})
	}
	r.o.Begin(nil, 0, 9)
	r.wantSent(t, "")
	if r.code != 4408 {
		t.Errorf("closed with %d", r.code)
	}
}
