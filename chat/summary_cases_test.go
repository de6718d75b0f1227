package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/summary"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestAStaleSummaryIsUsedUntilItIsRebuilt(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	m := s.Covered(2)
	was := m.Text()
	s.EditText(m, "Something else was said here.")
	if a := s.ActiveSummary(); a == nil || !a.Stale || a.Generation != 1 {
		t.Fatalf("after the edit: %+v, want the same, stale", a)
	}
	s.WantContains(s.Request(), "Digest 1")
	s.EditText(m, was)
	if a := s.ActiveSummary(); a == nil || !a.Stale { // the text is the same, the revision is not
		t.Fatalf("after the second edit: %+v", a)
	}
	if s.RunJobs() != 0 {
		t.Error("it is rebuilt while the conversation is in use")
	}
	s.RunIdleJobs()
	a := s.ActiveSummary()
	if a == nil || a.Stale || a.Generation != 2 || a.Method != summary.MethodModel {
		t.Fatalf("when idle: %+v, want a new one", a)
	}
	s.WantContains(s.Request(), "Digest 2")
	s.WantContains(s.Summariser.Prompts[1], was, s.Covered(0).Text()) // it is made from the messages
	if n := s.RunIdleJobs(); n != 0 || len(s.Summariser.Prompts) != 2 {
		t.Errorf("%d more jobs, %d calls: want one rebuild", n, len(s.Summariser.Prompts))
	}
}

func TestSwipingBackMakesASummaryCurrentAgain(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	var m *chat.Message
	for at := 0; m == nil || m.Role != chat.RoleAssistant; at++ {
		m = s.Covered(at)
	}
	// Regenerating an answered reply would start a branch, so the swipe is stored directly.
	s.Must(s.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		stored, err := tx.Chats.Message(m.ID)
		if err != nil {
			return err
		}
		stored.Swipes = append(stored.Swipes, chat.Swipe{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: "Another answer.", CreatedAt: tx.Now()})
		stored.Rev++
		if err := tx.Chats.UpdateMessage(stored); err != nil {
			return err
		}
		conv, err := tx.Chats.Conversation(s.Conversation.ID)
		if err != nil {
			return err
		}
		conv.Version++
		return tx.Chats.UpdateConversation(conv)
	}))
	for _, step := range []struct {
		swipe string
		stale bool
	}{{"next", true}, {"prev", false}} {
		_, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: m.ID, Swipe: step.swipe})
		s.Must(err)
		if a := s.ActiveSummary(); a == nil || a.Stale != step.stale {
			t.Errorf("with the %s swipe: %+v, want stale = %v", step.swipe, a, step.stale)
		}
	}
	s.RunIdleJobs()
	if len(s.Summariser.Prompts) != 1 {
		t.Error("a current summary was made again")
	}
}

func TestDeletingACoveredMessageDeactivatesTheSummary(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	m := s.Covered(2)
	_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), m.ID, "")
	s.Must(err)
	if a := s.ActiveSummary(); a != nil {
		t.Errorf("active summary: %+v, want none", a)
	}
	sent := s.Request()
	s.WantNotContains(sent, "Digest 1", m.Text())
	s.WantContains(sent, s.Covered(0).Text(), s.Covered(2).Text())

	_, err = s.Chats.RestoreMessage(t.Context(), s.Call(), m.ID)
	s.Must(err)
	s.WantContains(s.Request(), "Digest 1")

	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), m.ID, "")
	s.Must(err)
	s.RunIdleJobs()
	a := s.ActiveSummary()
	if a == nil || a.Generation != 2 || a.Stale {
		t.Fatalf("when idle: %+v, want a new one", a)
	}
	s.WantNotContains(s.Summariser.Prompts[1], m.Text())
	s.WantNotContains(s.Request(), m.Text(), "Digest 1")
}

func TestEveryBranchHasItsOwnSummary(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	path := s.Path()
	one := s.ActiveSummary()
	_, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: path[7].ID, Text: "Let us turn left here.", Mode: chat.EditBranch})
	s.Must(err)
	if s.ActiveSummary() != nil {
		t.Error("a branch that left before the end of the summary has it")
	}
	sent := s.Request()
	s.WantNotContains(sent, "Digest 1", path[8].Text())
	s.WantContains(sent, path[6].Text(), "turn left")
	s.InsertExchanges(14)
	s.ChatAndSummarise(3)
	two := s.ActiveSummary()
	if two == nil || two.ID == one.ID || two.Generation != 2 {
		t.Fatalf("on the other branch: %+v", two)
	}
	for _, to := range []struct {
		head string
		want string
	}{{path[len(path)-1].ID, one.ID}, {s.Path()[20].ID, ""}} {
		_, err = s.Chats.ChooseHead(t.Context(), s.Call(), s.Conversation.ID, to.head)
		s.Must(err)
		got := ""
		if a := s.ActiveSummary(); a != nil {
			got = a.ID
		}
		if got != to.want {
			t.Errorf("with head %s: active summary %q, want %q", to.head, got, to.want)
		}
	}
	_, err = s.Chats.Reset(t.Context(), s.Call(), s.Conversation.ID)
	s.Must(err)
	if s.ActiveSummary() != nil {
		t.Error("a reset conversation has a summary")
	}
}

// A save point keeps its summary, whatever happens to summaries and messages later.
func TestASavePointShowsItsSummary(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	then := s.Request()
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: s.Conversation.ID})
	s.Must(err)
	a := s.ActiveSummary()
	_, err = s.Chats.EditSummary(t.Context(), s.Call(), s.Conversation.ID, a.ID, "In my own words: they walked.")
	s.Must(err)
	mine := s.Request()
	s.WantContains(mine, "In my own words")
	second, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: s.Conversation.ID})
	s.Must(err)
	s.EditText(s.Covered(1), "Not this.")
	s.InsertExchanges(14)
	s.ChatAndSummarise(2)
	s.Must(s.Chats.DeleteSummary(t.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID))
	s.Must(s.Chats.DeleteSummary(t.Context(), s.Call(), s.Conversation.ID, a.ID))
	for range 2 {
		for _, at := range []struct {
			save *chat.Save
			want string
		}{{save, then}, {second, mine}} {
			p, err := s.PreviewSave(t.Context(), nodesttest.Ann, at.save.ID, nodest.PreviewInput{})
			s.Must(err)
			if got := nodesttest.PromptText(p.Messages); got != at.want {
				t.Fatalf("the preview of the save point differs:\n%s\nwant\n%s", got, at.want)
			}
			_, err = s.Chats.RestoreSave(t.Context(), s.Call(), at.save.ID)
			s.Must(err)
			if got := s.Request(); got != at.want {
				t.Fatalf("the restored conversation differs:\n%s\nwant\n%s", got, at.want)
			}
		}
	}
	if v := s.ActiveSummary(); v == nil || v.ID != a.ID || v.Method != summary.MethodUser {
		t.Errorf("restored: %+v", v)
	}
}

func TestAnEditedSummaryIsKept(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	a := s.ActiveSummary()
	const words = "--- CONVERSATION SUMMARY ---\nI say: they only talked about rivers."
	v, err := s.Chats.EditSummary(t.Context(), s.Call(), s.Conversation.ID, a.ID, words)
	s.Must(err)
	if v.ID != a.ID || v.Method != summary.MethodUser || v.Model != "" || !v.Active || strings.Contains(v.Text, "---") {
		t.Errorf("edited: %+v", v)
	}
	s.EditText(s.Covered(1), "It was different.")
	s.RunIdleJobs()
	if a := s.ActiveSummary(); a.Method != summary.MethodUser || len(s.Summariser.Prompts) != 1 {
		t.Errorf("when idle: %+v: an edited summary is kept", a)
	}
	s.InsertExchanges(16)
	s.ChatAndSummarise(1)
	if last := s.Summariser.Prompts[len(s.Summariser.Prompts)-1]; !strings.Contains(last, "they only talked about rivers") {
		t.Errorf("the next one was made without the words of the user:\n%s", last)
	}
	for _, bad := range []string{"", " \n", "\u200b\u2060 \ufeff", "--- END OF SUMMARY ---", strings.Repeat("x", 2001)} {
		_, err := s.Chats.EditSummary(t.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID, bad)
		if e := s.WantCode(err, fault.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "summary" {
			t.Errorf("%d characters: %v", len(bad), e.Fields)
		}
	}
}

func TestDeletingASummaryRestoresTheHistory(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	id := s.ActiveSummary().ID
	s.Must(s.Chats.DeleteSummary(t.Context(), s.Call(), s.Conversation.ID, id))
	sent := s.Request()
	s.WantNotContains(sent, "Digest 1")
	for _, m := range s.Path() {
		s.WantContains(sent, m.Text())
	}
	s.WantCode(s.Chats.DeleteSummary(t.Context(), s.Call(), s.Conversation.ID, id), fault.NotFound)
	s.ChatAndSummarise(5)
	if len(s.Summariser.Prompts) != 1 || len(s.AllSummaries()) != 0 {
		t.Error("the history was summarised again at once")
	}
	s.InsertExchanges(12)
	s.ChatAndSummarise(2) // enough to trigger a summary
	if a := s.ActiveSummary(); a == nil || a.Generation != 2 {
		t.Errorf("later: %+v", a)
	}
}

func TestSummariseByHand(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
	s.InsertExchanges(4)
	_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	if e := s.WantCode(err, fault.Conflict); e.Details["reason"] != "too_few_messages" {
		t.Errorf("details = %v", e.Details)
	}
	s.WantCode(s.Chats.SummariseLater(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{}), fault.Conflict)
	s.InsertExchanges(15)
	s.ChatAndSummarise(1)
	if len(s.Summariser.Prompts) != 0 {
		t.Fatal("a summary was made although summaries are off")
	}
	path := s.Path()
	for field, r := range map[string]chat.SummaryRange{
		"from": {From: path[2].ID}, "to": {From: path[9].ID, To: path[8].ID},
	} {
		_, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, r)
		if e := s.WantCode(err, fault.Invalid); e.Fields[0].Field != field {
			t.Errorf("fields = %v, want %s", e.Fields, field)
		}
	}
	_, err = s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{To: "nowhere"})
	s.WantCode(err, fault.NotFound)

	c := s.Call()
	v, err := s.Chats.Summarise(t.Context(), c, s.Conversation.ID, chat.SummaryRange{From: path[5].ID, To: path[10].ID})
	s.Must(err)
	again, err := s.Chats.Summarise(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: c.Key, Hash: c.Hash}, s.Conversation.ID, chat.SummaryRange{From: path[5].ID, To: path[10].ID})
	s.Must(err)
	if v.Range.Start != 5 || v.Range.End != 10 || v.Count != 6 || !v.Active || again.ID != v.ID || !again.Active || len(s.Summariser.Prompts) != 1 {
		t.Errorf("by hand: %+v, again %+v", v, again)
	}
	sent := s.Request()
	s.WantNotContains(sent, path[5].Text(), path[10].Text())
	s.WantContains(sent, path[4].Text(), "Digest 1", path[11].Text())

	s.Must(s.Chats.SummariseLater(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{}))
	s.EditText(path[7], "A repair does not take its place.")
	s.RunJobs()
	if a := s.ActiveSummary(); a == nil || a.Generation != 2 || a.Range.End != len(path)-4 {
		t.Errorf("later: %+v", a)
	}
}

func TestAnotherUsersSummariesAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	id, ctx := s.ActiveSummary().ID, t.Context()
	other := s.Fixture.Chat() // ann's, but not that of the summary
	bobs := func() *op.Call { return &op.Call{UserID: nodesttest.Bob} }
	_, list := s.Chats.Summaries(ctx, nodesttest.Bob, s.Conversation.ID)
	_, make1 := s.Chats.Summarise(ctx, bobs(), s.Conversation.ID, chat.SummaryRange{})
	_, edit := s.Chats.EditSummary(ctx, bobs(), s.Conversation.ID, id, "Mine now, and long enough to be a summary.")
	_, edit2 := s.Chats.EditSummary(ctx, s.Call(), other.ID, id, "In another conversation.")
	for what, err := range map[string]error{
		"list": list, "make": make1, "later": s.Chats.SummariseLater(ctx, bobs(), s.Conversation.ID, chat.SummaryRange{}), "edit": edit, "edit elsewhere": edit2,
		"delete": s.Chats.DeleteSummary(ctx, bobs(), s.Conversation.ID, id), "delete elsewhere": s.Chats.DeleteSummary(ctx, s.Call(), other.ID, id),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", what, err)
		}
	}
	if a := s.ActiveSummary(); a == nil || a.Method != summary.MethodModel {
		t.Errorf("active summary: %+v", a)
	}
}

func TestRulesReplaceAFailingSummaryModel(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	s.Summariser.Err = fault.New(fault.Blocked, "no")
	s.InsertExchanges(14)
	s.ChatAndSummarise(3)
	a := s.ActiveSummary()
	if a == nil || a.Method != summary.MethodExtractive || a.Model != "" {
		t.Fatalf("active summary: %+v, want one by rule", a)
	}
	s.RunIdleJobs()
	if views := s.AllSummaries(); len(views) != 1 {
		t.Errorf("%d summaries: the summary by rule was made again", len(views))
	}
	s.Summariser.Err = nil
	s.RunIdleJobs()
	if a := s.ActiveSummary(); a == nil || a.Method != summary.MethodModel || a.Generation != 2 {
		t.Errorf("when the model is back: %+v", a)
	}
	if s.RunIdleJobs() != 0 {
		t.Error("the summary is made again and again")
	}
}

// If a change overtakes a summary that is being written, the summary is made again,
// once.
func TestChangesWhileASummaryIsWritten(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *nodesttest.Summaries) error{
		"by another summary": func(s *nodesttest.Summaries) error {
			_, err := s.Chats.Summarise(s.T.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
			return err
		},
		"by an edit": func(s *nodesttest.Summaries) error {
			s.EditText(s.Path()[4], "In other words.")
			return nil
		},
		"by a delete": func(s *nodesttest.Summaries) error {
			_, err := s.Chats.DeleteMessage(s.T.Context(), s.Call(), s.Path()[4].ID, "")
			return err
		},
		"by another branch": func(s *nodesttest.Summaries) error {
			_, err := s.Chats.ChooseHead(s.T.Context(), s.Call(), s.Conversation.ID, s.Path()[5].ID)
			return err
		},
		"by new messages, which do not matter": func(s *nodesttest.Summaries) error {
			s.SendExchanges(1)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewSummaries(t, "")
			s.Summariser.Meanwhile = func(context.Context) error { return meanwhile(s) }
			s.InsertExchanges(14)
			s.ChatAndSummarise(3)
			views := s.AllSummaries()
			if len(views) > 1 {
				t.Errorf("%d summaries: %+v", len(views), views)
			}
			branch := name == "by another branch"
			if a := s.ActiveSummary(); (a == nil) != branch || a != nil && a.Stale {
				t.Errorf("active summary: %+v", a)
			}
		})
	}
}

// A process that crashes leaves a valid conversation, and the next process makes the
// summary.
func TestSummariesSurviveCrashes(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(s *nodesttest.Summaries, j *jobs.Job) error{
		"before it begins": func(*nodesttest.Summaries, *jobs.Job) error { return nil },
		"while the model is writing": func(s *nodesttest.Summaries, j *jobs.Job) error {
			ctx, die := context.WithCancel(s.T.Context())
			s.Summariser.Meanwhile = func(context.Context) error { die(); return ctx.Err() }
			return s.Chats.Kinds()[0].Run(ctx, j)
		},
		"at the commit, which comes too late": func(s *nodesttest.Summaries, j *jobs.Job) error {
			s.Summariser.Meanwhile = func(context.Context) error {
				expireLeases(s)
				s.Must(s.EndJob(s.ClaimJobs()[0], nil)) // another process ends it
				return nil
			}
			return s.RunJob(j)
		},
		"after the commit": func(s *nodesttest.Summaries, j *jobs.Job) error { return s.RunJob(j) },
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewSummaries(t, "")
			s.InsertExchanges(14)
			for range 4 {
				s.SendExchanges(1)
				if claimed := s.ClaimJobs(); len(claimed) > 0 {
					if err := until(s, claimed[0]); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, jobs.ErrLost) {
						t.Fatal(err)
					}
					break
				}
			}
			s.Request() // the prompt can be built
			s.Crash()
			expireLeases(s)
			s.ChatAndSummarise(1)
			if views := s.AllSummaries(); len(views) != 1 || s.ActiveSummary() == nil {
				t.Errorf("summaries: %+v", views)
			}
		})
	}
}

// expireLeases ends the leases of all jobs.
func expireLeases(s *nodesttest.Summaries) {
	s.T.Helper()
	s.Clock.Advance(10 * time.Minute)
	s.Must(s.DB.RecoverJobs(s.T.Context(), map[string]int{chat.JobSummarise: 5}, ""))
}

func TestArchivesContainSummaries(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: s.Conversation.ID})
	s.Must(err)
	_, err = s.Chats.EditSummary(t.Context(), s.Call(), s.Conversation.ID, s.ActiveSummary().ID, "In my own words: they walked.")
	s.Must(err)
	s.EditText(s.Covered(1), "Something else.")
	s.ChatAndSummarise(2)
	data, _, err := nodesttest.Written(t.Context(), s.Archives.ExportArchive, nodesttest.Ann, s.Conversation.ID)
	s.Must(err)
	p, err := s.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{})
	s.Must(err)
	then, now, was := nodesttest.PromptText(p.Messages), s.Request(), s.ActiveSummary()

	copied, err := s.Archives.ImportArchive(t.Context(), s.Call(), s.Conversation.CharacterID, data)
	s.Must(err)
	saves, err := s.Chats.Saves(t.Context(), nodesttest.Ann, copied.ID, false, "", 0)
	s.Must(err)
	s.Conversation = copied
	if got := s.Request(); got != now {
		t.Errorf("the imported copy sends\n%s\nwant\n%s", got, now)
	}
	if a := s.ActiveSummary(); a == nil || a.ID == was.ID || a.Text != was.Text || !a.Stale || a.Range.EndID == was.Range.EndID {
		t.Errorf("active summary: %+v", a)
	}
	p, err = s.PreviewSave(t.Context(), nodesttest.Ann, saves.Items[0].ID, nodest.PreviewInput{})
	s.Must(err)
	if got := nodesttest.PromptText(p.Messages); got != then {
		t.Errorf("its save point shows\n%s\nwant\n%s", got, then)
	}
	var doc map[string]json.RawMessage
	s.Must(json.Unmarshal(data, &doc))
	delete(doc, "summaries")
	old, err := json.Marshal(doc)
	s.Must(err)
	if s.Conversation, err = s.Archives.ImportArchive(t.Context(), s.Call(), s.Conversation.CharacterID, old); err != nil || s.ActiveSummary() != nil {
		t.Errorf("without summaries: %v", err)
	}
}

func TestSettingsReportTheTimeOfTheLastSummary(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummarisedChat(t)
	var got struct {
		Memory struct {
			LastSummarizedAt int64 `json:"lastSummarizedAt"`
			SummaryThreshold int   `json:"summaryThreshold"`
		} `json:"memory"`
	}
	doc, version, err := s.Characters.Settings(t.Context(), nodesttest.Ann, s.Conversation.CharacterID)
	s.Must(err)
	s.Must(json.Unmarshal(doc, &got))
	if got.Memory.LastSummarizedAt != s.Clock.Now().UnixMilli() || got.Memory.SummaryThreshold != 6000 || version != 2 {
		t.Errorf("settings at version %d: %s", version, doc)
	}
}

// A summary increases the version of its conversation but not its update time, so the
// list keeps its order.
func TestASummaryDoesNotReorderTheConversationList(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	s.InsertExchanges(20)
	before, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, s.Conversation.ID)
	s.Must(err)
	s.Clock.Advance(time.Minute)
	_, err = s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	s.Must(err)
	after, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, s.Conversation.ID)
	s.Must(err)
	if after.Version != before.Version+1 || !after.UpdatedAt.Equal(before.UpdatedAt) || after.SummaryID == "" {
		t.Errorf("version %d of %v became %d of %v", before.Version, before.UpdatedAt, after.Version, after.UpdatedAt)
	}
}

// A request for a summary that another request has just made returns that summary.
func TestConcurrentSummaryRequestsGetOneSummary(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
	s.InsertExchanges(14)
	var first *chat.SummaryView
	s.Summariser.Meanwhile = func(ctx context.Context) (err error) {
		first, err = s.Chats.Summarise(ctx, s.Call(), s.Conversation.ID, chat.SummaryRange{})
		return err
	}
	second, err := s.Chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{})
	if err != nil || second.ID != first.ID || len(s.AllSummaries()) != 1 {
		t.Errorf("%+v and %+v, %v, %d in all", first, second, err, len(s.AllSummaries()))
	}
}
