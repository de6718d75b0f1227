package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// Connections to PostgreSQL that break at a commit.

// sayOnce stores a message under a key. It returns its id, and whether an earlier call had stored it.
func sayOnce(db *store.DB, user, conversation, key, text string) (string, bool, error) {
	c := &op.Call{UserID: user, Key: key, Hash: "h"}
	id, err := op.Once(context.Background(), db, c, func(tx nodest.Tx) (string, error) {
		m, err := say(tx, conversation, "", text)
		if err != nil {
			return "", err
		}
		return m.ID, nil
	})
	return id, c.Replayed, err
}

// A caller never learns that its connection broke at the commit: a transaction that is stored
// succeeds, one that is not runs again, and the key finds the one message that there is.
func TestACommitWhoseAnswerIsLostIsFound(t *testing.T) {
	url, proxy := storetest.PostgresProxy(t)
	db := storetest.OpenWith(t, store.Options{URL: url})
	e := &env{T: t, db: db, clock: &clock{}}
	e.clock.ms.Store(start.UnixMilli())
	e.user = storetest.User(t, db)
	for name, cut := range map[string]func(){
		"the answer to the commit is lost":  func() { proxy.CutAfter(1) },
		"the commit is lost":                func() { proxy.CutBefore(1) },
		"the commit is lost twice":          func() { proxy.CutBefore(2) },
		"the commit, then the answer to it": func() { proxy.CutBefore(1); proxy.CutAfter(1) },
	} {
		conversation := e.conversation()
		cut()
		id, replayed, err := sayOnce(db, e.user, conversation, name, name)
		if err != nil || replayed {
			t.Errorf("%s: replayed %t, error %v", name, replayed, err)
		}
		again, replayed, err := sayOnce(db, e.user, conversation, name, name)
		if err != nil || !replayed || again != id {
			t.Errorf("%s, repeated: %q replayed %t error %v, want %q", name, again, replayed, err, id)
		}
		e.equal(name, e.roots(conversation), []string{name})
	}
}

// A server that is gone for one call leaves nothing behind for the next one.
func TestACallThatFoundNoConnectionIsRepeated(t *testing.T) {
	url, proxy := storetest.PostgresProxy(t)
	db := storetest.OpenWith(t, store.Options{URL: url})
	e := &env{T: t, db: db, clock: &clock{}}
	e.user = storetest.User(t, db)
	conversation := e.conversation()
	proxy.CutBefore(1 << 40)
	if _, _, err := sayOnce(db, e.user, conversation, "k", "once"); !isUnavailable(err) {
		t.Errorf("the error is %v, want storage_unavailable", err)
	}
	proxy.CutBefore(0)
	id, replayed, err := sayOnce(db, e.user, conversation, "k", "once")
	if err != nil || replayed || id == "" {
		t.Errorf("repeated: %q replayed %t error %v", id, replayed, err)
	}
	e.equal("messages", e.roots(conversation), []string{"once"})
}

// Whenever its connections are terminated, each message is stored once, and its key finds it.
func TestKeysFindTheirAnswersWhateverIsTerminated(t *testing.T) {
	url := storetest.PostgresURL(t)
	db := storetest.OpenWith(t, store.Options{URL: url + "&application_name=" + t.Name()})
	other := storetest.OpenWith(t, store.Options{URL: url})
	e := &env{T: t, db: db, clock: &clock{}}
	e.user = storetest.User(t, db)
	conversation := e.conversation()
	rng := random(t)
	// One transaction ends for each message, at the moment that the seed and the load choose: a
	// machine that is slow is not hit more often than it stores.
	targets, killed := make(chan struct{}, 4*atLeast(20, 200)), make(chan struct{})
	go func() {
		defer close(killed)
		hit := 0
		for range targets {
			for range 100 {
				pids, _ := store.Query[bool](other, "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = ?"+
					" AND state IN ('active', 'idle in transaction') ORDER BY md5(CAST(pid + ? AS text)) LIMIT 1) a", t.Name(), rng.IntN(1000))
				if len(pids) > 0 {
					hit++
					break
				}
			}
		}
		t.Logf("%d times pg_terminate_backend", hit)
	}()
	var group sync.WaitGroup
	var want []string
	for worker := range 4 {
		for n := range atLeast(20, 200) {
			want = append(want, fmt.Sprint(worker, "-", n))
		}
	}
	for worker := range 4 {
		group.Go(func() {
			for i := worker * len(want) / 4; i < (worker+1)*len(want)/4; i++ {
				targets <- struct{}{}
				id, _, err := sayOnce(db, e.user, conversation, want[i], want[i])
				for tries := 0; isUnavailable(err) && tries < 100; tries++ {
					id, _, err = sayOnce(db, e.user, conversation, want[i], want[i])
				}
				again, replayed, failed := sayOnce(db, e.user, conversation, want[i], want[i])
				for tries := 0; isUnavailable(failed) && tries < 100; tries++ {
					again, replayed, failed = sayOnce(db, e.user, conversation, want[i], want[i])
				}
				if err != nil || failed != nil || !replayed || id != again {
					t.Errorf("%s: %q %v, then %q %v, replayed %t", want[i], id, err, again, failed, replayed)
				}
			}
		})
	}
	group.Wait()
	close(targets)
	<-killed
	counts := map[string]int{}
	for _, text := range e.roots(conversation) {
		counts[text]++
	}
	for _, text := range want {
		if counts[text] != 1 {
			t.Errorf("%s is stored %d times", text, counts[text])
		}
	}
}

// roots are the texts of the messages without a parent.
func (e *env) roots(conversation string) (texts []string) {
	e.Helper()
	var roots []*chat.Message
	e.view(func(tx nodest.Tx) (err error) {
		roots, err = tx.Chats.Children(conversation, "")
		return err
	})
	for _, m := range roots {
		texts = append(texts, m.Chosen().Text)
	}
	return texts
}
