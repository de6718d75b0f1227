package nodest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// in is what fn returns of another conversation.
func in[T any](s *summaryStudio, chat *nodest.Conversation, fn func() T) T {
	was := s.chat
	defer func() { s.chat = was }()
	s.chat = chat
	return fn()
}

func (s *summaryStudio) forkAt(m *nodest.Message) *nodest.Conversation {
	s.t.Helper()
	fork, err := s.Fork(s.t.Context(), s.call(), nodest.ForkInput{ConversationID: s.chat.ID, MessageID: m.ID})
	s.must(err)
	return fork
}

// told is what a summary tells of itself, without what names it or its messages.
func told(v *nodest.SummaryView) string {
	if v == nil {
		return "none"
	}
	r := v.Range
	return fmt.Sprint(v.Text, v.At, r.Start, r.End, r.StartSeq, r.EndSeq, v.Count, v.Generation, v.Method, v.Model, v.Digest, v.Stale, v.Active)
}

// A fork sends what its source sends at that message, with a summary of its own that
// says the same of its own messages.
func TestAForkHasTheSummaryOfItsPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(s *summaryStudio)
		at   int // messages before the head
		want string
	}{
		"at the end":             {want: "Digest 2"},
		"where an older one was": {at: 20, want: "Digest 1"},
		"before the first one":   {at: 50, want: "none"},
		"stale": {do: func(s *summaryStudio) {
			s.edit(s.covered(2), "Something else was said here.")
		}, want: "Digest 2"},
		"by hand": {do: func(s *summaryStudio) {
			_, err := s.EditSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID, "In my own words: they walked.")
			s.must(err)
		}, want: "In my own words"},
		"by hand and stale": {do: func(s *summaryStudio) {
			_, err := s.EditSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID, "In my own words: they walked.")
			s.must(err)
			s.edit(s.covered(2), "Something else was said here.")
		}, want: "In my own words"},
		"with a deleted message": {do: func(s *summaryStudio) {
			_, err := s.DeleteMessage(s.t.Context(), s.call(), s.covered(2).ID, "")
			s.must(err)
		}, want: "none"},
		"deleted": {do: func(s *summaryStudio) {
			s.must(s.DeleteSummary(s.t.Context(), s.call(), s.chat.ID, s.active().ID))
		}, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSummaries(t, "")
			s.fill(14)
			s.talk(2)
			s.fill(10)
			s.talk(3)
			if tt.do != nil {
				tt.do(s)
			}
			path := s.path()
			fork := s.forkAt(path[len(path)-1-tt.at])
			_, err := s.ChooseHead(t.Context(), s.call(), s.chat.ID, path[len(path)-1-tt.at].ID)
			s.must(err)
			want, sent := s.active(), s.prompt()
			got := in(s, fork, s.active)
			if !strings.HasPrefix(told(got), tt.want) || told(got) != told(want) || (fork.SummaryID != "") != (got != nil) {
				t.Errorf("in force in the fork:\n%s\nwant\n%s", told(got), told(want))
			}
			if got := in(s, fork, s.prompt); got != sent {
				t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
			}
			s.ofTheFork(fork, got)
		})
	}
}

// ofTheFork fails the test unless a summary of a fork goes on as one of any chat does.
func (s *summaryStudio) ofTheFork(fork *nodest.Conversation, got *nodest.SummaryView) {
	s.t.Helper()
	calls := len(s.scholar.summaries)
	source := s.chat
	s.chat = fork
	defer func() { s.chat = source }()
	s.talk(1)
	if got == nil {
		return
	}
	if len(s.scholar.summaries) != calls {
		s.t.Error("the fork paid for a summary again")
	}
	path := s.path()
	if r := got.Range; path[r.Start].ID != r.StartID || path[r.End].ID != r.EndID || got.BaseID != "" {
		s.t.Errorf("it is about %+v, base %q: not of the fork", r, got.BaseID)
	}
	data, _, err := s.ExportArchive(s.t.Context(), ann, fork.ID)
	s.must(err)
	want := told(s.active())
	copied, err := s.ImportArchive(s.t.Context(), s.call(), fork.CharacterID, data)
	s.must(err)
	if have := told(in(s, copied, s.active)); have != want {
		s.t.Errorf("after a move:\n%s\nwant\n%s", have, want)
	}
	s.rest()
	if now := s.active(); now.Stale != (got.Stale && got.Method == memory.MethodUser) {
		s.t.Errorf("at rest: %+v", now)
	}
	s.edit(s.covered(1), "This is only so in the fork.")
	if now := s.active(); now == nil || !now.Stale {
		s.t.Errorf("after an edit: %+v, want a stale one", now)
	}
	_, err = s.DeleteMessage(s.t.Context(), s.call(), s.covered(1).ID, "")
	s.must(err)
	if s.active() != nil {
		s.t.Error("it stands for a message that was deleted")
	}
}

// A process that dies with the newest messages of a fork copied leaves a fork that
// sends what its source sends, wherever its summary ends.
func TestAHalfCopiedForkHasItsSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		to, then int // the summary ends at this message of the first 55, and so many exchanges follow
		tokens   int // of the context; 0 = enough
		stale    bool
		atOnce   bool // nothing has to be copied for a prompt
	}{
		"shortly before the end":      {to: 51, then: 5, atOnce: true},
		"among what is there":         {to: 50, then: 20},
		"among what is not there yet": {to: 20, then: 50},
		"out of reach of the prompt":  {to: 20, then: 50, tokens: 2500},
		"stale, and not there yet":    {to: 20, then: 50, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			place := store.Options{Dir: storetest.Dir(t)}
			if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
				place = store.Options{URL: storetest.PostgresURL(t)}
			}
			open := func(o store.Options) *store.DB {
				o.Dir, o.URL = place.Dir, place.URL
				return storetest.OpenWith(t, o)
			}
			s := newSummariesOn(t, `{"memory":{"enabled":false}}`, open)
			if tt.tokens != 0 {
				s.studio.real.ContextTokens = tt.tokens
			}
			s.fill(27)
			_, err := s.Summarise(t.Context(), s.call(), s.chat.ID, nodest.SummaryRange{To: s.path()[tt.to].ID})
			s.must(err)
			s.fill(tt.then)
			if tt.stale {
				s.edit(s.covered(2), "Something else was said here.")
			}
			sent, want := s.prompt(), told(s.active())
			s.shows(sent, "Digest 1")
			path := s.path()
			source, fork := s.chat, s.dyingFork(s.chat)
			second := s.dyingFork(fork)
			s.must(s.db.Close())
			s.studio.db = open(store.Options{Now: s.clock.read, Log: quiet, Committed: s.ears.committed})
			s.Engine = s.engine()

			for _, s.chat = range []*nodest.Conversation{fork, second} {
				if got := told(s.active()); got != want {
					t.Errorf("in force:\n%s\nwant\n%s", got, want)
				}
				head, err := s.History(t.Context(), ann, s.chat.ID, "", 3)
				s.must(err)
				for _, m := range []int{1, 2} { // away and back
					_, err = s.ChooseHead(t.Context(), s.call(), s.chat.ID, head.Items[m].ID)
					s.must(err)
				}
				if now, err := s.Conversation(t.Context(), ann, s.chat.ID); err != nil || !now.Copying {
					t.Fatalf("%+v, %v: it is complete already", now, err)
				}
				if got := s.prompt(); got != sent {
					t.Errorf("the half copied fork sends\n%s\nwant\n%s", got, sent)
				}
				if now, err := s.Conversation(t.Context(), ann, s.chat.ID); err != nil || tt.atOnce && !now.Copying {
					t.Errorf("%+v, %v: it was copied for that", now, err)
				}
			}
			s.must(s.DeleteConversation(t.Context(), s.call(), source.ID))
			s.must(s.Recover(t.Context()))
			for _, s.chat = range []*nodest.Conversation{fork, second} {
				if got := s.path(); len(got) != len(path) {
					t.Errorf("it has %d messages, want %d", len(got), len(path))
				}
				if got := told(s.active()); got != want {
					t.Errorf("in force in the end:\n%s\nwant\n%s", got, want)
				}
				if got := s.prompt(); got != sent {
					t.Errorf("the fork sends\n%s\nwant\n%s", got, sent)
				}
			}
		})
	}
}

// dyingFork forks a chat in a process that is gone before it copies the rest.
func (s *summaryStudio) dyingFork(chat *nodest.Conversation) *nodest.Conversation {
	s.t.Helper()
	dying := s.engine()
	s.must(dying.Close(context.WithoutCancel(s.t.Context())))
	fork, err := dying.Fork(s.t.Context(), s.call(), nodest.ForkInput{ConversationID: chat.ID})
	s.must(err)
	if !fork.Copying {
		s.t.Fatal("the fork is complete already")
	}
	return fork
}

// What a reply in such a fork was asked with can be read for ever, also when the
// source is gone.
func TestThePromptOfAReplyInAHalfCopiedFork(t *testing.T) {
	s := newSummaries(t, `{"memory":{"enabled":false}}`)
	s.fill(60)
	path := s.path()
	_, err := s.Summarise(t.Context(), s.call(), s.chat.ID, nodest.SummaryRange{To: path[110].ID})
	s.must(err)
	source := s.chat
	s.chat = s.dyingFork(source)
	s.must(s.DeleteConversation(t.Context(), s.call(), source.ID))
	s.speak(1)
	if now, err := s.Conversation(t.Context(), ann, s.chat.ID); err != nil || !now.Copying {
		t.Fatalf("%+v, %v: it was copied for that", now, err)
	}
	head, err := s.History(t.Context(), ann, s.chat.ID, "", 1)
	s.must(err)
	p, err := s.Prompt(t.Context(), ann, s.generation(head.Items[0].GenerationID).PromptID)
	s.must(err)
	s.shows(flat(p.Prompt), path[0].Text(), path[1].Text(), path[2].Text(), "Digest 2", path[111].Text(), path[120].Text(), userLine(s.said))
	s.hides(flat(p.Prompt), path[3].Text(), path[110].Text())
}
