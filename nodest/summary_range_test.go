package nodest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/fault"
	"nodest/framework"
	"nodest/summary"
)

// A range that the user names is summarised exactly, whatever summary was active
// before.
func TestARequestedRangeIsSummarisedExactly(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"by a model": nil, "by rule": fault.New(fault.Blocked, "no")} {
		t.Run(name, func(t *testing.T) {
			s := newSummaryFixture(t, `{"memory":{"enabled":false}}`)
			s.insertExchanges(30)
			wide, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
			s.must(err)
			path := s.path()
			if wide.Range.Start != 3 || wide.Range.End != len(path)-4 {
				t.Fatalf("everything that is due: %+v of %d", wide.Range, len(path))
			}
			s.summaryModel.err = fails
			narrow, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{From: path[10].ID, To: path[13].ID})
			s.must(err)
			if r := narrow.Range; r.Start != 10 || r.End != 13 || narrow.Count != 4 || narrow.BaseID != wide.ID || s.active().ID != narrow.ID {
				t.Errorf("%+v", narrow)
			}
			if fails == nil {
				asked := s.summaryModel.prompts[len(s.summaryModel.prompts)-1]
				s.wantContains(asked, path[10].Text(), path[13].Text())
				s.wantNotContains(asked, "Digest 1", path[9].Text(), path[14].Text())
			} else {
				for line := range strings.Lines(narrow.Text) {
					_, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
					if !strings.Contains(path[10].Text()+path[11].Text()+path[12].Text()+path[13].Text(), said) {
						t.Errorf("%q is not of the range", line)
					}
				}
			}
			sent := s.prompt()
			s.wantContains(sent, path[3].Text(), path[9].Text(), path[14].Text())
			s.wantNotContains(sent, path[10].Text(), path[13].Text())

			// A request without a range covers everything that is due.
			s.summaryModel.err = nil
			all, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
			s.must(err)
			if all.Range.Start != 3 || all.Range.End != len(path)-4 || all.Method != summary.MethodModel {
				t.Errorf("everything again: %+v", all)
			}
			s.wantContains(s.summaryModel.prompts[len(s.summaryModel.prompts)-1], path[3].Text(), path[14].Text())
		})
	}
}

// When a requested range becomes stale, the same range is summarised again once the
// chat is idle.
func TestAStaleRequestedRangeIsRebuiltAsThatRange(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, `{"memory":{"summaryThreshold":10000}}`)
	s.insertExchanges(16)
	path := s.path()
	_, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{From: path[10].ID, To: path[13].ID})
	s.must(err)
	s.edit(path[12], "It was not so.")
	s.runIdleJobs()
	if a := s.active(); a == nil || a.Stale || a.Generation != 2 || a.Range.Start != 10 || a.Range.End != 13 || a.Count != 4 {
		t.Fatalf("when idle: %+v", a.Summary)
	}
	s.insertExchanges(12)
	s.chatAndSummarise(1)
	if a := s.active(); a.Range.Start != 3 || a.Range.End != len(s.path())-4 {
		t.Errorf("past the threshold: %+v", a)
	}
}

// The digest of a summary matches the texts of its own conversation, also in a fork
// and an imported archive.
func TestTheDigestOfACopiedSummaryMatchesItsTexts(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	s.insertExchanges(14)
	s.chatAndSummarise(1) // the first summary is merged into the second
	digest := func() string {
		r := s.active().Range
		var lines []summary.ChatLine
		for _, m := range s.path()[r.Start : r.End+1] {
			lines = append(lines, summary.ChatLine{Text: framework.StripBlocks(m.Text())})
		}
		return summary.ExtendDigest("", lines)
	}
	source, path := s.chat, s.path()
	data, _, err := written(t.Context(), s.Archives.ExportArchive, ann, s.chat.ID)
	s.must(err)
	moved, err := s.Archives.ImportArchive(t.Context(), s.call(), s.chat.CharacterID, data)
	s.must(err)
	fork := forkAt(s, path[len(path)-1])
	for name, chat := range map[string]*chat.Conversation{"the source": source, "an import": moved, "a fork": fork} {
		s.chat = chat
		stands := func(what string, stale bool) {
			t.Helper()
			a := s.active()
			if a == nil || a.Generation != 2 || a.Stale != stale || (a.Digest == digest()) == stale {
				t.Errorf("%s, %s: %+v, want stale = %v", name, what, a, stale)
			}
		}
		stands("unchanged", false)
		s.edit(s.path()[1], fmt.Sprint("Not covered, in ", name))
		s.chatAndSummarise(1)
		stands("with another beginning", false)
		s.edit(s.covered(5), fmt.Sprint("Covered, in ", name))
		stands("edited", true)
		_, err := s.Chats.DeleteMessage(t.Context(), s.call(), s.covered(7).ID, "")
		s.must(err)
		if a := s.active(); a != nil {
			t.Errorf("%s, deleted: %+v", name, a)
		}
	}
}

// A request for a full summary is not answered with a range that was summarised
// meanwhile, even if that range ends at the same message.
func TestARequestedRangeDoesNotAnswerAFullRequest(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, `{"memory":{"enabled":false}}`)
	s.insertExchanges(30)
	path := s.path()
	s.summaryModel.meanwhile = func(context.Context) error {
		_, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{From: path[10].ID})
		return err
	}
	all, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
	s.must(err)
	if all.Range.Start != 3 || all.Range.End != len(path)-4 || s.active().ID != all.ID || len(s.summaries()) != 2 {
		t.Errorf("everything: %+v, active %+v", all, s.active())
	}
}
