package chat

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"nodest/character"
	"nodest/chat/attached"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
)

// MaxText bounds the text of a message, in code points.
const MaxText = 32_000

// Roles of messages on the wire.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleSystem    = "system"
	RoleNarrator  = "narrator"
)

// Status of a message.
const (
	StatusComplete    = "complete"
	StatusPending     = "pending"   // placeholder without a text yet
	StatusStreaming   = "streaming" // text is coming
	StatusInterrupted = "interrupted"
	StatusCancelled   = "cancelled"
	StatusError       = "error"
)

// Conversation is a tree of messages with a head. Version grows with every
// change of its state (head, settings, note, messages of the tree).
type Conversation struct {
	ID          string          `json:"id,omitempty"`
	CharacterID string          `json:"characterId,omitempty"`
	Title       string          `json:"title,omitempty"`
	PersonaID   string          `json:"personaId,omitempty"`
	HeadID      string          `json:"headId,omitempty"` // last message of the shown branch; "" = empty
	AuthorNote  json.RawMessage `json:"authorNote,omitempty"`
	Settings    json.RawMessage `json:"settings,omitempty"` // character.TurnOptions of the conversation
	Archived    bool            `json:"archived,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Extra       json.RawMessage `json:"-"`                   // header and metadata of an imported log, for export
	Pins        *character.Pins `json:"pins,omitempty"`      // documents of a restored save point; nil = the newest
	Copying     bool            `json:"copying,omitempty"`   // an incomplete fork; only in the answer of Fork
	SummaryID   string          `json:"summaryId,omitempty"` // the summary in force; "" = none. Part of the versioned state
	PlayID      string          `json:"playId,omitempty"`    // the Play in force; "" = an empty one. Part of the versioned state
	Play        *Play           `json:"play,omitempty"`      // that one; nil = it was not read
	Version     int64           `json:"version,omitempty"`
	LastMessage *Preview        `json:"lastMessage,omitempty"`
	CreatedAt   time.Time       `json:"createdAt,omitzero"`
	UpdatedAt   time.Time       `json:"updatedAt,omitzero"`
}

// Preview is the beginning of a message, for lists.
type Preview struct {
	ID         string    `json:"id"`
	Role       string    `json:"role"`
	Text       string    `json:"text"`                 // at most 200 code points
	RevisionID string    `json:"revisionId,omitempty"` // Text is its beginning; "" = not known
	CreatedAt  time.Time `json:"createdAt"`
}

// ConversationFilter narrows a list. The zero value lists all.
type ConversationFilter struct {
	CharacterID string
	Archived    *bool // nil = both
	op.Listing
}

// Message is a node of the tree, with its texts (swipes).
type Message struct {
	ID             string       `json:"id"`
	ConversationID string       `json:"conversationId,omitempty"`
	ParentID       string       `json:"parentId,omitempty"`
	ClientMsgID    string       `json:"clientMsgId,omitempty"`
	Seq            int64        `json:"seq"` // order of storing within the conversation
	Role           string       `json:"role"`
	Name           string       `json:"name"`
	AuthorID       string       `json:"authorId,omitempty"`
	Greeting       bool         `json:"greeting,omitempty"` // the first_mes of the card
	Hidden         bool         `json:"hidden,omitempty"`   // readers see it, prompts, summaries and memories do not; a part of its state
	Swipes         []Swipe      `json:"swipes"`
	SwipeIndex     int          `json:"swipeIndex"`
	Rev            int64        `json:"rev"` // grows with every change
	Status         string       `json:"status"`
	Error          *fault.Error `json:"error,omitempty"`
	GenerationID   string       `json:"generationId,omitempty"` // the newest that wrote here
	Dates

	// Extra is the line of an imported log as it came, for export. It is stored
	// once by InsertMessage and Load, and read by Line; nothing changes it.
	Extra json.RawMessage `json:"-"`
	// Imported says of a stored message that it has such a line.
	Imported bool `json:"-"`

	Look
}

// Look is what readers of a message see beside what is stored of it.
type Look struct {
	// Display is what readers see in the place of the chosen text; nil = that. It is made when it is read.
	Display *string `json:"-"`
	// Files are those that the shown swipe came with. They are found when it is read.
	Files []*attached.File `json:"-"`
}

// Dates are the times at which a message was stored, edited and deleted.
type Dates struct {
	CreatedAt time.Time  `json:"createdAt"`
	EditedAt  *time.Time `json:"editedAt,omitempty"`
	DeletedAt *time.Time `json:"deletedAt,omitempty"`
}

// Text is the chosen swipe's text.
func (m *Message) Text() string {
	if s := m.Chosen(); s != nil {
		return s.Text
	}
	return ""
}

// Chosen is the swipe that is shown; nil while there is none.
func (m *Message) Chosen() *Swipe {
	if m.SwipeIndex < 0 || m.SwipeIndex >= len(m.Swipes) {
		return nil
	}
	return &m.Swipes[m.SwipeIndex]
}

// previewSize is the length of the beginnings of messages in lists, code points.
const previewSize = 200

// Preview is the beginning of the message for lists; nil for no message.
func (m *Message) Preview() *Preview {
	if m == nil {
		return nil
	}
	text, revision := "", ""
	if s := m.Chosen(); s != nil {
		text, revision = s.Text, s.RevisionID
	}
	return &Preview{ID: m.ID, Role: m.Role, Text: op.Truncate(text, previewSize), RevisionID: revision, CreatedAt: m.CreatedAt}
}

// Swipe is one text of a message: its newest revision.
type Swipe struct {
	ID             string     `json:"id"`                   // names the swipe; stays through edits
	RevisionID     string     `json:"revisionId,omitempty"` // names this exact text for ever
	Rev            int64      `json:"rev,omitempty"`        // 1 = as first written
	Text           string     `json:"text,omitempty"`
	Reasoning      string     `json:"reasoning,omitempty"`
	Blocks         []Block    `json:"blocks,omitempty"` // <mem>, <websearch> found in the reply
	Model          string     `json:"model,omitempty"`
	RequestedModel string     `json:"requestedModel,omitempty"` // as Generation.RequestedModel
	Finish         string     `json:"finish,omitempty"`         // llm finish words
	Usage          *llm.Usage `json:"usage,omitempty"`
	GenerationID   string     `json:"generationId,omitempty"`
	Recalled
	Citations *cite.Citations `json:"citations,omitempty"` // nil = it cites nothing
	Tools     *ToolTrace      `json:"tools,omitempty"`     // nil = the model was offered none
	Wish      string          `json:"wish,omitempty"`      // instruction of a rewrite
	PlayID    string          `json:"playId,omitempty"`    // the Play after this text; "" = that after the text before it
	Play      *Play           `json:"-"`                   // stored with a new text, as PlayID; nil = it is stored already
	Deleted   bool            `json:"deleted,omitempty"`
	Omitted   bool            `json:"omitted,omitempty"` // it has no text, nor what belongs to that, see HistoryTx.NearTexts
	CreatedAt time.Time       `json:"createdAt,omitzero"`
}

// Recalled is what the prompt of a text had of a memory.
type Recalled struct {
	MemoryIDs   []string `json:"memoryIds,omitempty"`   // units that were recalled for it
	UsedProfile bool     `json:"usedProfile,omitempty"` // it had facts of the user's profile
}

// Block is a tagged part of a reply, kept apart from the visible text.
type Block struct {
	Part string `json:"part"` // "mem" or "websearch"
	Text string `json:"text"`
	At   int    `json:"at"` // where it stood: position in the visible text, in code points
}

// TextOfBlocks is the text of blocks; behind reports that it follows another text.
func TextOfBlocks(blocks []Block, behind bool) string {
	var texts []string
	for _, b := range blocks {
		if strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	text := strings.Join(texts, "\n\n")
	if behind && text != "" {
		text = "\n\n" + text
	}
	return text
}

// Revision is one immutable stored text.
type Revision struct {
	ID, MessageID, SwipeID string
	Rev                    int64
	Text                   string
	CreatedAt              time.Time
}

// Kinds of generations.
const (
	KindReply       = "reply"
	KindRegenerate  = "regenerate"
	KindContinue    = "continue"
	KindImpersonate = "impersonate"
)

// Status of a generation.
const (
	GenQueued      = "queued"
	GenBuilding    = "building"
	GenWaiting     = "waiting"
	GenStreaming   = "streaming"
	GenDone        = "done"
	GenCancelled   = "cancelled"
	GenFailed      = "failed"
	GenInterrupted = "interrupted"
)

// Generation is the writing of one text by a model. The server owns it: it goes
// on without any connection.
type Generation struct {
	ID             string                `json:"id"`
	UserID         string                `json:"-"`
	ConversationID string                `json:"conversationId"`
	MessageID      string                `json:"messageId,omitempty"` // "" = impersonate
	SwipeID        string                `json:"swipeId,omitempty"`
	Kind           string                `json:"kind"`
	Status         string                `json:"status"`
	Finish         string                `json:"finish,omitempty"`
	Options        character.TurnOptions `json:"options"`
	Instruction    string                `json:"instruction,omitempty"`    // rewrite wish
	By             string                `json:"by"`                       // device that asked
	Model          string                `json:"model,omitempty"`          // that answered, as far as is known
	RequestedModel string                `json:"requestedModel,omitempty"` // that was asked, if it has another name, such as an alias
	PromptID       string                `json:"promptId,omitempty"`
	Writing
	Usage *llm.Usage   `json:"usage,omitempty"`
	Error *fault.Error `json:"error,omitempty"`
	After
	Moments
	Lease
}

// After is what is different once the text of a generation is stored.
type After struct {
	PlayID  string          `json:"-"` // the play of the text
	Globals json.RawMessage `json:"-"` // changes to the user's variables: values by name, null for removed ones; nil = no change
}

// Writing is the text of a generation, as far as it is written, with its thoughts, blocks and tools.
type Writing struct {
	Text      string          `json:"text"` // the text so far: the checkpoint while running, all of it at the end
	Reasoning string          `json:"reasoning,omitempty"`
	Blocks    []Block         `json:"blocks,omitempty"`
	Citations *cite.Citations `json:"-"` // those of Text; not stored with it
	InMessage bool            `json:"-"` // Base and Text are a revision of the message, so an end is stored without them
	Tools     *ToolTrace      `json:"tools,omitempty"`
	Base      string          `json:"base,omitempty"` // continue: the text that stood before; Text follows it
}

// Moments are the times at which a generation took its steps.
type Moments struct {
	CreatedAt    time.Time  `json:"createdAt"`
	StartedAt    *time.Time `json:"startedAt,omitempty"`
	FirstTokenAt *time.Time `json:"firstTokenAt,omitempty"`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Timing       *Timing    `json:"-"` // nil = it never began
}

// Lease names the process that writes a generation, and how long it may without renewing.
type Lease struct {
	LeaseOwner string    `json:"-"` // process that writes it
	LeaseUntil time.Time `json:"-"`
}

// Timing says when a generation took its steps, in milliseconds since CreatedAt. Steps
// that it did not reach are nil. FirstTokenAt and EndedAt complete it.
type Timing struct {
	Accepted  int64          `json:"accepted"` // all that the request stores is on the disk
	Gather    *Span          `json:"gather,omitempty"`
	Sources   []SourceTiming `json:"sources,omitempty"` // by the time of their answers
	Build     *Span          `json:"build,omitempty"`
	Asked     *int64         `json:"asked,omitempty"` // the model
	LastToken *int64         `json:"lastToken,omitempty"`
}

// Span is when a step began and ended.
type Span [2]int64

// SourceTiming is when a source was asked and has answered.
type SourceTiming struct {
	Name string `json:"name"`
	Took Span   `json:"took"`
}

// NameModels notes the model that answers and the name by which it was asked; "" = not known yet.
func (g *Generation) NameModels(answers, asked string) {
	g.Model = cmp.Or(answers, asked, g.Model)
	if g.RequestedModel = asked; asked == g.Model {
		g.RequestedModel = ""
	}
}

// HasText reports whether the text is not blank.
func (g *Generation) HasText() bool { return strings.TrimSpace(g.Text) != "" }

// Ended reports whether the generation has ended, in any way.
func (g *Generation) Ended() bool {
	switch g.Status {
	case GenDone, GenCancelled, GenFailed, GenInterrupted:
		return true
	}
	return false
}
