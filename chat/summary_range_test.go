package chat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/nodest/nodesttest"
)

// A range that the user names is summarised exactly, whatever summary was active
// before.
func TestARequestedRangeIsSummarisedExactly(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"by a model": nil, "by rule": fault.New(fault.Blocked, "no")} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
			s.InsertExchanges(30)
			wide, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
			s.Must(err)
			path := s.Path()
			if wide.Range.Start != 3 || wide.Range.End != len(path)-4 {
				t.Fatalf("everything that is due: %+v of %d", wide.Range, len(path))
			}
			s.Summariser.Err = fails
			narrow, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{From: path[10].ID, To: path[13].ID})
			s.Must(err)
			if r := narrow.Range; r.Start != 10 || r.End != 13 || narrow.Count != 4 || narrow.BaseID != wide.ID || s.ActiveSummary().ID != narrow.ID {
				t.Errorf("%+v", narrow)
			}
			if fails == nil {
				asked := s.Summariser.Prompts[len(s.Summariser.Prompts)-1]
				s.WantContains(asked, path[10].Text(), path[13].Text())
				s.WantNotContains(asked, "Digest 1", path[9].Text(), path[14].Text())
			} else {
				for line := range strings.Lines(narrow.Text) {
					_, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
					if !strings.Contains(path[10].Text()+path[11].Text()+path[12].Text()+path[13].Text(), said) {
						t.Errorf("%q is not of the range", line)
					}
				}
			}
			sent := s.Request()
			s.WantContains(sent, path[3].Text(), path[9].Text(), path[14].Text())
			s.WantNotContains(sent, path[10].Text(), path[13].Text())

			// A request without a range covers everything that is due.
			s.Summariser.Err = nil
			all, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
			s.Must(err)
			if all.Range.Start != 3 || all.Range.End != len(path)-4 || all.Method != summary.MethodModel {
				t.Errorf("everything again: %+v", all)
			}
			s.WantContains(s.Summariser.Prompts[len(s.Summariser.Prompts)-1], path[3].Text(), path[14].Text())
		})
	}
}

// When a requested range becomes stale, the same range is summarised again once the
// chat is idle.
func TestAStaleRequestedRangeIsRebuiltAsThatRange(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"summaryThreshold":10000}}`)
	s.InsertExchanges(16)
	path := s.Path()
	_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{From: path[10].ID, To: path[13].ID})
	s.Must(err)
	s.EditText(path[12], "It was not so.")
	s.RunIdleJobs()
	if a := s.ActiveSummary(); a == nil || a.Stale || a.Generation != 2 || a.Range.Start != 10 || a.Range.End != 13 || a.Count != 4 {
		t.Fatalf("when idle: %+v", a.Summary)
	}
	s.InsertExchanges(12)
	s.ChatAndSummarise(1)
	if a := s.ActiveSummary(); a.Range.Start != 3 || a.Range.End != len(s.Path())-4 {
		t.Errorf("past the threshold: %+v", a)
	}
}

// The digest of a summary matches the texts of its own conversation, also in a fork
// and an imported archive.
func TestTheDigestOfACopiedSummaryMatchesItsTexts(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	s.InsertExchanges(14)
	s.ChatAndSummarise(1) // the first summary is merged into the second
	digest := func() string {
		r := s.ActiveSummary().Range
		var lines []summary.ChatLine
		for _, m := range s.Path()[r.Start : r.End+1] {
			lines = append(lines, summary.ChatLine{Text: framework.StripBlocks(m.Text())})
		}
		return summary.ExtendDigest("", lines)
	}
	source, path := s.Conversation, s.Path()
	data, _, err := nodesttest.Written(t.Context(), s.Archives.ExportArchive, nodesttest.Ann, s.Conversation.ID)
	s.Must(err)
	moved, err := s.Archives.ImportArchive(t.Context(), s.Call(), s.Conversation.CharacterID, data)
	s.Must(err)
	fork := forkAt(s, path[len(path)-1])
	for name, chat := range map[string]*chat.Conversation{"the source": source, "an import": moved, "a fork": fork} {
		s.Conversation = chat
		stands := func(what string, stale bool) {
			t.Helper()
			a := s.ActiveSummary()
			if a == nil || a.Generation != 2 || a.Stale != stale || (a.Digest == digest()) == stale {
				t.Errorf("%s, %s: %+v, want stale = %v", name, what, a, stale)
			}
		}
		stands("unchanged", false)
		s.EditText(s.Path()[1], fmt.Sprint("Not covered, in ", name))
		s.ChatAndSummarise(1)
		stands("with another beginning", false)
		s.EditText(s.Covered(5), fmt.Sprint("Covered, in ", name))
		stands("edited", true)
		_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), s.Covered(7).ID, "")
		s.Must(err)
		if a := s.ActiveSummary(); a != nil {
			t.Errorf("%s, deleted: %+v", name, a)
		}
	}
}

// A request for a full summary is not answered with a range that was summarised
// meanwhile, even if that range ends at the same message.
func TestARequestedRangeDoesNotAnswerAFullRequest(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
	s.InsertExchanges(30)
	path := s.Path()
	s.Summariser.Meanwhile = func(context.Context) error {
		_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{From: path[10].ID})
		return err
	}
	all, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	s.Must(err)
	if all.Range.Start != 3 || all.Range.End != len(path)-4 || s.ActiveSummary().ID != all.ID || len(s.AllSummaries()) != 2 {
		t.Errorf("everything: %+v, active %+v", all, s.ActiveSummary())
	}
}
