package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/llm/llmtest"
	"nodest/store/storetest"
)

// TestTwoProcesses runs two servers on one PostgreSQL. What happens in one
// reaches the sockets of the other; a reply that one of them writes is attached
// and cancelled through the other; and what a server that was killed left behind
// ends there as interrupted, with its text.
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

	// A whole reply, asked for at A and heard at B, and the other way round.
	heardElsewhere(t, fake, here, there, conversation)
	heardElsewhere(t, fake, there, here, conversation)

	// A reply that A writes, in the middle of which B is asked.
	gate := gatedReply(fake, "Once", " upon a time")
	sent := here.say(conversation, "Tell me")
	letPass(t, gate)
	checkpointed(t, b.client, sent.GenerationID, "Once")
	var attached struct{ Status, Text string }
	there.ask("gen.attach", "", map[string]any{"generationId": sent.GenerationID, "off": 1}).into(t, &attached)
	require.Equal(t, "nce", attached.Text)
	there.ask("gen.cancel", "", map[string]any{"generationId": sent.GenerationID})
	for _, w := range []*watcher{here, there} {
		w.ends(sent, "Once", "cancelled")
	}
	select { // A finds out and closes its request
	case <-fake.Closed():
	case <-time.After(patience):
		t.Fatal("the provider's request was never closed")
	}

	// A is killed in the middle of a reply.
	gate = gatedReply(fake, "Half", " a story")
	sent = here.say(conversation, "Tell me more")
	letPass(t, gate)
	checkpointed(t, b.client, sent.GenerationID, "Half")
	a.kill(t)
	there.ends(sent, "Half", "interrupted")

	// The conversation goes on at B, and nobody's log has a hole.
	fake.Script(llmtest.Say("All is well."))
	sent = there.say(conversation, "And now?")
	there.ends(sent, "All is well.", "complete")
	requests := fake.Requests()
	var read strings.Builder // by the model, of what A wrote
	for _, m := range requests[len(requests)-1].Messages {
		read.WriteString(m.Text + "\n")
	}
	for _, said := range []string{"Well said.\n", "Tell me\n", "Once\n", "Tell me more\n", "Half\n", "And now?\n"} {
		require.Contains(t, read.String(), said)
	}
	there.inOrder()
	verifyLog(t, b.client)
	b.stop(t)
}

// heardElsewhere sends a message through one server and waits for the reply at
// the other.
func heardElsewhere(t *testing.T, fake *llmtest.Fake, from, to *watcher, conversation string) {
	t.Helper()
	fake.Script(llmtest.Say("Well", " said."))
	sent := from.say(conversation, "Hello")
	to.ends(sent, "Well said.", "complete")
	require.Contains(t, to.created, sent.UserMessage.ID)
	require.Contains(t, to.created, sent.Message.ID)
	from.ends(sent, "Well said.", "complete")
}

// gatedReply prepares a reply that waits at its gate before each piece.
func gatedReply(fake *llmtest.Fake, pieces ...string) chan<- struct{} {
	gate := make(chan struct{})
	reply := llmtest.Say(pieces...)
	reply.Gate = gate
	fake.Script(reply)
	return gate
}

func letPass(t *testing.T, gate chan<- struct{}) {
	t.Helper()
	select {
	case gate <- struct{}{}:
	case <-time.After(patience):
		t.Fatal("the model was never asked")
	}
}

// checkpointed waits until another process than the writing one sees the text.
func checkpointed(t *testing.T, c *client, generation, want string) {
	t.Helper()
	eventually(t, "the checkpoint", func() error {
		var g struct{ Text string }
		require.NoError(t, c.call(t.Context(), http.MethodGet, "/api/v1/generations/"+generation+"?off=0", nil, &g))
		if g.Text != want {
			return errNotYet
		}
		return nil
	})
}

// accepted is the answer to a message.
type accepted struct {
	GenerationID string
	UserMessage  chatMessage
	Message      chatMessage
}

// watcher is an app that keeps what it was told.
type watcher struct {
	*phone
	device   string
	seqs     []int64
	created  map[string]bool
	messages map[string]chatMessage // by id, the newest state
	ended    map[string]bool        // generations
}

func newWatcher(t *testing.T, c *client, device string) *watcher {
	t.Helper()
	return &watcher{
		phone: newPhone(t, c, device), device: device,
		created: map[string]bool{}, messages: map[string]chatMessage{}, ended: map[string]bool{},
	}
}

// ask sends a command and returns the answer, which must be a good one.
func (w *watcher) ask(cmd, key string, data any) *frame {
	w.t.Helper()
	id := w.send(cmd, key, data)
	for {
		if f := w.read(); f.ID == id {
			require.True(w.t, *f.OK, "%s: %s", cmd, f.Error)
			return f
		}
	}
}

func (w *watcher) say(conversation, text string) *accepted {
	w.t.Helper()
	var sent accepted
	key := fmt.Sprintf("%s-%d", w.device, w.ids)
	w.ask("chat.send", key, map[string]any{"conversationId": conversation, "text": text}).into(w.t, &sent)
	return &sent
}

// read takes one frame in.
func (w *watcher) read() *frame {
	w.t.Helper()
	f, err := w.next()
	require.NoError(w.t, err)
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
		require.False(w.t, w.ended[f.Gen], "a generation ended twice")
		w.ended[f.Gen] = true
	}
	return f
}

// ends waits for the end of a reply and checks what became of its message.
func (w *watcher) ends(sent *accepted, text, status string) {
	w.t.Helper()
	for !w.ended[sent.GenerationID] {
		w.read()
	}
	m := w.messages[sent.Message.ID]
	require.Equal(w.t, text, m.Text, "heard by %s", w.device)
	require.Equal(w.t, status, m.Status, "heard by %s", w.device)
}

// inOrder checks that every event came once and none is missing.
func (w *watcher) inOrder() {
	w.t.Helper()
	for i, seq := range w.seqs {
		require.Equal(w.t, w.seqs[0]+int64(i), seq, "position of an event")
	}
}
