package worldinfo

import (
	"context"
	"strings"

	"nodest/card"
	"nodest/framework/keyscan"
)

// Origin says in which role a book takes part.
type Origin int

// The origins, in the order in which books without a strategy are served.
const (
	OfChat Origin = iota
	OfPersona
	OfCharacter
	Global
)

// Source is a book that takes part. Books are told apart by their names: one that is also global, or
// the chat's or the persona's, counts once (spec 3.1).
type Source struct {
	Name    string
	Origin  Origin
	Entries []card.Entry
}

// Strategy is the order of the books of the character and the global ones.
type Strategy int

// The strategies.
const (
	Evenly         Strategy = iota // both by their orders
	CharacterFirst                 // SillyTavern's default
	GlobalFirst
)

// Settings are those of SillyTavern for world info. DefaultSettings has its values.
type Settings struct {
	Depth               int // newest messages that keys are looked for in, 0 to 1000
	BudgetPercent       int // percent of the context
	BudgetCap           int // tokens; 0 = none
	MinActivations      int // looks further back until so many entries are in; 0 = off
	MinActivationsDepth int // how far it looks then; 0 = the whole chat
	MaxRecursionSteps   int // passes; 0 = no limit
	Recursive           bool
	IncludeNames        bool // messages are searched with the names of their speakers
	CaseSensitive       bool
	MatchWholeWords     bool
	UseGroupScoring     bool
	Strategy            Strategy
}

// DefaultSettings are those of a fresh installation of SillyTavern.
func DefaultSettings() Settings {
	return Settings{
		Depth: 2, BudgetPercent: 25, Recursive: true, IncludeNames: true, MatchWholeWords: true, Strategy: CharacterFirst,
	}
}

// Message is a message of the chat that is not hidden.
type Message struct {
	Name string
	Text string // after the regex scripts for prompts; its macros are not replaced
	User bool
}

// Texts are those beside the messages that entries can ask for (card.ScanTexts), with macros replaced.
type Texts struct {
	Persona, Description, Personality, DepthPrompt, Scenario, CreatorNotes string
}

// Character is whom the reply is by, for the filters of entries.
type Character struct {
	File string   // the name of its card file, without extension
	Tags []string // ids and names; nil = it has no list of tags, and filters by tag do not count
}

// Before counts the messages of a chat before those that were read. What counts messages (timed
// effects, delays, decorators) counts them too. The zero value says that the whole chat was read.
type Before struct {
	Messages int // that are not hidden
	Users    int // the user's among them
}

// length is the number of messages of the chat.
func (in *Input) length() int { return in.Before.Messages + len(in.Messages) }

// Input is what a scan is about.
type Input struct {
	Messages []Message // the newest last
	Before   Before
	Texts    Texts
	// Injections are further texts that are searched: the author's note and the depth prompt of the
	// card if they ask for it, a persona at a depth, a quiet prompt.
	Injections []string
	Settings   Settings
	Context    int    // tokens of the context without those of the reply
	Trigger    string // kind of the reply: normal, continue, impersonate, swipe, regenerate, quiet; "" = normal
	Character  Character
	Greeting   int // which greeting the chat began with; 0 = the first one, below 0 = none
	Timed      Timed
	// Forced are the ids ("book.uid") of entries that something else found, such as a search by meaning.
	Forced map[string]bool
	// DryRun neither reads nor changes timed effects.
	DryRun bool
	// Explain fills Output.Verdicts with every entry, and counts the tokens of each. Otherwise they
	// are those that lost, without tokens.
	Explain bool
	Tools
}

// Tools are the abilities that a scan borrows. Nil ones do nothing: texts stay as they are, tokens are
// estimated, random numbers are 0.5.
type Tools struct {
	Expand func(string) string // replaces macros; once per key and scan, once per content
	Count  func(string) int    // tokens
	Rand   func() float64      // in [0,1)
	// Rewrite applies the regex scripts for world info to the content of an entry at a depth of the
	// chat; depth is nil at any other position.
	Rewrite func(text string, depth *int) string
	// Cache keeps what was found in a text, also for other scans and books; nil = none. framework.Cache has one.
	Cache keyscan.Memo
}

// Placed is the text of an entry in a block.
type Placed struct {
	ID, Name string // "book.uid"; the title, or the uid
	Text     string
	Why, Key string // as in Verdict
	Order    float64
}

// DepthGroup is the texts of a place in the chat.
type DepthGroup struct {
	Depth int // messages behind it
	Role  int // 0 system, 1 user, 2 assistant
	Texts []Placed
}

// Output is the result of a scan.
type Output struct {
	Activated []string // ids in the order of activation, also of those whose text is empty

	// The blocks, each in reading order.
	Before, After               []Placed
	NoteTop, NoteBottom         []Placed
	ExamplesTop, ExamplesBottom []Placed // each text is a block of examples
	Depth                       []DepthGroup
	Outlets                     map[string][]Placed

	Timed    Timed // to be stored; equal to that of the input in a dry run
	Budget   int   // tokens
	Tokens   int   // tokens of the texts in the blocks; counted with Input.Explain alone
	Overflow bool  // something did not fit
	Searched int   // messages of the input, to say how far back a verdict's message is
	// AllTokens is what all entries together have, whether they fire or not; with Input.Explain alone.
	AllTokens int
	Verdicts  []Verdict // in the order in which entries are looked at
	Slow      []string  // keys that ran into their time limit
}

// Scan decides which entries are used. Its only error is the cause of the end of ctx.
func (b *Book) Scan(ctx context.Context, in *Input) (*Output, error) { return b.scan(ctx, in) }

// Text joins the texts of a block.
func Text(block []Placed) string {
	var text strings.Builder
	for i := range block {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(block[i].Text)
	}
	return text.String()
}
