package store

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"nodest/internal/stream"
	"nodest/store/sqldb"
)

// relay is the stream.Relay that needs PostgreSQL alone. A process writes down which users it follows. Who has something
// to tell about a user collects it for a moment, and writes a row for each process that follows this user, in a small
// transaction of its own with one notification. Readers take their rows out. Where nobody follows elsewhere, or nothing
// happens, nothing is written. The tables are unlogged and no part of the schema: PostgreSQL may empty them at any time.
type relay struct {
	db      *DB
	backend *sqldb.Postgres
	opts    RelayOptions
	take    func(stream.Message)

	mu       sync.Mutex
	waiting  map[string]*bytes.Buffer // lines to send, by user
	bytes    int
	number   int
	followed map[string]*followed
	others   map[string][]string // processes that follow a user, as read; guarded by mu like the next two
	read     time.Time           // when the oldest of others was read
	turn     int                 // counts what has made others void

	send, receive chan struct{}
	end           context.CancelFunc
	ended         sync.WaitGroup
	failing       bool // the sender's last try failed
}

// RelayOptions tune a relay.
type RelayOptions struct {
	Measure stream.RelayMeasure // its lag is that of a row, by the database's clock
	Log     *slog.Logger
}

// followed is a user whose messages this process receives.
type followed struct {
	needs  int       // who needs them
	since  time.Time // since when nobody does
	stored bool
}

const (
	collected  = 100 * time.Millisecond
	lingering  = 30 * time.Second // a user who is followed stays so, in case somebody needs it again
	othersHold = 5 * time.Second  // how long it counts who follows elsewhere; notifications end it sooner
	tooOld     = 2 * time.Second  // older rows are not told
	mostHeld   = 4 << 20          // bytes that wait; short-lived events beyond them are dropped
)

// Kinds of notifications.
const (
	rowsCame      = "r"
	followChanged = "f"
)

// Relay returns the relay through PostgreSQL to other processes; on SQLite, where there are none, nil.
func (db *DB) Relay(ctx context.Context, o RelayOptions) (stream.Relay, error) {
	backend, shared := db.backend.(*sqldb.Postgres)
	if !shared {
		return nil, nil //nolint:nilnil // no relay is no failure
	}
	err := db.write(ctx, func(s *session) error {
		for _, statement := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('nodest relay ' || current_schema(), 0))",
			"CREATE UNLOGGED TABLE IF NOT EXISTS relay_followers (user_id UUID, process TEXT, PRIMARY KEY (user_id, process))",
			"CREATE UNLOGGED TABLE IF NOT EXISTS relay_rows (process TEXT, n BIGINT GENERATED ALWAYS AS IDENTITY, at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (process, n))",
		} {
			if err := s.Run(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &relay{
		db: db, backend: backend, opts: o, waiting: map[string]*bytes.Buffer{}, followed: map[string]*followed{}, others: map[string][]string{},
		send: make(chan struct{}, 1), receive: make(chan struct{}, 1),
	}, nil
}

// Receive implements stream.Relay.
func (r *relay) Receive(take func(stream.Message)) {
	r.take = take
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	r.backend.Listen(r.notified)
	r.ended.Go(func() { r.keepSending(ctx) })
	r.ended.Go(func() { r.keepReading(ctx) })
	signal(r.send)
}

// notified takes a notification; anew says that some may have been missed.
func (r *relay) notified(kind string, anew bool) {
	if kind == followChanged || anew {
		r.mu.Lock()
		r.forget()
		if anew { // PostgreSQL may have emptied the table
			for _, f := range r.followed {
				f.stored = false
			}
		}
		r.mu.Unlock()
		if anew {
			signal(r.send)
		}
	}
	if kind == rowsCame || anew {
		signal(r.receive)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been signalled
	}
}

// forget makes it unknown who follows elsewhere.
func (r *relay) forget() {
	r.turn++
	clear(r.others)
}

// Send implements stream.Relay.
func (r *relay) Send(m stream.Message) {
	r.mu.Lock()
	if r.bytes > mostHeld && m.Event != nil {
		r.mu.Unlock()
		r.opts.Measure.Count(r.opts.Measure.Dropped, 1)
		return
	}
	if others, known := r.others[m.UserID]; known && len(others) == 0 && time.Since(r.read) < othersHold {
		r.mu.Unlock()
		return
	}
	lines := r.waiting[m.UserID]
	if lines == nil {
		lines = new(bytes.Buffer)
		r.waiting[m.UserID] = lines
	}
	before := lines.Len()
	lines.Write(stream.AppendMessage(lines.AvailableBuffer(), m))
	r.bytes += lines.Len() - before
	r.number++
	r.mu.Unlock()
	signal(r.send)
}

// Follow implements stream.Relay.
func (r *relay) Follow(userID string) (stop func()) {
	r.mu.Lock()
	f := r.followed[userID]
	if f == nil {
		f = new(followed)
		r.followed[userID] = f
	}
	f.needs++
	isNew := !f.stored
	r.mu.Unlock()
	if isNew {
		signal(r.send)
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if f.needs--; f.needs == 0 {
			f.since = time.Now()
		}
	})
}

// Close implements stream.Relay.
func (r *relay) Close() error {
	if r.end == nil {
		return nil
	}
	r.backend.Listen(nil)
	r.end()
	r.ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return r.db.write(ctx, func(s *session) error {
		if err := s.Run("DELETE FROM relay_followers WHERE process = ?", r.db.process); err != nil {
			return err
		}
		return s.Run("DELETE FROM relay_rows WHERE process = ?", r.db.process)
	})
}

// keepSending writes what waits: the first at once, and then what has collected.
func (r *relay) keepSending(ctx context.Context) {
	tidy := time.NewTicker(lingering)
	defer tidy.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-tidy.C:
			err = r.tidy(ctx)
		case <-r.send:
			if err = r.follow(ctx); err == nil {
				err = r.flush(ctx)
			}
		}
		r.report(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(collected):
		}
	}
}

// report logs the first of several failures.
func (r *relay) report(ctx context.Context, err error) {
	if err != nil && !r.failing && ctx.Err() == nil {
		r.opts.Log.WarnContext(ctx, "other processes are not told: replies are seen there late", "err", err)
	}
	if r.failing = err != nil; r.failing {
		r.mu.Lock()
		lost := r.number
		clear(r.waiting)
		r.bytes, r.number = 0, 0
		r.mu.Unlock()
		r.opts.Measure.Count(r.opts.Measure.Dropped, lost)
		signal(r.send) // users that this process follows are still to be written down
	}
}

// follow writes down which users this process follows now.
func (r *relay) follow(ctx context.Context) error {
	r.mu.Lock()
	var users []string
	for user, f := range r.followed {
		if !f.stored {
			users = append(users, user)
			f.stored = true
		}
	}
	r.mu.Unlock()
	if len(users) == 0 {
		return nil
	}
	rows := make([][]any, len(users))
	for i, user := range users {
		rows[i] = []any{user, r.db.process}
	}
	err := r.db.write(ctx, func(s *session) error {
		if _, err := s.InsertValues("relay_followers", []string{"user_id", "process"}, rows, "ON CONFLICT DO NOTHING"); err != nil {
			return err
		}
		return r.backend.Notify(s.Session, followChanged)
	})
	if err != nil {
		r.mu.Lock()
		for _, user := range users {
			if f := r.followed[user]; f != nil {
				f.stored = false
			}
		}
		r.mu.Unlock()
	}
	return err
}

// flush writes what waits for the processes that follow its users.
func (r *relay) flush(ctx context.Context) error {
	r.mu.Lock()
	waiting, number := r.waiting, r.number
	r.waiting, r.bytes, r.number = map[string]*bytes.Buffer{}, 0, 0
	if time.Since(r.read) > othersHold {
		r.forget()
	}
	var unknown []string
	for user := range waiting {
		if _, known := r.others[user]; !known {
			unknown = append(unknown, user)
		}
	}
	turn := r.turn
	r.mu.Unlock()
	if len(unknown) > 0 {
		if err := r.lookUp(ctx, unknown, turn); err != nil {
			r.opts.Measure.Count(r.opts.Measure.Dropped, number)
			return err
		}
	}
	bodies := map[string]*bytes.Buffer{}
	r.mu.Lock()
	for user, lines := range waiting {
		for _, process := range r.others[user] {
			body := bodies[process]
			if body == nil {
				body = new(bytes.Buffer)
				bodies[process] = body
			}
			body.Write(lines.Bytes())
		}
	}
	r.mu.Unlock()
	if len(bodies) == 0 {
		return nil
	}
	if err := r.write(ctx, bodies); err != nil {
		r.opts.Measure.Count(r.opts.Measure.Dropped, number)
		return err
	}
	r.opts.Measure.Count(r.opts.Measure.Sent, number)
	return nil
}

// lookUp reads who follows users elsewhere.
func (r *relay) lookUp(ctx context.Context, users []string, turn int) error {
	type follower struct{ UserID, Process string }
	found, err := glancing(ctx, r.db, func(s *session) (map[string][]string, error) {
		found := make(map[string][]string, len(users))
		add := func(f *follower) error { found[f.UserID] = append(found[f.UserID], f.Process); return nil }
		return found, sqldb.Each(s, add, "SELECT user_id, process FROM relay_followers WHERE user_id IN (?) AND process <> ?", users, r.db.process)
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.others) == 0 {
		r.read = time.Now()
	}
	for _, user := range users {
		r.others[user] = found[user]
	}
	if r.turn != turn { // it has changed meanwhile: right for these lines, and read again for the next
		r.read = time.Time{}
	}
	return nil
}

// write stores a row for each process, and notifies them.
func (r *relay) write(ctx context.Context, bodies map[string]*bytes.Buffer) error {
	return r.db.write(ctx, func(s *session) error {
		rows := make([][]any, 0, len(bodies))
		for process, body := range bodies {
			rows = append(rows, []any{process, sqldb.Millis(s.Now()), body.String()})
		}
		if _, err := s.InsertValues("relay_rows", []string{"process", "at", "body"}, rows); err != nil {
			return err
		}
		return r.backend.Notify(s.Session, rowsCame)
	})
}

// keepReading tells what others have written for this process.
func (r *relay) keepReading(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.receive:
		}
		if err := r.readRows(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.WarnContext(ctx, "what other processes tell is not read: their replies are seen late", "err", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(collected):
			}
		}
	}
}

func (r *relay) readRows(ctx context.Context) error {
	type row struct {
		N    int64
		Age  int64
		Body string
	}
	rows, err := writing(ctx, r.db, func(s *session) ([]row, error) {
		return sqldb.All[row](s, "WITH taken AS (DELETE FROM relay_rows WHERE process = ? RETURNING n, at, body)"+
			" SELECT n, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - at AS age, body FROM taken ORDER BY n", r.db.process)
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		age := time.Duration(row.Age) * time.Millisecond
		if r.opts.Measure.Lag != nil {
			r.opts.Measure.Lag(max(0, age))
		}
		for line := range bytes.Lines([]byte(row.Body)) {
			m, err := stream.ReadMessage(line)
			if err != nil || age > tooOld && m.Event != nil {
				r.opts.Measure.Count(r.opts.Measure.Dropped, 1)
				continue
			}
			r.opts.Measure.Count(r.opts.Measure.Received, 1)
			r.take(m)
		}
	}
	return nil
}

// tidy removes users that nobody here needs any more, and what processes left behind that have died.
func (r *relay) tidy(ctx context.Context) error {
	var gone []string
	r.mu.Lock()
	for user, f := range r.followed {
		if f.needs == 0 && time.Since(f.since) > lingering {
			gone = append(gone, user)
			delete(r.followed, user)
		}
	}
	r.mu.Unlock()
	return r.db.write(ctx, func(s *session) error {
		if len(gone) > 0 {
			if err := s.Run("DELETE FROM relay_followers WHERE user_id IN (?) AND process = ?", gone, r.db.process); err != nil {
				return err
			}
		}
		for _, table := range []string{"relay_followers", "relay_rows"} {
			if err := s.Run("DELETE FROM " + table + " WHERE process IN (SELECT process FROM (SELECT DISTINCT process FROM " + table + ") seen WHERE " + sqldb.Gone("process") + ")"); err != nil {
				return err
			}
		}
		return nil
	})
}

// Installation names the database that the processes of an installation share, and no other one; on SQLite it is "".
func (db *DB) Installation(ctx context.Context) (string, error) {
	if _, shared := db.backend.(*sqldb.Postgres); !shared {
		return "", nil
	}
	return glancing(ctx, db, func(s *session) (string, error) {
		return sqldb.Value[string](s, "SELECT system_identifier || ' ' || current_database() || ' ' || current_schema() FROM pg_control_system()")
	})
}
