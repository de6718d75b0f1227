package tools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/llm"
)

// newRun is a Run with a tool find. Every code point is a token.
func newRun(room int, limits Limits, call func(ctx context.Context, c Call) (*Answer, error)) *Run {
	return New(Options{
		Tools: []Tool{{
			Tool:  llm.Tool{Name: "find", Parameters: json.RawMessage(`{"type":"object","required":["query"],"properties":{"query":{"type":"string"}}}`)},
			Query: "query", Call: call,
		}},
		Limits: limits.WithDefaults(), Room: room, Count: utf8.RuneCountInString,
		Numbers: new(Numbers), Trace: new(chat.ToolTrace), Publish: func(Event) {}, Log: slog.New(slog.DiscardHandler),
	})
}

func asking(queries ...string) llm.Message {
	said := llm.Message{Role: llm.Assistant}
	for _, q := range queries {
		said.Calls = append(said.Calls, llm.ToolCall{ID: "c", Name: "find", Arguments: `{"query":"` + q + `"}`})
	}
	return said
}

// size is the number of tokens of everything behind the prompt, without overhead.
func (r *Run) size() (n int) {
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, m := range r.Messages() {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
		if m.Echo != nil {
			n += len(m.Echo.Raw)
		}
		if m.Result != nil {
			n += utf8.RuneCountInString(m.Result.Text)
		}
	}
	return n
}

// The definitions of the tools, what the model said and what goes back as it was sent take
// room from the results.
func TestEverythingBehindThePromptFitsItsRoom(t *testing.T) {
	r := newRun(3000, Limits{}, func(context.Context, Call) (*Answer, error) {
		return &Answer{Text: func(s *Sheet) string { return strings.Repeat("港", s.Room) }}, nil
	})
	said := asking("harbour")
	said.Echo = &llm.Echo{Raw: json.RawMessage(`{"signature":"` + strings.Repeat("x", 1500) + `"}`)}
	r.Answer(t.Context(), said)
	note := "\n<note>" + r.words.write + "</note>"
	if n := r.size() - len(note); n > 3000 || n < 2600 || !r.Closed() {
		t.Errorf("%d tokens in a room of 3,000, closed %t", n, r.Closed())
	}
	if r.Tokens() < r.size()-len(note)-len(said.Calls[0].Arguments)-len("find") {
		t.Errorf("%d tokens are counted, there are %d", r.Tokens(), r.size())
	}
}

// A search that failed may be made again, but not without end.
func TestSearchesThatFailCount(t *testing.T) {
	made := 0
	r := newRun(10_000, Limits{Calls: 3, AtOnce: 1}, func(context.Context, Call) (*Answer, error) {
		made++
		return nil, errors.New("down")
	})
	for range 3 {
		r.Answer(t.Context(), asking("harbour"))
	}
	if made != 3 || !r.Closed() {
		t.Errorf("%d searches were made, closed %t", made, r.Closed())
	}
}

func TestASourceKeepsItsNumberAndGainsPlaces(t *testing.T) {
	var n Numbers
	tea, rain := cite.Source{Kind: cite.KindFile, FileID: "tea"}, cite.Source{Kind: cite.KindFile, FileID: "rain"}
	block, answer := n.Sheet(100, InBlock), n.Sheet(100, InAnswer)
	if a, b, c := block.Ref(tea), answer.Ref(rain), answer.Ref(tea); a != 1 || b != 2 || c != 1 || n.Len() != 2 {
		t.Errorf("the numbers are %d, %d, %d of %d", a, b, c, n.Len())
	}
	var places []Place
	for _, p := range n.All() {
		places = append(places, p)
	}
	if !slices.Equal(places, []Place{InBlock | InAnswer, InAnswer}) {
		t.Errorf("the places are %v", places)
	}
}

// A search that is asked for twice in one answer and fails has failed twice: it repeats nothing.
func TestAFailedSearchIsNotRepeatedByItsTwin(t *testing.T) {
	r := newRun(30_000, Limits{Calls: 9}, func(context.Context, Call) (*Answer, error) { return nil, errors.New("the disk is gone") })
	for range 2 {
		r.Answer(t.Context(), asking("harbour", "harbour"))
		for _, m := range r.Messages() {
			if m.Result != nil && !strings.HasPrefix(m.Result.Text, "<error>") {
				t.Errorf("the model is told %q", m.Result.Text)
			}
		}
	}
	if r.Closed() {
		t.Error("the model may search no more")
	}
}
