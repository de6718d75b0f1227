package card

import (
	"encoding/json"
	"maps"
	"slices"

	"nodest/internal/fault"
)

// RoleCard is the view of a character card, for all versions alike: of a V2 or
// V3 card the fields of "data", of the others the top level.
type RoleCard struct {
	Name        string // default "Unnamed Character"
	Description string
	Personality string
	Scenario    string
	FirstMes    string // default "Hello!"
	MesExample  string

	AlternateGreetings []string // empty ones are left out

	SystemPrompt            string
	PostHistoryInstructions string
	Nickname                string
	Tags                    []string
	CreatorNotes            string // for readers of the card; entries of world books can search it
	Version                 string // character_version

	DepthPrompt DepthPrompt // extensions.depth_prompt
}

// DepthPrompt is a text of the card that is inserted into the chat at a depth.
type DepthPrompt struct {
	Prompt string
	Depth  int    // messages from the end; default 4
	Role   string // "system", "user" or "assistant"; default "system"
}

// ParseRoleCard reads a role card. A missing document (nil or null) is a card
// with all defaults and a description that says so.
//
// Errors: UnsupportedCard when the document is not a JSON object; TooLarge for more than 1,000
// alternate greetings, or more than 2 MiB of greetings.
func ParseRoleCard(doc json.RawMessage) (RoleCard, error) {
	if absent(doc) {
		doc = json.RawMessage(`{"description":"This character has missing information."}`)
	}
	top := fieldsOf(doc)
	if top == nil {
		return RoleCard{}, fault.New(fault.UnsupportedCard, "a role card must be a JSON object").With("path", "roleCard")
	}
	f := cardFields(top)
	extensions := fieldsOf(f["extensions"])
	depthPrompt := fieldsOf(extensions["depth_prompt"])
	first := f.textOr("first_mes", "Hello!")
	alternate, err := greetings("alternate greetings in the card", f.list("alternate_greetings"), len(first))
	if err != nil {
		return RoleCard{}, err
	}
	return RoleCard{
		Name:        f.textOr("name", "Unnamed Character"),
		Description: f.text("description", ""),
		Personality: f.text("personality", ""),
		Scenario:    f.text("scenario", ""),
		FirstMes:    first,
		MesExample:  f.text("mes_example", ""),
		Tags:        f.commaTexts("tags"),

		AlternateGreetings: alternate,

		SystemPrompt:            f.text("system_prompt", ""),
		PostHistoryInstructions: f.text("post_history_instructions", ""),
		Nickname:                f.text("nickname", ""),
		CreatorNotes:            f.text("creator_notes", ""),
		Version:                 f.text("character_version", ""),

		DepthPrompt: DepthPrompt{
			Prompt: depthPrompt.text("prompt", ""),
			Depth:  depthPrompt.int("depth", 4),
			Role:   depthPrompt.role("role"),
		},
	}, nil
}

// cardFields joins the two levels of a card: with a spec those of data win, else
// those of the top level.
func cardFields(top fields) fields {
	data := fieldsOf(top["data"])
	joined := make(fields, len(top)+len(data))
	if absent(top["spec"]) {
		maps.Copy(joined, data)
		maps.Copy(joined, top)
	} else {
		maps.Copy(joined, top)
		maps.Copy(joined, data)
	}
	return joined
}

func nonEmpty(texts []string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// greetings returns the texts of a list that are not empty. size is how many bytes the
// greetings before them have.
func greetings(what string, list []json.RawMessage, size int) ([]string, error) {
	if err := checkCount(what, len(list), maxGreetings); err != nil {
		return nil, err
	}
	texts := nonEmpty(textsOf(list))
	for _, s := range texts {
		size += len(s)
	}
	return texts, checkCount("bytes of greetings", size, maxGreetingBytes)
}

// ExtraGreetings returns the greetings that a file of the NodeST app has beside its card;
// extra are its members that we do not use (Character.Extra).
//
// Error: TooLarge for more than 1,000, or 2 MiB.
func ExtraGreetings(extra json.RawMessage) ([]string, error) {
	return greetings("extra greetings", fieldsOf(extra).list("extraGreetings"), 0)
}

// Greetings returns the first message and the alternate greetings; at least one.
func (c RoleCard) Greetings() []string { return append([]string{c.FirstMes}, c.AlternateGreetings...) }
