package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// newToken stores a token of a user.
func newToken(t *testing.T, db *store.DB, user string) *account.Token {
	t.Helper()
	token := &account.Token{ID: id(), UserID: user, Hash: []byte(id()), CreatedAt: time.Now()}
	if _, err := db.InsertToken(context.Background(), token); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestATokenIsReadOnceUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.Open(t)
	user := storetest.User(t, db)
	mine, other := newToken(t, db, user), newToken(t, db, user)
	find := func(want int64) (*account.Token, *account.User) {
		t.Helper()
		before := db.Statements()
		got, who, err := db.TokenByHash(ctx, mine.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if n := db.Statements() - before; n != want {
			t.Errorf("%d statements, want %d", n, want)
		}
		return got, who
	}
	find(1)
	find(0)
	at := time.Now().UTC().Truncate(time.Minute)
	if err := db.TouchToken(ctx, user, other.ID, at); err != nil {
		t.Fatal(err)
	}
	find(0)
	if err := db.TouchToken(ctx, user, mine.ID, at); err != nil {
		t.Fatal(err)
	}
	if got, _ := find(1); got.LastUsedAt == nil || !got.LastUsedAt.Equal(at) {
		t.Errorf("last used at %v, want %v", got.LastUsedAt, at)
	}
	err := db.Update(ctx, user, func(tx nodest.Tx) error {
		return store.Exec(tx, "UPDATE users SET max_bytes = 7 WHERE id = ?", user)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, who := find(1); who.Limits.Bytes != 7 {
		t.Errorf("limit %d, want 7", who.Limits.Bytes)
	}
	if _, err := db.DeleteToken(ctx, user, mine.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.TokenByHash(ctx, mine.Hash); !fault.Is(err, fault.NotFound) {
		t.Errorf("a revoked token: %v", err)
	}
}

func TestARevokedTokenEndsWhileOthersReadIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.Open(t)
	user := storetest.User(t, db)
	for range 40 {
		mine := newToken(t, db, user)
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for {
					if _, _, err := db.TokenByHash(ctx, mine.Hash); err != nil {
						return
					}
				}
			})
		}
		if _, err := db.DeleteToken(ctx, user, mine.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.TokenByHash(ctx, mine.Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("a revoked token: %v", err)
		}
		readers.Wait()
	}
}
