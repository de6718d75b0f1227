// Package tavern builds prompts by the rules of SillyTavern: presets of its prompt manager, world
// info, author's note, depth prompt, persona and macros, as sections 4, 5 and 10 of the
// specification of character cards say. It is pure, like package framework, whose input and
// prompts it shares, and which is the other dialect.
package tavern

import (
	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// Sources are the documents behind a character's prompt.
type Sources struct {
	Card   card.RoleCard
	Preset *card.Preset // nil, or without prompts = the built-in one of Language
	// CardFields says where a section goes that the order of the preset does not list. With
	// framework.ListedFields it goes behind everything, as in SillyTavern. Otherwise the persona
	// goes to the description, and the others before the chat.
	CardFields framework.CardFields
	Language   framework.Language // language of the built-in preset; empty = English

	Books     []worldinfo.Source  // world books that take part
	Character worldinfo.Character // for the filters of entries; an empty file name = the name of the card
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
	State    State     // state of the branch; Build changes nothing in it
	// Before counts the messages of the branch before the first one of the input's history; summaries
	// are none. What counts messages, such as timed effects, the interval of a note and the
	// indices of macros, is about the whole chat with it.
	Before  worldinfo.Before
	Globals *macro.Vars // variables of the user, which Build does not change either; nil = none

	Note      *Note // nil = the author's note of the input
	Overrides Overrides
	Settings  Settings
	WorldInfo *worldinfo.Settings // nil = worldinfo.DefaultSettings
	Model     string              // {{model}}
	Greeting  int                 // that the chat began with, as worldinfo.Input has it
	Forced    map[string]bool     // world-book entries that a search by meaning found, by id

	// Explain has the prompt report each entry of world books that is not in it, with its tokens, as previews
	// show them. Otherwise it reports those that lost: to chance, to others, to the budget.
	Explain bool
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
	Variables *macro.Vars     `json:"variables,omitempty"` // those of the chat; nil = none
	Timed     worldinfo.Timed `json:"timedWorldInfo"`
}

// Result is what a build finds out besides the prompt.
type Result struct {
	State   State
	Globals *macro.Vars // the variables of the user after the build
	World   *worldinfo.Output
}

// Note is an author's note, as SillyTavern keeps it in the metadata of a chat.
type Note struct {
	Text     string
	Position NotePosition
	Depth    int // depth for InChat
	Role     llm.Role
	Interval int  // messages of the user from one to the next; 1 = always there, 0 = never
	Scan     bool // keys of world books are looked for in it
}

// NotePosition is a place of an author's note.
type NotePosition int

// The positions, by SillyTavern's numbers.
const (
	AfterMain  NotePosition = 0
	InChat     NotePosition = 1
	BeforeMain NotePosition = 2
)

// Overrides take the place of texts of the card in one chat; "" = the card's.
type Overrides struct {
	Scenario, SystemPrompt, MesExample string
}

// Settings are what the user chooses.
type Settings struct {
	PinExamples        bool // examples have precedence over old messages
	IgnoreSystemPrompt bool // ignores the card's: the preset's counts
	IgnorePostHistory  bool // the same for post_history_instructions
}
