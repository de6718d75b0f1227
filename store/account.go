package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

type userRow struct {
	account.User   `db:"-Limits"`
	account.Limits `db:"Bytes=max_bytes"`
	UsernameKey    string
}

func (r *userRow) user() *account.User {
	r.User.Limits = r.Limits
	return &r.User
}

func newUserRow(u *account.User) *userRow { return &userRow{*u, u.Limits, usernameKey(u.Username)} }

const selectUsers = "SELECT id, username, role, tokens_per_day, generations, max_bytes, monthly_usd, password_hash, created_at FROM users"

// usernameKey is what makes a name unique: the name without regard to case.
func usernameKey(name string) string { return strings.ToLower(name) }

var errNameTaken = fault.New(fault.Conflict, "the username is taken")

// InsertUser stores a user and begins the user's event log.
func (db *DB) InsertUser(ctx context.Context, u *account.User, notes ...*audit.Entry) error {
	return db.write(ctx, func(s *session) error { return cmp.Or(s.insertUser(u), s.audit(notes...)) })
}

func (s *session) insertUser(u *account.User) error {
	if u.CreatedAt.IsZero() {
		u.CreatedAt = s.Now()
	}
	n, err := s.InsertNew("users", newUserRow(u), "ON CONFLICT (username_key) DO NOTHING")
	if err != nil {
		return err
	}
	if n == 0 {
		return errNameTaken
	}
	return s.Run("INSERT INTO streams (user_id, epoch, seq) VALUES (?, ?, 0)", sqldb.ID(u.ID), newEpoch())
}

// InsertFirstUser stores a user if there is none; of two calls at once, also in
// two processes, one stores.
func (db *DB) InsertFirstUser(ctx context.Context, u *account.User, notes ...*audit.Entry) (stored bool, err error) {
	err = db.write(ctx, func(s *session) error {
		stored = false
		found, err := s.Unless(s.lockUsers()).Has("SELECT 1 FROM users LIMIT 1")
		if err != nil || found {
			return err
		}
		stored = true
		return cmp.Or(s.insertUser(u), s.audit(notes...))
	})
	return stored && err == nil, err
}

// lockUsers keeps others from changing users until the transaction ends.
func (s *session) lockUsers() error {
	if !s.Postgres { // SQLite has one writer
		return nil
	}
	return s.Run("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE")
}

// User returns a user by id.
func (db *DB) User(ctx context.Context, id string) (*account.User, error) {
	return reading(ctx, db, func(s *session) (*account.User, error) { return s.oneUser("id = ?", id) })
}

// UserByName returns a user by name, without regard to case.
func (db *DB) UserByName(ctx context.Context, username string) (*account.User, error) {
	return reading(ctx, db, func(s *session) (*account.User, error) {
		return s.oneUser("username_key = ?", usernameKey(username))
	})
}

func (s *session) oneUser(where, arg string) (*account.User, error) {
	return sqldb.Find(s, "user", (*userRow).user, selectUsers+" WHERE "+where, arg)
}

// Users returns all users by name.
func (db *DB) Users(ctx context.Context) ([]*account.User, error) {
	users, err := reading(ctx, db, func(s *session) ([]*account.User, error) { return sqldb.Map(s, (*userRow).user, selectUsers) })
	slices.SortFunc(users, func(a, b *account.User) int { return cmp.Compare(usernameKey(a.Username), usernameKey(b.Username)) })
	return users, err
}

// UserPage returns a page of all users by name. Names are not ordered in SQL: the two databases sort
// texts differently.
func (db *DB) UserPage(ctx context.Context, cursor string, limit int) (items []*account.User, next string, err error) {
	after, err := sqldb.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	users, err := db.Users(ctx)
	users = slices.DeleteFunc(users, func(u *account.User) bool { return usernameKey(u.Username) <= after.ID })
	items, next = sqldb.Cut(users, limit, func(u *account.User) sqldb.Place { return sqldb.Place{ID: usernameKey(u.Username)} })
	return items, next, err
}

// UpdateUser stores what change makes of a user's role, limits and password.
func (db *DB) UpdateUser(ctx context.Context, id string, change func(u *account.User, all []*account.User) error, notes ...*audit.Entry) (*account.User, error) {
	return writing(ctx, db, func(s *session) (*account.User, error) {
		u, err := s.lockedUser(id, change)
		if err != nil {
			return nil, err
		}
		return u, cmp.Or(s.UpdateOne("user", "users", newUserRow(u), []string{"id", "username", "username_key", "created_at"}, "WHERE id = ?", id), s.audit(notes...))
	})
}

// lockedUser locks all users and returns one of them after fn.
func (s *session) lockedUser(id string, fn func(u *account.User, all []*account.User) error) (*account.User, error) {
	all, err := sqldb.Map(s.Unless(s.lockUsers()), (*userRow).user, selectUsers)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(u *account.User) bool { return u.ID == id })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "no such user")
	}
	return all[i], fn(all[i], all)
}

// DeleteUser removes the user. The foreign keys remove everything of the user but what stands
// with others: shared knowledge bases name the user. left is called after the first transaction.
//
// What a user has may be many gigabytes, others write meanwhile, and the disk may be full, so most
// rows go before, in small transactions. From the first one on the user is no owner, is signed out,
// and has no documents; if the process is killed, a repetition removes the rest.
func (db *DB) DeleteUser(ctx context.Context, id string, check func(u *account.User, all []*account.User) error, left func(ended []*account.Token), notes ...*audit.Entry) error {
	var ended []*account.Token
	var running []string
	err := db.write(ctx, func(s *session) (err error) {
		if _, err := s.lockedUser(id, check); err != nil {
			return err
		}
		if err := s.leaveKnowledge(id); err != nil {
			return err
		}
		if ended, err = s.endTokens("user_id = ?", id); err != nil {
			return err
		}
		if running, err = sqldb.All[string](s, "SELECT id FROM jobs WHERE user_id = ? AND state = 'running'", id); err != nil {
			return err
		}
		now := s.Now()
		return errors.Join(
			s.audit(notes...),
			s.Run("UPDATE users SET role = ? WHERE id = ?", account.RoleMember, id),
			s.Run("UPDATE files SET deleted_at = ? WHERE user_id = ? AND deleted_at IS NULL", now, id),
			s.Run("UPDATE knowledge_bases SET deleted_at = ? WHERE user_id = ? AND deleted_at IS NULL", now, id),
		)
	})
	if err != nil {
		return err
	}
	if left != nil {
		left(ended)
	}
	db.opts.Jobs(running)
	ctx = context.WithoutCancel(ctx)
	tables, err := userTables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := db.dropRows(ctx, id, table); err != nil {
			return err
		}
	}
	err = db.write(ctx, func(s *session) error {
		return cmp.Or(s.lockUsers(), s.leaveKnowledge(id), s.leaveAudit(id), s.ExecOne("user", "DELETE FROM users WHERE id = ?", id))
	})
	if err != nil {
		return err
	}
	if err := db.backend.Settle(ctx); err != nil { // the next maintenance does it
		db.opts.Log.WarnContext(ctx, "deleted data may still be in the log of the database", "err", err)
	}
	return nil
}

// rowsAtOnce is how many rows of some tables a transaction removes: of those with large rows, or with many
// that refer to one.
var rowsAtOnce = map[string]int{
	"attachments": 1, "avatars": 1, "character_versions": 1, "resource_versions": 1, // rows of up to 16 MiB
	"knowledge_segments": 4, "file_parts": 8, "conversations": 10, "memory_segment_parts": 16,
	"web_pages": 100, "prompts": 100, "message_words": 100, "summary_texts": 100, "knowledge_queries": 100, "research_calls": 100, "research_runs": 20, "resources": 100, "characters": 100, "call_keys": 100,
	"revisions": 200, "message_lines": 200, "conversation_states": 200, "circle_turns": 200, "circle_comments": 200, "circle_posts": 200, "jobs": 200,
}

// userTables are the tables of which a user may have many rows, each before those that it refers to.
func userTables(ctx context.Context) ([]*table, error) {
	tables, err := tablesAt(ctx, newestVersion())
	mine := slices.DeleteFunc(slices.Clone(tables), func(t *table) bool {
		return !slices.Contains(t.columnNames(), "user_id") || slices.Equal(t.key, []string{"user_id"})
	})
	slices.Reverse(mine)
	return mine, err
}

// dropRows removes the rows of a user from a table.
func (db *DB) dropRows(ctx context.Context, userID string, t *table) error {
	key := strings.Join(slices.Compact(append([]string{"user_id"}, t.key...)), ", ")
	return db.repeat(ctx, func(s *session) (int64, error) {
		return s.removeSome(t.name, key, "c.user_id = ?", cmp.Or(rowsAtOnce[t.name], 500), userID)
	})
}

type tokenRow struct {
	account.Token `db:"Session=is_session"`
}

func (r *tokenRow) token() *account.Token { return &r.Token }

// signedInRow is a token with its user.
type signedInRow struct {
	account.Token                `db:"Session=is_session"`
	Username, Role, PasswordHash string
	TokensPerDay, MaxBytes       int64
	Generations                  int
	MonthlyUSD                   float64
	UserSince                    time.Time
}

func (r *signedInRow) user() *account.User {
	return &account.User{
		ID: r.UserID, Username: r.Username, Role: r.Role, PasswordHash: r.PasswordHash, CreatedAt: r.UserSince,
		Limits: account.Limits{TokensPerDay: r.TokensPerDay, Generations: r.Generations, Bytes: r.MaxBytes, MonthlyUSD: r.MonthlyUSD},
	}
}

var signedInColumns = "t." + strings.Join(sqldb.Columns[tokenRow](), ", t.") +
	", u.username, u.role, u.tokens_per_day, u.generations, u.max_bytes, u.monthly_usd, u.password_hash, u.created_at AS user_since"

// InsertToken stores a token of a user; fault.NotFound if its parent is gone.
func (db *DB) InsertToken(ctx context.Context, t *account.Token, notes ...*audit.Entry) ([]*account.Token, error) {
	return writing(ctx, db, func(s *session) ([]*account.Token, error) {
		if err := s.lockTokens(); err != nil {
			return nil, err
		}
		if t.ParentID != "" {
			if err := s.Require("token", "SELECT 1 FROM tokens WHERE id = ?", t.ParentID); err != nil {
				return nil, err
			}
		}
		ended, err := s.placeForToken(t)
		return ended, cmp.Or(s.Unless(err).Insert("tokens", &tokenRow{*t}), s.audit(notes...))
	})
}

// placeForToken removes tokens of a user who has as many as may be: those that have expired, or of
// sessions the least recently used one, which it returns with those made with it. It is none that t
// is made with, also by way of others: t would end with it.
func (s *session) placeForToken(t *account.Token) (ended []*account.Token, err error) {
	const mine = "FROM tokens WHERE user_id = ? AND is_session = ?"
	full := func() (bool, error) {
		n, err := sqldb.Value[int](s, "SELECT COUNT(*) "+mine, t.UserID, t.Session)
		return n >= account.MaxTokens, err
	}
	if is, err := full(); err != nil || !is {
		return nil, err
	}
	if err := s.Run("DELETE "+mine+" AND expires_at <= ?", t.UserID, t.Session, s.Now()); err != nil {
		return nil, err
	}
	if is, err := full(); err != nil || !is {
		return nil, err
	}
	var oldest *string
	if t.Session {
		var err error
		oldest, err = sqldb.One[string](s, `WITH RECURSIVE makers (id) AS (
				SELECT id FROM tokens WHERE id = ?
				UNION SELECT made.parent_id FROM tokens made JOIN makers ON made.id = makers.id AND made.parent_id IS NOT NULL)
			SELECT id `+mine+` AND id NOT IN (SELECT id FROM makers) ORDER BY COALESCE(last_used_at, created_at), id LIMIT 1`, t.ParentID, t.UserID, t.Session)
		if err != nil {
			return nil, err
		}
	}
	if oldest == nil {
		return nil, fault.New(fault.QuotaExceeded, "the limit of %d tokens is reached; revoke those you no longer use", account.MaxTokens).
			With("quota", "tokens").With("limit", account.MaxTokens)
	}
	return s.endTokens("user_id = ? AND id = ?", t.UserID, *oldest)
}

// lockTokens keeps others from adding and removing tokens until the transaction ends, so that
// no token is made with one that is being removed.
func (s *session) lockTokens() error {
	if !s.Postgres { // SQLite has one writer
		return nil
	}
	return s.Run("SELECT pg_advisory_xact_lock(hashtextextended('nodest tokens ' || current_schema(), 0))")
}

// endTokens removes the tokens that a condition selects and every token that was made with
// one of them, also by way of others, and returns them.
func (s *session) endTokens(where string, args ...any) ([]*account.Token, error) {
	return sqldb.Map(s.Unless(s.lockTokens()), (*tokenRow).token, `WITH RECURSIVE made (id) AS (
			SELECT id FROM tokens WHERE `+where+`
			UNION SELECT t.id FROM tokens t JOIN made ON t.parent_id = made.id)
		DELETE FROM tokens WHERE id IN (SELECT id FROM made) RETURNING *`, args...)
}

// Tokens returns a user's tokens, newest first.
func (db *DB) Tokens(ctx context.Context, userID string) ([]*account.Token, error) {
	return reading(ctx, db, func(s *session) ([]*account.Token, error) {
		return sqldb.Map(s, (*tokenRow).token,
			"SELECT * FROM tokens WHERE user_id = ? ORDER BY created_at DESC, id DESC", userID)
	})
}

// TokenPage returns a page of a user's tokens, newest first.
func (db *DB) TokenPage(ctx context.Context, userID, cursor string, limit int) (items []*account.Token, next string, err error) {
	err = db.read(ctx, func(s *session) error {
		items, next, err = sqldb.Page(s, (*tokenRow).token, "created_at", cursor, limit,
			"SELECT * FROM tokens WHERE user_id = ?", userID)
		return err
	})
	return items, next, err
}

// TouchToken notes that a token was used; one that is gone is no error.
func (db *DB) TouchToken(ctx context.Context, userID, id string, at time.Time) error {
	err := db.exec(ctx, touchToken, at, userID, id)
	db.signedIn.forgetOne(id)
	return err
}

// exec runs one statement in a transaction of its own.
func (db *DB) exec(ctx context.Context, query string, args ...any) error {
	return db.write(ctx, func(s *session) error { return s.Run(query, args...) })
}

// DeleteToken revokes a token of the user and every token that was made with it, also those
// of other users.
func (db *DB) DeleteToken(ctx context.Context, userID, id string, notes ...*audit.Entry) (deleted []*account.Token, err error) {
	return writing(ctx, db, func(s *session) ([]*account.Token, error) {
		deleted, err := s.endTokens("user_id = ? AND id = ?", userID, id)
		if err == nil && len(deleted) == 0 {
			err = fault.New(fault.NotFound, "no such token")
		}
		if err != nil {
			return nil, err
		}
		return deleted, s.audit(notes...)
	})
}

// InsertTicket stores a single-use secret, and removes those of the user for its purpose that are
// too many.
func (db *DB) InsertTicket(ctx context.Context, t *account.Ticket) error {
	return db.write(ctx, func(s *session) error {
		return cmp.Or(s.Insert("tickets", t), s.Run("DELETE FROM tickets WHERE hash IN (SELECT hash FROM tickets WHERE user_id = ? AND purpose = ?"+
			" ORDER BY expires_at DESC, hash LIMIT 100 OFFSET ?)", t.UserID, t.Purpose, account.MaxTickets))
	})
}

const ticketColumns = "hash, purpose, user_id, token_hash, expires_at"

// Ticket returns a ticket and leaves it.
func (db *DB) Ticket(ctx context.Context, purpose string, hash []byte, now time.Time) (*account.Ticket, error) {
	t, err := reading(ctx, db, func(s *session) (*account.Ticket, error) {
		return sqldb.One[account.Ticket](s, "SELECT "+ticketColumns+" FROM tickets WHERE hash = ? AND purpose = ?", hash, purpose)
	})
	return validTicket(t, err, now)
}

// TakeTicket removes a ticket; one that is over is removed and not found.
func (db *DB) TakeTicket(ctx context.Context, purpose string, hash []byte, now time.Time) (t *account.Ticket, err error) {
	t, err = writing(ctx, db, func(s *session) (*account.Ticket, error) {
		return sqldb.One[account.Ticket](s, "DELETE FROM tickets WHERE hash = ? AND purpose = ? RETURNING "+ticketColumns, hash, purpose)
	})
	return validTicket(t, err, now)
}

func validTicket(t *account.Ticket, err error, now time.Time) (*account.Ticket, error) {
	if err == nil && (t == nil || t.ExpiresAt.UnixMilli() <= now.UnixMilli()) {
		return nil, fault.New(fault.NotFound, "the ticket is invalid, already used, or expired")
	}
	return t, err
}

// DeleteTickets removes all tickets of a user for a purpose.
func (db *DB) DeleteTickets(ctx context.Context, userID, purpose string) error {
	return db.exec(ctx, "DELETE FROM tickets WHERE user_id = ? AND purpose = ?", userID, purpose)
}

// PutProviderKey stores or replaces a user's key for a provider.
func (db *DB) PutProviderKey(ctx context.Context, userID string, k *account.SealedKey, notes ...*audit.Entry) error {
	return db.write(ctx, func(s *session) error {
		return cmp.Or(s.Run(`INSERT INTO provider_keys (user_id, provider, sealed, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user_id, provider) DO UPDATE SET sealed = EXCLUDED.sealed, updated_at = EXCLUDED.updated_at`,
			sqldb.ID(userID), k.Provider, k.Sealed, k.UpdatedAt), s.audit(notes...))
	})
}

// DeleteProviderKey removes it; fault.NotFound if there is none.
func (db *DB) DeleteProviderKey(ctx context.Context, userID, provider string, notes ...*audit.Entry) error {
	return db.write(ctx, func(s *session) error {
		return cmp.Or(s.ExecOne("key for this provider", "DELETE FROM provider_keys WHERE user_id = ? AND provider = ?", userID, provider), s.audit(notes...))
	})
}

// ProviderKeys returns a user's keys by provider.
func (db *DB) ProviderKeys(ctx context.Context, userID string) ([]*account.SealedKey, error) {
	keys, err := glancing(ctx, db, func(s *session) ([]*account.SealedKey, error) {
		return sqldb.Map(s, func(k *account.SealedKey) *account.SealedKey { return k },
			"SELECT provider, sealed, updated_at FROM provider_keys WHERE user_id = ?", userID)
	})
	slices.SortFunc(keys, func(a, b *account.SealedKey) int { return cmp.Compare(a.Provider, b.Provider) })
	return keys, err
}
