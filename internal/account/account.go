// Package account manages users, passwords, tokens, single-use tickets, sign-in links,
// and the users' own provider keys.
//
// Secrets are stored in a form that is useless to a thief: tokens and tickets (256
// random bits) as SHA-256, passwords as argon2id, and provider keys encrypted with
// AES-GCM under the server's secret.
package account

import (
	"context"
	"fmt"
	"time"

	"nodest/internal/audit"
)

// Roles of users.
const (
	RoleOwner  = "owner"
	RoleMember = "member"
)

// User is an account.
type User struct {
	ID           string    `json:"id"`
	Username     string    `json:"username"` // 1–64 code points, unique without regard to case
	Role         string    `json:"role"`
	Limits       Limits    `json:"limits"`
	PasswordHash string    `json:"-"` // argon2id in PHC form; "" = no password sign-in
	CreatedAt    time.Time `json:"createdAt"`
}

// Limits of a user; 0 = the server's default.
type Limits struct {
	TokensPerDay int64   `json:"tokensPerDay"`
	Generations  int     `json:"generations"` // running at once
	Bytes        int64   `json:"bytes"`       // stored
	MonthlyUSD   float64 `json:"usdPerMonth"` // for models whose price is known
}

// String has the limits by their names on the wire.
func (l Limits) String() string {
	return fmt.Sprintf("tokensPerDay %d, generations %d, bytes %d, usdPerMonth %g", l.TokensPerDay, l.Generations, l.Bytes, l.MonthlyUSD)
}

// Quotas are the server's limits for what each user stores; 0 = no limit.
type Quotas struct {
	Bytes    int64 // bytes of texts, cards, images, memories and posts together; documents do not count
	Messages int64
	Items    int64 // items of each other kind
}

// Quota is how much a user has of one kind, and the limit; 0 = no limit. Used may be too high for
// up to a day after a deletion. It is recounted, at most once a minute, before anything is refused.
type Quota struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Token is a bearer token; its text is shown once, when it is made.
type Token struct {
	ID         string     `json:"id"`
	UserID     string     `json:"-"`
	Name       string     `json:"name"`
	Hash       []byte     `json:"-"`
	Session    bool       `json:"session"` // made by a sign-in
	ParentID   string     `json:"-"`       // the token that created it and with which it ends; may be an owner's; "" = none
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"` // to the minute
	ExpiresAt  *time.Time `json:"expiresAt,omitempty"`
}

// How many sessions, other tokens, and unused tickets of a purpose a user has at most.
const (
	MaxTokens  = 200
	MaxTickets = 100
)

// Ticket is a single-use secret for one purpose.
type Ticket struct {
	Hash      []byte
	Purpose   string // "ws" or "signin"
	UserID    string
	TokenHash []byte // the token that it was made with; the ticket is invalid once that has ended; empty = none
	ExpiresAt time.Time
}

// SealedKey is a user's provider key as it is stored.
type SealedKey struct {
	Provider  string
	Sealed    []byte
	UpdatedAt time.Time
}

// Store keeps accounts; package store provides it. What changes something notes the entries that it is given
// in the audit log, in the same transaction.
type Store interface {
	// InsertUser returns fault.Conflict if the username is taken.
	InsertUser(ctx context.Context, u *User, notes ...*audit.Entry) error
	// InsertFirstUser is InsertUser that does nothing and returns false if there
	// is a user already, also when two processes try at once.
	InsertFirstUser(ctx context.Context, u *User, notes ...*audit.Entry) (bool, error)
	User(ctx context.Context, id string) (*User, error)
	UserByName(ctx context.Context, username string) (*User, error)
	Users(ctx context.Context) ([]*User, error) // by username
	// UserPage returns a page of them and the cursor of the next page, "" = none.
	UserPage(ctx context.Context, cursor string, limit int) (items []*User, next string, err error)
	// UpdateUser stores the role, limits and password that change gives a user; all are
	// all users. Nobody else changes users meanwhile. An error of change stores nothing. change may
	// complete the notes.
	UpdateUser(ctx context.Context, id string, change func(u *User, all []*User) error, notes ...*audit.Entry) (*User, error)
	// DeleteUser removes a user and everything of the user, unless check fails. Before it removes data, which may
	// take long, it calls left (nil = nobody) with the tokens that have ended: the user's, and those of others that
	// were made with one of them.
	DeleteUser(ctx context.Context, id string, check func(u *User, all []*User) error, left func(ended []*Token), notes ...*audit.Entry) error

	// Quotas returns what a user has by kind, bytes among them.
	Quotas(ctx context.Context, userID string) (map[string]Quota, error)

	// InsertToken stores a token. A user has at most MaxTokens sessions and MaxTokens other tokens:
	// a session beyond that ends the least recently used one, with every token made with it, and
	// these are returned; another token is refused with fault.QuotaExceeded.
	InsertToken(ctx context.Context, t *Token, notes ...*audit.Entry) (ended []*Token, err error)
	// TokenByHash returns fault.NotFound for unknown and revoked tokens.
	TokenByHash(ctx context.Context, hash []byte) (*Token, *User, error)
	Tokens(ctx context.Context, userID string) ([]*Token, error) // newest first
	// TokenPage returns a page of tokens and the cursor of the next page, "" = none.
	TokenPage(ctx context.Context, userID, cursor string, limit int) (items []*Token, next string, err error)
	TouchToken(ctx context.Context, userID, id string, at time.Time) error
	// DeleteToken deletes a token and every token made with it, also those of other users,
	// and returns them. It returns fault.NotFound if it is not a token of the user.
	DeleteToken(ctx context.Context, userID, id string, notes ...*audit.Entry) (deleted []*Token, err error)

	// InsertTicket stores a ticket. Of each purpose a user's newest MaxTickets are kept.
	InsertTicket(ctx context.Context, t *Ticket) error
	// Ticket returns a ticket that is still valid at now; fault.NotFound otherwise.
	Ticket(ctx context.Context, purpose string, hash []byte, now time.Time) (*Ticket, error)
	// TakeTicket removes and returns a ticket that is still valid at now;
	// fault.NotFound otherwise. Of two calls at once one succeeds.
	TakeTicket(ctx context.Context, purpose string, hash []byte, now time.Time) (*Ticket, error)
	// DeleteTickets removes all tickets of a user for a purpose.
	DeleteTickets(ctx context.Context, userID, purpose string) error

	PutProviderKey(ctx context.Context, userID string, k *SealedKey, notes ...*audit.Entry) error
	DeleteProviderKey(ctx context.Context, userID, provider string, notes ...*audit.Entry) error
	ProviderKeys(ctx context.Context, userID string) ([]*SealedKey, error)

	// ModelServers returns the servers that owners have added, by name.
	ModelServers(ctx context.Context) ([]*ModelServer, error)
	// PutModelServer stores after, which change may complete with what is stored now, nil = nothing. If change says
	// that the server has moved, the users' keys for it are removed.
	PutModelServer(ctx context.Context, after *ModelServer, change func(before *ModelServer) (moved bool, err error), notes ...*audit.Entry) error
	// DeleteModelServer removes a server with the users' keys for it; fault.NotFound if there is none.
	DeleteModelServer(ctx context.Context, name string, notes ...*audit.Entry) error

	// Audit notes an entry for what stores nothing else.
	Audit(ctx context.Context, e *audit.Entry) error
	// AuditPage returns a page of the audit log, newest first, and the cursor of the next page, "" = none.
	AuditPage(ctx context.Context, f audit.Filter, cursor string, limit int) (items []*audit.Record, next string, err error)
}
