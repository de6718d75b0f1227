package nodest

import (
	"context"
	"encoding/json"
	"time"

	"nodest/stream"
)

// Store keeps what the engine needs; package store provides it on SQLite and
// PostgreSQL. Nothing is written outside Update.
type Store interface {
	// Update runs fn in one transaction for the user and commits it. Events that
	// fn emitted get their seq in it and are handed to the stream after the
	// commit. fn may run more than once (a transaction that lost a race starts
	// again), so it must have no effect but through tx and on variables that it
	// sets anew in each run. An error of fn rolls back everything it did, and
	// nothing of other transactions in the same group commit.
	Update(ctx context.Context, userID string, fn func(tx Tx) error) error

	// View runs fn on a consistent snapshot. Writing methods of tx fail.
	View(ctx context.Context, userID string, fn func(tx Tx) error) error

	// Checkpoint stores the text so far of a generation that has not ended (Text,
	// Reasoning and Blocks) and moves its lease to g.LeaseUntil. It tells nobody.
	// It returns fault.Conflict, and changes nothing, if the generation has ended
	// meanwhile or its lease is no longer g.LeaseOwner's.
	Checkpoint(ctx context.Context, g *Generation) error

	// Abandoned returns generations that have not ended (queued ones too) although
	// their lease is over (a crash), over all users, oldest first, at most limit.
	// With owner not empty, those whose lease is not owner's count as well, over or
	// not: that is for a process that has the database to itself.
	Abandoned(ctx context.Context, owner string, limit int) ([]*Generation, error)
}

// Tx is the user's data within one transaction. Every method acts on rows of
// the user that Update or View was called for; a row of another user is
// fault.NotFound, as if it did not exist. What is returned belongs to the caller.
type Tx interface {
	// UserID is the acting user.
	UserID() string
	// Now is the time of the transaction: UTC, whole milliseconds, the same for
	// all calls.
	Now() time.Time
	// Emit adds events to the user's log, in this order. Seq and At are set at
	// the commit.
	Emit(events ...*stream.Event) error

	// Key looks an idempotency key up (nil when unknown or older than 48 h).
	// PutKey stores one; fault.InProgress if it exists meanwhile.
	Key(key string) (*KeyRecord, error)
	PutKey(r *KeyRecord) error

	UserTx
	CharacterTx
	ResourceTx
	ConversationTx
	MessageTx
	GenerationTx

	// Stamps tells which versions the documents of a turn have, without reading
	// the documents: the character (0 when there is none), then the world books,
	// presets, regex scripts and personas that are bound to it or to all, in the
	// order of their creation, then the resources named in more, in that order and
	// left out where they do not exist.
	Stamps(characterID string, more ...string) (*Stamps, error)
}

// Stamps names versions of documents; equal Stamps mean equal documents.
type Stamps struct {
	Character int64
	Resources []ResourceStamp
}

// ResourceStamp names one version of a resource.
type ResourceStamp struct {
	Kind    ResourceKind
	ID      string
	Version int64
	Bound   bool // false: it was asked for by its id
}

// UserTx keeps what belongs to the user as a whole.
type UserTx interface {
	// Settings returns the user's defaults (zero Settings, version 0, if none were stored).
	Settings() (*Settings, error)
	// PutSettings stores s with s.Version, which must be one more than the stored
	// one, else fault.PreconditionFailed.
	PutSettings(s *Settings) error
	// AddUsage adds to the meter of (day of Now, provider, model).
	AddUsage(u UsageRow) error
	// Usage returns the meter from day to day, both inclusive ("2006-01-02"), oldest first.
	Usage(from, to string) ([]UsageRow, error)
	// Limits returns the user's own limits (0 = the server's default).
	Limits() (UserLimits, error)
	// LockLimits is Limits for a transaction that gives a generation its place: no
	// other one that calls it for this user goes on until this one ends, so that
	// Running counts what the others have taken. It comes after LockConversation.
	LockLimits() (UserLimits, error)
	// Ack stores how far a device has read; nil read = seq only.
	Ack(deviceID string, seq int64, read map[string]string) error
}

// CharacterTx keeps characters. Each version stays readable, so that a
// conversation state can name the version it was made with.
type CharacterTx interface {
	InsertCharacter(c *Character) error
	// Character returns the newest version, without Source.
	Character(id string) (*Character, error)
	// CharacterVersion returns one version, Source included.
	CharacterVersion(id string, version int64) (*Character, error)
	// Characters lists newest first, at most limit, beginning after cursor ("" =
	// start), without Source; next is "" at the end.
	Characters(cursor string, limit int) (items []*Character, next string, err error)
	// UpdateCharacter stores c as a new version; c.Version must be one more than
	// the newest, else fault.PreconditionFailed. A nil Source stays what it was.
	UpdateCharacter(c *Character) error
	// DeleteCharacter deletes the character and its conversations (both stay as
	// hidden rows until purged).
	DeleteCharacter(id string) error
	// PutAvatar replaces the avatar; Avatar returns fault.NotFound without one.
	PutAvatar(characterID string, a *Avatar) error
	Avatar(characterID string) (*Avatar, error)
}

// ResourceTx keeps world books, presets, regex scripts and personas.
type ResourceTx interface {
	InsertResource(r *Resource) error
	Resource(kind ResourceKind, id string) (*Resource, error)
	ResourceVersion(kind ResourceKind, id string, version int64) (*Resource, error)
	Resources(kind ResourceKind, cursor string, limit int) (items []*Resource, next string, err error)
	// BoundResources returns all resources of a kind that are bound to the
	// character or to all, in the order of their creation.
	BoundResources(kind ResourceKind, characterID string) ([]*Resource, error)
	UpdateResource(r *Resource) error
	DeleteResource(kind ResourceKind, id string) error
}

// ConversationTx keeps conversations.
type ConversationTx interface {
	InsertConversation(c *Conversation) error
	// Conversation returns one; LockConversation also keeps it from changing in
	// other transactions until this one ends (PostgreSQL: FOR UPDATE).
	Conversation(id string) (*Conversation, error)
	LockConversation(id string) (*Conversation, error)
	Conversations(f ConversationFilter, cursor string, limit int) (items []*Conversation, next string, err error)
	// UpdateConversation stores c; c.Version must be one more than the stored
	// one, else fault.Conflict. UpdatedAt is set to Now.
	UpdateConversation(c *Conversation) error
	DeleteConversation(id string) error
}

// MessageTx keeps the message trees. Texts are immutable revisions: a change of
// a text inserts a new one and the old one stays readable.
type MessageTx interface {
	// InsertMessage stores m with all its swipes, sets Seq, and logs its state
	// under the conversation's version.
	InsertMessage(m *Message) error
	// Message returns a message with all its swipes (the newest revision of each).
	Message(id string) (*Message, error)
	// MessageByClientID finds a message by the name the client gave it.
	MessageByClientID(conversationID, clientMsgID string) (*Message, error)
	// UpdateMessage stores the state of m (chosen swipe, status, rev, error,
	// deletedAt …) and inserts every swipe or revision that is not stored yet: a
	// swipe whose Rev grew is a new revision. m.Rev must be one more than the
	// stored one, else fault.Conflict with details.current.
	UpdateMessage(m *Message) error
	// Path returns at most limit messages of the branch that ends in headID,
	// oldest first: the newest ones before (not including) beforeID ("" = from
	// headID on, included). Deleted messages are left out. Its cost does not
	// depend on the length of the chat.
	Path(conversationID, headID, beforeID string, limit int) (items []*Message, more bool, err error)
	// Children returns the messages whose parent is id, by seq, with deleted ones.
	Children(conversationID, id string) ([]*Message, error)
	// Revision returns one stored text by its revision id.
	Revision(id string) (*Revision, error)
	// Revisions returns every stored text of a message, oldest first.
	Revisions(messageID string) ([]*Revision, error)
}

// GenerationTx keeps generations and the prompts they sent.
type GenerationTx interface {
	InsertGeneration(g *Generation) error
	Generation(id string) (*Generation, error)
	UpdateGeneration(g *Generation) error
	// Running returns the user's generations that have not ended (queued ones too),
	// oldest first; conversationID "" = of all conversations.
	Running(conversationID string) ([]*Generation, error)
	PutPrompt(p *StoredPrompt) error
	Prompt(id string) (*StoredPrompt, error)
	// LastPrompt returns the newest prompt of a conversation, nil without one.
	LastPrompt(conversationID string) (*StoredPrompt, error)
}

// KeyRecord is the memory of one idempotent command.
type KeyRecord struct {
	Key   string
	Hash  string          // of the command's name and content
	Reply json.RawMessage // the first answer
	At    time.Time
}
