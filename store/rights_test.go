package store_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"nodest/card/picture"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/rights"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// export is the file of a user.
func export(t testing.TB, db *store.DB, user string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := rights.New(db, rights.Options{Program: "test", TempDir: t.TempDir()}).Export(context.Background(), user, "ada", &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func bringIn(db *store.DB, user string, file []byte, dry bool) (*rights.Imported, error) {
	call := &op.Call{UserID: user}
	return rights.New(db, rights.Options{}).Import(context.Background(), call, bytes.NewReader(file), int64(len(file)), dry)
}

// unzipped are the entries of a file but for the manifest, which has a time.
func unzipped(t testing.TB, file []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != "manifest.json" {
			all[f.Name] = string(text)
		}
	}
	return all
}

// same fails the test unless two files have the same entries.
func same(t testing.TB, what string, a, b []byte) {
	t.Helper()
	one, other := unzipped(t, a), unzipped(t, b)
	for name, text := range one {
		if other[name] != text {
			t.Errorf("%s: %s:\n had %.1500s\n has %.1500s", what, name, text, other[name])
		}
	}
	for name := range other {
		if _, ok := one[name]; !ok {
			t.Errorf("%s: %s is new", what, name)
		}
	}
}

// pixel is the smallest picture.
func pixel() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// settled ends what runs for a filled user.
func settled(e *env, x fixture) {
	e.Helper()
	e.updateAs(x.user, func(tx nodest.Tx) error {
		data := pixel()
		info, err := picture.Check(data)
		if err != nil {
			return err
		}
		for _, table := range []string{"avatars", "attachments"} {
			if err := store.Exec(tx, "UPDATE "+table+" SET data = ?, content_type = ?, etag = ? WHERE user_id = ?", data, info.ContentType, info.ETag, x.user); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			"UPDATE generations SET is_open = FALSE, status = 'done', ended_at = 5, lease_owner = '' WHERE user_id = ?",
			"UPDATE research_runs SET state = 'done' WHERE user_id = ?",
			"UPDATE circle_turns SET state = 'done', ended_at = 5 WHERE user_id = ?",
			"UPDATE files SET size = 7, sha256 = '" + fmt.Sprintf("%x", sha256.Sum256([]byte("private"))) + "' WHERE user_id = ?",
			"UPDATE dream_runs SET finished_at = 5 WHERE user_id = ?",
		} {
			if err := store.Exec(tx, statement, x.user); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestEverythingOfAUserMovesToAnyDatabase(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		x := fill(e, e.user)
		settled(e, x)
		stranger := newUser(e)
		fill(e, stranger)
		file := export(e.T, e.db, e.user)
		rows := count(e, e.user)
		for _, open := range []func(t testing.TB) *store.DB{storetest.Open, func(t testing.TB) *store.DB { return storetest.OpenPostgres(t, store.Options{}) }} {
			db := open(e.T)
			user := storetest.User(e.T, db)
			dry, err := bringIn(db, user, file, true)
			if err != nil {
				e.Fatal(err)
			}
			same(e.T, "a dry run", export(e.T, db, user), export(e.T, db, storetest.User(e.T, db)))
			done, err := bringIn(db, user, file, false)
			if err != nil {
				e.Fatal(err)
			}
			e.equal("counts", fmt.Sprint(done.Added), fmt.Sprint(dry.Added))
			same(e.T, "the file of the copy", file, export(e.T, db, user))
			again, err := bringIn(db, user, file, false)
			if err != nil {
				e.Fatal(err)
			}
			e.equal("added by a repetition", len(again.Added), 0)
			for table, n := range done.Added {
				if rows[table] != n {
					e.Errorf("%d of %d rows of %s came over", n, rows[table], table)
				}
			}
			for table := range rows {
				if _, left := store.LeftOut[table]; !left && done.Added[table] == 0 {
					e.Errorf("no row of %s came over", table)
				}
			}
		}
	})
}

// Ids are unique within a user: what somebody else brings in is theirs alone.
func TestAFileOfAnotherUserOfTheServerIsACopy(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		x := fill(e, e.user)
		settled(e, x)
		file, before := export(e.T, e.db, e.user), count(e, e.user)
		friend := newUser(e)
		if _, err := bringIn(e.db, friend, file, false); err != nil {
			e.Fatal(err)
		}
		same(e.T, "the file of the friend", file, export(e.T, e.db, friend))
		if err := e.db.DeleteUser(context.Background(), friend, anyUser, nil); err != nil {
			e.Fatal(err)
		}
		e.equal("rows", fmt.Sprint(count(e, e.user)), fmt.Sprint(before))
		same(e.T, "the file", file, export(e.T, e.db, e.user))
	})
}

func TestNoSecretIsInAFile(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		settled(e, fill(e, e.user))
		var names []string
		for name := range unzipped(e.T, export(e.T, e.db, e.user)) {
			table, _, _ := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "/")
			names = append(names, table)
		}
		for _, table := range []string{"users", "tokens", "tickets", "provider_keys", "call_keys"} {
			if slices.Contains(names, table) {
				e.Errorf("the file has %s", table)
			}
		}
	})
}

func TestAFileIsMadeWhenNoReplyIsBeingWritten(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		fill(e, e.user)
		err := rights.New(e.db, rights.Options{}).Export(context.Background(), e.user, "ada", io.Discard)
		e.code(fault.Busy, err)
	})
}
