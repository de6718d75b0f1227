package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

// lateProxy forwards connections to the test PostgreSQL.
func lateProxy(t *testing.T, ln net.Listener, socket string) {
	t.Helper()
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", socket)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

func TestAPostgresThatStartsLateIsWaitedFor(t *testing.T) {
	t.Parallel()
	base, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := base.Query()
	socket := q.Get("host") + "/.s.PGSQL.5432"
	if _, err := os.Stat(socket); err != nil {
		t.Skip("the test PostgreSQL listens on no Unix socket here")
	}
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := reserved.Addr().String()
	_ = reserved.Close()
	q.Del("host")
	base.Host, base.RawQuery = addr, q.Encode()

	log := &firstLineLog{first: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- sqldb.WaitForPostgres(context.Background(), base.String(), time.Minute, slog.New(slog.NewTextHandler(log, nil)))
	}()
	<-log.first // the first attempt failed and was logged
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	lateProxy(t, ln, socket)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "PostgreSQL is not ready yet") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestWaitingForPostgresIsBounded(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	err = sqldb.WaitForPostgres(context.Background(), "postgres://u:hunter2@"+addr+"/d?sslmode=disable", time.Millisecond, quiet)
	if err == nil || !strings.Contains(err.Error(), "did not respond within 1ms") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

// The driver tries each address with and without TLS; the error and the log name the
// server once.
func TestWaitingForPostgresNamesTheServerOnce(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	log := &bytes.Buffer{}
	url := "postgres://u@" + addr + "/d"
	err = sqldb.WaitForPostgres(context.Background(), url, 1200*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))) // two attempts at least
	if err == nil || err.Error() != "PostgreSQL at "+addr+" did not respond within 1.2s: connection refused" {
		t.Errorf("the error is %v", err)
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.HasSuffix(log.String(), " cause=\"connection refused\"\n") {
		t.Errorf("the log says %q", log)
	}
	_, err = store.Open(context.Background(), store.Options{URL: url, Log: quiet})
	if err == nil || err.Error() != "cannot connect to PostgreSQL at "+addr+": connection refused" {
		t.Errorf("the error is %v", err)
	}
}

func TestAPostgresThatRefusesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	err = sqldb.WaitForPostgres(context.Background(), u.String(), time.Hour, quiet)
	if err == nil || !strings.Contains(err.Error(), "no_such_database") {
		t.Errorf("the error is %v", err)
	}
}

// firstLineLog is a log that signals its first line.
type firstLineLog struct {
	bytes.Buffer
	first chan struct{}
}

func (l *firstLineLog) Write(p []byte) (int, error) {
	select {
	case <-l.first:
	default:
		defer close(l.first)
	}
	return l.Buffer.Write(p)
}

// Close releases the lock of the database at once, so that a restore can start right
// after it; PostgreSQL notices a closed connection only a moment later.
func TestClosingPostgresReleasesItsLock(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresURL(t)
	next, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	for range 10 {
		db, err := store.Open(context.Background(), store.Options{URL: url, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var free bool
		lock := "SELECT pg_try_advisory_xact_lock(hashtextextended('nodest restore ' || current_schema(), 0))"
		if err := next.QueryRow(lock).Scan(&free); err != nil || !free {
			t.Fatalf("the lock is free: %v, %v", free, err)
		}
	}
}
