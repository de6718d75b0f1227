package card

import "encoding/json"

// RoleCard is the view of a character card, for all versions alike: of a V2 or
// V3 card the fields of "data", of the others the top level.
type RoleCard struct {
	Name        string // default "Unnamed Character"
	Description string
	Personality string
	Scenario    string
	FirstMes    string // default "Hello!"
	MesExample  string
	Background  string

	AlternateGreetings []string // empty ones are left out
	GroupGreetings     []string // group_only_greetings

	SystemPrompt            string
	PostHistoryInstructions string
	CreatorNotes            string
	Creator                 string
	CharacterVersion        string
	Nickname                string
	Tags                    []string

	DepthPrompt   DepthPrompt // extensions.depth_prompt
	Talkativeness float64     // extensions.talkativeness, 0 to 1, default 0.5
	World         string      // extensions.world, the name of the linked book
}

// DepthPrompt is a text of the card that stands in the chat at a depth.
type DepthPrompt struct {
	Prompt string
	Depth  int    // messages from the end; default 4
	Role   string // "system", "user" or "assistant"; default "system"
}

// ParseRoleCard reads a role card. A missing document (nil or null) is a card
// with all defaults and a description that says so.
//
// Error: UnsupportedCard when the document is no JSON object.
func ParseRoleCard(doc json.RawMessage) (RoleCard, error) { return RoleCard{}, nil }

// Greetings returns the first message and the alternate greetings; at least one.
func (c RoleCard) Greetings() []string { return append([]string{c.FirstMes}, c.AlternateGreetings...) }
