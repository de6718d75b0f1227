// Package tavern builds prompts by the rules of SillyTavern: presets of its prompt manager, world
// info, author's note, depth prompt, persona and macros, as sections 4, 5 and 10 of the
// specification of character cards say. It is pure, like package framework, whose input and
// prompts it shares, and which is the other dialect.
package tavern

import (
	"context"

	"nodest/card"
	"nodest/framework"
	"nodest/llm"
)

// Sources are the documents behind a character's prompt.
type Sources struct {
	Card   card.RoleCard
	Preset *card.Preset // nil = the built-in one of Language
	// CardFields says where a section goes that the order of the preset does not list. With
	// framework.ListedFields it goes behind everything, as in SillyTavern. Otherwise the persona
	// goes to the description, and the others before the chat.
	CardFields framework.CardFields
	Language   framework.Language // of the built-in preset; empty = English
}

// Trigger is the kind of a reply, by SillyTavern's words. Prompts and world-book entries can be for
// some kinds only.
type Trigger string

// The triggers.
const (
	Normal      Trigger = "normal"
	Continue    Trigger = "continue"
	Impersonate Trigger = "impersonate"
	Swipe       Trigger = "swipe"
	Regenerate  Trigger = "regenerate"
	Quiet       Trigger = "quiet"
)

// Play is what a prompt of this dialect needs besides the input that all dialects share.
type Play struct {
	Compiled *Compiled // the documents
	Trigger  Trigger   // "" = what the instruction of the input asks for, else Normal
	State    State     // of the branch; Build changes nothing in it

	Note      *Note        // nil = the author's note of the input
	Persona   PersonaPlace // the zero value = in the prompt
	Overrides Overrides
	Settings  Settings

	// Names keeps the names of speakers out of the texts, for providers that take them as a
	// property of the message (llm.Message.Name).
	Names bool
	// Prefills says that the model goes on with a message of its own at the end of a prompt, so
	// that the assistant_prefill of a preset can begin the reply.
	Prefills bool

	// Rand draws numbers in [0,1); nil = a sequence that Options.Seed decides.
	Rand func() float64
	// Count returns the tokens of a message; nil = those of its text with Options.Tokenizer, and
	// framework.MessageOverhead.
	Count func(llm.Message) int
}

// State is what the prompts of a branch hand on to later ones.
type State struct {
	Variables map[string]any `json:"variables,omitempty"` // of the chat
	Globals   map[string]any `json:"globals,omitempty"`   // of the user
}

// Note is an author's note, as SillyTavern keeps it in the metadata of a chat.
type Note struct {
	Text     string
	Position NotePosition
	Depth    int // of InChat
	Role     llm.Role
	Interval int  // messages of the user from one to the next; 1 = always there, 0 = never
	Scan     bool // keys of world books are looked for in it

	Character *CharacterNote // of the character whose turn it is; nil = none
}

// NotePosition is a place of an author's note.
type NotePosition int

// The positions, by SillyTavern's numbers.
const (
	AfterMain  NotePosition = 0
	InChat     NotePosition = 1
	BeforeMain NotePosition = 2
)

// CharacterNote is a note for one character.
type CharacterNote struct {
	Text  string
	Place CharacterNotePlace
}

// CharacterNotePlace relates a character's note to that of the chat.
type CharacterNotePlace int

// The places, by SillyTavern's numbers.
const (
	InsteadOfNote CharacterNotePlace = 0
	BeforeNote    CharacterNotePlace = 1
	AfterNote     CharacterNotePlace = 2
)

// PersonaPlace is where the description of the persona goes.
type PersonaPlace struct {
	Position PersonaPosition
	Depth    int      // of PersonaAtDepth
	Role     llm.Role // of PersonaAtDepth; "" = system
}

// PersonaPosition is a kind of place of a persona.
type PersonaPosition int

// The positions, by SillyTavern's numbers.
const (
	PersonaInPrompt  PersonaPosition = 0
	PersonaTopOfNote PersonaPosition = 2
	PersonaEndOfNote PersonaPosition = 3
	PersonaAtDepth   PersonaPosition = 4
	PersonaNotAtAll  PersonaPosition = 9
)

// Overrides take the place of texts of the card in one chat; "" = the card's.
type Overrides struct {
	Scenario, SystemPrompt, MesExample string
}

// Settings are what the user chooses.
type Settings struct {
	PinExamples        bool // examples have precedence over old messages
	IgnoreSystemPrompt bool // of cards: the preset's counts
	IgnorePostHistory  bool // the same for post_history_instructions
}

// Compiled are documents made ready for building. It is immutable and safe for concurrent use.
type Compiled struct {
	sources Sources
	preset  card.Preset
}

// Compile prepares documents. It never fails.
func Compile(s Sources) *Compiled {
	return &Compiled{sources: s}
}

// Build makes the request of a turn. Of in it uses everything but Compiled and Sources.
//
// Errors: fault.ContextTooLarge, as framework.Build; the cause when ctx ends.
func Build(ctx context.Context, in *framework.Input, play *Play) (*framework.Prompt, *State, error) {
	p, err := framework.Build(ctx, *in)
	return p, &play.State, err
}
