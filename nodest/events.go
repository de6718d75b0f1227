package nodest

import (
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
)

// The data that the events of a generation carry besides the ids.

type blockData struct {
	Part  string `json:"part"`
	State string `json:"state"` // open or close
}

type stageData struct {
	Stage string `json:"stage"`
	Ms    int64  `json:"ms"` // since the generation began
}

type genStarted struct {
	Kind     string    `json:"kind"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Offline  bool      `json:"offline,omitempty"` // the demo model without a provider answers
	PromptID string    `json:"promptId"`
	Budget   genBudget `json:"budget"`
}

type genBudget struct {
	Context int `json:"context"` // tokens of request and reply together
	Used    int `json:"used"`    // by the request
	Reserve int `json:"reserve"` // kept for the reply
}

func startedData(g *chat.Generation, t *turn) genStarted {
	o := &t.input.Options
	return genStarted{
		Kind: g.Kind, Provider: t.setup.model.Provider, Model: g.Model, Offline: t.setup.model.Offline, PromptID: g.PromptID,
		Budget: genBudget{Context: o.Context, Used: t.prompt.Tokens, Reserve: o.Reserve},
	}
}

// ContextData is what gen.context carries.
type ContextData struct {
	Memories []string   `json:"memories"`
	Profile  []string   `json:"profile"` // ids of its facts
	Lore     []loreItem `json:"lore"`
	Dropped  []dropItem `json:"dropped"` // by the budget; entries dropped for other reasons are in the stored prompt
	Search   []Search   `json:"search"`
	Warnings []string   `json:"warnings"` // codes
}

type loreItem struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Why  string `json:"why"`
	Key  string `json:"key,omitempty"` // that fired
}

type dropItem struct {
	Source framework.Source `json:"source"`
	ID     string           `json:"id,omitempty"`
	Name   string           `json:"name,omitempty"`
	Reason string           `json:"reason"`
	Count  int              `json:"count,omitempty"` // messages of a run of history; absent where they were not counted
}

// contextItems bounds each list of gen.context; the stored prompt has the full lists.
const contextItems = 50

func contextData(t *turn) ContextData {
	c := ContextData{Memories: []string{}, Profile: []string{}, Lore: []loreItem{}, Dropped: []dropItem{}, Search: append([]Search{}, t.found.search...), Warnings: []string{}}
	for _, en := range t.prompt.Entries {
		switch en.Source {
		case framework.SourceBook, framework.SourceGlobalBook:
			c.Lore = appendUpTo(c.Lore, loreItem{en.ID, en.Name, en.Why, en.Key})
		case framework.SourceMemory:
			c.Memories = appendUpTo(c.Memories, en.ID)
		case framework.SourceProfile:
			if en.ID != "" {
				c.Profile = appendUpTo(c.Profile, en.ID)
			}
		}
	}
	for _, d := range t.prompt.Dropped {
		if d.Reason == framework.DropBudget {
			c.Dropped = appendUpTo(c.Dropped, dropItem{d.Source, d.ID, d.Name, d.Reason, d.Count})
		}
	}
	seen := map[string]bool{}
	for _, w := range t.prompt.Warnings {
		if !seen[w.Code] {
			seen[w.Code] = true
			c.Warnings = appendUpTo(c.Warnings, w.Code)
		}
	}
	return c
}

func appendUpTo[T any](list []T, v T) []T {
	if len(list) == contextItems {
		return list
	}
	return append(list, v)
}

type genDone struct {
	Status string     `json:"status"`
	Finish string     `json:"finish"`
	Usage  *llm.Usage `json:"usage,omitempty"`
	Ms     genTimes   `json:"ms"`
}

type genFailed struct {
	Error *op.Failure `json:"error"`
}

// genTimes are milliseconds since the generation was requested, for the steps that it
// reached.
type genTimes struct {
	Build      int64 `json:"build"` // the building alone
	FirstToken int64 `json:"firstToken"`
	Total      int64 `json:"total"`
}

func timesOf(g *chat.Generation) genTimes {
	var times genTimes
	if t := g.Timing; t != nil && t.Build != nil {
		times.Build = t.Build[1] - t.Gather[0]
	}
	if g.FirstTokenAt != nil {
		times.FirstToken = g.FirstTokenAt.Sub(g.CreatedAt).Milliseconds()
	}
	if g.EndedAt != nil {
		times.Total = g.EndedAt.Sub(g.CreatedAt).Milliseconds()
	}
	return times
}

func generationEvent(userID, kind, by string, g *chat.Generation, data any) *stream.Event {
	ev := op.Event(userID, kind, by, data)
	ev.ConversationID, ev.MessageID, ev.GenerationID = g.ConversationID, g.MessageID, g.ID
	return ev
}
