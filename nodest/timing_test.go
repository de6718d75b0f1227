package nodest_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"nodest/chat"
	"nodest/llm/llmtest"
	"nodest/llm/offline"
	"nodest/nodest"
)

// wireTimes is what clients see of the timing of a generation.
type wireTimes struct {
	Accepted                                int64
	Gather, Build                           []int64
	Sources                                 []struct{ Took []int64 }
	Asked, FirstToken, LastToken, Committed *int64
}

// timesOf returns the times of a stored generation that wrote a text, in their order, and
// checks that it has all of them.
func (s *fixture) timesOf(generationID string) {
	s.t.Helper()
	g := s.generation(generationID)
	data, err := json.Marshal(chat.WireGeneration(g))
	s.must(err)
	var w struct{ Timing wireTimes }
	s.must(json.Unmarshal(data, &w))
	got := w.Timing
	order := slices.Concat([]int64{got.Accepted}, got.Gather)
	for _, source := range got.Sources {
		if len(source.Took) != 2 || source.Took[0] < got.Gather[1] || source.Took[1] > got.Build[0] {
			s.t.Errorf("%s: a source was not asked between gathering and building: %s", g.Kind, data)
		}
		order = append(order, source.Took[1])
	}
	order = append(order, got.Build...)
	for _, at := range []*int64{got.Asked, got.FirstToken, got.LastToken, got.Committed} {
		if at == nil {
			s.t.Fatalf("%s: a time is missing: %s", g.Kind, data)
		}
		order = append(order, *at)
	}
	if len(order) != 9+len(got.Sources) || !slices.IsSorted(order) || order[0] < 0 {
		s.t.Errorf("%s: times %v: %s", g.Kind, order, data)
	}
	if p, err := s.Prompt(s.t.Context(), ann, g.PromptID); err != nil || p.GenerationID != g.ID || len(p.Prompt.Messages) == 0 {
		s.t.Errorf("%s: prompt %q: %+v, %v", g.Kind, g.PromptID, p, err)
	}
}

// Whatever a model writes, its text names its generation, and that the prompt and the
// times.
func testGenerationsHavePromptsAndTimes(t *testing.T, s *fixture, ready func()) {
	c := s.chat()
	ready()
	reply := s.sendAndWait(c, "Tell me about the harbour.")
	first := reply.GenerationID
	s.timesOf(first)
	ready()
	again := s.regenerate(reply.ID, "shorter")
	s.timesOf(again.GenerationID)
	ready()
	longer, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.must(err)
	s.wait(longer.GenerationID)
	s.timesOf(longer.GenerationID)
	ready()
	line, err := s.Impersonate(t.Context(), s.call(), nodest.GenerateInput{ConversationID: c.ID})
	s.must(err)
	s.wait(line)
	s.timesOf(line)
	swipes := s.message(reply.ID).Swipes
	if swipes[0].GenerationID != first || swipes[1].GenerationID != longer.GenerationID {
		t.Errorf("generations %s and %s, swipes %+v", first, longer.GenerationID, swipes)
	}
	s.Engine = s.engine() // as after a restart
	for _, id := range []string{first, again.GenerationID, longer.GenerationID, line} {
		s.timesOf(id)
	}
}

func TestGenerationsOfTheOfflineModelHavePromptsAndTimes(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	s.realModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	testGenerationsHavePromptsAndTimes(t, s, func() {})
}

func TestGenerationsOfAProviderHavePromptsAndTimes(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	testGenerationsHavePromptsAndTimes(t, s, func() { fake.Script(llmtest.Say("Well", " again.")) })
}

// A generation that did not come to its end has the times of the steps that it took.
func TestTimesOfUnfinishedGenerations(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := newFixture(t, nodest.Options{GenerationsPerUser: 1, Sources: []nodest.Source{
		testSource("slow", func(ctx context.Context, q *nodest.Question) (nodest.Findings, error) {
			if q.Text == "Wait" {
				close(asked)
				<-ctx.Done()
			}
			return nodest.Findings{}, ctx.Err()
		}),
	}})
	s.model.enqueue(replyWith("Never said").gated())
	running := s.send(s.chat(), "Tell me")
	queued := s.send(s.chat(), "Me too")
	s.eventually("the start is stored", func() bool { return s.generation(running.GenerationID).PromptID != "" })
	s.crash()
	if times := s.generation(running.GenerationID).Timing; times == nil || times.Gather == nil || times.Asked == nil || times.LastToken != nil ||
		len(times.Sources) != 1 || times.Sources[0].Name != "slow" {
		t.Errorf("after a crash: %+v", times)
	}
	if times := s.generation(queued.GenerationID).Timing; times != nil {
		t.Errorf("of one that never began: %+v", times)
	}
	cancelled := s.send(s.chat(), "Wait")
	<-asked
	if _, err := s.Cancel(t.Context(), ann, cancelled.GenerationID); err != nil {
		t.Fatal(err)
	}
	if times := s.generation(cancelled.GenerationID).Timing; times == nil || times.Gather == nil || len(times.Sources) != 1 || times.LastToken != nil {
		t.Errorf("of one that was cancelled while it waited for a source: %+v", times)
	}
}
