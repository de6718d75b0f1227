package server

import (
	"encoding/json"

	"nodest/fault"
	"nodest/framework"
	"nodest/op"
)

// Shapes that answers of several resources share. Messages, conversations and
// generations have theirs from the engine, which also puts them into events.

// wireTime is RFC 3339 in UTC with milliseconds.
type wireTime = op.Time

// page is a part of a list.
type page struct {
	Items      []any   `json:"items"`
	NextCursor *string `json:"nextCursor"` // null = the end
}

// pageOf encodes the items of a page with wire.
func pageOf[T any](p *op.Page[T], wire func(T) any) page {
	w := whole(p.Items, wire)
	if p.NextCursor != "" {
		w.NextCursor = &p.NextCursor
	}
	return w
}

// result encodes what an operation returns with wire.
func result[T any](wire func(T) any) func(T, error) (any, error) {
	return func(v T, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return wire(v), nil
	}
}

// list is result for a list that is always whole: there are never many.
func list[T any](wire func(T) any) func([]T, error) (any, error) {
	return result(func(items []T) any { return whole(items, wire) })
}

// listPage answers a page of a list: 50 items, or as many as are asked for.
func listPage[T any](asked *int, wire func(T) any, read func(limit int) (*op.Page[T], error)) (any, error) {
	limit, err := limitOf(asked, 50, 200)
	if err != nil {
		return nil, err
	}
	p, err := read(limit)
	if err != nil {
		return nil, err
	}
	return pageOf(p, wire), nil
}

// limitOf returns the limit of a list; nil is the usual one.
func limitOf(limit *int, usual, most int) (int, error) {
	if limit == nil {
		return usual, nil
	}
	if *limit < 1 || *limit > most {
		return 0, fault.InvalidField("limit", "range", "must be 1 to %d", most)
	}
	return *limit, nil
}

// versioned is a document with a version, which REST tells in ETag too.
type versioned struct {
	body    any
	version int64
}

func (v versioned) MarshalJSON() ([]byte, error) { return json.Marshal(v.body) }

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
	Tokenizer      string              `json:"tokenizer"`
	Estimate       bool                `json:"estimate"`
	Prefix         framework.Prefix    `json:"prefix"`
}

type wirePart struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	Content string `json:"content"`
}

func wirePromptOf(p *framework.Prompt) any { return promptOf(p) }

func promptOf(p *framework.Prompt) *wirePrompt {
	w := &wirePrompt{
		Messages: make([]wirePart, len(p.Messages)), Entries: orEmpty(p.Entries), Dropped: orEmpty(p.Dropped),
		Warnings: orEmpty(p.Warnings), Tokens: p.Tokens, Budget: p.Budget, Tokenizer: p.Tokenizer,
		Estimate: p.Estimate, Prefix: p.Prefix,
	}
	for i, m := range p.Messages {
		w.Messages[i] = wirePart{string(m.Role), m.Name, m.Text}
	}
	return w
}

// orEmpty makes a missing list an empty one: clients get [], not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
