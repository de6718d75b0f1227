package nodest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/nodest"
	"nodest/nodest/tools"
	"nodest/summary"
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
			s := newSummaryFixture(t, "")
			s.opts.SummaryWait = time.Minute
			if tt.slow {
				s.opts.SummaryWait = time.Millisecond
				s.summaryModel.meanwhile = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			}
			s.Engine = s.engine()
			s.insertExchanges(16)
			s.fixture.realModel.ContextTokens = 2000
			s.sendExchanges(1)
			p, err := s.Prompt(t.Context(), ann, s.generation(s.path()[34].GenerationID).PromptID)
			s.must(err)
			sent := promptText(p.Prompt.Messages)
			s.wantContains(sent, "CONVERSATION SUMMARY")
			if tt.slow == strings.Contains(sent, "Digest 1") {
				t.Errorf("the summary is not %s:\n%s", tt.want, sent)
			}
			if tt.slow == (s.active() != nil) {
				t.Errorf("active summary: %+v", s.active())
			}
			s.summaryModel.clearMeanwhile() // where the wait was over before the model was asked
			s.runJobs()
			if a := s.active(); a == nil || a.Method != summary.MethodModel || len(s.summaries()) != 1 {
				t.Errorf("after that: %+v", s.summaries())
			}
		})
	}
}

// A very long chat without a summary, such as an imported one, is not read whole for a reply.
func TestAReplyDoesNotWaitForTheSummaryOfAVeryLongChat(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	s.opts.SummaryWait = time.Minute
	s.Engine = s.engine()
	s.insertExchanges(1010)
	s.fixture.realModel.ContextTokens = 2000
	for i, summarised := range []bool{false, true} {
		s.sendExchanges(1)
		if i == 0 && len(s.summaryModel.prompts) > 0 {
			t.Error("the model was asked for a summary before the reply")
		}
		path := s.path()
		p, err := s.Prompt(t.Context(), ann, s.generation(path[len(path)-1].GenerationID).PromptID)
		s.must(err)
		if strings.Contains(promptText(p.Prompt.Messages), "CONVERSATION SUMMARY") != summarised {
			t.Errorf("reply %d: with a summary: %v", i, !summarised)
		}
		if i == 0 && s.runJobs() != 1 {
			t.Error("no job summarises the chat afterwards")
		}
	}
}

// What documents and tools take from the chat counts too.
func TestAReplyWaitsForASummaryIfDocumentsLeaveNoRoom(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	l := library{kit: nodest.Toolkit{Block: func(*tools.Sheet) []framework.KnowledgePart {
		return []framework.KnowledgePart{{Text: strings.Repeat("All about the harbour. ", 100), Fixed: true}}
	}}}
	s.opts.Tools, s.opts.SummaryWait = []nodest.Toolbox{l.box()}, time.Minute
	s.Engine = s.engine()
	s.insertExchanges(16)
	s.fixture.realModel.ContextTokens = 3000
	s.sendExchanges(1)
	p, err := s.Prompt(t.Context(), ann, s.generation(s.path()[34].GenerationID).PromptID)
	s.must(err)
	s.wantContains(promptText(p.Prompt.Messages), "CONVERSATION SUMMARY", "Digest 1", "All about the harbour.", "Search the library", "Line 17")
}

// The last three messages are never covered by a summary. The new message counts
// among them, also after the branch has become shorter than it was when it was
// summarised.
func TestAPreviewCountsTheNewMessageAmongTheLastThree(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, `{"memory":{"enabled":false}}`)
	s.insertExchanges(20)
	made, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
	s.must(err)
	path := s.path()
	shorter := path[made.Range.End+1]
	_, err = s.Chats.ChooseHead(t.Context(), s.call(), s.chat.ID, shorter.ID)
	s.must(err)
	s.wantContains(s.prompt(), path[made.Range.End].Text(), path[made.Range.End-1].Text())

	preview, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: s.chat.ID, Text: "And the lamp?"})
	s.must(err)
	s.wantNotContains(promptText(preview.Messages), path[made.Range.End-1].Text())
	s.wantContains(promptText(preview.Messages), path[made.Range.End].Text())
	begun := s.wait(s.send(s.chat, "And the lamp?").GenerationID)
	sent, err := s.Prompt(t.Context(), ann, begun.PromptID)
	s.must(err)
	if got := promptText(sent.Prompt.Messages); got != promptText(preview.Messages) {
		t.Errorf("sent:\n%s\npreviewed:\n%s", got, promptText(preview.Messages))
	}
}
