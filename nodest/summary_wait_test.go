package nodest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/summary"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/nodest/tools"
)

// A chat that does not fit the context is summarised before the reply; if the model
// is too slow, a summary by rule is used.
func TestAReplyWaitsForASummaryThatItNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slow bool
		want string
	}{
		"the model is quick": {false, "Digest 1"}, "the model is slow": {true, "\nAnn: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewSummaries(t, "")
			s.Options.SummaryWait = time.Minute
			if tt.slow {
				s.Options.SummaryWait = time.Millisecond
				s.Summariser.Meanwhile = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			}
			s.Engine = s.AnotherEngine()
			s.InsertExchanges(16)
			s.Fixture.RealModel.ContextTokens = 2000
			s.SendExchanges(1)
			p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(s.Path()[34].GenerationID).PromptID)
			s.Must(err)
			sent := nodesttest.PromptText(p.Prompt.Messages)
			s.WantContains(sent, "CONVERSATION SUMMARY")
			if tt.slow == strings.Contains(sent, "Digest 1") {
				t.Errorf("the summary is not %s:\n%s", tt.want, sent)
			}
			if tt.slow == (s.ActiveSummary() != nil) {
				t.Errorf("active summary: %+v", s.ActiveSummary())
			}
			s.Summariser.ClearMeanwhile() // where the wait was over before the model was asked
			s.RunJobs()
			if a := s.ActiveSummary(); a == nil || a.Method != summary.MethodModel || len(s.AllSummaries()) != 1 {
				t.Errorf("after that: %+v", s.AllSummaries())
			}
		})
	}
}

// A very long chat without a summary, such as an imported one, is not read whole for a reply.
func TestAReplyDoesNotWaitForTheSummaryOfAVeryLongChat(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	s.Options.SummaryWait = time.Minute
	s.Engine = s.AnotherEngine()
	s.InsertExchanges(1010)
	s.Fixture.RealModel.ContextTokens = 2000
	for i, summarised := range []bool{false, true} {
		s.SendExchanges(1)
		if i == 0 && len(s.Summariser.Prompts) > 0 {
			t.Error("the model was asked for a summary before the reply")
		}
		path := s.Path()
		p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(path[len(path)-1].GenerationID).PromptID)
		s.Must(err)
		if strings.Contains(nodesttest.PromptText(p.Prompt.Messages), "CONVERSATION SUMMARY") != summarised {
			t.Errorf("reply %d: with a summary: %v", i, !summarised)
		}
		if i == 0 && s.RunJobs() != 1 {
			t.Error("no job summarises the chat afterwards")
		}
	}
}

// The room that documents and tools take from the chat counts too.
func TestAReplyWaitsForASummaryIfDocumentsLeaveNoRoom(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	l := library{kit: nodest.Toolkit{Block: func(*tools.Sheet) []framework.KnowledgePart {
		return []framework.KnowledgePart{{Text: strings.Repeat("All about the harbour. ", 100), Fixed: true}}
	}}}
	s.Options.Tools, s.Options.SummaryWait = []nodest.Toolbox{l.box()}, time.Minute
	s.Engine = s.AnotherEngine()
	s.InsertExchanges(16)
	s.Fixture.RealModel.ContextTokens = 3000
	s.SendExchanges(1)
	p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(s.Path()[34].GenerationID).PromptID)
	s.Must(err)
	s.WantContains(nodesttest.PromptText(p.Prompt.Messages), "CONVERSATION SUMMARY", "Digest 1", "All about the harbour.", "Search the library", "Line 17")
}

// The last three messages are never covered by a summary. The new message counts
// among them, also after the branch has become shorter than it was when it was
// summarised.
func TestAPreviewCountsTheNewMessageAmongTheLastThree(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
	s.InsertExchanges(20)
	made, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	s.Must(err)
	path := s.Path()
	shorter := path[made.Range.End+1]
	_, err = s.Chats.ChooseHead(t.Context(), s.Call(), s.Conversation.ID, shorter.ID)
	s.Must(err)
	s.WantContains(s.Request(), path[made.Range.End].Text(), path[made.Range.End-1].Text())

	preview, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: s.Conversation.ID, Text: "And the lamp?"})
	s.Must(err)
	s.WantNotContains(nodesttest.PromptText(preview.Messages), path[made.Range.End-1].Text())
	s.WantContains(nodesttest.PromptText(preview.Messages), path[made.Range.End].Text())
	begun := s.Await(s.Say(s.Conversation, "And the lamp?").GenerationID)
	sent, err := s.Prompt(t.Context(), nodesttest.Ann, begun.PromptID)
	s.Must(err)
	if got := nodesttest.PromptText(sent.Prompt.Messages); got != nodesttest.PromptText(preview.Messages) {
		t.Errorf("sent:\n%s\npreviewed:\n%s", got, nodesttest.PromptText(preview.Messages))
	}
}
