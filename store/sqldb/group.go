package sqldb

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// How much goes into one commit. A group ends when nobody waits any more, or at
// these bounds; nobody is kept waiting for a group to fill.
const (
	groupClosures = 256
	groupTime     = 20 * time.Millisecond
)

// groupWriter owns the one connection that writes to SQLite. Callers' closures
// run one after the other, in the callers' goroutines, within a transaction that
// the loop begins and commits; while it waits for the disk, the next group
// forms.
//
// Each closure but the first has a savepoint. One that fails is rolled back to it, and the
// others go on; if the first fails, the group ends. A savepoint costs a copy of each page that
// is changed under it. Where SQLite has rolled back the whole transaction (storage full, a
// failed commit), those that had succeeded run again, each alone.
type groupWriter struct {
	conn    *sql.Conn
	now     func() time.Time
	sound   func() error // whether what is committed will be found again
	queue   chan *turn
	closing chan struct{} // closed by stop
	ended   chan struct{} // closed by the loop
	commits atomic.Int64
}

// turn is one closure on its way through the writer.
type turn struct {
	ctx   context.Context
	begin chan *Session // gives the caller the connection
	ran   chan error    // gives it back
	done  chan error    // committed, or failed; the loop never waits here
}

func startGroupWriter(conn *sql.Conn, now func() time.Time, sound func() error) *groupWriter {
	w := &groupWriter{
		conn: conn, now: now, sound: sound,
		queue:   make(chan *turn, groupClosures),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	go w.loop()
	return w
}

// write runs fn in a transaction and returns when it is on the disk, or when ctx ends before
// fn has begun.
func (w *groupWriter) write(ctx context.Context, fn func(*Session) error) error {
	t := &turn{ctx: ctx, begin: make(chan *Session), ran: make(chan error, 1), done: make(chan error, 1)}
	select {
	case <-w.closing:
		return errClosed
	default:
	}
	select {
	case w.queue <- t:
	case <-w.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	leave := ctx.Done()
	for {
		select {
		case <-leave:
			return ctx.Err()
		case s := <-t.begin:
			leave = nil // from now on it may be stored
			s.caller = ctx
			// An interrupted statement would roll back the whole transaction, with the
			// closures of others, so ctx is only checked between statements.
			s.ctx = context.WithoutCancel(ctx)
			t.run(s, fn)
		case err := <-t.done:
			return err
		case <-w.ended:
			return t.outcome()
		}
	}
}

// run gives the connection back also when fn ends its goroutine.
func (t *turn) run(s *Session, fn func(*Session) error) {
	err := errGone
	defer func() { t.ran <- err }()
	err = guard(s, fn)
}

// outcome is the result of a turn after the loop has ended.
func (t *turn) outcome() error {
	select {
	case err := <-t.done:
		return err
	default:
		return errClosed
	}
}

func (w *groupWriter) stop() {
	close(w.closing)
	<-w.ended
}

func (w *groupWriter) loop() {
	defer close(w.ended)
	for {
		select {
		case t := <-w.queue:
			w.group(t)
		case <-w.closing:
			for { // those queued before
				select {
				case t := <-w.queue:
					w.group(t)
				default:
					return
				}
			}
		}
	}
}

// group runs first and whoever waits behind it in one transaction.
func (w *groupWriter) group(first *turn) {
	if err := w.begin(); err != nil {
		first.done <- err
		return
	}
	until := time.Now().Add(groupTime)
	var ran []*turn
	for t := first; t != nil; t = w.next(len(ran), until) {
		err, lost := w.one(t, len(ran) == 0)
		if err != nil {
			t.done <- err
		} else {
			ran = append(ran, t)
		}
		if lost {
			w.again(ran)
			return
		}
	}
	if err := w.commit(); err != nil {
		if len(ran) == 1 {
			w.rollback()
			ran[0].done <- err
			return
		}
		w.again(ran)
		return
	}
	w.commits.Add(1)
	for _, t := range ran {
		t.done <- nil
	}
}

// next returns the next waiting turn; nil when the group is to be committed.
func (w *groupWriter) next(n int, until time.Time) *turn {
	if n >= groupClosures || time.Now().After(until) {
		return nil
	}
	select {
	case t := <-w.queue:
		return t
	default:
		return nil
	}
}

// one runs a closure, under a savepoint unless it is the first of its transaction. lost says
// that the transaction is to be rolled back, or was, with everything that ran in it before.
func (w *groupWriter) one(t *turn, first bool) (err error, lost bool) {
	if !first {
		if err := w.statement("SAVEPOINT closure"); err != nil {
			return Translate(err), true
		}
	}
	select {
	case t.begin <- &Session{db: w.conn, now: w.now()}:
		err = <-t.ran
	case <-t.ctx.Done(): // its caller has left, or is about to
		err = t.ctx.Err()
	}
	if first {
		return err, err != nil
	}
	if err == nil {
		if err = w.statement("RELEASE closure"); err == nil {
			return nil, false
		}
		err = Translate(err)
	}
	if back := w.statement("ROLLBACK TO closure; RELEASE closure"); back != nil {
		return err, true
	}
	return err, false
}

// again runs closures whose common transaction was lost, each alone.
func (w *groupWriter) again(ran []*turn) {
	w.rollback()
	for _, t := range ran {
		t.done <- w.alone(t)
	}
}

func (w *groupWriter) alone(t *turn) error {
	if err := w.begin(); err != nil {
		return err
	}
	err, _ := w.one(t, true)
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.rollback()
	}
	return err
}

// beginGroup begins a transaction that keeps the pages of its savepoints in memory: SQLite looks
// at the setting then. Otherwise it would write them into a temporary file, a new one for each
// transaction. Large results within statements still go to such files.
const beginGroup = "PRAGMA temp_store = MEMORY; BEGIN IMMEDIATE; PRAGMA temp_store = DEFAULT"

func (w *groupWriter) begin() error {
	err := w.statement(beginGroup)
	if err != nil { // also when a rollback failed before
		w.rollback()
		err = w.statement(beginGroup)
	}
	return Translate(err)
}

func (w *groupWriter) commit() error {
	if err := w.sound(); err != nil {
		return err
	}
	return Translate(w.statement("COMMIT"))
}

// rollback ends the transaction if there is one: after some errors SQLite has
// rolled back already, and this fails.
func (w *groupWriter) rollback() { _ = w.statement("ROLLBACK") }

// statement steers the transaction; it belongs to no caller, so no context ends it.
func (w *groupWriter) statement(sql string) error {
	_, err := w.conn.ExecContext(context.Background(), sql)
	return err
}
