package card

import "encoding/json"

// Preset is the view of a prompt preset.
type Preset struct {
	Name    string
	Prompts []Prompt
	Order   []OrderItem // the order list in force, completed as ParsePreset says
	BuiltIn bool        // the document had no prompts: these are the built-in ones
}

// Prompt is one prompt of a preset.
type Prompt struct {
	Name       string // default "Unnamed Prompt"
	Content    string
	Enable     bool   // default true
	Identifier string // generated from the place in the list when missing; the same on each call
	Role       string // as written: user, model, assistant, system; default "user"

	InjectionPosition *int // 0 relative, 1 in the chat; nil when absent
	InjectionDepth    *int // nil when absent
	InjectionOrder    int  // default 100
	InjectionTrigger  []string
	ForbidOverrides   bool
	Marker            bool
	SystemPrompt      bool
}

// OrderItem is one place of the order list.
type OrderItem struct {
	Identifier string
	Enabled    bool // default true
}

// ParsePreset reads a preset. A missing document and a preset without prompts
// are the built-in preset.
//
// Of several order lists the one of character 100001 is in force, else the
// first. Without a list the order is that of the prompts, on as they are
// enabled.
//
// Error: InvalidImport when the document is no JSON object.
func ParsePreset(doc json.RawMessage) (Preset, error) { return Preset{}, nil }

// BuiltInPreset returns the preset document that serves where none is given.
func BuiltInPreset() json.RawMessage { return nil }

// AuthorNote is the view of a NodeST author's note.
type AuthorNote struct {
	CharName       string
	UserName       string
	Content        string
	Role           string // default "user"
	InjectionDepth int
}

// ParseAuthorNote reads an author's note. ok is false for a missing document: no
// note. A note with empty content is one, as an anchor for world-book entries.
//
// Error: InvalidImport when the document is no JSON object.
func ParseAuthorNote(doc json.RawMessage) (note AuthorNote, ok bool, err error) {
	return AuthorNote{}, false, nil
}
