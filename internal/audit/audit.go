// Package audit has what the audit log of a server notes: who signed in or tried to, and who changed
// accounts, rights, keys and limits. An entry has no text of a user and no secret.
//
// Code that runs in a transaction of package store notes an entry with op.Tx.Audit; package account does so
// for what it stores itself.
package audit

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"nodest/internal/fault"
)

// Action is what somebody did. Clients see it; it never changes.
type Action string

// The actions.
const (
	SignedIn        Action = "signin"         // Detail: password, link or token
	SignInFailed    Action = "signin.failed"  // Detail as of SignedIn; Subject only if that user exists
	PasswordWrong   Action = "password.wrong" // the current password, asked of somebody who is signed in
	PasswordChanged Action = "password.changed"
	TokenCreated    Action = "token.created" // Object: its id
	TokenEnded      Action = "token.ended"   // also by signing out
	LinkCreated     Action = "link.created"
	UserCreated     Action = "user.created" // Detail: the role
	UserDeleted     Action = "user.deleted"
	RoleChanged     Action = "role.changed"   // Detail: the new role
	LimitsChanged   Action = "limits.changed" // Detail: the new limits
	KeyChanged      Action = "key.changed"    // Object: the provider
	KeyRemoved      Action = "key.removed"
	ServerAdded     Action = "server.added" // Object: its name; Detail: its scheme, host and port
	ServerChanged   Action = "server.changed"
	ServerRemoved   Action = "server.removed"
	GrantGiven      Action = "grant.given" // Object: the knowledge base; Detail: the access
	GrantTaken      Action = "grant.taken"
	Exported        Action = "data.exported" // Detail: backup, or everything of a user
	Imported        Action = "data.imported"
)

// Actions lists the actions.
var Actions = []Action{
	SignedIn, SignInFailed, PasswordWrong, PasswordChanged, TokenCreated, TokenEnded, LinkCreated, UserCreated, UserDeleted,
	RoleChanged, LimitsChanged, KeyChanged, KeyRemoved, ServerAdded, ServerChanged, ServerRemoved, GrantGiven, GrantTaken, Exported, Imported,
}

// Entry is what is noted. The store adds the rest of a Record.
type Entry struct {
	Action    Action // "" = nothing is noted
	ActorID   string // the user who did it; "" = somebody who is not signed in, or the command line
	SubjectID string // the user whose account it is about; "" = unknown
	Object    string // the id of what it is about, or its name if that is not a user's text; at most 64 bytes
	Detail    string // a few words, no text of a user; at most 200 bytes
}

// Record is an entry as it is stored, or many that were alike: see store.
type Record struct {
	Entry
	ID          string
	At          time.Time // when the last one was noted
	Since       time.Time // when the first one was noted
	Count       int64
	ActorName   string // their names when it was noted
	SubjectName string
	Origin
}

// Filter selects records.
type Filter struct {
	UserID string // that is the actor or the subject; "" = all
	Action Action // "" = all
}

// Check refuses an unknown action.
func (f Filter) Check() error {
	if f.Action == "" || slices.Contains(Actions, f.Action) {
		return nil
	}
	return fault.InvalidField("action", "value", "must be an action of the audit log, such as %s", SignedIn)
}

// Origin is where a request came from.
type Origin struct {
	Address string // that the client has, at most 64 bytes; "" = the command line, or many
	Agent   string // the program that it says it is, at most 200 characters
}

type originKey struct{}

// With returns a context whose entries came from an origin. It is asked for when there is an entry.
func With(ctx context.Context, origin func() Origin) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// From is the origin of a request; the zero Origin if it has none.
func From(ctx context.Context) Origin {
	origin, ok := ctx.Value(originKey{}).(func() Origin)
	if !ok {
		return Origin{}
	}
	o := origin()
	return Origin{plain(o.Address, 64), plain(o.Agent, 200)}
}

// plain is at most limit bytes of what a client says about itself, without control characters.
func plain(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text[:min(len(text), limit)], ""))
	return text
}
