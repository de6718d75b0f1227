package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/summary"
	"nodest/nodest/nodesttest"
)

// inChat calls fn with another conversation.
func inChat[T any](s *nodesttest.Summaries, chat *chat.Conversation, fn func() T) T {
	was := s.Conversation
	defer func() { s.Conversation = was }()
	s.Conversation = chat
	return fn()
}

func forkAt(s *nodesttest.Summaries, m *chat.Message) *chat.Conversation {
	s.T.Helper()
	fork, err := s.Chats.Fork(s.T.Context(), s.Call(), chat.ForkInput{ConversationID: s.Conversation.ID, MessageID: m.ID})
	s.Must(err)
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
		do   func(s *nodesttest.Summaries)
		at   int // messages before the head
		want string
	}{
		"at the end":             {want: "Digest 2"},
		"where an older one was": {at: 20, want: "Digest 1"},
		"before the first one":   {at: 50, want: "none"},
		"stale": {do: func(s *nodesttest.Summaries) {
			s.EditText(s.Covered(2), "Something else was said here.")
		}, want: "Digest 2"},
		"by hand": {do: func(s *nodesttest.Summaries) {
			_, err := s.Chats.EditSummary(s.T.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID, "In my own words: they walked.")
			s.Must(err)
		}, want: "In my own words"},
		"by hand and stale": {do: func(s *nodesttest.Summaries) {
			_, err := s.Chats.EditSummary(s.T.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID, "In my own words: they walked.")
			s.Must(err)
			s.EditText(s.Covered(2), "Something else was said here.")
		}, want: "In my own words"},
		"with a deleted message": {do: func(s *nodesttest.Summaries) {
			_, err := s.Chats.DeleteMessage(s.T.Context(), s.Call(), s.Covered(2).ID, "")
			s.Must(err)
		}, want: "none"},
		"deleted": {do: func(s *nodesttest.Summaries) {
			s.Must(s.Chats.DeleteSummary(s.T.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID))
		}, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewSummaries(t, "")
			s.InsertExchanges(14)
			s.ChatAndSummarise(2)
			s.InsertExchanges(10)
			s.ChatAndSummarise(3)
			if tt.do != nil {
				tt.do(s)
			}
			path := s.Path()
			fork := forkAt(s, path[len(path)-1-tt.at])
			_, err := s.Chats.ChooseHead(t.Context(), s.Call(), s.Conversation.ID, path[len(path)-1-tt.at].ID)
			s.Must(err)
			want, sent := s.ActiveSummary(), s.Request()
			got := inChat(s, fork, s.ActiveSummary)
			if !strings.HasPrefix(describeSummary(got), tt.want) || describeSummary(got) != describeSummary(want) || (fork.SummaryID != "") != (got != nil) {
				t.Errorf("active summary of the fork:\n%s\nwant\n%s", describeSummary(got), describeSummary(want))
			}
			if got := inChat(s, fork, s.Request); got != sent {
				t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
			}
			checkForkSummary(s, fork, got)
		})
	}
}

// checkForkSummary checks that the summary of a fork behaves like that of any chat.
func checkForkSummary(s *nodesttest.Summaries, fork *chat.Conversation, got *chat.SummaryView) {
	s.T.Helper()
	calls := len(s.Summariser.Prompts)
	source := s.Conversation
	s.Conversation = fork
	defer func() { s.Conversation = source }()
	s.ChatAndSummarise(1)
	if got == nil {
		return
	}
	if len(s.Summariser.Prompts) != calls {
		s.T.Error("the fork paid for a summary again")
	}
	path := s.Path()
	if r := got.Range; path[r.Start].ID != r.StartID || path[r.End].ID != r.EndID || got.BaseID != "" {
		s.T.Errorf("range %+v, base %q: not those of the fork", r, got.BaseID)
	}
	data, _, err := nodesttest.Written(s.T.Context(), s.Archives.ExportArchive, nodesttest.Ann, fork.ID)
	s.Must(err)
	want := describeSummary(s.ActiveSummary())
	copied, err := s.Archives.ImportArchive(s.T.Context(), s.Call(), fork.CharacterID, data)
	s.Must(err)
	if have := describeSummary(inChat(s, copied, s.ActiveSummary)); have != want {
		s.T.Errorf("after a move:\n%s\nwant\n%s", have, want)
	}
	s.RunIdleJobs()
	if now := s.ActiveSummary(); now.Stale != (got.Stale && got.Method == summary.MethodUser) {
		s.T.Errorf("when idle: %+v", now)
	}
	s.EditText(s.Covered(1), "This is only so in the fork.")
	if now := s.ActiveSummary(); now == nil || !now.Stale {
		s.T.Errorf("after an edit: %+v, want a stale one", now)
	}
	_, err = s.Chats.DeleteMessage(s.T.Context(), s.Call(), s.Covered(1).ID, "")
	s.Must(err)
	if s.ActiveSummary() != nil {
		s.T.Error("it covers a message that was deleted")
	}
}

// A long fork has its summary as soon as it is complete; a stale one is rebuilt
// later, as in the source.
func TestALongForkHasTheSummaryAtItsMessage(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	s.InsertExchanges(nodesttest.ForkStep/2 + 50)
	path := s.Path() // the range is copied in two steps
	_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{From: path[nodesttest.ForkStep-50].ID, To: path[nodesttest.ForkStep+50].ID})
	s.Must(err)
	s.EditText(s.Covered(2), "Something else was said here.")
	want, sent := describeSummary(s.ActiveSummary()), s.Request()
	fork := forkAt(s, path[len(path)-1])
	if !fork.Copying {
		t.Fatal("the fork is complete already")
	}
	s.EditText(s.Covered(2), "And something else again.")
	s.Must(s.DeleteConversation(t.Context(), s.Call(), s.Conversation.ID))
	s.Must(nodesttest.RunFork(s.Engine, nodesttest.ClaimFork(t, s.DB, "p")))
	if got := describeSummary(inChat(s, fork, s.ActiveSummary)); got != want {
		t.Errorf("active summary of the fork:\n%s\nwant\n%s", got, want)
	}
	if got := inChat(s, fork, s.Request); got != sent {
		t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
	}
	s.Conversation = fork
	s.RunIdleJobs()
	if now := s.ActiveSummary(); now == nil || now.Stale {
		t.Errorf("when idle: %+v", now)
	}
}
