package memory

import (
	"context"
	"time"

	"nodest/jobs"
	"nodest/memory/lang"
	"nodest/op"
)

// Store keeps what a Service needs; package store provides it on SQLite and
// PostgreSQL.
type Store interface {
	op.Store[Tx]

	// Unembedded returns scopes, over all users, with units that have no vector of
	// the model, in their order, at most limit, beginning after one (zero = start).
	Unembedded(ctx context.Context, model string, after Scope, limit int) ([]Scope, error)
}

// Scope is whose memory it is: one user's of one character, never wider.
type Scope struct{ UserID, CharacterID string }

// Tx is one transaction of the acting user. A character that is not the user's, or
// was deleted, is fault.NotFound for every method that takes one; so is every id
// that is not of that character.
//
// What a search index is made of has a version per scope: every change of it raises
// the version when the transaction commits.
type Tx struct {
	op.Tx
	Jobs jobs.Tx
	ScopeTx
	TextTx
	FactTx
	FactsTx
}

// ScopeTx reads a scope as its index has it.
type ScopeTx interface {
	// MemoryVersion returns the version of a scope, 0 while nothing was said. It is
	// one read by key.
	MemoryVersion(characterID string) (int64, error)
	// TalkedIn returns fault.NotFound when a conversation ("" = none) is not one of the
	// user with this character.
	TalkedIn(characterID, conversationID string) error
	// LockMemory keeps others from changing the facts of a scope until the transaction
	// ends. What was read before it may have changed meanwhile. It is taken before
	// anything of a memory is locked.
	LockMemory(characterID string) error
	// MemoryChanges returns what has changed since a version; since 0 it is
	// everything. Units are texts that were said, in all revisions, and facts, in
	// all versions that can count on some branch (active, superseded, retired by a
	// run), each with its vectors.
	MemoryChanges(characterID string, since int64) (*Changes, error)
	// WithoutVector returns units that have no vector of a model, at most limit,
	// each content once.
	WithoutVector(characterID, model string, limit int) ([]Content, error)
	// PutVectors stores vectors of a model by content; those of other models for the
	// same content go. A content that is no longer there is left out.
	PutVectors(characterID, model string, vectors map[string][]float32) error
	// MemoryJobs lists the jobs about a character's memory and its conversations,
	// newest first.
	MemoryJobs(characterID, cursor string, limit int) (items []*jobs.Job, next string, err error)
}

// Changes lead an index from one version to another.
type Changes struct {
	Version int64
	Whole   bool // Units is everything; what was there before goes
	Units   []Unit
	Gone    []string // ids of units that are not searched any more
}

// Content is a text to be embedded. Equal hashes are equal contents (ContentHash).
type Content struct{ Hash, Text string }

// Place is a branch of a conversation, now or at a version.
type Place struct {
	ConversationID string
	HeadID         string
	Version        int64 // of the conversation; 0 = now
}

// TextTx keeps what was said: each revision of a message of the user or of a
// character that is complete enough to have a text, without what Clean takes out.
// Rows appear with the commit of the transaction that stores the revision; the engine
// does nothing for it.
type TextTx interface {
	// Shown reports for each text whether it is seen: its conversation is there, its
	// message is on the shown branch and not deleted, this revision is the chosen
	// one, and it was not forgotten. Of here's conversation that branch counts, and
	// no other (nil = the shown one of every conversation); of one without a head
	// that is nothing.
	Shown(here *Place, texts []Evidence) ([]bool, error)
	// Said lists texts of a conversation, by seq. Those of one message come together:
	// a page may be longer than its limit.
	Said(conversationID string, f SaidFilter) ([]Text, error)
	// SaidByID returns texts by their revisions, those that there are.
	SaidByID(characterID string, revisionIDs ...string) ([]Text, error)
	// MarkRead notes that extraction has read these texts.
	MarkRead(conversationID string, revisionIDs ...string) error
	// MarkUnread gives all texts of a conversation back to extraction. Those of an
	// imported chat and of a fork count as read when they arrive.
	MarkUnread(conversationID string) error
	// Reading tells what the extraction of a conversation has cost, and who has ordered
	// it.
	Reading(conversationID string) (Reading, error)
	// LockReading is Reading that keeps others from changing it until the transaction
	// ends; PutReading stores it.
	LockReading(conversationID string) (Reading, error)
	PutReading(conversationID string, r Reading) error
	// ForgetTexts takes texts out of the memory for good, with the suggestions that were
	// made of them; the chat keeps them.
	ForgetTexts(characterID string, revisionIDs ...string) error
	// PutUses stores what was recalled for a text; Uses returns it, by rank: that of
	// the message's chosen text.
	PutUses(messageID, revisionID string, uses []Use) error
	Uses(messageID string) ([]Use, error)
}

// SaidFilter narrows a list of texts; the zero value takes the first ones.
type SaidFilter struct {
	Unread bool  // only those that extraction has not read
	Before int64 // only those with a smaller seq, and of these the last ones; 0 = all
	Limit  int   // default 500
}

// Text is a text that was said, as memory keeps it. Its revision is its id.
type Text struct {
	Message
	CharacterID string
	Session     int // of the conversation, from 1: a pause of hours begins another
	Read        bool
}

// Use says why a unit was sent with a message.
type Use struct {
	ID      string             `json:"id"` // of the unit
	Layer   Layer              `json:"layer"`
	Rank    int                `json:"rank"` // from 1
	Score   float64            `json:"score"`
	Signals map[string]float64 `json:"signals,omitempty"`
}

// FactTx keeps facts. A version's text is never changed: UpdateFact writes the
// rest of a row.
type FactTx interface {
	// InsertFact stores a version. It returns fault.Conflict when an active fact of
	// the scope has the same ContentHash.
	InsertFact(characterID string, m *Memory) error
	// UpdateFact stores everything of m but its text.
	UpdateFact(characterID string, m *Memory) error
	Fact(characterID, id string) (*Memory, error)
	// FactVersions returns all versions of facts, by root and version.
	FactVersions(characterID string, rootIDs ...string) ([]Memory, error)
	// Facts lists versions newest first (by id), at most limit, after cursor.
	Facts(characterID string, f Filter, cursor string, limit int) (items []Memory, next string, err error)
	// PurgeFacts removes all versions of facts and everything that was made of them:
	// vectors, suggestions, uses.
	PurgeFacts(characterID string, rootIDs ...string) error
	// PurgeScope removes facts, texts, vectors, suggestions, uses and tombstones of a
	// scope, and returns how many facts (roots) and texts there were. Texts said
	// until now do not come back.
	PurgeScope(characterID string) (facts, texts int, err error)

	Tombstones(characterID string) ([]Tombstone, error)
	PutTombstone(characterID string, t Tombstone) error

	InsertSuggestion(characterID string, s *Suggested) error
	Suggestion(characterID, id string) (*Suggested, error)
	UpdateSuggestion(characterID string, s *Suggested) error
	// Suggestions lists newest first; state "" = all.
	Suggestions(characterID, state, cursor string, limit int) (items []Suggested, next string, err error)
	// SuggestionKeys returns Suggestion.Key of all that were ever made.
	SuggestionKeys(characterID string) (map[string]bool, error)
}

// Filter narrows a list of facts; the zero value lists the active ones.
type Filter struct {
	Status         Status // "" = active; AnyStatus = all
	Kind           lang.Kind
	Subject        lang.Subject
	ConversationID string
	Pinned         *bool
	ContentHash    string // only those with these words
}

// AnyStatus lists facts of every status.
const AnyStatus Status = "any"

// States of a suggestion.
const (
	SuggestionOpen     = "open"
	SuggestionAccepted = "accepted"
	SuggestionRejected = "rejected"
)

// Suggested is a suggestion as it is kept.
type Suggested struct {
	ID string `json:"id"`
	Suggestion
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
}
