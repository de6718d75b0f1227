package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"nodest/llm/llmtest"
	"nodest/store/storetest"
)

// leaseOfKilled is the usual lease. What is noticed sooner was not noticed by its end.
const leaseOfKilled = 15 * time.Second

// TestDeadProcessIsNoticedBeforeItsLeaseEnds kills a process in the middle of a reply. The
// other one ends the reply, with its text, long before the lease does, and takes a message
// for the same chat.
func TestDeadProcessIsNoticedBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	fake := llmtest.NewOpenAI(t)
	env := []string{
		"NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL=" + fake.URL, "NODEST_SECRET_KEY=shared by both servers",
		testLease + "=" + leaseOfKilled.String(),
	}
	survivor := newInstallation(t, database, env...).start(t)
	var took []time.Duration
	for i := range scaled(t, 1, 20) {
		p := newInstallation(t, database, env...).start(t)
		conversation := newConversation(t, survivor.client, sampleCharacter(t, survivor.client))
		gate := gatedReply(fake, "Half", " a story")
		sent := newWatcher(t, p.client, fmt.Sprintf("here-%d", i)).sendMessage(conversation, "Tell me")
		releasePiece(t, gate)
		awaitCheckpoint(t, survivor.client, sent.GenerationID, "Half")
		p.kill(t)
		killed := time.Now()
		eventually(t, "the end of the reply", func() error {
			var g struct{ Status, Text string }
			if err := survivor.client.Call(t.Context(), http.MethodGet, "/api/v1/generations/"+sent.GenerationID+"?off=0", nil, &g); err != nil {
				t.Fatal(err)
			}
			if g.Status != "interrupted" {
				return fmt.Errorf("the reply is %s: %w", g.Status, errNotYet)
			}
			if g.Text != "Half" {
				t.Fatalf("g.Text is %q, want %q", g.Text, "Half")
			}
			return nil
		})
		took = append(took, time.Since(killed).Round(10*time.Millisecond))
		fake.Script(llmtest.Say("All is well."))
		there := newWatcher(t, survivor.client, fmt.Sprintf("there-%d", i))
		there.wantEnd(there.sendMessage(conversation, "And now?"), "All is well.", "complete")
	}
	slices.Sort(took)
	t.Logf("%d kills, noticed after %v (median), %v (longest)", len(took), took[len(took)/2], took[len(took)-1])
	if got := took[len(took)-1]; got >= leaseOfKilled*2/3 {
		t.Fatalf("took[len(took)-1] is %v, want less than %v", got, leaseOfKilled*2/3)
	}
	survivor.stop(t)
}

// TestIdleProcessAsksLittle counts what two processes ask of PostgreSQL while nothing
// happens, each with a client that listens.
func TestIdleProcessAsksLittle(t *testing.T) {
	t.Parallel()
	database, asked := countedDatabase(t, storetest.PostgresURL(t))
	first := newInstallation(t, database, "NODEST_SECRET_KEY=shared by both servers").start(t)
	second := newInstallation(t, database, "NODEST_SECRET_KEY=shared by both servers").start(t)
	newWatcher(t, first.client, "here")
	newWatcher(t, second.client, "there")
	const seconds = 3
	most := int64(2 * seconds * 4)
	eventually(t, "an idle server", func() error {
		before := asked.Load()
		<-time.After(seconds * time.Second)
		n := asked.Load() - before
		t.Logf("%.1f statements a second and process", float64(n)/seconds/2)
		if n > most {
			return fmt.Errorf("%d statements in %d s, at most %d are expected", n, seconds, most)
		}
		return nil
	})
	first.stop(t)
	second.stop(t)
}

// countedDatabase returns another URL for a database on a Unix socket, and how many
// statements have come through it.
func countedDatabase(t *testing.T, database string) (counted string, asked *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	server := filepath.Join(query.Get("host"), ".s.PGSQL.5432")
	if !filepath.IsAbs(server) {
		t.Skip("the statements of PostgreSQL are counted on a Unix socket")
	}
	dir := t.TempDir()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	asked = new(atomic.Int64)
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go forwardCounted(client, server, asked)
		}
	}()
	return u.String(), asked
}

// forwardCounted passes a connection on to PostgreSQL and counts its statements.
func forwardCounted(client net.Conn, server string, asked *atomic.Int64) {
	defer client.Close() //nolint:errcheck // the test does not wait for it
	up, err := net.Dial("unix", server)
	if err != nil {
		return
	}
	defer up.Close() //nolint:errcheck // the test does not wait for it
	go func() {
		_, _ = io.Copy(client, up)
		_ = client.Close()
	}()
	head := make([]byte, 5)
	for first := true; ; first = false { // the first message has no type
		if first {
			head[0] = 0
			_, err = io.ReadFull(client, head[1:])
		} else {
			_, err = io.ReadFull(client, head)
		}
		if err != nil {
			return
		}
		if head[0] == 'Q' || head[0] == 'E' { // Query, Execute
			asked.Add(1)
		}
		from := 0
		if first {
			from = 1
		}
		if _, err = up.Write(head[from:]); err != nil {
			return
		}
		if _, err = io.CopyN(up, client, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
	}
}
