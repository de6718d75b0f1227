package store_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/codec"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// childEnv makes this test binary write messages until it is killed. It contains the
// database's URL or folder, the user and the conversation, one per line.
const childEnv = "NODEST_STORE_TEST_CHILD"

// runChild stores messages from several goroutines and prints each id after its Update
// has returned.
func runChild() {
	in := strings.Split(os.Getenv(childEnv), "\n")
	o := store.Options{Dir: in[0]}
	if strings.HasPrefix(in[0], "postgres") {
		o = store.Options{URL: in[0]}
	}
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	db, err := store.Open(context.Background(), o)
	if err != nil {
		fail(err)
	}
	acknowledged := make(chan string)
	for range 8 {
		go func() {
			for {
				var stored string
				err := db.Update(context.Background(), in[1], func(tx nodest.Tx) error {
					m, err := say(tx, in[2], "", "text")
					if err != nil {
						return err
					}
					stored = m.ID
					return nil
				})
				if err != nil {
					fail(err)
				}
				acknowledged <- stored
			}
		}()
	}
	for id := range acknowledged {
		fmt.Println(id)
	}
}

// A writing process that is killed at any moment loses no message that it
// acknowledged.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		dir := storetest.Dir(t)
		killWriters(t, dir, store.Options{Dir: dir, Log: quiet})
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.PostgresURL(t)
		killWriters(t, url, store.Options{URL: url, Log: quiet})
	})
}

func killWriters(t *testing.T, where string, o store.Options) {
	rnd := random(t)
	ctx := context.Background()
	user, conversation := id(), id()
	open := func() *store.DB {
		db, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	if err := db.InsertUser(ctx, &account.User{ID: user, Username: user}); err != nil {
		t.Fatal(err)
	}
	err := db.Update(ctx, user, func(tx nodest.Tx) error {
		return tx.Chats.InsertConversation(&chat.Conversation{ID: conversation})
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()

	acknowledged := map[string]bool{}
	for range atLeast(2, 40) {
		for _, id := range writeUntilKilled(t, strings.Join([]string{where, user, conversation}, "\n"), 1+rnd.IntN(60)) {
			acknowledged[id] = true
		}
		db := open()
		if n := checkStored(t, db, user, conversation, acknowledged); n < len(acknowledged) {
			t.Fatalf("%d messages are stored, %d were acknowledged", n, len(acknowledged))
		}
		_ = db.Close()
	}
	t.Logf("%d messages were acknowledged, none is lost", len(acknowledged))
}

// writeUntilKilled returns the ids that the child had acknowledged.
func writeUntilKilled(t *testing.T, in string, after int) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+in)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if len(lines.Text()) == 36 { // the last line may be incomplete
			ids = append(ids, lines.Text())
		}
		if len(ids) == after {
			_ = cmd.Process.Kill() // its earlier output is still read
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 3 {
		t.Fatalf("the writing process ended by itself: %v", err)
	}
	return ids
}

// checkStored returns the number of stored messages; each must be complete and have
// its event, and no acknowledged one may be missing.
func checkStored(t *testing.T, db *store.DB, user, conversation string, acknowledged map[string]bool) int {
	t.Helper()
	found := 0
	err := db.View(context.Background(), user, func(tx nodest.Tx) error {
		items, err := tx.Chats.Children(conversation, "")
		if err != nil {
			return err
		}
		c, err := tx.Chats.Conversation(conversation)
		if err != nil {
			return err
		}
		if c.Version != int64(1+len(items)) {
			t.Errorf("the version is %d with %d messages", c.Version, len(items))
		}
		for i, m := range items {
			if m.Seq != int64(i+1) || m.Text() != "text" {
				t.Errorf("message %d has seq %d and text %q", i+1, m.Seq, m.Text())
			}
			if acknowledged[m.ID] {
				found++
			}
		}
		if found != len(acknowledged) {
			t.Errorf("%d of %d acknowledged messages are there", found, len(acknowledged))
		}
		// In the same snapshot, because PostgreSQL may still be committing what a killed
		// process had sent.
		seqs, err := store.QueryIn[int64](tx, "SELECT seq FROM streams WHERE user_id = ?", user)
		if err != nil {
			return err
		}
		rows, err := store.QueryIn[[]byte](tx, "SELECT entries FROM events WHERE user_id = ?", user)
		if err != nil {
			return err
		}
		events := 0
		for _, row := range rows {
			lines, err := codec.Unpack(row)
			if err != nil {
				return err
			}
			events += bytes.Count(lines, []byte{'\n'})
		}
		if events != len(items) || len(seqs) != 1 || seqs[0] != int64(events) {
			t.Errorf("there are %d events of %d messages, and the newest has seq %v", events, len(items), seqs)
		}
		found = len(items)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
