package memory

import (
	"context"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// Store is the storage of a Service.
type Store interface {
	op.Store[Tx]

	// Unembedded returns scopes of all users that have changed since SetEmbedded, or were embedded
	// with another model, in order, at most limit, after one (zero = start).
	Unembedded(ctx context.Context, model string, after Scope, limit int) ([]Scope, error)
}

// Scope is a memory: that of one user and one character.
type Scope struct{ UserID, CharacterID string }

// Tx is one transaction of the acting user. A character that is not the user's, or was deleted,
// is fault.NotFound for every method that takes one; so is every id that is not of that
// character.
//
// The rows of a search index have a version per scope, which every change increments.
type Tx struct {
	op.Tx
	Jobs jobs.Tx
	ScopeTx
	TextTx
	FactTx
}

type ScopeTx interface {
	// MemoryVersion returns the version of a scope, 0 while it is empty.
	MemoryVersion(characterID string) (int64, error)
	// TalkedIn returns fault.NotFound if a conversation ("" = none) is not one of the user with
	// this character.
	TalkedIn(characterID, conversationID string) error
	// LockMemory keeps others from changing the facts of a scope until the transaction ends. It
	// is taken before anything else of a memory is locked.
	LockMemory(characterID string) error
	// MemoryChanges returns what has changed since a version and is in no segment; since 0,
	// everything outside of segments, but at most the newest 8,000. Units are
	// texts, in all revisions, and facts, in all versions that can count on some branch
	// (active, superseded, retired by a run), each with its vectors. It returns about
	// limit of the oldest changes, never a part of a version; 0 = all. base is the Base of
	// the changes that were read up to since.
	MemoryChanges(characterID string, since, base int64, limit int) (*Changes, error)
	// MemoryUnits returns units by id as they are now, at most 1,000, in any order, without terms.
	// Those that are forgotten, buried by a Tombstone or of a deleted conversation are
	// left out, and facts that do not count. A fact that the user retired has no text.
	MemoryUnits(characterID string, ids ...string) ([]recall.Unit, error)
	// UnitVectors returns the vectors of units by a model, by id; units without one are left out.
	UnitVectors(characterID, model string, ids ...string) (map[string]index.Packed, error)
	SegmentTx
	// WithoutVector returns the contents of units that have no vector of a model and changed last
	// after since, at most limit, each once, by change. A content may have more units than it says.
	WithoutVector(characterID, model string, since int64, limit int) ([]Content, error)
	// Embedded returns what SetEmbedded stored; "", 0 = nothing.
	Embedded(characterID string) (model string, change int64, err error)
	// SetEmbedded notes that units need no more vectors of a model if they changed last up to change.
	SetEmbedded(characterID, model string, change int64) error
	// PutVectors stores vectors of a model by the ids of units, in place of those of other models.
	// Unknown units are ignored.
	PutVectors(characterID, model string, vectors map[string][]float32) error
	// MemoryJobs lists the jobs of a character's memory and its conversations, newest first.
	MemoryJobs(characterID, cursor string, limit int) (items []*jobs.Job, next string, err error)
}

type Changes struct {
	Version int64
	Base    int64 // changes after a purge, a deletion or a new segment; then everything is read again
	Whole   bool  // Units and Segments are everything up to Version and replace what was there before
	More    bool  // there are later changes
	Units   []recall.Unit
	Gone    []string // ids of units that are not searched any more

	Segments []Segment // if Whole: all of the scope, by From
	Partial  bool      // if Whole: there are older units in no segment, which are left out
}

// SegmentTx keeps segments: search indexes of a part of a scope, which never change. A segment has
// the units whose last change was in its range when it was built. A unit that changes again leaves the
// range; its copy in the segment is out of date. When units are removed for good, so are all segments
// that may have their words.
type SegmentTx interface {
	// SegmentParts returns parts of a segment in the order asked; fault.NotFound if one is missing.
	SegmentParts(characterID, segmentID string, parts ...int) ([][]byte, error)
	// Segments returns the segments of a scope, by their ranges, and its Base.
	Segments(characterID string) (base int64, segments []Segment, err error)
	// CountUnits counts the rows whose last change is after from, up to to, as Gap.Units does.
	CountUnits(characterID string, from, to int64) (int, error)
	// Gaps returns the ranges that no segment covers, oldest first. Unless a segment ends at the
	// version of the scope, the last gap does.
	Gaps(characterID string) ([]Gap, error)
	// UnitKeys returns, in any order, the units, also deleted ones, that changed last after from, up to to.
	UnitKeys(characterID string, from, to int64) ([]UnitKey, error)
	// UnitsForSegment is MemoryUnits with units of deleted conversations, and of those that are being
	// imported, and with terms and vectors.
	UnitsForSegment(characterID string, ids ...string) ([]recall.Unit, error)
	// PutSegmentParts stores parts of a new segment, unseen before PutSegment, numbered from first.
	PutSegmentParts(characterID, segmentID string, first int, data ...[]byte) error
	// PutSegment adds a segment of which all parts are stored, and removes those that it replaces. It
	// returns fault.Conflict if base is no longer the Base of the scope, or if the ranges of s and of a
	// segment that is not replaced overlap.
	PutSegment(characterID string, base int64, s Segment, replaces ...string) error
	// DropSegments removes all segments of a scope: they cannot be read, and are built again.
	DropSegments(characterID string) error
	// DropLooseParts removes parts of segments that were never added.
	DropLooseParts(characterID string) error
}

// Segment is a stored search index of the units whose last change was after From, up to To.
type Segment struct {
	ID       string
	From, To int64
	Units    int // in it, when it was built
}

// Gap is a range of changes, after From up to To, that no segment covers.
type Gap struct {
	From, To int64
	Units    int // rows, also of units that are forgotten or do not count
}

// UnitKey is a unit without its text.
type UnitKey struct {
	ID           string
	Conversation string
	Session      int
	Order        int64
	Layer        recall.Layer
	Change       int64 // the last
}

// Content is a text to be embedded.
type Content struct {
	Hash, Text string   // Hash is the ContentHash
	IDs        []string // units with it, at least one
}

// Place is a branch of a conversation, now or at a version.
type Place struct {
	ConversationID string
	HeadID         string
	Version        int64 // the conversation's version; 0 = now
}

// TextTx keeps each revision of a message of the user or of a character that has a text, as
// returned by Clean. The store adds rows in the transaction that stores the revision.
type TextTx interface {
	// Shown reports for each text whether it is shown: its conversation exists, its message is
	// on the shown branch and not deleted, this revision is the chosen one, and it was not
	// forgotten. For here's conversation that branch counts (nil = the shown one of every
	// conversation; without a head, nothing is shown).
	Shown(here *Place, texts []Evidence) ([]bool, error)
	// Said lists texts of a conversation, by seq. All of one message come, whatever the limit.
	Said(conversationID string, f SaidFilter) ([]Text, error)
	SaidByID(characterID string, revisionIDs ...string) ([]Text, error)
	// MarkRead notes that extraction has read these texts.
	MarkRead(conversationID string, revisionIDs ...string) error
	// MarkUnread makes extraction read all texts of a conversation again. Those of an imported
	// chat and of a fork count as read when they arrive.
	MarkUnread(conversationID string) error
	// Reading returns the cost and orders of the extraction of a conversation.
	Reading(conversationID string) (Reading, error)
	// LockReading is Reading with a lock until the transaction ends, for PutReading.
	LockReading(conversationID string) (Reading, error)
	PutReading(conversationID string, r Reading) error
	// ForgetTexts removes texts, and suggestions made of them, from the memory, not from the chat.
	ForgetTexts(characterID string, revisionIDs ...string) error
	// PutUses stores what the prompt of a generation contains, best first, behind what was for the text that it
	// continues: that of the generation continued, "" = none. Facts are used now.
	PutUses(conversationID, generationID, continued string, uses []Use) error
	// Uses returns what was recalled for a message's chosen text, by rank. What was found for it has
	// no score in a fork, and no signals there or when the generation ended long ago.
	Uses(messageID string) ([]Use, error)
	// Records returns what is known of units: their votes that count for the character, and whether a
	// prompt has had them. Units without either are left out.
	Records(characterID string, unitIDs ...string) (map[string]feedback.Record, error)
	// Recalled returns the units that were found for a generation, by rank, and whether its prompt had facts of the
	// profile.
	Recalled(conversationID, generationID string) (found []string, profile bool, err error)
}

type SaidFilter struct {
	Unread bool  // only those that extraction has not read
	After  int64 // only those with a larger seq
	Before int64 // only those with a smaller seq, and of these the last ones; 0 = all
	Limit  int   // default 500
}

// Text is a text of a chat as memory keeps it. Its revision is its id.
type Text struct {
	Message
	CharacterID string
	Session     int // session of the conversation, from 1: a pause of hours begins another
	Read        bool
}

// SignalNames are the signals that a use can have, in the order in which they are stored: each keeps its place.
var SignalNames = append(recall.SignalNames[:], "recency", "importance", profileSignal, recall.SignalFeedback, recall.SignalExploration)

// Use says why a unit was sent with a message.
type Use struct {
	ID      string             `json:"id"` // the unit
	Layer   recall.Layer       `json:"layer"`
	Rank    int                `json:"rank"`              // from 1
	Score   float64            `json:"score"`             // the sum of the signals
	Signals map[string]float64 `json:"signals,omitempty"` // rounded to SignalStep parts of one
}

// FactTx keeps facts. The text of a version never changes.
type FactTx interface {
	// InsertFacts stores new versions; fault.Conflict if an active fact has the words of one.
	InsertFacts(characterID string, facts ...*Memory) error
	// UpdateFact stores all of m but its text.
	UpdateFact(characterID string, m *Memory) error
	Fact(characterID, id string) (*Memory, error)
	// FactVersions returns all versions of facts, by root and version.
	FactVersions(characterID string, rootIDs ...string) ([]Memory, error)
	// FactsFrom returns the roots of facts made of a post or comment, by character.
	FactsFrom(source string) (map[string][]string, error)
	// Facts lists versions newest first (by id), at most limit, after cursor.
	Facts(characterID string, f Filter, cursor string, limit int) (items []Memory, next string, err error)
	// PurgeFacts removes all versions of facts, with their vectors, suggestions and uses.
	PurgeFacts(characterID string, rootIDs ...string) error
	// PurgeTexts removes at most so many texts of a scope, with their vectors and uses, and some
	// parts of its segments, of which none is used any more. left reports whether there may be more.
	PurgeTexts(characterID string, most int) (left bool, err error)
	// PurgeScope removes facts, texts, vectors, suggestions, uses and tombstones of a scope.
	// Texts stored so far are not read again.
	PurgeScope(characterID string) error

	Tombstones(characterID string) ([]Tombstone, error)
	// Gists returns the tombstones, newest first and at most 500, whose gist has one of these keys, and
	// whether any has a gist.
	Gists(characterID string, keys []string) (some bool, found []Tombstone, err error)
	PutTombstone(characterID string, t Tombstone) error
	// MarkFacts changes versions by id and sets UpdatedAt to Now. Before making one active, the
	// caller checks that no other active fact has its ContentHash.
	MarkFacts(characterID string, ids []string, marks Marks) error
	// Known returns versions and tombstones with one of these ids or ContentHashes.
	Known(characterID string, ids, hashes []string) ([]Known, error)

	InsertSuggestion(characterID string, s *Suggested) error
	Suggestion(characterID, id string) (*Suggested, error)
	UpdateSuggestion(characterID string, s *Suggested) error
	// Suggestions lists newest first; state "" = all.
	Suggestions(characterID, state, cursor string, limit int) (items []Suggested, next string, err error)
	// SuggestionKeys returns Suggestion.Key of all suggestions ever made.
	SuggestionKeys(characterID string) (map[string]bool, error)
}

// Filter narrows a list of facts; the zero value lists the active ones.
type Filter struct {
	Status         Status // "" = active; AnyStatus = all
	Kind           lang.Kind
	Subject        lang.Subject
	ConversationID string
	Pinned         *bool
	Shareable      bool   // only those that may be told in the circle
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

// Suggested is a stored suggestion.
type Suggested struct {
	ID string `json:"id"`
	Suggestion
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
}

// Marks are what MarkFacts writes; zero members are unchanged.
type Marks struct {
	Pinned *bool
	Locked *bool
	Status Status // Active or Retired; who ended it or came after it is no longer known
}

// Known is a version of a fact, or forgotten words.
type Known struct {
	ID     string // "" of what was forgotten
	Hash   string
	Status Status // Deleted: words that were forgotten
}
