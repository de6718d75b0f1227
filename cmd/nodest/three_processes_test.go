package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// TestThreeProcessesNeverDoubleAReply lets clients write in conversations of their own at
// random ones of three servers on one PostgreSQL database: they send, regenerate, continue,
// edit, delete and restore, choose swipes and branches, cancel, repeat commands, and follow
// replies. Meanwhile servers are killed and started again, or stopped for longer than their
// leases. In the end every conversation is what its commands say: each message is stored once,
// in order, below its parent; each request for a text ended once and wrote at most one text.
// Two clients that follow the events at changing servers know the same as REST tells.
// NODEST_LONG=1 makes 200 kills.
func TestThreeProcessesNeverDoubleAReply(t *testing.T) {
	t.Parallel()
	newFleet(t, storetest.PostgresURL(t), 3).run(t, scaled(t, 3, 200))
}

// TestOneProcessNeverDoublesAReply does the same with one server on SQLite.
func TestOneProcessNeverDoublesAReply(t *testing.T) {
	t.Parallel()
	newFleet(t, "", 1).run(t, scaled(t, 3, 200))
}

// fleet is one or more servers of one database, with clients that write and clients that
// follow the events.
type fleet struct {
	installations []*installation
	acks          chan struct{} // commands that were carried out
	failed        chan error    // errors that the clients found
	talkers       []*talker
	followers     []*follower

	mu        sync.Mutex
	processes []*process
}

func newFleet(t *testing.T, database string, servers int) *fleet {
	t.Helper()
	f := &fleet{acks: make(chan struct{}, 8), failed: make(chan error, 32)}
	for range servers {
		inst := newInstallation(t, database, "NODEST_GENERATIONS=8", "NODEST_OFFLINE_DELAY=4ms").fast(t)
		f.installations = append(f.installations, inst)
		f.processes = append(f.processes, inst.start(t))
	}
	return f
}

// run lets clients work while servers are killed, and verifies what they did.
func (f *fleet) run(t *testing.T, kills int) {
	t.Helper()
	rng, pauses := newRand(t), 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	character := sampleCharacter(t, f.client(0))
	for i := range 5 {
		w := newTalker(t, f, character, rand.New(rand.NewPCG(rng.Uint64(), uint64(i))))
		f.talkers = append(f.talkers, w)
		working.Go(func() { f.report(w.talk(ctx)) })
	}
	for i := range 2 {
		w := newFollower(t, f, fmt.Sprintf("follower-%d", i), rand.New(rand.NewPCG(rng.Uint64(), uint64(i))))
		f.followers = append(f.followers, w)
		working.Go(func() { f.report(w.follow(ctx)) })
	}
	for range kills {
		for range 5 + rng.IntN(20) {
			f.awaitAck(t)
		}
		f.killOne(t, rng)
		if len(f.processes) > 1 && rng.IntN(8) == 0 {
			f.pauseOne(t, rng)
			pauses++
		}
	}
	f.awaitAck(t)
	stop()
	working.Wait()
	select {
	case err := <-f.failed:
		t.Fatal(err)
	default:
		f.verify(t)
	}
	t.Logf("%d kills, %d pauses, %s", kills, pauses, f.figures())
}

// report passes on what a client found wrong.
func (f *fleet) report(err error) {
	if err != nil {
		f.failed <- err
	}
}

// client returns a client of one of the servers, which may be dead.
func (f *fleet) client(n int) *cli.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[n%len(f.processes)].client
}

func (f *fleet) awaitAck(t *testing.T) {
	t.Helper()
	select {
	case <-f.acks:
	case err := <-f.failed:
		t.Fatal(err)
	case <-time.After(testTimeout):
		for _, w := range f.talkers {
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
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(5 * time.Second) // the lease of tests is 3
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// verify compares what is stored, what REST tells at one server and what is known from events
// at another with what the talkers did.
func (f *fleet) verify(t *testing.T) {
	t.Helper()
	for _, w := range f.talkers {
		if err := w.awaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.verifyStored(t)
	asked, messages := map[string]bool{}, int64(0)
	for _, w := range f.talkers {
		messages += int64(len(w.order))
		for _, id := range w.asked {
			if asked[id] {
				t.Fatalf("two requests for a text have one generation, %s", id)
			}
			asked[id] = true
		}
	}
	late := newMirror()
	for _, e := range wholeLog(t, f.client(0)) {
		if err := late.apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(late.ended, asked) {
		t.Fatalf("generations that were asked for, and that ended: late.ended is %+v, want %+v", late.ended, asked)
	}
	mirrors := []*mirror{late}
	for _, w := range f.followers {
		if err := w.catchUp(t, late.seq); err != nil {
			t.Fatal(err)
		}
		mirrors = append(mirrors, w.mirror)
	}
	for _, w := range f.talkers {
		w.compare(t, f.client(len(f.processes)-1), mirrors)
	}
	var me struct {
		Quotas map[string]struct{ Used int64 }
	}
	if err := f.client(0).Call(t.Context(), http.MethodGet, "/api/v1/me", nil, &me); err != nil {
		t.Fatal(err)
	}
	if me.Quotas["messages"].Used != messages {
		t.Fatalf("the counter of messages: got %d, want %d", me.Quotas["messages"].Used, messages)
	}
	if me.Quotas["conversations"].Used != int64(len(f.talkers)) {
		t.Fatalf("the counter of conversations: got %d, want %d", me.Quotas["conversations"].Used, int64(len(f.talkers)))
	}
}

// verifyStored compares the rows with what the talkers did. A server that has its database
// alone is stopped meanwhile.
func (f *fleet) verifyStored(t *testing.T) {
	t.Helper()
	var me cli.Item
	if err := f.client(0).Call(t.Context(), http.MethodGet, "/api/v1/me", nil, &me); err != nil {
		t.Fatal(err)
	}
	if len(f.processes) == 1 {
		f.processes[0].stop(t)
		defer func() { f.processes[0] = f.installations[0].start(t) }()
	}
	db, err := store.Open(t.Context(), f.installations[0].options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	if err := db.View(t.Context(), me.ID, func(tx nodest.Tx) error {
		running, err := tx.Chats.Running("")
		if err != nil {
			return err
		}
		if len(running) != 0 {
			t.Fatalf("generations that have not ended are %+v, want none", running)
		}
		for _, w := range f.talkers {
			w.verify(t, tx)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// figures says what the clients did.
func (f *fleet) figures() string {
	var messages, requests, commands, repeated, streams, hops int
	done := map[string]int{}
	for _, w := range f.talkers {
		messages, requests, commands = messages+len(w.order), requests+len(w.asked), commands+w.commands
		repeated, streams = repeated+w.repeated, streams+w.streams
		for name, n := range w.done {
			done[name] += n
		}
	}
	for _, w := range f.followers {
		hops += w.hops
	}
	return fmt.Sprintf("%d commands (%s), %d of them repeated, %d messages, %d requests for a text, %d streams, %d connections of followers, 0 lost, 0 doubled",
		commands, tally(done), repeated, messages, requests, streams, hops)
}
