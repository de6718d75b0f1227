package chat

import (
	"encoding/json"
	"time"

	"nodest/chat/attached"
	"nodest/chat/lineage"
)

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
	// ChooseSummary is UpdateConversation that leaves UpdatedAt: a new
	// summary must not move the chat in lists.
	ChooseSummary(c *Conversation) error
	DeleteConversation(id string) error
}

// MessageTx keeps the message trees. Texts are immutable revisions: a change of
// a text inserts a new one and the old one stays readable.
type MessageTx interface {
	// InsertMessage stores messages of one conversation, parents before their children,
	// with all their swipes, sets Seq, and logs their states under the conversation's
	// version.
	InsertMessage(messages ...*Message) error
	// Message returns a message with all its swipes (the newest revision of each).
	Message(id string) (*Message, error)
	// MessageByClientID finds a message by the name the client gave it.
	MessageByClientID(conversationID, clientMsgID string) (*Message, error)
	// UpdateMessage stores the state of m (chosen swipe, status, rev, error,
	// deletedAt …) and inserts every swipe or revision that is not stored yet: a
	// swipe under another RevisionID, or whose Rev grew, is a new revision, and its
	// Rev becomes the next that the swipe has not had. m.Rev must be one more than the
	// stored one, else fault.Conflict with details.current.
	UpdateMessage(m *Message) error
	// SetDeleted hides messages of one conversation that are not deleted, or shows deleted ones
	// again where at is nil, and sets DeletedAt and Rev, the next one of each. Their other members
	// do not matter. It comes before other changes of these messages. Its cost does not depend on
	// their texts and swipes.
	SetDeleted(at *time.Time, messages ...*Message) error
	// Below returns the messages below m, by seq and without texts: those that are not deleted,
	// or where deletedIn is a version, those that were deleted in it when m was.
	Below(m *Message, deletedIn int64) ([]*Message, error)
	// Path returns at most limit messages of the branch that ends in headID,
	// oldest first: the newest ones before (not including) beforeID ("" = from
	// headID on, included). Deleted messages are left out. Its cost does not
	// depend on the length of the chat.
	Path(conversationID, headID, beforeID string, limit int) (items []*Message, more bool, err error)
	// PathAfter returns at most limit messages of the path that ends in headID, oldest
	// first: those that follow afterID ("" = from its beginning). Deleted messages are left
	// out. fault.NotFound if afterID is not on the path. Its cost does not depend on the length of the chat.
	PathAfter(conversationID, headID, afterID string, limit int) (items []*Message, more bool, err error)
	// OnPath returns those of the messages that are on the path that ends in headID,
	// deleted or not.
	OnPath(conversationID, headID string, ids []string) ([]string, error)
	// Count returns the number of messages on the path that ends in headID that are
	// not deleted. It does not walk the path.
	Count(conversationID, headID string) (int, error)
	// CountHidden returns how many of the messages in Count are hidden. It does not walk the path either.
	CountHidden(conversationID, headID string) (int, error)
	// Tips lists the ends of all branches, the newest (by seq) first: messages that
	// are not deleted and have none below them that is not. cursor "" = start, next
	// "" = end. Its cost grows with the number of branches, not with their length.
	Tips(conversationID, cursor string, limit int) (items []*Message, next string, err error)
	// Leaf returns the newest (by seq) of the Tips in and below a message that is not
	// deleted.
	Leaf(conversationID, messageID string) (id string, err error)
	// Tree returns the tree of a conversation as runs, at most limit, and its newest save
	// points, likewise. Its cost grows with the number of branches, not with their length.
	Tree(conversationID string, limit int) (*Tree, error)
	// NearTexts has Path, PathAfter, PathAt and PathAtAfter leave out the texts of swipes that are far
	// from the chosen one (see Near), of messages that would be too large for a page with them.
	NearTexts()
	// Children returns the messages whose parent is id, by seq, with deleted ones.
	Children(conversationID, id string) ([]*Message, error)
	// Revision returns one stored text by its revision id.
	Revision(id string) (*Revision, error)
	// Revisions returns every stored text of a message, oldest first.
	Revisions(messageID string) ([]*Revision, error)
}

// RunningTx reads running generations.
type RunningTx interface {
	// Running returns the user's generations that have not ended (queued ones too),
	// oldest first; conversationID "" = of all conversations.
	Running(conversationID string) ([]*Generation, error)
}

// HistoryTx reads a conversation as it was, and sets it back. A conversation has
// one line of versions. Rewind makes a new version that shows what an older one
// showed; versions are never removed.
type HistoryTx interface {
	// StateAt returns the conversation as it was at a version: HeadID, PersonaID,
	// SummaryID, AuthorNote, Settings and Pins of then, Version = version, the rest
	// as it is now. fault.NotFound for a version that it never had.
	StateAt(conversationID string, version int64) (*Conversation, error)
	// PathAt is Path as it was at a version: the same messages, each with the text,
	// status and deletion of then as its chosen swipe. Its other swipes are those of
	// now, and Rev is the rev of then. It also reads a deleted conversation.
	PathAt(conversationID string, version int64, headID, beforeID string, limit int) (items []*Message, more bool, err error)
	// PathAtAfter is PathAfter as it was at a version.
	PathAtAfter(conversationID string, version int64, headID, afterID string, limit int) (items []*Message, more bool, err error)
	// MessagesAt returns messages of the conversation as PathAt does, by seq, those
	// that were deleted then with DeletedAt set. Those that were stored later are
	// left out. It walks no path.
	MessagesAt(conversationID string, version int64, ids []string) ([]*Message, error)
	// Rewind gives every message on the path that ends in headID the state that it
	// had at a version: chosen text, status, error-free where it was, deleted or
	// not. Only messages whose state differs are written; each gets a next rev and
	// is returned as it is now, by seq, the deleted ones too. Those that differ only in
	// the deletion are moved, and have no texts. Of many changed ones only the first,
	// about 1 MiB of them, come with their swipes; those of the others are nil. Messages that were
	// stored after that version are left alone. It notes that c's next version
	// (c.Version+1; the caller stores c) goes back to that one. Its cost grows with
	// the number of messages changed since, not with the length of the chat.
	Rewind(c *Conversation, version int64, headID string) (changed, moved []*Message, err error)
	// Rewinds returns the conversation's rewinds, oldest first.
	Rewinds(conversationID string) ([]Rewind, error)
	// Born returns the conversation's version in which a message was stored. The conversation may be deleted.
	Born(messageID string) (version int64, err error)
	// DeletedIn returns the conversation's version in which a message was deleted;
	// fault.NotFound for one that is not.
	DeletedIn(messageID string) (version int64, err error)
}

// PlayTx keeps what branches have beside their texts. Rows do not change.
type PlayTx interface {
	// InsertPlay stores p, unless there is one with its id.
	InsertPlay(p *Play) error
	Play(id string) (*Play, error)
	// PlayAt returns the id of the Play on the branch that ends in a message: that of the last shown text
	// that has one, "" = none has. Deleted messages do not count. Its cost does not depend on the length of
	// the chat where each reply has one, or none has.
	PlayAt(conversationID, messageID string) (id string, err error)
	// KeepPlay makes the last shown text of the branch that ends in a message have a Play.
	KeepPlay(conversationID, messageID, id string) error
	// Plays returns those of a conversation by their ids, at most limit that follow one.
	Plays(conversationID, after string, limit int) ([]*Play, error)
}

// Rewind says that a version of a conversation went back to an older one.
type Rewind = lineage.Rewind

// TextFilter narrows a search; the zero value takes all.
type TextFilter struct {
	ConversationID string
	CharacterID    string
}

// TextRange is the messages of a conversation from one seq to another, both included.
type TextRange struct {
	ConversationID     string
	First, Last        int64
	OldestID, NewestID string // lowest and highest id of the messages
	Indexed            bool   // their words are stored
}

// ShownText is the newest text of a swipe that is not deleted, of a message that is not.
type ShownText struct {
	MessageID string
	Seq       int64
	SwipeID   string
	Position  int
	Chosen    bool
	Text      string
}

// WordTx reads texts for a search, and keeps the words of ranges of messages. Stored words are those
// of all revisions of the messages: whatever adds a revision, or removes a text for good, removes
// the words of its range, and enqueues JobWords if the range is to be indexed again.
type WordTx interface {
	// TextRanges returns ranges that have all messages of the user's conversations that are not
	// deleted, in no order; each has at most WordRange seqs. fault.NotFound for a conversation or
	// character that is not the user's.
	TextRanges(f TextFilter) ([]TextRange, error)
	// RangeWords returns the stored words of ranges of conversations that are not deleted; nil =
	// there are none.
	RangeWords(ranges ...TextRange) ([][]byte, error)
	// RangeTexts calls fn with the texts of a range, in no order. fn runs no statements.
	RangeTexts(r TextRange, fn func(*ShownText)) error
	// MessagesByID returns messages that are not deleted, in no order.
	MessagesByID(ids []string) ([]*Message, error)
	// WordsDue returns the ranges of a conversation that are to be indexed; none while messages are
	// being loaded into it.
	WordsDue(conversationID string) ([]TextRange, error)
	// RangeRevisions calls fn with all revisions of a range, in no order. fn runs no statements.
	RangeRevisions(r TextRange, fn func(id, text string) error) error
	// PutWords stores the words of a range, in place of others. fault.Conflict if it has not
	// exactly these revisions, which are sorted.
	PutWords(r TextRange, revisionIDs []string, words []byte) error
	// DropWords removes the words of ranges.
	DropWords(ranges ...TextRange) error
}

// ForkSource is the path that a fork copies: the one that ends in MessageID, as it was
// at Version.
type ForkSource struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId"`
	Version        int64  `json:"version"`
}

// ForkTx copies a path to a conversation that is being loaded; see ArchiveTx.BeginLoad
// and FinishLoad.
type ForkTx interface {
	// CopyPath copies the next texts of a path with their messages, the oldest first: at most
	// texts of them, and about a megabyte, but one at least. A message with many swipes is
	// copied in several calls. copied is how many messages of the length are complete then.
	// Copies have ids of their own and keep Seq, times, texts and all swipes; deleted
	// messages stay deleted ones.
	CopyPath(from ForkSource, forkID string, texts int) (copied, length int, err error)
	// CopyOf is the id that the copy of a message, or of one of its texts, has in a fork, be it
	// there already or not.
	CopyOf(forkID, id string) string
	// Loading returns a conversation between BeginLoad and FinishLoad, and keeps others
	// from changing it until the transaction ends.
	Loading(id string) (*Conversation, error)
}

// SaveTx keeps save points. A save point is a pointer: it costs the same whatever
// the length of the chat.
type SaveTx interface {
	InsertSave(s *Save) error
	Save(id string) (*Save, error)
	// Saves lists newest first, at most limit; automatic ones only if asked for.
	Saves(conversationID string, automatic bool, cursor string, limit int) (items []*Save, next string, err error)
	DeleteSave(id string) error
}

// ArchiveTx reads and stores whole conversations, with all branches, texts and
// states. It trusts that what it stores was checked as a file is.
type ArchiveTx interface {
	// Dump reads messages by seq, each with every revision and state: at most limit, those
	// that follow a seq (0 = from the first). It ends earlier after some megabytes of text,
	// and returns none at the end.
	Dump(conversationID string, after int64, limit int) ([]*DumpedMessage, error)
	// Line returns the line of an imported log that a message came from; nil = it came from none.
	Line(messageID string) (json.RawMessage, error)
	attached.Source
	// BeginLoad stores c hidden, as if it were deleted; one that is never finished is
	// removed like a deleted conversation. Load adds messages by
	// ascending seq, with the ids, versions and seqs that they carry. FinishLoad
	// shows the conversation: c's head, version, preview, the states and rewinds.
	BeginLoad(c *Conversation) error
	Load(conversationID string, messages []*DumpedMessage) error
	FinishLoad(c *Conversation, states []*Conversation, rewinds []Rewind) error
	LoadTx
}

// Load names what an import stores in several transactions: a conversation, or a branch.
type Load struct {
	ConversationID string
	Branch         int64 // Seq of the first message of the branch, which is a root; 0 = the conversation
}

// LoadTx hides what an import has stored so far.
type LoadTx interface {
	// OpenLoad hides a branch until CloseLoad; a conversation is hidden already. It returns
	// fault.QuotaExceeded if the user may not store that many messages more.
	OpenLoad(l Load, coming int) error
	// TouchLoad says that the import goes on: an hour after the last call, maintenance removes
	// what it stored. CloseLoad ends it. Both return fault.NotFound when that has begun.
	TouchLoad(l Load) error
	CloseLoad(l Load) error
	// DropLoad removes at most limit messages of a load, and at last the load itself; left
	// reports whether to call it again.
	DropLoad(l Load, limit int) (left bool, err error)
}

// DumpedMessage is a message with its whole history, and the form of a message in
// a file. In a file, the swipes only name their texts.
type DumpedMessage struct {
	*Message
	Extra  json.RawMessage `json:"extra,omitempty"` // only in a file: Message.Extra, which JSON leaves out elsewhere
	Texts  []DumpedText    `json:"texts"`           // every revision, oldest first; those that the swipes show too
	States []DumpedState   `json:"states"`          // oldest first
}

// DumpedText is one revision of the swipe ID, with Rev and text of then.
type DumpedText struct {
	Swipe
	StoredAt time.Time `json:"storedAt"`
}

// DumpedState is what a message was from a version of its conversation on.
type DumpedState struct {
	Version    int64  `json:"version"`
	Rev        int64  `json:"rev"`
	RevisionID string `json:"revisionId,omitempty"`
	Status     string `json:"status"`
	Deleted    bool   `json:"deleted,omitempty"`
	Hidden     bool   `json:"hidden,omitempty"`
}
