package store

import (
	"context"
	"strings"
	"sync"

	"nodest/internal/account"
	"nodest/store/sqldb"
)

// signedIn keeps tokens with their users on SQLite, where this process alone writes: each request
// begins with one. Every transaction that may have changed a token or a user forgets all of them
// before its caller hears of its end. On PostgreSQL other processes write, so each token is read.
type signedIn struct {
	mu      sync.Mutex
	rows    map[string]*signedInRow // by hash
	changes int64                   // changes of tokens and users
}

// mostSignedIn bounds the tokens that are kept.
const mostSignedIn = 10_000

// touchToken changes nothing that lets a token in.
const touchToken = "UPDATE tokens SET last_used_at = ? WHERE user_id = ? AND id = ?"

// changesSignedIn reports whether a statement that writes may change tokens or users.
func changesSignedIn(query string) bool {
	return (strings.Contains(query, "tokens") || strings.Contains(query, "users")) && query != touchToken
}

// find returns a token that is kept, nil if it is not, and how many changes there have been.
func (k *signedIn) find(hash []byte) (row *signedInRow, changes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rows[string(hash)], k.changes
}

// keep keeps a token that was read after a number of changes, unless there were more since.
func (k *signedIn) keep(hash []byte, row *signedInRow, changes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changes != k.changes {
		return
	}
	if k.rows == nil || len(k.rows) >= mostSignedIn {
		k.rows = map[string]*signedInRow{}
	}
	k.rows[string(hash)] = row
}

// forget forgets all tokens.
func (k *signedIn) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	clear(k.rows)
}

// forgetOne forgets a token.
func (k *signedIn) forgetOne(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	for hash, row := range k.rows {
		if row.ID == id {
			delete(k.rows, hash)
		}
	}
}

// TokenByHash returns a token and its user, with one statement at most.
func (db *DB) TokenByHash(ctx context.Context, hash []byte) (*account.Token, *account.User, error) {
	row, changes := db.signedIn.find(hash)
	if row == nil {
		var err error
		row, err = glancing(ctx, db, func(s *session) (*signedInRow, error) {
			return sqldb.Get[signedInRow](s, "token", "SELECT "+signedInColumns+" FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = ?", hash)
		})
		if err != nil {
			return nil, nil, err
		}
		if db.opts.URL == "" {
			db.signedIn.keep(hash, row, changes)
		}
	}
	token := row.Token
	return &token, row.user(), nil
}
