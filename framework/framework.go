package framework

import (
	"time"

	"nodest/card"
	"nodest/llm"
)

// DepthMode says what counts as one step of depth.
type DepthMode string

// The depth modes. Depth d is directly before the message d places before
// the base in depthMessages, whatever that message's role, and directly before
// the d-th user message before the base in depthUserMessages.
const (
	depthMessages     DepthMode = "messages"
	depthUserMessages DepthMode = "user_messages"
)

// Priority says which book wins where the global one and the character's have an
// entry of the same key: the one that comes later.
type Priority string

// The priorities, in the words of the documents.
const (
	GlobalLater    Priority = "全局优先" // global entries after the character's (default)
	CharacterLater Priority = "角色优先" // global entries before the character's
)

// Sources are the documents behind a character's prompt. The zero value builds
// from an empty card and the built-in preset.
type Sources struct {
	Dialect card.Dialect // that the documents were written for; both are built by the NodeST rules
	Card    card.RoleCard
	Preset  *card.Preset // nil = the built-in one without its tail (BuiltInPreset)
	Book    card.WorldBook
	// CardFields says what happens to fields that the preset does not list.
	CardFields CardFields
	Language   Language // language of the built-in preset; empty = English
	// MoreBooks are further books bound to the character, in order. Their entries
	// follow those of Book and do not replace them even where keys are equal.
	MoreBooks []BoundBook

	GlobalPreset   *card.Preset // not nil: takes the place of Preset
	GlobalBook     *card.WorldBook
	GlobalPriority Priority
	// GlobalFilterKeyed is Options.FilterKeyed for the entries of GlobalBook.
	GlobalFilterKeyed bool
}

// CardFields says which fields of a card are used: "all", which is the default, or
// "listed". With both, those that the order of the preset lists go where it lists
// them, and those that it has switched off are left out. "all" adds description,
// personality, scenario and examples before the chat where the preset does not list
// them, and uses the prompts of the card.
type CardFields string

// ListedFields adds nothing, as the NodeST app does. The prompts of a card
// (system_prompt, post_history_instructions, depth_prompt) are used in the SillyTavern
// dialect alone.
const ListedFields CardFields = "listed"

// BoundBook is a world book that is a resource of its own, with its id.
type BoundBook struct {
	ID   string
	Book card.WorldBook
	// FilterKeyed is Options.FilterKeyed for the entries of this book.
	FilterKeyed bool
}

// Setting is what the user says about the person they play (自设). It is always on
// unless disabled, in a block that names the person.
type Setting struct {
	Name     string // default: "About the user", 自设
	Text     string
	Disable  bool
	Position *int    // 0 to 4 as in a world book; nil = 4. 2 and 3 without a note are 4.
	Order    float64 // among world-book entries of the same place
	Depth    int     // depth for position 4; 0 is read as 1
	Global   bool    // belongs to the user, not to one character
}

// Persona is who the user is in this chat.
type Persona struct {
	Name        string // {{user}}; may be empty
	Description string // goes where the preset lists personaDescription, else into the chat at depth 1
	Place       PersonaPlace
}

// PersonaPlace is where the description goes in the SillyTavern dialect. The zero value is where the preset lists it.
type PersonaPlace struct {
	Position PersonaPosition
	Depth    int      // depth for PersonaAtDepth
	Role     llm.Role // role for PersonaAtDepth; "" = system
}

// PersonaPosition is a position of a persona.
type PersonaPosition int

// The positions, by SillyTavern's numbers.
const (
	PersonaInPrompt  PersonaPosition = 0
	PersonaTopOfNote PersonaPosition = 2
	PersonaEndOfNote PersonaPosition = 3
	PersonaAtDepth   PersonaPosition = 4
	PersonaNotAtAll  PersonaPosition = 9
)

// Message is one message of the chat.
type Message struct {
	ID       string // names this exact text (a revision); "" = no text that is stored
	Role     string // user, assistant, system, narrator or summary
	Name     string // speaker, where the role does not say it
	Text     string
	At       time.Time // time for the macros about time in it; zero = Options.Now
	Greeting bool      // the character began the chat with it
}

// Roles of chat messages beyond those of package llm.
const (
	RoleNarrator = "narrator" // sent as system
	RoleSummary  = "summary"  // sent as user, without macro replacement; dropped after all other history
)

// Memory is something remembered.
type Memory struct {
	ID   string
	Text string
}

// Profile is what the character always remembers of the user. It comes directly
// before the chat, so that the request begins the same way as long as it stays the
// same. It comes from outside: macros in it are not replaced.
type Profile struct {
	Heading string
	Facts   []Memory // a line each; none = there is no profile
}

// Notes are the documents that a character keeps about the user and itself. They come directly behind
// the profile, and from outside, as it does.
type Notes struct {
	Heading   string
	Documents []Memory // by their names, each a title and lines; none = there are no notes
}

// Findings are what was found for the message. They come from outside and are
// put into blocks that they cannot break out of.
type Findings struct {
	Memories []Memory // best first
	Web      string   // numbered entries; blank = none
	// Passages are of documents, for a model that cannot look them up itself; blank = none.
	Passages string
}

// Instruction is a last message that tells the model what to write. Text may be
// empty: then the built-in text of the task is used; llm.Reply has none.
type Instruction struct {
	Task llm.Task
	Text string
	Role llm.Role // default system
}

// Input is everything a prompt is built from.
type Input struct {
	// Documents, compiled; nil = Compile(Sources). An engine keeps the result of
	// Compile per version of the documents.
	Compiled *Compiled
	Sources  Sources

	Note     *card.AuthorNote // nil = none
	Settings []Setting        // the user's global one first, then the character's own (left out when marked Global)
	Persona  Persona
	Profile  Profile
	Notes    Notes
	Scripts  *ScriptRun // those that are for the request only are applied to the history; nil = none

	// History is the branch up to the message that is answered, oldest first,
	// with the active summary in place of the messages that it covers. User is the
	// message that is answered (for a regenerate: the one before the reply). With
	// an empty User.Text the newest user message of History is the base; what
	// follows it (the text that a continue lengthens) stays behind it.
	History     []Message
	User        Message
	Instruction *Instruction
	Findings    Findings

	// Rules say how the model uses the tools that it may call; blank = it has none. They are
	// the last of the system's messages before the chat.
	Rules string
	// Knowledge is a block of documents between the frame and the chat. It is never part of
	// the chat, so it does not count for depths. Nil = no block.
	Knowledge []KnowledgePart

	Options    Options
	Previous   []uint64 // Prompt.Hashes of the request before in this conversation; nil = none
	PreviousOf string   // its generation
	Cache      *Cache   // token counts and key scans by content; nil = none
}

// Options are the settings of a build. The zero value is ready to use.
type Options struct {
	DepthMode DepthMode // default "messages"
	ScanDepth int       // newest messages that keys are looked for in; 0 = 20, below 0 = all
	// ScanSummary looks for keys in summaries too. Without it they are passed over
	// and count as no message.
	ScanSummary bool
	// FilterKeyed leaves out entries of position 0 and 1 that are not constant and match
	// nothing in the scanned messages. Without it they are part of the fixed frame
	// whatever their keys, if they have any. Books can ask for it too.
	FilterKeyed bool

	Context   int    // tokens that request and reply may have together; 0 = no limit
	Reserve   int    // tokens of these kept for the reply
	Tokenizer string // see TokenizerFor; empty = the estimate

	// Language is that of the built-in words of the prompt; empty = English.
	Language Language
	// Recount asks for a <mem> block in the reply, in which the character recalls
	// the memories. Without it they are to be used where they fit, unquoted.
	Recount bool

	// Now is the time of the macros about time and of the line that dates memories,
	// in the user's time zone; zero = neither. A retry has to give the same one.
	Now time.Time
	// LastUserAt is the time of the user's last message before the newest one; zero =
	// there is none.
	LastUserAt time.Time

	// StrictTurns merges successive messages of one role and lets the user speak
	// first, for providers that take nothing else (llm.StrictTurns).
	StrictTurns bool

	// Seed fixes the random macros. A retry with the same seed sends the same text.
	Seed uint64

	// PickSeed fixes {{pick::a::b}}. It is that of the conversation.
	PickSeed uint64
}

// Prompt is a request and the account of how it came about.
type Prompt struct {
	Messages []llm.Message `json:"-"`
	Entries  []Entry       `json:"entries"`           // in the order of the request; several may share a message
	Dropped  []Dropped     `json:"dropped,omitempty"` // candidates that are not in it
	Warnings []Warning     `json:"warnings,omitempty"`

	Tokens    int    `json:"tokens"`             // tokens of all messages
	Budget    int    `json:"budget,omitempty"`   // limit of Tokens; 0 = no limit
	Reserve   int    `json:"reserve,omitempty"`  // tokens of the context beyond Budget, for the reply; 0 = no limit
	Tokenizer string `json:"tokenizer"`          // the tokenizer that counted them
	Estimate  bool   `json:"estimate,omitempty"` // the count is an estimate

	Base   int      `json:"base"`   // index in Messages of the user message that is answered; -1 = none
	Prefix Prefix   `json:"prefix"` // the part that a provider may have cached
	Hashes []uint64 `json:"-"`      // HashesOf(Messages)
}

// Source says which kind of document or finding an entry came from.
type Source string

// The sources.
const (
	SourcePreset      Source = "preset"
	SourceCard        Source = "card"
	SourceBook        Source = "worldbook"
	SourceGlobalBook  Source = "global_worldbook"
	SourceNote        Source = "author_note"
	SourceSetting     Source = "user_setting"
	SourcePersona     Source = "persona"
	SourceHistory     Source = "history"
	SourceSummary     Source = "summary"
	SourceUser        Source = "user_message"
	SourceMemory      Source = "memory"
	SourceProfile     Source = "profile"
	SourceDocument    Source = "memory_document"
	SourceWeb         Source = "websearch"
	SourceKnowledge   Source = "knowledge" // documents, and passages of them
	SourceTools       Source = "tools"     // the rules for tools
	SourceGuidelines  Source = "guidelines"
	SourceInstruction Source = "instruction"
)

// Why an entry is in the prompt.
const (
	WhyFixed    = "fixed"    // part of the frame: the order of the preset lists it
	WhyConstant = "constant" // marked as always on
	WhyKey      = "key"      // Entry.Key occurs in the scanned messages
	WhyChat     = "chat"     // it was said
	WhyGreeting = "greeting" // the message that the character began the chat with
	WhyFound    = "found"    // memory or web search
	WhyTask     = "task"     // the task of the model
	WhyAdded    = "added"    // a text of the card that the preset has no place for
	WhyOverride = "override" // a prompt of the card in the place of the preset's
)

// Why a candidate is not in the prompt.
const (
	DropDisabled = "disabled"
	DropNoKey    = "no_key"    // no key of it occurs in the scanned messages, or it has none
	DropNoNote   = "no_note"   // goes around an author's note, and there is none
	dropNoBase   = "no_base"   // goes to a depth, and no user message is answered
	DropBudget   = "budget"    // did not fit
	DropEmpty    = "empty"     // nothing but white space
	DropUnlisted = "unlisted"  // the preset's order does not list it
	DropReplaced = "replaced"  // a later book has an entry of the same key, or the card a prompt of its own
	dropPlace    = "position"  // a position that this dialect does not know
	DropDialect  = "dialect"   // a field that this dialect does not use
	DropHistory  = "duplicate" // a second place for the chat history
	DropForbid   = "forbidden" // the preset does not let the card replace its prompt
	// DropShortened: only the short form of a document fits; it is in the prompt.
	DropShortened = "shortened"
)

// Entry is one part of the prompt.
type Entry struct {
	Source   Source   `json:"source"`
	ID       string   `json:"id,omitempty"` // identifier of the prompt, "book/key" or key of the world-book entry, id of the message or memory
	Name     string   `json:"name,omitempty"`
	Why      string   `json:"why"`
	Key      string   `json:"key,omitempty"`      // the key that fired, as written
	Position *int     `json:"position,omitempty"` // position of a world-book entry or setting
	Depth    *int     `json:"depth,omitempty"`    // its place in the chat
	Role     llm.Role `json:"role"`
	Tokens   int      `json:"tokens"`       // the overhead of a message counts with its first entry
	Message  int      `json:"message"`      // index in Messages
	At       int      `json:"at,omitempty"` // where its text begins in a message that was merged from several, in code points
}

// Dropped is one candidate that is not in the prompt. A run of history that did
// not fit is one Dropped.
type Dropped struct {
	Source Source `json:"source"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
	Tokens int    `json:"tokens,omitempty"` // where they were counted
	Count  int    `json:"count,omitempty"`  // messages of a run of history
	LastID string `json:"lastId,omitempty"` // last message of a run
}

// Warning reports a problem that did not stop the build.
type Warning struct {
	Code   string `json:"code"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail"`
}

// Prefix is the part of the request that equals the beginning of the request
// before it, message for message.
type Prefix struct {
	GenerationID string `json:"generationId,omitempty"` // generation of the request before; empty = there is none
	Messages     int    `json:"messages"`
	Tokens       int    `json:"tokens"`
	Hash         string `json:"hash,omitempty"`     // hash of the prefix
	BrokenBy     *Entry `json:"brokenBy,omitempty"` // first entry of the first message that differs; nil = none does
}
