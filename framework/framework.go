package framework

import (
	"nodest/card"
	"nodest/fault"
	"nodest/llm"
)

// DepthMode says what counts as one step of depth.
type DepthMode string

// The depth modes. Depth d stands directly before the message d places before
// the base in DepthMessages, whatever that message's role, and directly before
// the d-th user message before the base in DepthUserMessages.
const (
	DepthMessages     DepthMode = "messages"
	DepthUserMessages DepthMode = "user_messages"
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
	Dialect card.Dialect
	Card    card.RoleCard
	Preset  *card.Preset // nil = the built-in one
	Book    card.WorldBook
	// MoreBooks are further books bound to the character, in order. Their entries
	// follow those of Book and stand beside them even where keys are equal.
	MoreBooks []BoundBook

	GlobalPreset   *card.Preset // not nil: takes the place of Preset
	GlobalBook     *card.WorldBook
	GlobalPriority Priority
}

// BoundBook is a free-standing world book with the id it is known by.
type BoundBook struct {
	ID   string
	Book card.WorldBook
}

// Note is an author's note. One with an empty text is only an anchor for
// world-book entries.
type Note struct {
	Text  string
	Role  string // "user" (default), "assistant" or "model", "system"
	Depth int
}

// Setting is what the user says about the person they play (自设). It is always on
// unless disabled, and stands in a block that names the person.
type Setting struct {
	Name     string // default 自设
	Text     string
	Disable  bool
	Position *int    // 0 to 4 as in a world book; nil = 4. 2 and 3 without a note are 4.
	Order    float64 // among world-book entries of the same place
	Depth    int     // of position 4; 0 is read as 1
	Global   bool    // of the user, not of one character
}

// Persona is who the user is in this chat.
type Persona struct {
	Name        string // {{user}}; may be empty
	Description string // goes where the preset lists personaDescription, else into the chat at depth 1
}

// Message is one message of the chat.
type Message struct {
	// ID names this exact text (a revision), so that a stored prompt can refer to
	// it instead of repeating it. Empty: the text itself is stored.
	ID       string
	Role     string // user, assistant, system, narrator or summary
	Name     string // speaker, where the role does not say it
	Text     string
	Greeting bool
}

// Roles of chat messages beyond those of package llm. Both are sent as system.
const (
	RoleNarrator = "narrator"
	RoleSummary  = "summary" // gets no macro replacement; dropped after all other history
)

// Memory is something recalled for the message.
type Memory struct {
	ID   string
	Text string
}

// Findings are what was found for the message. They come from outside and are
// put into blocks that they cannot break out of.
type Findings struct {
	Memories []Memory // best first
	Web      string   // numbered entries; blank = none
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

	Note     *Note     // nil = none
	Settings []Setting // the global one first, then the character's own
	Persona  Persona
	Scripts  *Scripts // those that are for the request only are applied to the history; nil = none

	// History is the branch up to the message that is answered, oldest first,
	// with the summary in force in the place of what it covers. User is the
	// message that is answered (for a regenerate: the one before the reply). With
	// an empty User.Text the newest user message of History is the base; what
	// follows it (the text that a continue lengthens) stays behind it.
	History     []Message
	User        Message
	Instruction *Instruction
	Findings    Findings

	Options  Options
	Previous []uint64 // Prompt.Hashes of the request before in this conversation; nil = none
	Cache    *Cache   // token counts and key scans by content; nil = none
}

// Options are the settings of a build. The zero value is ready to use.
type Options struct {
	DepthMode DepthMode // default DepthMessages
	ScanDepth int       // newest messages that keys are looked for in; 0 = 20, below 0 = all
	// FilterKeyed leaves out entries of position 0 and 1 that have keys, are not
	// constant, and match nothing in the scanned messages. Without it they are
	// part of the fixed frame whatever their keys.
	FilterKeyed bool

	Context   int    // tokens that request and reply may have together; 0 = no limit
	Reserve   int    // tokens of these kept for the reply
	Tokenizer string // see TokenizerFor; empty = the estimate

	// Seed fixes the random macros. A retry with the same seed sends the same text.
	Seed uint64
}

// Prompt is a request and the account of how it came about.
type Prompt struct {
	Messages []llm.Message
	Entries  []Entry   // in the order of the request; several may share a message
	Dropped  []Dropped // candidates that are not in it
	Warnings []Warning

	Tokens    int    // of all messages
	Budget    int    // what Tokens had to stay within; 0 = no limit
	Tokenizer string // what counted them
	Estimate  bool   // the count is an estimate

	Base   int      // index in Messages of the user message that is answered; -1 = none
	Prefix Prefix   // what a provider may have cached
	Hashes []uint64 // one per message, chained: equal up to i means equal up to i
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
	SourceWeb         Source = "websearch"
	SourceGuidelines  Source = "guidelines"
	SourceInstruction Source = "instruction"
)

// Why an entry is in the prompt.
const (
	WhyFixed    = "fixed"    // part of the frame: the order of the preset lists it
	WhyConstant = "constant" // marked as always on
	WhyKey      = "key"      // Entry.Key occurs in the scanned messages
	WhyChat     = "chat"     // it was said
	WhyFound    = "found"    // memory or web search
	WhyTask     = "task"     // what is asked of the model
)

// Why a candidate is not in the prompt.
const (
	DropDisabled = "disabled"
	DropNoKey    = "no_key"     // no key of it occurs in the scanned messages, or it has none
	DropNoNote   = "no_note"    // stands around an author's note, and there is none
	DropNoBase   = "no_base"    // stands at a depth, and no user message is answered
	DropBudget   = "budget"     // did not fit
	DropEmpty    = "empty"      // nothing but white space
	DropUnlisted = "unlisted"   // the preset's order does not list it
	DropReplaced = "replaced"   // a later book has an entry of the same key
	DropPlace    = "position"   // a position that this dialect does not know
	DropHistory  = "duplicate"  // a second place for the chat history
	DropTag      = "is_d_entry" // an inserted entry that was stored with the history
)

// Entry is one part of the prompt.
type Entry struct {
	Source   Source   `json:"source"`
	ID       string   `json:"id,omitempty"` // identifier of the prompt, "book/key" or key of the world-book entry, id of the message or memory
	Name     string   `json:"name,omitempty"`
	Why      string   `json:"why"`
	Key      string   `json:"key,omitempty"`      // the key that fired, as written
	Position *int     `json:"position,omitempty"` // of a world-book entry or setting
	Depth    *int     `json:"depth,omitempty"`    // where it stands in the chat
	Role     llm.Role `json:"role"`
	Tokens   int      `json:"tokens"`  // the overhead of a message counts with its first entry
	Message  int      `json:"message"` // index in Messages
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

// Warning tells about something odd that did not stop the build.
type Warning struct {
	Code   string `json:"code"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail"`
}

// Prefix is the part of the request that equals the beginning of the request
// before it, message for message.
type Prefix struct {
	Messages int    `json:"messages"`
	Tokens   int    `json:"tokens"`
	Hash     string `json:"hash,omitempty"`     // of the prefix
	BrokenBy *Entry `json:"brokenBy,omitempty"` // first entry of the first message that differs; nil = none does
}

// Build makes the request of a turn.
//
// With Options.Context set, what does not fit is dropped in this order: history,
// oldest first; summaries, oldest first; world-book entries that a key brought
// in, lowest order first; memories, least relevant first; the web block. Nothing
// else is ever dropped: fault.ContextTooLarge says that the rest alone exceeds the
// budget, with its largest parts in details.parts.
func Build(in Input) (*Prompt, error) {
	return nil, fault.New(fault.Internal, "framework: not built yet")
}

// Compiled are documents made ready for building. It is immutable and safe for
// concurrent use.
type Compiled struct{}

// Compile prepares documents. It never fails: what cannot be used is reported by
// Build as a warning or a dropped candidate.
func Compile(s Sources) *Compiled { return &Compiled{} }

// TokenizerFor names the tokenizer that counts for a model: the model's own
// where it is known ("o200k_base", "cl100k_base", …), else "estimate".
func TokenizerFor(provider, model string) string { return "estimate" }

// Cache keeps token counts and key scans by content, for all conversations of a
// process. It is safe for concurrent use.
type Cache struct{}

// NewCache returns a cache that holds at most maxBytes of text and results; 0 =
// 64 MiB.
func NewCache(maxBytes int) *Cache { return &Cache{} }

// Compact is the stored form of p. Texts of the chat that were sent as they are
// stand in it by the ids of their messages only.
func (p *Prompt) Compact() []byte { return nil }

// Expand reads the stored form. texts returns the text behind each id, in the
// order of ids; it is called at most once, with the ids that Message.ID gave.
func Expand(stored []byte, texts func(ids []string) ([]string, error)) (*Prompt, error) {
	return nil, fault.New(fault.Internal, "framework: not built yet")
}

// HashesOf reads Input.Previous from a stored form without expanding it; nil
// when it cannot be read.
func HashesOf(stored []byte) []uint64 { return nil }

// Change is one difference between two prompts.
type Change struct {
	Op     string `json:"op"` // added, removed, changed or moved
	Source Source `json:"source"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Before *Entry `json:"before,omitempty"`
	After  *Entry `json:"after,omitempty"`
	Old    string `json:"old,omitempty"` // texts of a changed entry
	New    string `json:"new,omitempty"`
}

// Difference is what differs between two prompts, in the order of the second.
type Difference struct {
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`   // entries alike in both
	Tokens  int      `json:"tokens"` // of b less those of a
	Prefix  int      `json:"prefix"` // messages that begin both
}

// Diff compares two prompts entry by entry.
func Diff(a, b *Prompt) *Difference { return &Difference{} }

// Finding is one remark of the card doctor.
type Finding struct {
	Path   string `json:"path"` // of the field, e.g. "worldBook.entries.3.key[0]"
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Documents are what Lint looks at; nil ones are left out. Paths begin with the
// name of the document unless it is the only one.
type Documents struct {
	Dialect   card.Dialect
	Card      *card.RoleCard
	Book      *card.WorldBook
	Preset    *card.Preset
	Note      *Note
	Scripts   []card.RegexScript
	Budget    int    // tokens that one entry should stay below; 0 = 1,024
	Tokenizer string // empty = the estimate
}

// Lint examines documents for what will not work as their author meant it.
func Lint(d Documents) []Finding { return nil }

// ScriptGroup is a set of regex scripts and the characters it is for.
type ScriptGroup struct {
	ID          string
	BindType    string // "all", "character"; empty = all
	CharacterID string // of BindType "character"
	Scripts     []card.RegexScript
}

// Scripts are regex scripts ready for use, in the order in which they apply. It
// is immutable and safe for concurrent use.
type Scripts struct{}

// CompileScripts prepares the groups that apply to a character. Scripts that are
// disabled, bound elsewhere, empty or invalid are left out; the warnings name
// the invalid ones.
func CompileScripts(groups []ScriptGroup, characterID string) *Scripts { return &Scripts{} }

// ApplyUser runs the scripts for user input on what the user wrote, before it is
// stored and sent.
func (s *Scripts) ApplyUser(text string) (string, []Warning) { return text, nil }

// ApplyReply runs the scripts for model output on a whole reply, before it is
// stored.
func (s *Scripts) ApplyReply(text string) (string, []Warning) { return text, nil }

// ApplyDisplay runs the scripts that are for display only on a stored text; depth
// is its place from the newest message (0).
func (s *Scripts) ApplyDisplay(role, text string, depth int) (string, []Warning) { return text, nil }

// Part is the kind of text in a reply.
type Part string

// The parts.
const (
	PartText Part = "text"
	PartMem  Part = "mem"
	PartWeb  Part = "websearch"
)

// Piece is a step of a split reply: text of a part, or the opening or closing of
// a block (then Text is empty).
type Piece struct {
	Part  Part
	Text  string
	State string // "" = text, "open", "close"
}

// Splitter finds <mem> and <websearch> blocks in a streamed reply, whatever the
// borders of its chunks. The zero value is ready to use; it is for one reply.
type Splitter struct{}

// Feed takes the next chunk and returns what is certain by now.
func (s *Splitter) Feed(chunk string) []Piece { return []Piece{{Part: PartText, Text: chunk}} }

// Close returns what was held back and closes an open block.
func (s *Splitter) Close() []Piece { return nil }

// StripBlocks returns the visible text of a whole reply: what a Splitter gives as
// PartText, for any way of cutting it into chunks.
func StripBlocks(text string) string { return text }

// WithRewrite returns the text of a user message with a wish for the reply, in
// the place of an earlier wish; an empty wish only removes that.
func WithRewrite(text, wish string) string { return text }
