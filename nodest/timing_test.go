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
	"nodest/nodest/nodesttest"
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
	s.T.Helper()
	g := s.Generation(generationID)
	data, err := json.Marshal(chat.WireGeneration(g))
	s.Must(err)
	var w struct{ Timing wireTimes }
	s.Must(json.Unmarshal(data, &w))
	got := w.Timing
	order := slices.Concat([]int64{got.Accepted}, got.Gather)
	for _, source := range got.Sources {
		if len(source.Took) != 2 || source.Took[0] < got.Gather[1] || source.Took[1] > got.Build[0] {
			s.T.Errorf("%s: a source was not asked between gathering and building: %s", g.Kind, data)
		}
		order = append(order, source.Took[1])
	}
	order = append(order, got.Build...)
	for _, at := range []*int64{got.Asked, got.FirstToken, got.LastToken, got.Committed} {
		if at == nil {
			s.T.Fatalf("%s: a time is missing: %s", g.Kind, data)
		}
		order = append(order, *at)
	}
	if len(order) != 9+len(got.Sources) || !slices.IsSorted(order) || order[0] < 0 {
		s.T.Errorf("%s: times %v: %s", g.Kind, order, data)
	}
	if p, err := s.Prompt(s.T.Context(), nodesttest.Ann, g.PromptID); err != nil || p.GenerationID != g.ID || len(p.Prompt.Messages) == 0 {
		s.T.Errorf("%s: prompt %q: %+v, %v", g.Kind, g.PromptID, p, err)
	}
}

// Whatever a model writes, its text names its generation, and that the prompt and the
// times.
func testGenerationsHavePromptsAndTimes(t *testing.T, s *fixture, ready func()) {
	c := s.Chat()
	ready()
	reply := s.SayAndWait(c, "Tell me about the harbour.")
	first := reply.GenerationID
	s.timesOf(first)
	ready()
	again := s.RegenerateReply(reply.ID, "shorter")
	s.timesOf(again.GenerationID)
	ready()
	longer, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(longer.GenerationID)
	s.timesOf(longer.GenerationID)
	ready()
	line, err := s.Impersonate(t.Context(), s.Call(), nodest.GenerateInput{ConversationID: c.ID})
	s.Must(err)
	s.Await(line)
	s.timesOf(line)
	swipes := s.Message(reply.ID).Swipes
	if swipes[0].GenerationID != first || swipes[1].GenerationID != longer.GenerationID {
		t.Errorf("generations %s and %s, swipes %+v", first, longer.GenerationID, swipes)
	}
	s.Engine = s.AnotherEngine() // as after a restart
	for _, id := range []string{first, again.GenerationID, longer.GenerationID, line} {
		s.timesOf(id)
	}
}

func TestGenerationsOfTheOfflineModelHavePromptsAndTimes(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
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
	s.Model.Enqueue(nodesttest.Reply("Never said").Gated())
	running := s.Say(s.Chat(), "Tell me")
	queued := s.Say(s.Chat(), "Me too")
	s.Eventually("the start is stored", func() bool { return s.Generation(running.GenerationID).PromptID != "" })
	s.Crash()
	if times := s.Generation(running.GenerationID).Timing; times == nil || times.Gather == nil || times.Asked == nil || times.LastToken != nil ||
		len(times.Sources) != 1 || times.Sources[0].Name != "slow" {
		t.Errorf("after a crash: %+v", times)
	}
	if times := s.Generation(queued.GenerationID).Timing; times != nil {
		t.Errorf("of one that never began: %+v", times)
	}
	cancelled := s.Say(s.Chat(), "Wait")
	<-asked
	if _, err := s.Cancel(t.Context(), nodesttest.Ann, cancelled.GenerationID); err != nil {
		t.Fatal(err)
	}
	if times := s.Generation(cancelled.GenerationID).Timing; times == nil || times.Gather == nil || len(times.Sources) != 1 || times.LastToken != nil {
		t.Errorf("of one that was cancelled while it waited for a source: %+v", times)
	}
}
