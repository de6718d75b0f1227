package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"nodest/account"
	"nodest/fault"
)

type userRow struct {
	bun.BaseModel `bun:"table:users"`
	ID            string `bun:"id,pk"`
	Username      text
	UsernameKey   text
	Role          text
	TokensPerDay  int64
	Generations   int
	PasswordHash  text
	TimeZone      text `bun:",scanonly"` // of nodest.Settings
	CreatedAt     int64
}

func (r *userRow) user() *account.User {
	return &account.User{
		ID: r.ID, Username: string(r.Username), Role: string(r.Role), PasswordHash: string(r.PasswordHash),
		Limits:    account.Limits{TokensPerDay: r.TokensPerDay, Generations: r.Generations},
		CreatedAt: moment(r.CreatedAt),
	}
}

func newUserRow(u *account.User) *userRow {
	return &userRow{
		ID: u.ID, Username: text(u.Username), UsernameKey: usernameKey(u.Username), Role: text(u.Role),
		TokensPerDay: u.Limits.TokensPerDay, Generations: u.Limits.Generations,
		PasswordHash: text(u.PasswordHash), CreatedAt: millis(u.CreatedAt),
	}
}

// usernameKey is what makes a name unique: the name without regard to case.
func usernameKey(name string) text { return text(strings.ToLower(name)) }

var errNameTaken = fault.New(fault.Conflict, "the username is taken")

// InsertUser stores a user and begins the user's event log.
func (db *DB) InsertUser(ctx context.Context, u *account.User) error {
	return db.backend.write(ctx, func(s *session) error { return s.insertUser(u) })
}

func (s *session) insertUser(u *account.User) error {
	if u.CreatedAt.IsZero() {
		u.CreatedAt = moment(s.now)
	}
	n, err := s.exec(s.db.NewInsert().Model(newUserRow(u)).On("CONFLICT (username_key) DO NOTHING"))
	if err != nil {
		return err
	}
	if n == 0 {
		return errNameTaken
	}
	_, err = s.exec(s.raw("INSERT INTO streams (user_id, epoch, seq) VALUES (?, ?, 0)", text(u.ID), newEpoch()))
	return err
}

// InsertFirstUser stores a user if there is none; of two calls at once, also in
// two processes, one stores.
func (db *DB) InsertFirstUser(ctx context.Context, u *account.User) (stored bool, err error) {
	err = db.backend.write(ctx, func(s *session) error {
		stored = false
		if s.postgres { // SQLite has one writer
			if _, err := s.exec(s.raw("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE")); err != nil {
				return err
			}
		}
		var one int
		found, err := s.scan(s.raw("SELECT 1 FROM users LIMIT 1"), &one)
		if err != nil || found {
			return err
		}
		stored = true
		return s.insertUser(u)
	})
	return stored && err == nil, err
}

// User returns a user by id.
func (db *DB) User(ctx context.Context, id string) (*account.User, error) {
	return db.oneUser(ctx, "id = ?", text(id))
}

// UserByName returns a user by name, without regard to case.
func (db *DB) UserByName(ctx context.Context, username string) (*account.User, error) {
	return db.oneUser(ctx, "username_key = ?", usernameKey(username))
}

func (db *DB) oneUser(ctx context.Context, where string, arg any) (u *account.User, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		u, err = s.oneUser(where, arg)
		return err
	})
	return u, err
}

func (s *session) oneUser(where string, arg any) (*account.User, error) {
	var row userRow
	found, err := s.scan(s.raw("SELECT * FROM users WHERE "+where, arg), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such user")
	}
	return row.user(), nil
}

// Users returns all users by name.
func (db *DB) Users(ctx context.Context) (users []*account.User, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var rows []*userRow
		if _, err := s.scan(s.raw("SELECT * FROM users"), &rows); err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b *userRow) int { return strings.Compare(string(a.UsernameKey), string(b.UsernameKey)) })
		users = make([]*account.User, len(rows))
		for i, row := range rows {
			users[i] = row.user()
		}
		return nil
	})
	return users, err
}

// UpdateUser stores everything of u but id and time; fault.Conflict if the
// name is taken.
func (db *DB) UpdateUser(ctx context.Context, u *account.User) error {
	return db.backend.write(ctx, func(s *session) error {
		var other string
		taken, err := s.scan(s.raw("SELECT id FROM users WHERE username_key = ? AND id <> ?", usernameKey(u.Username), text(u.ID)), &other)
		if err != nil {
			return err
		}
		if taken {
			return errNameTaken
		}
		n, err := s.exec(s.db.NewUpdate().Model(newUserRow(u)).ExcludeColumn("id", "created_at").Where("id = ?", text(u.ID)))
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "no such user")
		}
		return err
	})
}

// DeleteUser removes the user; the foreign keys remove everything of the user.
func (db *DB) DeleteUser(ctx context.Context, id string) error {
	return db.backend.write(ctx, func(s *session) error {
		n, err := s.exec(s.raw("DELETE FROM users WHERE id = ?", text(id)))
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "no such user")
		}
		return err
	})
}

type tokenRow struct {
	bun.BaseModel `bun:"table:tokens"`
	ID            string `bun:"id,pk"`
	UserID        string
	Name          text
	Hash          []byte
	IsSession     bool
	CreatedAt     int64
	LastUsedAt    *int64
	ExpiresAt     *int64
	ParentID      text
}

func (r *tokenRow) token() *account.Token {
	return &account.Token{
		ID: r.ID, UserID: r.UserID, Name: string(r.Name), Hash: r.Hash, Session: r.IsSession,
		CreatedAt: moment(r.CreatedAt), LastUsedAt: momentOrNil(r.LastUsedAt), ExpiresAt: momentOrNil(r.ExpiresAt),
		ParentID: string(r.ParentID),
	}
}

// InsertToken stores a token of a user; fault.NotFound if its parent is gone.
func (db *DB) InsertToken(ctx context.Context, t *account.Token) error {
	return db.backend.write(ctx, func(s *session) error {
		if t.CreatedAt.IsZero() {
			t.CreatedAt = moment(s.now)
		}
		if t.ParentID != "" {
			var parent tokenRow
			found, err := s.scan(s.raw("SELECT * FROM tokens WHERE user_id = ? AND id = ?", text(t.UserID), text(t.ParentID)), &parent)
			if err != nil {
				return err
			}
			if !found {
				return fault.New(fault.NotFound, "no such token")
			}
		}
		return s.insert(&tokenRow{
			ID: t.ID, UserID: t.UserID, Name: text(t.Name), Hash: t.Hash, IsSession: t.Session,
			CreatedAt: millis(t.CreatedAt), LastUsedAt: millisOrNull(t.LastUsedAt), ExpiresAt: millisOrNull(t.ExpiresAt),
			ParentID: text(t.ParentID),
		})
	})
}

// TokenByHash returns a token and its user.
func (db *DB) TokenByHash(ctx context.Context, hash []byte) (t *account.Token, u *account.User, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var row tokenRow
		found, err := s.scan(s.raw("SELECT * FROM tokens WHERE hash = ?", hash), &row)
		if err != nil {
			return err
		}
		if !found {
			return fault.New(fault.NotFound, "no such token")
		}
		t = row.token()
		u, err = s.oneUser("id = ?", text(row.UserID))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return t, u, nil
}

// Tokens returns a user's tokens, newest first.
func (db *DB) Tokens(ctx context.Context, userID string) (tokens []*account.Token, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var rows []*tokenRow
		if _, err := s.scan(s.raw("SELECT * FROM tokens WHERE user_id = ? ORDER BY created_at DESC, id DESC", text(userID)), &rows); err != nil {
			return err
		}
		tokens = make([]*account.Token, len(rows))
		for i, row := range rows {
			tokens[i] = row.token()
		}
		return nil
	})
	return tokens, err
}

// TouchToken notes that a token was used; one that is gone is no error.
func (db *DB) TouchToken(ctx context.Context, userID, id string, at time.Time) error {
	return db.backend.write(ctx, func(s *session) error {
		_, err := s.exec(s.raw("UPDATE tokens SET last_used_at = ? WHERE user_id = ? AND id = ?", millis(at), text(userID), text(id)))
		return err
	})
}

// DeleteToken revokes a token of the user and the sessions made from it.
func (db *DB) DeleteToken(ctx context.Context, userID, id string) error {
	return db.backend.write(ctx, func(s *session) error {
		n, err := s.exec(s.raw("DELETE FROM tokens WHERE user_id = ? AND id = ?", text(userID), text(id)))
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.NotFound, "no such token")
		}
		_, err = s.exec(s.raw("DELETE FROM tokens WHERE user_id = ? AND parent_id = ?", text(userID), text(id)))
		return err
	})
}

// InsertTicket stores a single-use secret.
func (db *DB) InsertTicket(ctx context.Context, t *account.Ticket) error {
	return db.backend.write(ctx, func(s *session) error {
		_, err := s.exec(s.raw("INSERT INTO tickets (hash, purpose, user_id, expires_at) VALUES (?, ?, ?, ?)",
			t.Hash, text(t.Purpose), text(t.UserID), millis(t.ExpiresAt)))
		return err
	})
}

// TakeTicket removes a ticket; one that is over is removed and not found.
func (db *DB) TakeTicket(ctx context.Context, purpose string, hash []byte, now time.Time) (t *account.Ticket, err error) {
	err = db.backend.write(ctx, func(s *session) error {
		t = nil
		var row struct {
			UserID    string
			ExpiresAt int64
		}
		found, err := s.scan(s.raw("DELETE FROM tickets WHERE hash = ? AND purpose = ? RETURNING user_id, expires_at",
			hash, text(purpose)), &row)
		if err == nil && found && row.ExpiresAt > millis(now) {
			t = &account.Ticket{Hash: hash, Purpose: purpose, UserID: row.UserID, ExpiresAt: moment(row.ExpiresAt)}
		}
		return err
	})
	if err == nil && t == nil {
		err = fault.New(fault.NotFound, "the ticket is invalid, already used, or expired")
	}
	return t, err
}

// DeleteTickets removes all tickets of a user for a purpose.
func (db *DB) DeleteTickets(ctx context.Context, userID, purpose string) error {
	return db.backend.write(ctx, func(s *session) error {
		_, err := s.exec(s.raw("DELETE FROM tickets WHERE user_id = ? AND purpose = ?", text(userID), text(purpose)))
		return err
	})
}

// PutProviderKey stores or replaces a user's key for a provider.
func (db *DB) PutProviderKey(ctx context.Context, userID string, k *account.SealedKey) error {
	return db.backend.write(ctx, func(s *session) error {
		if k.UpdatedAt.IsZero() {
			k.UpdatedAt = moment(s.now)
		}
		_, err := s.exec(s.raw(`INSERT INTO provider_keys (user_id, provider, sealed, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user_id, provider) DO UPDATE SET sealed = EXCLUDED.sealed, updated_at = EXCLUDED.updated_at`,
			text(userID), text(k.Provider), k.Sealed, millis(k.UpdatedAt)))
		return err
	})
}

// DeleteProviderKey removes it; fault.NotFound if there is none.
func (db *DB) DeleteProviderKey(ctx context.Context, userID, provider string) error {
	return db.backend.write(ctx, func(s *session) error {
		n, err := s.exec(s.raw("DELETE FROM provider_keys WHERE user_id = ? AND provider = ?", text(userID), text(provider)))
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "no key for this provider")
		}
		return err
	})
}

// ProviderKeys returns a user's keys by provider.
func (db *DB) ProviderKeys(ctx context.Context, userID string) (keys []*account.SealedKey, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var rows []struct {
			Provider  text
			Sealed    []byte
			UpdatedAt int64
		}
		if _, err := s.scan(s.raw("SELECT provider, sealed, updated_at FROM provider_keys WHERE user_id = ?", text(userID)), &rows); err != nil {
			return err
		}
		keys = make([]*account.SealedKey, len(rows))
		for i, r := range rows {
			keys[i] = &account.SealedKey{Provider: string(r.Provider), Sealed: r.Sealed, UpdatedAt: moment(r.UpdatedAt)}
		}
		slices.SortFunc(keys, func(a, b *account.SealedKey) int { return strings.Compare(a.Provider, b.Provider) })
		return nil
	})
	return keys, err
}
