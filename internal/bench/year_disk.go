package bench

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/store"
)

// disk measures how much the database grows by a turn, in a new chat with a database of its own.
// The server is closed before the database is measured, so that the log of SQLite is empty. What is
// there once, however many turns follow, is part of the first size and of the last: on PostgreSQL
// each connection of the server writes to a page of its own in each table.
func (y *year) disk(ctx context.Context) error {
	dir, list, err := y.home(ctx, 1, 0)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	texts := 0
	talk := func(from, to int) error {
		return y.serve(ctx, dir, y.p.url, func(s *child) error {
			for i := from; i < to; i++ {
				said := yearChat{seed: 1, exchanges: to}.line(2 * i).text
				if _, err := y.turn(ctx, s, list[0], said); err != nil {
					return err
				}
				texts += len(said) + len(yearChat{seed: 1 << 20}.line(2*y.turns+1).text)
				if err := y.tidy(ctx, i); err != nil {
					return err
				}
			}
			return list[0].idle(ctx, s.base)
		})
	}
	warm := y.o.Turns / 10
	if err := talk(0, warm); err != nil {
		return err
	}
	grown, err := y.size(ctx, dir, false)
	if err != nil {
		return err
	}
	before, err := y.size(ctx, dir, true)
	if err != nil {
		return err
	}
	texts = 0
	if err := talk(warm, warm+y.o.Turns); err != nil {
		return err
	}
	after, err := y.size(ctx, dir, false)
	if err != nil {
		return err
	}
	if err := expire(ctx, store.Options{Dir: dir, URL: y.Database}); err != nil {
		return err
	}
	kept, err := y.size(ctx, dir, true)
	turns := float64(y.o.Turns)
	y.figures["bytesPerTurn"] = float64(after.all-grown.all) / turns
	y.figures["bytesPerTurnKept"] = float64(kept.used-before.used) / turns
	y.figures["textPerTurn"] = float64(texts) / turns
	return err
}

// tidy does after every tenth turn on PostgreSQL what its autovacuum, which looks at the tables once a
// minute, would have done by then if the turns had come in a year: it makes room of the dead rows
// of tables that have many of them, and notes the room in pages of those that have many new rows.
// What counts as many, a fifth of the rows and some more, is by the settings of autovacuum, but the
// 1,000 more for new rows, which are nothing in a year. As autovacuum does, it counts the dead rows of the long
// values of a table (TOAST) for themselves.
func (y *year) tidy(ctx context.Context, turn int) error {
	if y.Database == "" || turn%10 != 9 {
		return nil
	}
	db, err := sql.Open("pgx", y.Database)
	if err != nil {
		return err
	}
	var tables sql.NullString
	err = db.QueryRowContext(ctx, "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE oid IN (SELECT unnest(ARRAY[oid, reltoastrelid])"+ourTables+
		") AND greatest(pg_stat_get_dead_tuples(oid), pg_stat_get_ins_since_vacuum(oid)) > current_setting('autovacuum_vacuum_threshold')::real"+
		" + current_setting('autovacuum_vacuum_scale_factor')::real * greatest(reltuples, 0)").Scan(&tables)
	if err == nil && tables.Valid {
		_, err = db.ExecContext(ctx, "VACUUM "+tables.String)
	}
	return errors.Join(err, db.Close())
}

// onDisk is the size of a database, in bytes.
type onDisk struct {
	all  int64 // all bytes of its files
	used int64 // without pages that are free for what comes next
}

// size is that of the database, which nobody uses. On PostgreSQL it is vacuumed before; whole says
// that its tables are written anew, without room for what comes next. Their maps of free room, 32 KB
// for any small table, are in all sizes.
func (y *year) size(ctx context.Context, dir string, whole bool) (onDisk, error) {
	if y.Database == "" {
		return sizeOnDisk(dir)
	}
	db, err := sql.Open("pgx", y.Database)
	if err != nil {
		return onDisk{}, err
	}
	size, err := sizeOfTables(ctx, db, whole)
	return onDisk{size, size}, errors.Join(err, db.Close())
}

const ourTables = " FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"

func sizeOfTables(ctx context.Context, db *sql.DB, whole bool) (size int64, err error) {
	var tables string
	if err := db.QueryRowContext(ctx, "SELECT string_agg(oid::regclass::text, ', ')"+ourTables).Scan(&tables); err != nil {
		return 0, err
	}
	if whole {
		if _, err := db.ExecContext(ctx, "VACUUM FULL "+tables); err != nil {
			return 0, err
		}
	}
	if _, err := db.ExecContext(ctx, "VACUUM "+tables); err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT SUM(pg_total_relation_size(oid))::BIGINT"+ourTables).Scan(&size)
	return size, err
}

// sizeOnDisk reads the size of a SQLite database that nobody uses: that of its files, and how many
// of its pages are free, from the header.
func sizeOnDisk(dir string) (size onDisk, err error) {
	path := filepath.Join(dir, "nodest.db")
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return size, err
		}
		size.all += info.Size()
	}
	f, err := os.Open(path)
	if err != nil {
		return size, err
	}
	header := make([]byte, 100)
	_, err = io.ReadFull(f, header)
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 65_536
	}
	size.used = size.all - page*int64(binary.BigEndian.Uint32(header[36:]))
	return size, errors.Join(err, f.Close())
}

// expire removes what has a time limit, as maintenance would a year later.
func expire(ctx context.Context, o store.Options) (err error) {
	o.Now, o.Log = func() time.Time { return time.Now().AddDate(1, 0, 0) }, slog.New(slog.DiscardHandler)
	db, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Enqueue(ctx, store.Upkeep); err != nil {
		return err
	}
	kind := db.Maintenance()
	claimed, err := db.ClaimJobs(ctx, op.NewID(), time.Minute, []jobs.Want{{Kind: kind.Name, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) == 0 {
		return errors.Join(err, errors.New("maintenance did not begin"))
	}
	return kind.Run(ctx, claimed[0])
}
