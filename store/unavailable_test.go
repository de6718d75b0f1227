package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// Databases that do not answer, are busy, or are gone.

func isUnavailable(err error) bool {
	return fault.Is(err, fault.StorageDown) && fault.Public(err).Retry() == "same"
}

func TestASlowWriterIsReportedAsBusy(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := holdWriter(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := db.Update(ctx, h.user, emit("late")) // returns although the writer is held
	if !fault.Is(err, fault.StorageBusy) || fault.Public(err).Retry() != "same" {
		t.Errorf("error is %v, want storage_busy", err)
	}
	h.release()
	if err := db.Update(context.Background(), h.user, emit("next")); err != nil {
		t.Fatal(err)
	}
	if got := eventTypes(t, db, h.user); got != "next" {
		t.Errorf("the log is %q", got)
	}
}

func TestADatabaseThatWasRemovedIsNoticed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nodest.db", "nodest.db-wal"} {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " replaced ", replaced), func(t *testing.T) {
				dir := storetest.Dir(t)
				db := storetest.OpenWith(t, store.Options{Dir: dir})
				user := storetest.User(t, db)
				path := filepath.Join(dir, name)
				if err := os.Rename(path, path+".away"); err != nil {
					t.Fatal(err)
				}
				if replaced {
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := db.Update(context.Background(), user, emit("lost")); !isUnavailable(err) {
					t.Errorf("a write answered %v, want storage_unavailable", err)
				}
				if err := db.Ping(context.Background()); !isUnavailable(err) {
					t.Errorf("Ping answered %v, want storage_unavailable", err)
				}
				if err := store.Settle(db); !isUnavailable(err) {
					t.Errorf("emptying the log answered %v, want storage_unavailable", err)
				}
				if _, err := os.Stat(path); (err == nil) != replaced {
					t.Errorf("a new file at the path: %v", err)
				}
				if err := os.Rename(path+".away", path); err != nil {
					t.Fatal(err)
				}
				if err := db.Update(context.Background(), user, emit("kept")); err != nil {
					t.Errorf("after the file is back: %v", err)
				}
				if got := eventTypes(t, db, user); got != "kept" {
					t.Errorf("the log is %q", got)
				}
			})
		}
	}
}

func TestACutConnectionIsReportedAsUnavailable(t *testing.T) {
	t.Parallel()
	db := storetest.OpenPostgres(t, store.Options{})
	other := storetest.OpenPostgres(t, store.Options{})
	user := storetest.User(t, db)
	cut := func(tx nodest.Tx) error {
		pids, err := store.QueryIn[int64](tx, "SELECT pg_backend_pid()")
		if err != nil {
			return err
		}
		_, err = store.Query[bool](other, "SELECT pg_terminate_backend(CAST(? AS integer), 5000)", pids[0])
		return err
	}
	for name, fn := range map[string]func(tx nodest.Tx) error{
		"before a statement": func(tx nodest.Tx) error {
			if err := cut(tx); err != nil {
				return err
			}
			return emit("lost")(tx)
		},
		"before the commit": func(tx nodest.Tx) error {
			if err := store.Exec(tx, "UPDATE users SET role = role WHERE id = ?", user); err != nil {
				return err
			}
			return cut(tx)
		},
	} {
		if err := db.Update(context.Background(), user, fn); !isUnavailable(err) {
			t.Errorf("%s: the write answered %v, want storage_unavailable", name, err)
		}
		if err := db.View(context.Background(), user, func(tx nodest.Tx) error {
			if err := cut(tx); err != nil {
				return err
			}
			_, err := tx.Chats.Conversation("c")
			return err
		}); !isUnavailable(err) {
			t.Errorf("%s: the read answered %v, want storage_unavailable", name, err)
		}
		if err := db.Update(context.Background(), user, emit("next")); err != nil {
			t.Errorf("%s: the next write answered %v", name, err)
		}
	}
	late, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := db.Update(late, user, func(tx nodest.Tx) error {
		return store.Exec(tx, "SELECT pg_sleep(10)")
	}); !fault.Is(err, fault.StorageBusy) {
		t.Errorf("a slow statement answered %v, want storage_busy", err)
	}
}
