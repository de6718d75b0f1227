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

// carefulTime is how long closures have savepoints after one has failed that had written.
const carefulTime = time.Minute

// groupWriter owns the one connection that writes to SQLite. Callers' closures run one after the
// other, in the callers' goroutines, within a transaction that one of the callers begins and
// commits: the leader. While it waits for the disk, the next group forms, of which another caller
// will be the leader. A caller that is alone wakes nobody.
//
// A closure that fails before it has written leaves nothing behind. After that, the transaction
// is rolled back, and the others run again; for carefulTime, each closure but the first has a
// savepoint then, so that one that fails is rolled back to it, and the others go on. A savepoint
// costs two statements, and a copy of each page that is changed under it. Where SQLite has rolled
// back the whole transaction (storage full, a failed commit), those that had succeeded run again,
// each alone.
type groupWriter struct {
	conn    *sql.Conn
	now     func() time.Time
	sound   func() error // nil = what is committed will be found again
	queue   chan *turn
	lead    chan struct{} // holds one value while nobody leads
	closing chan struct{} // closed by stop
	ended   chan struct{} // closed by stop in the end
	commits atomic.Int64
	ran     *atomic.Int64 // see Session

	groupTime atomic.Int64

	own     *turn     // turn of the leader; for the leader only
	careful time.Time // until then, closures have savepoints; for the leader only
}

// turn is one closure on its way through the writer.
type turn struct {
	ctx   context.Context
	fn    func(*Session) error
	begin chan *Session // gives the caller the connection
	ran   chan error    // gives it back
	done  chan error    // committed, or failed; the leader never waits here
}

func startGroupWriter(conn *sql.Conn, now func() time.Time, sound func() error, ran *atomic.Int64) *groupWriter {
	w := &groupWriter{
		conn: conn, now: now, sound: sound, ran: ran,
		queue:   make(chan *turn, groupClosures),
		lead:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	w.groupTime.Store(int64(groupTime))
	w.lead <- struct{}{}
	return w
}

// write runs fn in a transaction and returns when it is on the disk, or when ctx ends before
// fn has begun.
func (w *groupWriter) write(ctx context.Context, fn func(*Session) error) error {
	t := &turn{ctx: ctx, fn: fn, begin: make(chan *Session), ran: make(chan error, 1), done: make(chan error, 1)}
	select {
	case <-w.closing:
		return errClosed
	default:
	}
	leave := ctx.Done()
	select {
	case w.queue <- t:
	case <-w.lead: // the queue may be full of those whose callers have left
		leave = nil
		w.leads(t)
	case <-w.closing:
		return errClosed
	case <-leave:
		return ctx.Err()
	}
	for {
		select {
		case <-leave:
			return ctx.Err()
		case s := <-t.begin:
			leave = nil // from now on it may be stored
			t.run(s)
		case <-w.lead:
			leave = nil
			w.leads(t)
		case err := <-t.done:
			return err
		case <-w.ended:
			return t.outcome()
		}
	}
}

// run gives the connection back also when the closure ends its goroutine.
func (t *turn) run(s *Session) {
	err := errGone
	defer func() { t.ran <- err }()
	s.caller = t.ctx
	// An interrupted statement would roll back the whole transaction, with the
	// closures of others, so ctx is only checked between statements.
	s.ctx = context.WithoutCancel(t.ctx)
	err = guard(s, t.fn)
}

// outcome is the result of a turn after the writer has ended.
func (t *turn) outcome() error {
	select {
	case err := <-t.done:
		return err
	default:
		return errClosed
	}
}

// leads runs groups until t has its result, beginning with those that were queued before it. If
// the closure of t ends its goroutine, the transaction is rolled back, and each of the others in
// it has no result and runs again when it leads itself.
func (w *groupWriter) leads(t *turn) {
	w.own = t
	gone := true
	defer func() {
		if w.own = nil; gone {
			w.rollback()
		}
		w.lead <- struct{}{}
	}()
	for len(t.done) == 0 {
		if first := w.waiting(); first != nil {
			w.group(first)
		} else { // it was not queued, or has run in a transaction that its leader left
			w.group(t)
		}
	}
	gone = false
}

// waiting takes a turn from the queue; nil = there is none.
func (w *groupWriter) waiting() *turn {
	select {
	case t := <-w.queue:
		return t
	default:
		return nil
	}
}

// stop waits for those that were queued before, and leads from then on.
func (w *groupWriter) stop() {
	close(w.closing)
	<-w.lead
	for t := w.waiting(); t != nil; t = w.waiting() {
		w.group(t)
	}
	close(w.ended)
}

// group runs first and whoever waits behind it in one transaction.
func (w *groupWriter) group(first *turn) {
	until := time.Now().Add(time.Duration(w.groupTime.Load()))
	undone, failed := w.together(first, func(n int) *turn { return w.next(n, until) })
	if failed && len(undone) > 1 {
		rest := undone[1:]
		undone, _ = w.together(undone[0], func(int) (t *turn) {
			if len(rest) > 0 {
				t, rest = rest[0], rest[1:]
			}
			return t
		})
		undone = append(undone, rest...)
	}
	for _, t := range undone {
		t.done <- w.alone(t)
	}
}

// together runs closures in one transaction: first, and those that next returns, which is told
// how many have succeeded. It returns those that had succeeded before the transaction was rolled
// back; failed reports whether that was because of another closure.
func (w *groupWriter) together(first *turn, next func(n int) *turn) (undone []*turn, failed bool) {
	if err := w.begin(); err != nil {
		first.done <- err
		return nil, false
	}
	var ran []*turn
	for t := first; t != nil; t = next(len(ran)) {
		err, lost := w.one(t, len(ran) == 0)
		if err != nil {
			t.done <- err
		} else {
			ran = append(ran, t)
		}
		if lost {
			failed = time.Now().After(w.careful)
			w.careful = time.Now().Add(carefulTime)
			w.rollback()
			return ran, failed
		}
	}
	if err := w.commit(); err != nil {
		w.rollback()
		if len(ran) == 1 {
			ran[0].done <- err
			return nil, false
		}
		return ran, false
	}
	w.commits.Add(1)
	for _, t := range ran {
		t.done <- nil
	}
	return nil, false
}

// next returns the next waiting turn; nil when the group is to be committed.
func (w *groupWriter) next(n int, until time.Time) *turn {
	if n >= groupClosures || time.Now().After(until) {
		return nil
	}
	return w.waiting()
}

// one runs a closure, under a savepoint if the writer is careful and it is not the first of its
// transaction. lost says that the transaction is to be rolled back, or was, with everything that
// ran in it before.
func (w *groupWriter) one(t *turn, first bool) (err error, lost bool) {
	saved := !first && time.Now().Before(w.careful)
	if saved {
		if err := w.statement("SAVEPOINT closure"); err != nil {
			return Translate(err), true
		}
	}
	s := &Session{db: w.conn, now: w.now(), ran: w.ran}
	if t == w.own {
		t.run(s)
	} else {
		select {
		case t.begin <- s:
		case <-t.ctx.Done(): // its caller has left, or is about to
			t.ran <- t.ctx.Err()
		}
	}
	err = <-t.ran
	if !saved {
		return err, err != nil && (s.wrote || s.err != nil)
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

// beginCareful begins a transaction that keeps the pages of its savepoints in memory: SQLite looks
// at the setting then. Otherwise it would write them into a temporary file, a new one for each
// transaction. Large results within statements still go to such files.
const beginCareful = "PRAGMA temp_store = MEMORY; BEGIN IMMEDIATE; PRAGMA temp_store = DEFAULT"

func (w *groupWriter) begin() error {
	begin := "BEGIN IMMEDIATE"
	if time.Now().Before(w.careful) {
		begin = beginCareful
	}
	err := w.statement(begin)
	if err != nil { // also when a rollback failed before
		w.rollback()
		err = w.statement(begin)
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
	w.ran.Add(1)
	_, err := w.conn.ExecContext(context.Background(), sql)
	return err
}
