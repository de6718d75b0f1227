package nodest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// testSource is a source that every turn asks.
// Ids of memories.
const (
	memoryOne = "01a22000-0000-7000-8000-000000000001"
	memoryTwo = "01a22000-0000-7000-8000-000000000002"
)

func testSource(name string, find func(context.Context, *nodest.Question) (nodest.Findings, error)) nodest.Source {
	return nodest.Source{
		Name: name, Limit: nodesttest.WaitLimit, Find: find, Warning: framework.Warning{Code: name + "_unavailable"},
		Wanted: func(*nodest.Question) bool { return true },
	}
}

func foundMemory(id, text string) nodest.Findings {
	var f nodest.Findings
	f.Memories = []framework.Memory{{ID: id, Text: text}}
	f.Uses = []memory.Use{{ID: id, Layer: recall.Exchange}}
	return f
}

// Sources run concurrently (each waits here until the other one runs), and their
// findings keep the order of the list.
func TestSourcesRunConcurrentlyAndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	first, second := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}, f nodest.Findings) func(context.Context, *nodest.Question) (nodest.Findings, error) {
		return func(ctx context.Context, _ *nodest.Question) (nodest.Findings, error) {
			close(mine)
			select {
			case <-other:
				return f, nil
			case <-ctx.Done():
				return nodest.Findings{}, ctx.Err()
			}
		}
	}
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{
		testSource("one", meet(first, second, foundMemory(memoryOne, "Ana keeps bees."))),
		testSource("two", meet(second, first, foundMemory(memoryTwo, "Ben keeps goats."))),
	}})
	reply := s.SayAndWait(s.Chat(), "Who keeps what?")
	memories, warnings, _ := s.ContextOf(reply.GenerationID)
	if len(memories) != 2 || len(warnings) != 0 {
		t.Errorf("memories %v, warnings %v; want two and none", memories, warnings)
	}
	prompt := s.Model.LastRequest()
	if a, b := strings.Index(prompt, "bees"), strings.Index(prompt, "goats"); a < 0 || b < a {
		t.Errorf("the prompt has them at %d and %d", a, b)
	}
}

// A source that fails or times out costs only its own findings.
func TestATurnGoesOnWithoutASource(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(context.Context) (nodest.Findings, error){
		"it fails":          func(context.Context) (nodest.Findings, error) { return nodest.Findings{}, errors.New("down") },
		"it takes too long": func(ctx context.Context) (nodest.Findings, error) { <-ctx.Done(); return nodest.Findings{}, ctx.Err() },
		"it panics":         func(context.Context) (nodest.Findings, error) { panic("nil map") },
		"it has found a part": func(context.Context) (nodest.Findings, error) {
			return foundMemory(memoryTwo, "Part."), errors.New("cut")
		},
		"it is not wanted now": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bad := testSource("web", func(ctx context.Context, _ *nodest.Question) (nodest.Findings, error) { return find(ctx) })
			bad.Limit = 10 * time.Millisecond
			if find == nil {
				bad.Wanted = func(*nodest.Question) bool { return false }
			}
			good := testSource("memory", func(context.Context, *nodest.Question) (nodest.Findings, error) {
				return foundMemory(memoryOne, "Ana keeps bees."), nil
			})
			s := newFixture(t, nodest.Options{Sources: []nodest.Source{bad, good}})
			reply := s.SayAndWait(s.Chat(), "Who keeps bees?")
			if reply.Status != chat.StatusComplete {
				t.Errorf("the reply is %s: %v", reply.Status, reply.Error)
			}
			memories, warnings, _ := s.ContextOf(reply.GenerationID)
			want := map[bool][]string{true: {}, false: {"web_unavailable"}}[find == nil]
			if len(memories) == 0 || !slices.Equal(warnings, want) {
				t.Errorf("memories %v, warnings %v; want warnings %v", memories, warnings, want)
			}
		})
	}
}

// A source receives the user, the text of the turn, what was said before it, and the
// time.
func TestASourceIsAskedAboutTheTurn(t *testing.T) {
	t.Parallel()
	var got nodest.Question
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{
		testSource("web", func(_ context.Context, q *nodest.Question) (nodest.Findings, error) {
			got = *q
			return nodest.Findings{}, nil
		}),
	}})
	c := s.Chat()
	s.SayAndWait(c, "Good morning.")
	reply := s.SayAndWait(c, "Who keeps bees?")
	switch {
	case got.UserID != nodesttest.Ann, got.Setup.Conversation.ID != c.ID, got.Here.HeadID != reply.ParentID, got.Now.IsZero():
		t.Errorf("asked %+v", got)
	case got.Text != "Who keeps bees?", !slices.Equal(got.Before, []string{"Good morning.", "Fine."}):
		t.Errorf("asked %q behind %q", got.Text, got.Before)
	}
	if newest := got.Newest(2); !slices.Equal(newest, []string{"Who keeps bees?", "Fine."}) {
		t.Errorf("the newest messages are %q", newest)
	}
	s.Model.Enqueue(nodesttest.Reply("Ana does."))
	s.RegenerateReply(reply.ID, "")
	s.RegenerateReply(reply.ID, "")
	if newest := got.Newest(9); !slices.Equal(newest, []string{"Who keeps bees?", "Fine.", "Good morning.", "Hello, traveller."}) {
		t.Errorf("without the reply that is written again they are %q", newest)
	}
	s.preview(c, "And goats?")
	if newest := got.Newest(2); !slices.Equal(newest, []string{"And goats?", "Fine."}) {
		t.Errorf("in a preview they are %q", newest)
	}
}

// A source is told of a reply when it is stored, so that it can prepare for the next question.
func TestASourceIsToldWhatIsStored(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	source := testSource("memory", func(context.Context, *nodest.Question) (nodest.Findings, error) { return nodest.Findings{}, nil })
	source.Stored = func(userID string, s *chat.Setup) { told <- userID + " " + s.Conversation.ID }
	s := newFixture(t, nodest.Options{Sources: []nodest.Source{source}})
	c := s.Chat()
	s.SayAndWait(c, "Hello")
	if got := <-told; got != nodesttest.Ann+" "+c.ID {
		t.Errorf("the source was told of %q", got)
	}
}
