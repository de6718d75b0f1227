package api

import (
	"encoding/json"
	"slices"

	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/internal/op"
	"nodest/nodest"
)

// Shapes that answers of several resources share. Messages, conversations and
// generations have theirs from the engine, which also puts them into events.

// page is a part of a list.
type page struct {
	Items      []any   `json:"items"`
	NextCursor *string `json:"nextCursor"`         // null = the end
	Displays   bool    `json:"displays,omitempty"` // messages of a chat have other texts for readers, which events do not have
}

// whole encodes the items of a list with wire.
func whole[T, W any](items []T, wire func(T) W) page {
	w := page{Items: make([]any, len(items))}
	for i, item := range items {
		w.Items[i] = wire(item)
	}
	return w
}

// Result encodes what an operation returns with wire.
func Result[T, W any](wire func(T) W) func(T, error) (any, error) {
	return func(v T, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return wire(v), nil
	}
}

// List is Result for a list that is always whole: there are never many.
func List[T, W any](wire func(T) W) func([]T, error) (any, error) {
	return Result(func(items []T) page { return whole(items, wire) })
}

// Pages is Result for a page of a list.
func Pages[T, W any](wire func(T) W) func(*op.Page[T], error) (any, error) {
	return Result(func(p *op.Page[T]) page {
		w := whole(p.Items, wire)
		if p.NextCursor != "" {
			w.NextCursor = &p.NextCursor
		}
		return w
	})
}

// pageData is what every list with pages takes.
type pageData struct {
	Cursor string `json:"cursor,omitempty"`
	Limit  limit  `json:"limit,omitempty"`
}

// limit is how many items a client asks for; 0 = as many as usual. The services
// check it: an explicit 0 is -1, which they refuse.
type limit int

// UnmarshalJSON implements json.Unmarshaler.
func (l *limit) UnmarshalJSON(text []byte) error {
	if string(text) == "0" {
		*l = -1
		return nil
	}
	return json.Unmarshal(text, (*int)(l))
}

// Versioned is a document with a version, which REST also sends as its ETag.
type Versioned struct {
	Body    any
	Version int64
}

// MarshalJSON implements json.Marshaler.
func (v Versioned) MarshalJSON() ([]byte, error) { return json.Marshal(v.Body) }

// wirePrompt is a prompt and the account of how it came about.
type wirePrompt struct {
	ID             string              `json:"id,omitempty"`
	ConversationID string              `json:"conversationId,omitempty"`
	GenerationID   string              `json:"generationId,omitempty"`
	Messages       []wirePart          `json:"messages"`
	Entries        []framework.Entry   `json:"entries"`
	Dropped        []framework.Dropped `json:"dropped"`
	Warnings       []framework.Warning `json:"warnings"`
	Tokens         int                 `json:"tokens"`
	Budget         int                 `json:"budget"`
	Reserve        int                 `json:"reserve,omitempty"`
	Tokenizer      string              `json:"tokenizer"`
	Estimate       bool                `json:"estimate"`
	Prefix         framework.Prefix    `json:"prefix"`
	WorldInfo      *worldReport        `json:"worldInfo,omitempty"` // previews in the SillyTavern dialect have it
}

// worldReport is what became of the entries of world books in the SillyTavern dialect.
type worldReport struct {
	Budget    int                 `json:"budget"`
	Tokens    int                 `json:"tokens"`
	AllTokens int                 `json:"allTokens"`
	Overflow  bool                `json:"overflow"`
	Messages  int                 `json:"messages"`
	Entries   []worldinfo.Verdict `json:"entries"`
}

// mostVerdicts bounds the entries that a preview tells about: a book can have 10,000.
const mostVerdicts = 2000

func explainedOf(x *nodest.Explained) *wirePrompt {
	w := promptOf(x.Prompt)
	w.WorldInfo = worldOf(x.World)
	return w
}

// worldOf returns nil for what is not of the SillyTavern dialect.
func worldOf(o *worldinfo.Output) *worldReport {
	if o == nil {
		return nil
	}
	list := slices.Clone(o.Verdicts)
	slices.SortStableFunc(list, func(a, b worldinfo.Verdict) int {
		switch {
		case a.Fires == b.Fires:
			return 0
		case a.Fires:
			return -1
		}
		return 1
	})
	return &worldReport{o.Budget, o.Tokens, o.AllTokens, o.Overflow, o.Searched, OrEmpty(list[:min(len(list), mostVerdicts)])}
}

type wirePart struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	Content string `json:"content"`
}

func promptOf(p *framework.Prompt) *wirePrompt {
	w := &wirePrompt{
		Messages: make([]wirePart, len(p.Messages)), Entries: OrEmpty(p.Entries), Dropped: OrEmpty(p.Dropped),
		Warnings: OrEmpty(p.Warnings), Tokens: p.Tokens, Budget: p.Budget, Reserve: p.Reserve, Tokenizer: p.Tokenizer,
		Estimate: p.Estimate, Prefix: p.Prefix,
	}
	for i, m := range p.Messages {
		w.Messages[i] = wirePart{string(m.Role), m.Name, m.Text}
	}
	return w
}

// OrEmpty makes a missing list an empty one: clients get [], not null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
