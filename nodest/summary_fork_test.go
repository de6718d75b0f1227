package nodest_test

import (
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/summary"
)

// inChat calls fn with another conversation.
func inChat[T any](s *summaryFixture, chat *chat.Conversation, fn func() T) T {
	was := s.chat
	defer func() { s.chat = was }()
	s.chat = chat
	return fn()
}

func forkAt(s *summaryFixture, m *chat.Message) *chat.Conversation {
	s.t.Helper()
	fork, err := s.Chats.Fork(s.t.Context(), s.call(), chat.ForkInput{ConversationID: s.chat.ID, MessageID: m.ID})
	s.must(err)
	return fork
}

// describeSummary renders a summary without the ids of the summary and its messages.
func describeSummary(v *chat.SummaryView) string {
	if v == nil {
		return "none"
	}
	r := v.Range
	return fmt.Sprint(v.Text, v.At, r.Start, r.End, r.StartSeq, r.EndSeq, v.Count, v.Generation, v.Method, v.Model, v.Digest, v.Stale, v.Active)
}

// A fork sends the same prompt as its source does at that message, with a summary of
// its own that refers to its own messages.
func TestAForkHasTheSummaryAtItsMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(s *summaryFixture)
		at   int // messages before the head
		want string
	}{
		"at the end":             {want: "Digest 2"},
		"where an older one was": {at: 20, want: "Digest 1"},
		"before the first one":   {at: 50, want: "none"},
		"stale": {do: func(s *summaryFixture) {
			s.edit(s.covered(2), "Something else was said here.")
		}, want: "Digest 2"},
		"by hand": {do: func(s *summaryFixture) {
			_, err := s.Chats.EditSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID, "In my own words: they walked.")
			s.must(err)
		}, want: "In my own words"},
		"by hand and stale": {do: func(s *summaryFixture) {
			_, err := s.Chats.EditSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID, "In my own words: they walked.")
			s.must(err)
			s.edit(s.covered(2), "Something else was said here.")
		}, want: "In my own words"},
		"with a deleted message": {do: func(s *summaryFixture) {
			_, err := s.Chats.DeleteMessage(s.t.Context(), s.call(), s.covered(2).ID, "")
			s.must(err)
		}, want: "none"},
		"deleted": {do: func(s *summaryFixture) {
			s.must(s.Chats.DeleteSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID))
		}, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSummaryFixture(t, "")
			s.insertExchanges(14)
			s.chatAndSummarise(2)
			s.insertExchanges(10)
			s.chatAndSummarise(3)
			if tt.do != nil {
				tt.do(s)
			}
			path := s.path()
			fork := forkAt(s, path[len(path)-1-tt.at])
			_, err := s.Chats.ChooseHead(t.Context(), s.call(), s.chat.ID, path[len(path)-1-tt.at].ID)
			s.must(err)
			want, sent := s.active(), s.prompt()
			got := inChat(s, fork, s.active)
			if !strings.HasPrefix(describeSummary(got), tt.want) || describeSummary(got) != describeSummary(want) || (fork.SummaryID != "") != (got != nil) {
				t.Errorf("active summary of the fork:\n%s\nwant\n%s", describeSummary(got), describeSummary(want))
			}
			if got := inChat(s, fork, s.prompt); got != sent {
				t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
			}
			checkForkSummary(s, fork, got)
		})
	}
}

// checkForkSummary checks that the summary of a fork behaves like that of any chat.
func checkForkSummary(s *summaryFixture, fork *chat.Conversation, got *chat.SummaryView) {
	s.t.Helper()
	calls := len(s.summaryModel.prompts)
	source := s.chat
	s.chat = fork
	defer func() { s.chat = source }()
	s.chatAndSummarise(1)
	if got == nil {
		return
	}
	if len(s.summaryModel.prompts) != calls {
		s.t.Error("the fork paid for a summary again")
	}
	path := s.path()
	if r := got.Range; path[r.Start].ID != r.StartID || path[r.End].ID != r.EndID || got.BaseID != "" {
		s.t.Errorf("range %+v, base %q: not those of the fork", r, got.BaseID)
	}
	data, _, err := written(s.t.Context(), s.Archives.ExportArchive, ann, fork.ID)
	s.must(err)
	want := describeSummary(s.active())
	copied, err := s.Archives.ImportArchive(s.t.Context(), s.call(), fork.CharacterID, data)
	s.must(err)
	if have := describeSummary(inChat(s, copied, s.active)); have != want {
		s.t.Errorf("after a move:\n%s\nwant\n%s", have, want)
	}
	s.runIdleJobs()
	if now := s.active(); now.Stale != (got.Stale && got.Method == summary.MethodUser) {
		s.t.Errorf("when idle: %+v", now)
	}
	s.edit(s.covered(1), "This is only so in the fork.")
	if now := s.active(); now == nil || !now.Stale {
		s.t.Errorf("after an edit: %+v, want a stale one", now)
	}
	_, err = s.Chats.DeleteMessage(s.t.Context(), s.call(), s.covered(1).ID, "")
	s.must(err)
	if s.active() != nil {
		s.t.Error("it covers a message that was deleted")
	}
}

// A long fork has its summary as soon as it is complete; a stale one is rebuilt
// later, as in the source.
func TestALongForkHasTheSummaryAtItsMessage(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	s.insertExchanges(forkStep/2 + 50)
	path := s.path() // the range is copied in two steps
	_, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{From: path[forkStep-50].ID, To: path[forkStep+50].ID})
	s.must(err)
	s.edit(s.covered(2), "Something else was said here.")
	want, sent := describeSummary(s.active()), s.prompt()
	fork := forkAt(s, path[len(path)-1])
	if !fork.Copying {
		t.Fatal("the fork is complete already")
	}
	s.edit(s.covered(2), "And something else again.")
	s.must(s.DeleteConversation(t.Context(), s.call(), s.chat.ID))
	s.must(runFork(s.Engine, claimFork(t, s.db, "p")))
	if got := describeSummary(inChat(s, fork, s.active)); got != want {
		t.Errorf("active summary of the fork:\n%s\nwant\n%s", got, want)
	}
	if got := inChat(s, fork, s.prompt); got != sent {
		t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
	}
	s.chat = fork
	s.runIdleJobs()
	if now := s.active(); now == nil || now.Stale {
		t.Errorf("when idle: %+v", now)
	}
}
