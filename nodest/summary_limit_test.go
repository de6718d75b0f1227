package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/summary"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// In a chat of the app the length counts, elsewhere the context of the model.
func TestACallOfTheAppSummarisesByLength(t *testing.T) {
	t.Parallel()
	for _, byApp := range []bool{false, true} {
		s := nodesttest.NewSummaries(t, "{}") // with 100,000 tokens
		s.InsertExchanges(20)
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: s.Conversation.ID, Text: "And the lamp?", App: byApp})
		s.Must(err)
		s.Await(sent.GenerationID)
		if due := len(s.ClaimJobs()) > 0; due != byApp {
			t.Errorf("by the app: %v, summarised: %v", byApp, due)
		}
	}
}

// The newest messages stay word for word, with half of the tokens from which on a chat is summarised; a user who
// asks for a summary gets one of everything but the last three.
func TestHalfOfTheThresholdStaysWordForWord(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"summaryTokens":2000}}`)
	s.InsertExchanges(20) // about 2,000 tokens
	s.SendExchanges(1)
	s.RunJobs()
	a := s.ActiveSummary()
	if a == nil || a.Range.Start != 3 || a.Range.End < 18 || a.Range.End > 26 {
		t.Fatalf("of 42 messages it covers %+v", a)
	}
	s.EditText(s.Covered(2), "Something else was said here.")
	s.RunIdleJobs()
	if again := s.ActiveSummary(); again == nil || again.Stale || again.Generation != 2 || again.Range.End != a.Range.End {
		t.Errorf("repaired: %+v, want the same messages", again)
	}
	_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	s.Must(err)
	if asked := s.ActiveSummary(); asked.Range.End != len(s.Path())-summary.KeepLast-1 {
		t.Errorf("asked for: %+v", asked.Range)
	}
}

// A length that is more than the model takes does not keep a chat from being summarised in time.
func TestAChatIsSummarisedBeforeItFillsTheContext(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"summaryThreshold":1000000}}`)
	s.Fixture.RealModel.ContextTokens = 3000
	s.InsertExchanges(6)
	s.ChatAndSummarise(14)
	for _, m := range s.Path() {
		if m.GenerationID == "" {
			continue
		}
		p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(m.GenerationID).PromptID)
		s.Must(err)
		for _, d := range p.Prompt.Dropped {
			if d.Reason == framework.DropBudget {
				t.Errorf("%d of %d tokens, dropped: %+v", p.Prompt.Tokens, p.Prompt.Budget, d)
			}
		}
	}
	if s.ActiveSummary() == nil {
		t.Error("there is no summary")
	}
}
