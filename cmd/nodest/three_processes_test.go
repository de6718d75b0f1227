package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// TestThreeProcessesNeverDoubleAReply lets clients send, repeat, cancel and regenerate at
// random ones of three servers on one PostgreSQL database, while these are killed and
// started again, or stopped for longer than their leases. Every message is stored once;
// every request has one generation, which ended once and wrote at most one text.
// NODEST_LONG=1 makes 200 kills.
func TestThreeProcessesNeverDoubleAReply(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	rng, kills := newRand(t), scaled(t, 3, 200)
	f := &fleet{acks: make(chan struct{}, 8)}
	for range 3 {
		inst := newInstallation(t, database, "NODEST_GENERATIONS=8", "NODEST_OFFLINE_DELAY=4ms")
		f.installations = append(f.installations, inst)
		f.processes = append(f.processes, inst.start(t))
	}
	character := sampleCharacter(t, f.processes[0].client)
	ctx, stop := context.WithCancel(t.Context())
	talkers := make([]*talker, 5)
	var talking sync.WaitGroup
	for i := range talkers {
		w := &talker{
			fleet: f, conversation: newConversation(t, f.processes[0].client, character),
			rng: rand.New(rand.NewPCG(rng.Uint64(), uint64(i))), said: map[string]string{}, requests: map[string][]string{},
		}
		talkers[i] = w
		talking.Go(func() { w.err = w.talk(ctx) })
	}
	pauses := 0
	for range kills {
		for range 5 + rng.IntN(20) {
			f.awaitAck(t, talkers)
		}
		f.killOne(t, rng)
		if rng.IntN(8) == 0 {
			f.pauseOne(t, rng)
			pauses++
		}
	}
	f.awaitAck(t, talkers)
	stop()
	talking.Wait()
	said, repeated := 0, 0
	for _, w := range talkers {
		require.NoError(t, w.err)
		said, repeated = said+len(w.said), repeated+w.repeated
	}
	requests := f.verify(t, database, talkers)
	t.Logf("%d kills, %d pauses, %d messages, %d requests for a text, %d commands repeated, 0 lost, 0 doubled", kills, pauses, said, requests, repeated)
}

// fleet is several servers of one database.
type fleet struct {
	installations []*installation
	acks          chan struct{} // commands that were carried out

	mu        sync.Mutex
	processes []*process
}

// client returns a client of one of the servers, which may be dead.
func (f *fleet) client(n int) *client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[n%len(f.processes)].client
}

func (f *fleet) awaitAck(t *testing.T, talkers []*talker) {
	t.Helper()
	select {
	case <-f.acks:
	case <-time.After(testTimeout):
		for _, w := range talkers {
			t.Logf("%s: %v", w.conversation, w.failing.Load())
		}
		t.Fatal("nothing is answered any more")
	}
}

// killOne kills a server and starts it again.
func (f *fleet) killOne(t *testing.T, rng *rand.Rand) {
	t.Helper()
	n := rng.IntN(len(f.processes))
	f.processes[n].kill(t)
	p := f.installations[n].start(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[n] = p
}

// pauseOne stops a server until the leases of its replies have expired, and lets it go on.
func (f *fleet) pauseOne(t *testing.T, rng *rand.Rand) {
	t.Helper()
	p := f.processes[rng.IntN(len(f.processes))].cmd.Process
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	<-time.After(5 * time.Second) // the lease of tests is 3
	require.NoError(t, p.Signal(syscall.SIGCONT))
}

// talker is a client with a conversation of its own.
type talker struct {
	*fleet
	conversation string
	rng          *rand.Rand

	said     map[string]string   // text -> id of its message
	requests map[string][]string // reply -> generations that were asked for
	reply    string              // the last one
	repeated int                 // commands
	failing  atomic.Value        // the last error, for the log
	err      error
}

// talk does one thing after another until stop.
func (w *talker) talk(stop context.Context) error {
	for n := 0; stop.Err() == nil; n++ {
		text := fmt.Sprintf("%s says %d", w.conversation[len(w.conversation)-4:], n)
		path, body := "/conversations/"+w.conversation+"/messages", map[string]any{"text": text, "clientMsgId": "m-" + fmt.Sprint(n)}
		again := w.reply != "" && w.rng.IntN(5) == 0
		if again {
			path, body = "/messages/"+w.reply+"/regenerate", map[string]any{}
		}
		if busy := []string{"", "cancel", "queue"}[w.rng.IntN(3)]; busy != "" {
			body["whenBusy"] = busy
		}
		sent, err := w.command(path, fmt.Sprintf("%s-%d", w.conversation, n), body)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !again {
			w.said[text], w.reply = sent.UserMessage.ID, sent.Message.ID
		}
		w.requests[w.reply] = append(w.requests[w.reply], sent.GenerationID)
		select {
		case w.acks <- struct{}{}:
		default: // a server is being started
		}
		switch w.rng.IntN(4) {
		case 0:
			_ = w.client(w.rng.IntN(3)).call(stop, http.MethodPost, "/api/v1/generations/"+sent.GenerationID+"/cancel", nil, nil)
		case 1, 2:
			w.awaitEnd(stop, sent.GenerationID)
		}
	}
	return nil
}

// command sends a command with its key until it is carried out, now and then to two servers
// at once. All answers must be the same.
func (w *talker) command(path, key string, body map[string]any) (*sentMessage, error) {
	for deadline := time.Now().Add(testTimeout); ; w.repeated++ {
		answers, failed := make([]*sentMessage, 1+w.rng.IntN(4)/3), make([]error, 2)
		first := w.rng.IntN(3)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i], failed[i] = postAsync(w.client(first+i), path, key, body) })
		}
		all.Wait()
		var sent *sentMessage
		for i, a := range answers {
			var f *fault.Error
			switch {
			case failed[i] == nil && sent != nil && (a.GenerationID != sent.GenerationID || a.UserMessage.ID != sent.UserMessage.ID):
				return nil, fmt.Errorf("one key has two effects: %+v and %+v", a, sent)
			case failed[i] == nil:
				sent = a
			case !errors.As(failed[i], &f): // the server is dead
			case f.Code != fault.Busy && f.Code != fault.TooManyGenerations && f.Code != fault.InProgress:
				return nil, failed[i]
			}
		}
		if sent != nil {
			return sent, nil
		}
		err := errors.Join(failed...)
		w.failing.Store(err.Error())
		if time.Now().After(deadline) {
			return nil, err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// postAsync posts a command and returns its answer, which does not wait for the reply.
func postAsync(c *client, path, key string, body map[string]any) (*sentMessage, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + c.token, "Prefer": "respond-async", "Idempotency-Key": key,
	} {
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 400 {
		return nil, problemOf(res)
	}
	var sent sentMessage
	return &sent, json.NewDecoder(res.Body).Decode(&sent)
}

// awaitEnd waits for the end of a generation.
func (w *talker) awaitEnd(stop context.Context, generation string) {
	for stop.Err() == nil {
		var g struct{ Status string }
		err := w.client(w.rng.IntN(3)).call(stop, http.MethodGet, "/api/v1/generations/"+generation, nil, &g)
		if ended := (&chat.Generation{Status: g.Status}).Ended(); err == nil && ended {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// verify compares what is stored with what the talkers did, and returns the number of
// generations.
func (f *fleet) verify(t *testing.T, database string, talkers []*talker) (generations int) {
	t.Helper()
	var me item
	require.NoError(t, f.client(0).call(t.Context(), http.MethodGet, "/api/v1/me", nil, &me))
	db, err := store.Open(t.Context(), store.Options{URL: database})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	eventually(t, "the end of all generations", func() error {
		return db.View(t.Context(), me.ID, func(tx nodest.Tx) error {
			running, err := tx.Chats.Running("")
			if err == nil && len(running) > 0 {
				err = fmt.Errorf("%d generations have not ended: %w", len(running), errNotYet)
			}
			return err
		})
	})
	asked := map[string]bool{}
	require.NoError(t, db.View(t.Context(), me.ID, func(tx nodest.Tx) error {
		for _, w := range talkers {
			w.verify(t, tx)
			for _, ids := range w.requests {
				for _, id := range ids {
					asked[id] = true
				}
			}
		}
		return nil
	}))
	ended := map[string]int{}
	log := wholeLog(t, f.client(0))
	for i, e := range log {
		require.Equal(t, int64(i+1), e.Seq, "a gap in the log")
		if e.Ev == "gen.done" || e.Ev == "gen.failed" {
			ended[e.Gen]++
			require.Equal(t, 1, ended[e.Gen], "ends of a generation")
		}
	}
	require.Equal(t, asked, keysOf(ended), "generations that were asked for, and that ended")
	return len(asked)
}

func keysOf(counts map[string]int) map[string]bool {
	keys := map[string]bool{}
	for key := range maps.Keys(counts) {
		keys[key] = true
	}
	return keys
}

// verify checks the tree of the conversation.
func (w *talker) verify(t *testing.T, tx nodest.Tx) {
	t.Helper()
	said, replies := map[string]string{}, 0
	for queue := []string{""}; len(queue) > 0; queue = queue[1:] {
		children, err := tx.Chats.Children(w.conversation, queue[0])
		require.NoError(t, err)
		require.LessOrEqual(t, len(children), 1, "messages that follow %s", queue[0])
		for _, m := range children {
			queue = append(queue, m.ID)
			switch {
			case m.Role == chat.RoleUser:
				require.Empty(t, said[m.Text()], "%q is stored twice", m.Text())
				said[m.Text()] = m.ID
			case !m.Greeting:
				replies++
				w.verifyReply(t, tx, m)
			}
		}
	}
	require.Equal(t, w.said, said, "messages that were acknowledged, and that are stored")
	require.Equal(t, len(said), replies, "replies")
}

// verifyReply checks that a reply has at most one text of each request for it, and exactly one
// of a request that is done.
func (w *talker) verifyReply(t *testing.T, tx nodest.Tx, m *chat.Message) {
	t.Helper()
	require.Contains(t, []string{chat.StatusComplete, chat.StatusCancelled, chat.StatusInterrupted}, m.Status, "reply %s", m.ID)
	var wrote []string
	for _, s := range m.Swipes {
		require.Contains(t, w.requests[m.ID], s.GenerationID, "a text of reply %s that nobody asked for", m.ID)
		require.NotContains(t, wrote, s.GenerationID, "reply %s has a text twice", m.ID)
		wrote = append(wrote, s.GenerationID)
	}
	for _, id := range w.requests[m.ID] {
		g, err := tx.Generation(id)
		require.NoError(t, err)
		if g.Status == chat.GenDone || g.HasText() {
			require.True(t, slices.Contains(wrote, id), "reply %s: the text of generation %s is missing", m.ID, id)
		}
	}
}
