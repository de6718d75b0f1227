package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
	"nodest/store/storetest"
)

// TestTwoProcesses runs two servers on one PostgreSQL database. Events of one reach
// the sockets of the other, a client can attach to a reply of one and cancel it through
// the other, and the reply of a killed server ends as interrupted with its text.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	fake := llmtest.NewOpenAI(t)
	env := []string{
		"NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL=" + fake.URL, "NODEST_SECRET_KEY=shared by both servers",
	}
	a := newInstallation(t, database, env...).start(t)
	b := newInstallation(t, database, env...).start(t)
	conversation := newConversation(t, a.client, sampleCharacter(t, a.client))
	here, there := newWatcher(t, a.client, "here"), newWatcher(t, b.client, "there")

	// A reply of A reaches B, and the other way round.
	replyReachesOtherServer(t, fake, here, there, conversation)
	replyReachesOtherServer(t, fake, there, here, conversation)

	// While A writes a reply, a client of B attaches and cancels it.
	gate := gatedReply(fake, "Once", " upon a time")
	sent := here.sendMessage(conversation, "Tell me")
	releasePiece(t, gate)
	awaitCheckpoint(t, b.client, sent.GenerationID, "Once")
	var attached struct{ Status, Text string }
	there.ask("gen.attach", "", map[string]any{"generationId": sent.GenerationID, "off": 1}).into(t, &attached)
	if attached.Text != "nce" {
		t.Fatalf("attached.Text is %q, want %q", attached.Text, "nce")
	}
	there.ask("gen.cancel", "", map[string]any{"generationId": sent.GenerationID})
	for _, w := range []*watcher{here, there} {
		w.wantEnd(sent, "Once", "cancelled")
	}
	select { // A notices and closes its request
	case <-fake.Closed():
	case <-time.After(testTimeout):
		t.Fatal("the provider's request was never closed")
	}

	// A is killed in the middle of a reply.
	gate = gatedReply(fake, "Half", " a story")
	sent = here.sendMessage(conversation, "Tell me more")
	releasePiece(t, gate)
	awaitCheckpoint(t, b.client, sent.GenerationID, "Half")
	a.kill(t)
	there.wantEnd(sent, "Half", "interrupted")

	// The conversation continues at B, and the log has no gap.
	fake.Script(llmtest.Say("All is well."))
	sent = there.sendMessage(conversation, "And now?")
	there.wantEnd(sent, "All is well.", "complete")
	requests := fake.Requests()
	var read strings.Builder // all messages sent to the model
	for _, m := range requests[len(requests)-1].Messages {
		read.WriteString(m.Text + "\n")
	}
	for _, said := range []string{"Well said.\n", "Tell me\n", "Once\n", "Tell me more\n", "Half\n", "And now?\n"} {
		if got := read.String(); !strings.Contains(got, said) {
			t.Fatalf("read.String() is %q, want it with %q", got, said)
		}
	}
	there.wantNoGaps()
	verifyLog(t, b.client)
	b.stop(t)
}

// TestTextIsLiveAtAnotherProcess runs two servers on one PostgreSQL, without and with NATS. A client of B reads each
// piece of a reply while A writes it, attaches in the middle without waiting for a checkpoint, and cancels it at once;
// typing reaches it, too.
func TestTextIsLiveAtAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(t *testing.T) []string{
		"PostgreSQL": func(*testing.T) []string { return nil },
		"NATS":       func(t *testing.T) []string { return []string{"NODEST_NATS_URL=" + startNATS(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := storetest.PostgresURL(t)
			fake := llmtest.NewOpenAI(t)
			env := append([]string{
				"NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL=" + fake.URL, "NODEST_SECRET_KEY=shared by both servers",
			}, more(t)...)
			a := newInstallation(t, database, env...).start(t)
			b := newInstallation(t, database, env...).start(t)
			conversation := newConversation(t, a.client, sampleCharacter(t, a.client))
			here, there := newWatcher(t, a.client, "here"), newWatcher(t, b.client, "there")
			here.untilHeard(there, conversation)

			gate := gatedReply(fake, "Once", " upon", " a time", " there was")
			sent := here.sendMessage(conversation, "Tell me")
			off := 0
			for _, piece := range []string{"Once", " upon"} {
				releasePiece(t, gate)
				off = there.wantDelta(sent, piece, off)
			}
			var attached struct{ Text string }
			there.ask("gen.attach", "", map[string]any{"generationId": sent.GenerationID, "off": 0}).into(t, &attached)
			if attached.Text != "Once upon" {
				t.Errorf("attached to %q", attached.Text)
			}
			releasePiece(t, gate)
			there.wantDelta(sent, " a time", off)
			began := time.Now()
			there.ask("gen.cancel", "", map[string]any{"generationId": sent.GenerationID})
			select {
			case <-fake.Closed():
				t.Logf("cancelled at the other process after %v", time.Since(began).Round(time.Millisecond))
			case <-time.After(testTimeout):
				t.Fatal("the provider's request was never closed")
			}
			for _, w := range []*watcher{here, there} {
				w.wantEnd(sent, "Once upon a time", "cancelled")
				w.wantNoGaps()
			}
			a.stop(t)
			b.stop(t)
		})
	}
}

// startNATS starts a NATS server and returns its address.
func startNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Username: "nodest", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(testTimeout) {
		t.Fatal("NATS does not start")
	}
	return "nats://nodest:secret@" + s.Addr().String()
}

// untilHeard types until another device hears it.
func (w *watcher) untilHeard(other *watcher, conversation string) {
	w.t.Helper()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for {
			if f, err := other.next(); err != nil || f.Ev == "typing" {
				return
			}
		}
	}()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		w.ask("typing", "", map[string]any{"conversationId": conversation})
		select {
		case <-heard:
			return
		case <-again.C:
		}
	}
}

// wantDelta waits for a piece of a reply's text, and returns where the next one begins.
func (w *watcher) wantDelta(sent *sentMessage, text string, off int) int {
	w.t.Helper()
	for {
		f := w.read()
		if f.Ev != "gen.delta" || f.Gen != sent.GenerationID || f.Off < off { // attaching repeats what was said
			continue
		}
		var d struct{ Text, Part string }
		f.into(w.t, &d)
		if d.Text != text || f.Off != off {
			w.t.Fatalf("received by %s: %q at %d, want %q at %d", w.device, d.Text, f.Off, text, off)
		}
		return off + len(text)
	}
}

// replyReachesOtherServer sends a message through one server and waits for the reply
// at the other.
func replyReachesOtherServer(t *testing.T, fake *llmtest.Fake, from, to *watcher, conversation string) {
	t.Helper()
	fake.Script(llmtest.Say("Well", " said."))
	sent := from.sendMessage(conversation, "Hello")
	to.wantEnd(sent, "Well said.", "complete")
	if _, ok := to.created[sent.UserMessage.ID]; !ok {
		t.Fatalf("to.created is %+v, want it with %q", to.created, sent.UserMessage.ID)
	}
	if _, ok := to.created[sent.Message.ID]; !ok {
		t.Fatalf("to.created is %+v, want it with %q", to.created, sent.Message.ID)
	}
	from.wantEnd(sent, "Well said.", "complete")
}

// gatedReply scripts a reply that waits for its gate before each piece.
func gatedReply(fake *llmtest.Fake, pieces ...string) chan<- struct{} {
	gate := make(chan struct{})
	reply := llmtest.Say(pieces...)
	reply.Gate = gate
	fake.Script(reply)
	return gate
}

func releasePiece(t *testing.T, gate chan<- struct{}) {
	t.Helper()
	select {
	case gate <- struct{}{}:
	case <-time.After(testTimeout):
		t.Fatal("the model was never called")
	}
}

// awaitCheckpoint waits until the server that does not write the reply sees its text.
func awaitCheckpoint(t *testing.T, c *cli.Client, generation, want string) {
	t.Helper()
	eventually(t, "the checkpoint", func() error {
		var g struct{ Text string }
		if err := c.Call(t.Context(), http.MethodGet, "/api/v1/generations/"+generation+"?off=0", nil, &g); err != nil {
			t.Fatal(err)
		}
		if g.Text != want {
			return errNotYet
		}
		return nil
	})
}

// sentMessage is the response to a sent message.
type sentMessage struct {
	GenerationID string
	UserMessage  chatMessage
	Message      chatMessage
}

// watcher is a client that collects what it receives.
type watcher struct {
	*wsClient
	device   string
	seqs     []int64
	created  map[string]bool
	messages map[string]chatMessage // by id, the latest state
	ended    map[string]bool        // generations
}

func newWatcher(t *testing.T, c *cli.Client, device string) *watcher {
	t.Helper()
	return &watcher{
		wsClient: connectWS(t, c, device), device: device,
		created: map[string]bool{}, messages: map[string]chatMessage{}, ended: map[string]bool{},
	}
}

// ask sends a command that must succeed and returns the answer.
func (w *watcher) ask(cmd, key string, data any) *frame {
	w.t.Helper()
	id := w.send(cmd, key, data)
	for {
		if f := w.read(); f.ID == id {
			if !(*f.OK) {
				w.t.Fatalf("%s: %s", cmd, f.Error)
			}
			return f
		}
	}
}

func (w *watcher) sendMessage(conversation, text string) *sentMessage {
	w.t.Helper()
	var sent sentMessage
	key := fmt.Sprintf("%s-%d", w.device, w.ids)
	w.ask("chat.send", key, map[string]any{"conversationId": conversation, "text": text}).into(w.t, &sent)
	return &sent
}

// read processes one frame.
func (w *watcher) read() *frame {
	w.t.Helper()
	f, err := w.next()
	if err != nil {
		w.t.Fatal(err)
	}
	if f.Seq > 0 {
		w.seqs = append(w.seqs, f.Seq)
	}
	switch f.Ev {
	case "message.created", "message.updated":
		var d struct{ Message chatMessage }
		f.into(w.t, &d)
		w.messages[d.Message.ID] = d.Message
		if f.Ev == "message.created" {
			w.created[d.Message.ID] = true
		}
	case "gen.done", "gen.failed":
		if w.ended[f.Gen] {
			w.t.Fatal("a generation ended twice")
		}
		w.ended[f.Gen] = true
	}
	return f
}

// wantEnd waits for the end of a reply and checks its message.
func (w *watcher) wantEnd(sent *sentMessage, text, status string) {
	w.t.Helper()
	for !w.ended[sent.GenerationID] {
		w.read()
	}
	m := w.messages[sent.Message.ID]
	if m.Text != text {
		w.t.Fatalf("received by %s: m.Text is %q, want %q", w.device, m.Text, text)
	}
	if m.Status != status {
		w.t.Fatalf("received by %s: m.Status is %q, want %q", w.device, m.Status, status)
	}
}

// wantNoGaps checks that no event is missing or came twice.
func (w *watcher) wantNoGaps() {
	w.t.Helper()
	for i, seq := range w.seqs {
		if want := w.seqs[0] + int64(i); seq != want {
			w.t.Fatalf("position of an event: seq is %d, want %d", seq, want)
		}
	}
}
