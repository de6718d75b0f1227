package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
