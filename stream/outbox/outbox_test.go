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

	"nodest/stream"
)

// rig is an outbox with a connection that writes into a list, and an engine that
// knows one text.
type rig struct {
	o     *Outbox
	woken bool
	sent  []string // frames, shortened
	code  int
	text  string // of the generation so far
	ended bool
	log   []*stream.Event
	fails error // of writing
	asked []int // offsets of Text

	during func() // happens once, after a text was read
}

func newRig(bytes, frames int) *rig {
	r := &rig{}
	r.o = New(Options{
		MaxBytes: bytes, MaxFrames: frames, Wake: func() { r.woken = true },
		Slow: Close{4408, "slow_consumer"}, Unreadable: Close{1011, "the event log cannot be read"},
	})
	return r
}

// drain writes what can be written now, if the outbox asked for it.
func (r *rig) drain() {
	r.o.mu.Lock() // the timer wakes it, too
	woken := r.woken
	r.woken = false
	r.o.mu.Unlock()
	if woken {
		r.o.Pump(context.Background(), r)
	}
}

func (r *rig) Write(items []*Item) error {
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

func (r *rig) Finish(code int, _ string) { r.code = code }

func (r *rig) Since(_ context.Context, after, upTo int64, limit int) ([]*stream.Event, error) {
	var list []*stream.Event
	for _, e := range r.log {
		if e.Seq > after && e.Seq <= upTo && len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}

func (r *rig) Text(_ context.Context, id string, off int) (*Text, error) {
	r.asked = append(r.asked, off)
	t := &Text{
		GenerationID: id, ConversationID: "c", MessageID: "m", Off: off,
		Text: string([]rune(r.text)[off:]), Ended: r.ended,
	}
	if during := r.during; during != nil {
		r.during = nil
		during()
	}
	return t, nil
}

// attach answers gen.attach; meanwhile happens after the text was read.
func (r *rig) attach(off int, meanwhile func()) {
	r.o.Attach("g", func() ([]byte, *Text) {
		t, _ := r.Text(context.Background(), "g", off)
		meanwhile()
		return []byte(`{"id":"9"}`), t
	})
}

// says streams a piece of the reply.
func (r *rig) says(piece string) { r.part(len([]rune(r.text)), piece, "text"); r.text += piece }

func (r *rig) part(off int, piece, part string) {
	e := &stream.Event{ConversationID: "c", MessageID: "m", GenerationID: "g", Off: off}
	e.Say(piece, part)
	r.o.Deliver(e)
}

// rewinds takes text back.
func (r *rig) rewinds(off int) {
	r.text = string([]rune(r.text)[:off])
	r.o.Deliver(&stream.Event{Type: "gen.rewind", ConversationID: "c", MessageID: "m", GenerationID: "g", Off: off})
}

func (r *rig) durable(seq int64, kind string) {
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

func (r *rig) wants(t *testing.T, want string) {
	t.Helper()
	r.drain()
	if got := strings.Join(r.sent, " "); got != want {
		t.Errorf("sent   %s\nwanted %s", got, want)
	}
	r.sent = nil
}

func TestDeltasGoOutAsTheyComeWhileThereIsRoom(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Begin([]byte(`{"id":"1"}`), 0, 0)
	r.durable(1, "gen.started")
	r.says("a")
	r.says("b")
	r.wants(t, "reply 1 gen.started#1 0:a 1:b")
	r.part(0, "hm", "reasoning")
	r.durable(2, "message.updated")
	r.durable(3, "gen.done")
	r.wants(t, "reasoning@0:hm message.updated#2 gen.done#3")
}

func TestAFourthFullTheDeltasAreJoined(t *testing.T) {
	r := newRig(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for range 5 {
		r.says("茶x")
	}
	r.wants(t, "gen.started#1 0:茶x 2:茶x茶x茶x茶x")
	for i := range 3 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.says("1")
	r.o.Deliver(&stream.Event{Type: "gen.block", GenerationID: "g", ConversationID: "c"})
	r.says("2")
	r.wants(t, "chat.updated#2 chat.updated#3 chat.updated#4 10:1 gen.block 11:2")
}

func TestTextThatIsTakenBack(t *testing.T) {
	r := newRig(1<<20, 16)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.says("Hm, tea?")
	r.rewinds(0)
	r.says("Tea")
	r.wants(t, "gen.started#1 0:Hm, tea? gen.rewind 0:Tea")

	for i := range 13 { // no room for deltas
		r.durable(int64(2+i), "chat.updated")
	}
	r.says(" it is, I think")
	r.rewinds(0)
	r.says("Yes")
	r.drain()
	if got := strings.Join(r.sent[13:], " "); got != "gen.behind gen.rewind 0:Yes" {
		t.Errorf("behind: sent %s", got)
	}
}

func TestThreeFourthsFullTheDeltasAreDroppedAndMadeUpFor(t *testing.T) {
	r := newRig(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.says("one ")
	for i := range 5 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.says("two ")
	r.says("three ")
	r.part(0, "thinking", "reasoning")
	r.wants(t, "gen.started#1 0:one  chat.updated#2 chat.updated#3 chat.updated#4 chat.updated#5 chat.updated#6 gen.behind 4:two three ")
	r.says("four")
	r.wants(t, "14:four")
	if fmt.Sprint(r.asked) != "[4]" {
		t.Errorf("attached at %v", r.asked)
	}
}

func TestAReplyThatEndedWhileBehindIsNotMadeUpFor(t *testing.T) {
	r := newRig(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for i := range 6 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.says("lost")
	r.drain()
	r.sent = nil
	r.ended = true
	for i := range 6 {
		r.durable(int64(8+i), "chat.updated")
	}
	r.says("more")
	r.wants(t, "chat.updated#8 chat.updated#9 chat.updated#10 chat.updated#11 chat.updated#12 chat.updated#13 4:more")
}

func TestAFullQueueEndsTheConnection(t *testing.T) {
	for name, r := range map[string]*rig{"frames": newRig(1<<20, 4), "bytes": newRig(1000, 400)} {
		t.Run(name, func(t *testing.T) {
			r.o.Begin(nil, 0, 0)
			for i := range 8 {
				r.durable(int64(i+1), "chat.updated")
			}
			r.wants(t, "")
			if r.code != 4408 {
				t.Errorf("closed with %d", r.code)
			}
			r.durable(9, "chat.updated")
			r.o.Reply([]byte(`{}`))
			if len(r.o.items) > 0 || r.o.bytes > 0 {
				t.Error("something waits for a connection that has ended")
			}
		})
	}
	t.Run("one that is larger than the queue goes out alone", func(t *testing.T) {
		r := newRig(100, 4)
		r.o.Begin(nil, 0, 0)
		e := &stream.Event{Seq: 1, Type: "chat.updated", Data: []byte(`{"x":"` + strings.Repeat("y", 500) + `"}`)}
		r.o.Deliver(e)
		r.wants(t, "chat.updated#1")
	})
}

func TestAFailedWriteEndsTheConnection(t *testing.T) {
	r := newRig(1<<20, 512)
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
	r := newRig(1<<20, 512)
	for i := range 3 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: []byte(`{}`)})
	}
	r.durable(4, "gen.started")
	r.says("miss")
	r.says("ed ")
	r.o.Begin([]byte(`{"id":"1"}`), 1, 3)
	r.says("too ")
	r.wants(t, "reply 1 chat.updated#2 chat.updated#3 gen.started#4 0:missed too ")
	r.says("live")
	r.durable(5, "chat.updated")
	r.wants(t, "11:live chat.updated#5")
}

func TestALargeReplayIsCut(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Configure(Settings{Batch: true})
	big := []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`)
	for i := range 30 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: big})
	}
	r.o.Begin(nil, 0, 30)
	r.drain()
	if len(r.sent) != 30 || r.code != 0 {
		t.Errorf("%d events, closed with %d", len(r.sent), r.code)
	}
}

func TestSomebodyWhoComesInTheMiddleAttaches(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.text = "before "
	r.says("unheard ")
	r.wants(t, "")
	r.attach(3, func() { r.says("between ") })
	r.says("live ")
	r.wants(t, "reply 9 3:ore unheard  15:between live ")
	r.part(20, "ive and more", "text") // begins before the end of what was sent
	r.wants(t, "28:more")
}

func TestAnAttachToWhatHasEndedLeavesNothingBehind(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.text, r.ended = "all of it", true
	r.attach(0, func() {})
	r.wants(t, "reply 9")
	if len(r.o.gens) != 0 {
		t.Error("a generation that has ended is kept")
	}
}

func TestDeltasAreJoinedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1<<20, 512)
		r.o.Configure(Settings{DeltaEvery: 50 * time.Millisecond})
		r.o.Begin(nil, 0, 0)
		r.durable(1, "gen.started")
		r.says("a")
		r.wants(t, "gen.started#1 0:a")
		r.says("b")
		time.Sleep(20 * time.Millisecond) // virtual, as below
		r.says("c")
		r.wants(t, "")
		time.Sleep(40 * time.Millisecond)
		synctest.Wait()
		r.wants(t, "1:bc")
		r.says("d")
		r.wants(t, "")
		r.durable(2, "message.updated")
		r.wants(t, "3:d message.updated#2")
		r.o.Close(1000, "", true)
	})
}

func TestWhatIsLeftOutIsSkipped(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Configure(Settings{Filter: Filter{Want: map[string]bool{"circle": true}}})
	r.o.Begin(nil, 0, 0)
	r.durable(1, "memory.written")
	r.durable(2, "memory.written")
	r.durable(3, "chat.updated")
	r.durable(4, "dream.finished")
	r.wants(t, "skip#2 chat.updated#3 skip#4")
}

func TestAPingWaitsForNobody(t *testing.T) {
	r := newRig(1<<20, 512)
	r.o.Begin(nil, 0, 0)
	r.o.Ping()
	r.wants(t, "ping")
	r.durable(1, "chat.updated")
	r.o.Ping() // there is life enough
	r.wants(t, "chat.updated#1")
}

func TestClassesOfEvents(t *testing.T) {
	for kind, want := range map[string]string{
		"gen.delta": "deltas", "gen.rewind": "deltas", "gen.behind": "deltas", "gen.started": "", "gen.done": "", "message.updated": "",
		"memory.written": "memory", "extraction.pending": "memory", "dream.finished": "memory", "file.progress": "knowledge",
		"knowledge.updated": "knowledge", "research.step": "research", "circle.post": "circle", "typing": "",
	} {
		if got := ClassOf(kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestTextThatIsTakenBackWhileItIsRead(t *testing.T) {
	r := newRig(1<<20, 16)
	r.o.Begin(nil, 0, 0, Text{GenerationID: "g", MessageID: "m"})
	r.text = "Hm, tea?"
	taken := false
	r.attach(0, func() {
		if !taken {
			taken = true
			r.rewinds(0)
			r.says("Tea")
		}
	})
	r.says(" it is")
	r.wants(t, "gen.rewind reply 9 0:Tea 3: it is")
}

func TestWhoAttachesGetsTheDeltasOfAConversationThatIsNotSubscribed(t *testing.T) {
	r := newRig(1<<20, 16)
	r.o.Configure(Settings{Filter: Filter{Chats: map[string]bool{}}})
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	r.text = "Tea"
	r.attach(0, func() { r.says(" it") })
	r.says(" is")
	r.wants(t, "gen.started#1 reply 9 0:Tea 3: it is")
}

func TestAFailedAttachChangesNothing(t *testing.T) {
	for name, running := range map[string][]Text{"unknown": nil, "named by hello": {{GenerationID: "g", MessageID: "m"}}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(1<<20, 16)
			r.o.Begin(nil, 0, 0, running...)
			r.text = "before "
			r.o.Attach("g", func() ([]byte, *Text) {
				r.says("meanwhile ")
				return []byte(`{"id":"9"}`), nil
			})
			r.says("after")
			r.wants(t, "reply 9")
			if len(r.o.gens) != len(running) {
				t.Errorf("%d generations are kept", len(r.o.gens))
			}
		})
	}
}

func TestAnAttachIsNotOvertakenByCatchingUp(t *testing.T) {
	r := newRig(1<<20, 8)
	r.o.Begin(nil, 0, 0)
	r.durable(1, "gen.started")
	for i := range 6 {
		r.durable(int64(2+i), "chat.updated")
	}
	r.says("one ")
	r.during = func() { // the client attaches after its text was read
		r.says("two ")
		r.attach(0, func() {})
	}
	r.drain()
	r.says("three")
	r.drain()
	if got := strings.Join(r.sent[7:], " "); got != "gen.behind reply 9 0:one two  8:three" {
		t.Errorf("sent %s", got)
	}
}

func TestNothingFollowsAFullQueue(t *testing.T) {
	r := newRig(1<<20, 4)
	for i := range 9 {
		r.log = append(r.log, &stream.Event{Seq: int64(i + 1), Type: "chat.updated", Data: []byte(`{}`)})
	}
	r.o.Begin(nil, 0, 9)
	r.wants(t, "")
	if r.code != 4408 {
		t.Errorf("closed with %d", r.code)
	}
}
