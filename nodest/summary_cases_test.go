package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/jobs"
	"nodest/nodest"
	"nodest/op"
	"nodest/summary"
)

func TestAStaleSummaryIsUsedUntilItIsRebuilt(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	m := s.covered(2)
	was := m.Text()
	s.edit(m, "Something else was said here.")
	if a := s.active(); a == nil || !a.Stale || a.Generation != 1 {
		t.Fatalf("after the edit: %+v, want the same, stale", a)
	}
	s.wantContains(s.prompt(), "Digest 1")
	s.edit(m, was)
	if a := s.active(); a == nil || !a.Stale { // the text is the same, the revision is not
		t.Fatalf("after the second edit: %+v", a)
	}
	if s.runJobs() != 0 {
		t.Error("it is rebuilt while the conversation is in use")
	}
	s.runIdleJobs()
	a := s.active()
	if a == nil || a.Stale || a.Generation != 2 || a.Method != summary.MethodModel {
		t.Fatalf("when idle: %+v, want a new one", a)
	}
	s.wantContains(s.prompt(), "Digest 2")
	s.wantContains(s.summaryModel.prompts[1], was, s.covered(0).Text()) // it is made from the messages
	if n := s.runIdleJobs(); n != 0 || len(s.summaryModel.prompts) != 2 {
		t.Errorf("%d more jobs, %d calls: want one rebuild", n, len(s.summaryModel.prompts))
	}
}

func TestSwipingBackMakesASummaryCurrentAgain(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	var m *chat.Message
	for at := 0; m == nil || m.Role != chat.RoleAssistant; at++ {
		m = s.covered(at)
	}
	// Regenerating an answered reply would start a branch, so the swipe is stored directly.
	s.must(s.db.Update(t.Context(), ann, func(tx nodest.Tx) error {
		stored, err := tx.Chats.Message(m.ID)
		if err != nil {
			return err
		}
		stored.Swipes = append(stored.Swipes, chat.Swipe{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: "Another answer.", CreatedAt: tx.Now()})
		stored.Rev++
		if err := tx.Chats.UpdateMessage(stored); err != nil {
			return err
		}
		conv, err := tx.Chats.Conversation(s.chat.ID)
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
		_, err := s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: m.ID, Swipe: step.swipe})
		s.must(err)
		if a := s.active(); a == nil || a.Stale != step.stale {
			t.Errorf("with the %s swipe: %+v, want stale = %v", step.swipe, a, step.stale)
		}
	}
	s.runIdleJobs()
	if len(s.summaryModel.prompts) != 1 {
		t.Error("a current summary was made again")
	}
}

func TestDeletingACoveredMessageDeactivatesTheSummary(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	m := s.covered(2)
	_, err := s.Chats.DeleteMessage(t.Context(), s.call(), m.ID, "")
	s.must(err)
	if a := s.active(); a != nil {
		t.Errorf("active summary: %+v, want none", a)
	}
	sent := s.prompt()
	s.wantNotContains(sent, "Digest 1", m.Text())
	s.wantContains(sent, s.covered(0).Text(), s.covered(2).Text())

	_, err = s.Chats.RestoreMessage(t.Context(), s.call(), m.ID)
	s.must(err)
	s.wantContains(s.prompt(), "Digest 1")

	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), m.ID, "")
	s.must(err)
	s.runIdleJobs()
	a := s.active()
	if a == nil || a.Generation != 2 || a.Stale {
		t.Fatalf("when idle: %+v, want a new one", a)
	}
	s.wantNotContains(s.summaryModel.prompts[1], m.Text())
	s.wantNotContains(s.prompt(), m.Text(), "Digest 1")
}

func TestEveryBranchHasItsOwnSummary(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	path := s.path()
	one := s.active()
	_, err := s.Edit(t.Context(), s.call(), chat.EditInput{MessageID: path[7].ID, Text: "Let us turn left here.", Mode: chat.EditBranch})
	s.must(err)
	if s.active() != nil {
		t.Error("a branch that left before the end of the summary has it")
	}
	sent := s.prompt()
	s.wantNotContains(sent, "Digest 1", path[8].Text())
	s.wantContains(sent, path[6].Text(), "turn left")
	s.insertExchanges(14)
	s.chatAndSummarise(3)
	two := s.active()
	if two == nil || two.ID == one.ID || two.Generation != 2 {
		t.Fatalf("on the other branch: %+v", two)
	}
	for _, to := range []struct {
		head string
		want string
	}{{path[len(path)-1].ID, one.ID}, {s.path()[20].ID, ""}} {
		_, err = s.Chats.ChooseHead(t.Context(), s.call(), s.chat.ID, to.head)
		s.must(err)
		got := ""
		if a := s.active(); a != nil {
			got = a.ID
		}
		if got != to.want {
			t.Errorf("with head %s: active summary %q, want %q", to.head, got, to.want)
		}
	}
	_, err = s.Chats.Reset(t.Context(), s.call(), s.chat.ID)
	s.must(err)
	if s.active() != nil {
		t.Error("a reset conversation has a summary")
	}
}

// A save point keeps its summary, whatever happens to summaries and messages later.
func TestASavePointShowsItsSummary(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	then := s.prompt()
	save, err := s.Chats.CreateSave(t.Context(), s.call(), chat.SaveInput{ConversationID: s.chat.ID})
	s.must(err)
	a := s.active()
	_, err = s.Chats.EditSummary(t.Context(), s.call(), s.chat.ID, a.ID, "In my own words: they walked.")
	s.must(err)
	mine := s.prompt()
	s.wantContains(mine, "In my own words")
	second, err := s.Chats.CreateSave(t.Context(), s.call(), chat.SaveInput{ConversationID: s.chat.ID})
	s.must(err)
	s.edit(s.covered(1), "Not this.")
	s.insertExchanges(14)
	s.chatAndSummarise(2)
	s.must(s.Chats.DeleteSummary(t.Context(), s.call(), s.chat.ID, s.active().ID))
	s.must(s.Chats.DeleteSummary(t.Context(), s.call(), s.chat.ID, a.ID))
	for range 2 {
		for _, at := range []struct {
			save *chat.Save
			want string
		}{{save, then}, {second, mine}} {
			p, err := s.PreviewSave(t.Context(), ann, at.save.ID, nodest.PreviewInput{})
			s.must(err)
			if got := promptText(p.Messages); got != at.want {
				t.Fatalf("the preview of the save point differs:\n%s\nwant\n%s", got, at.want)
			}
			_, err = s.Chats.RestoreSave(t.Context(), s.call(), at.save.ID)
			s.must(err)
			if got := s.prompt(); got != at.want {
				t.Fatalf("the restored conversation differs:\n%s\nwant\n%s", got, at.want)
			}
		}
	}
	if v := s.active(); v == nil || v.ID != a.ID || v.Method != summary.MethodUser {
		t.Errorf("restored: %+v", v)
	}
}

func TestAnEditedSummaryIsKept(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	a := s.active()
	const words = "--- CONVERSATION SUMMARY ---\nI say: they only talked about rivers."
	v, err := s.Chats.EditSummary(t.Context(), s.call(), s.chat.ID, a.ID, words)
	s.must(err)
	if v.ID != a.ID || v.Method != summary.MethodUser || v.Model != "" || !v.Active || strings.Contains(v.Text, "---") {
		t.Errorf("edited: %+v", v)
	}
	s.edit(s.covered(1), "It was different.")
	s.runIdleJobs()
	if a := s.active(); a.Method != summary.MethodUser || len(s.summaryModel.prompts) != 1 {
		t.Errorf("when idle: %+v: an edited summary is kept", a)
	}
	s.insertExchanges(16)
	s.chatAndSummarise(1)
	if last := s.summaryModel.prompts[len(s.summaryModel.prompts)-1]; !strings.Contains(last, "they only talked about rivers") {
		t.Errorf("the next one was made without the words of the user:\n%s", last)
	}
	for _, bad := range []string{"", " \n", "\u200b\u2060 \ufeff", "--- END OF SUMMARY ---", strings.Repeat("x", 2001)} {
		_, err := s.Chats.EditSummary(t.Context(), s.call(), s.chat.ID, s.active().ID, bad)
		if e := s.wantCode(err, fault.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "summary" {
			t.Errorf("%d characters: %v", len(bad), e.Fields)
		}
	}
}

func TestDeletingASummaryRestoresTheHistory(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	id := s.active().ID
	s.must(s.Chats.DeleteSummary(t.Context(), s.call(), s.chat.ID, id))
	sent := s.prompt()
	s.wantNotContains(sent, "Digest 1")
	for _, m := range s.path() {
		s.wantContains(sent, m.Text())
	}
	s.wantCode(s.Chats.DeleteSummary(t.Context(), s.call(), s.chat.ID, id), fault.NotFound)
	s.chatAndSummarise(5)
	if len(s.summaryModel.prompts) != 1 || len(s.summaries()) != 0 {
		t.Error("the history was summarised again at once")
	}
	s.insertExchanges(12)
	s.chatAndSummarise(2) // enough to trigger a summary
	if a := s.active(); a == nil || a.Generation != 2 {
		t.Errorf("later: %+v", a)
	}
}

func TestSummariseByHand(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, `{"memory":{"enabled":false}}`)
	s.insertExchanges(4)
	_, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
	if e := s.wantCode(err, fault.Conflict); e.Details["reason"] != "too_few_messages" {
		t.Errorf("details = %v", e.Details)
	}
	s.wantCode(s.Chats.SummariseLater(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{}), fault.Conflict)
	s.insertExchanges(15)
	s.chatAndSummarise(1)
	if len(s.summaryModel.prompts) != 0 {
		t.Fatal("a summary was made although summaries are off")
	}
	path := s.path()
	for field, r := range map[string]chat.SummaryRange{
		"from": {From: path[2].ID}, "to": {From: path[9].ID, To: path[8].ID},
	} {
		_, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, r)
		if e := s.wantCode(err, fault.Invalid); e.Fields[0].Field != field {
			t.Errorf("fields = %v, want %s", e.Fields, field)
		}
	}
	_, err = s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{To: "nowhere"})
	s.wantCode(err, fault.NotFound)

	c := s.call()
	v, err := s.Chats.Summarise(t.Context(), c, s.chat.ID, chat.SummaryRange{From: path[5].ID, To: path[10].ID})
	s.must(err)
	again, err := s.Chats.Summarise(t.Context(), &op.Call{UserID: ann, Key: c.Key, Hash: c.Hash}, s.chat.ID, chat.SummaryRange{From: path[5].ID, To: path[10].ID})
	s.must(err)
	if v.Range.Start != 5 || v.Range.End != 10 || v.Count != 6 || !v.Active || again.ID != v.ID || !again.Active || len(s.summaryModel.prompts) != 1 {
		t.Errorf("by hand: %+v, again %+v", v, again)
	}
	sent := s.prompt()
	s.wantNotContains(sent, path[5].Text(), path[10].Text())
	s.wantContains(sent, path[4].Text(), "Digest 1", path[11].Text())

	s.must(s.Chats.SummariseLater(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{}))
	s.edit(path[7], "A repair does not take its place.")
	s.runJobs()
	if a := s.active(); a == nil || a.Generation != 2 || a.Range.End != len(path)-4 {
		t.Errorf("later: %+v", a)
	}
}

func TestAnotherUsersSummariesAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	id, ctx := s.active().ID, t.Context()
	other := s.fixture.chat() // ann's, but not that of the summary
	bobs := func() *op.Call { return &op.Call{UserID: bob} }
	_, list := s.Chats.Summaries(ctx, bob, s.chat.ID)
	_, make1 := s.Chats.Summarise(ctx, bobs(), s.chat.ID, chat.SummaryRange{})
	_, edit := s.Chats.EditSummary(ctx, bobs(), s.chat.ID, id, "Mine now, and long enough to be a summary.")
	_, edit2 := s.Chats.EditSummary(ctx, s.call(), other.ID, id, "In another conversation.")
	for what, err := range map[string]error{
		"list": list, "make": make1, "later": s.Chats.SummariseLater(ctx, bobs(), s.chat.ID, chat.SummaryRange{}), "edit": edit, "edit elsewhere": edit2,
		"delete": s.Chats.DeleteSummary(ctx, bobs(), s.chat.ID, id), "delete elsewhere": s.Chats.DeleteSummary(ctx, s.call(), other.ID, id),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", what, err)
		}
	}
	if a := s.active(); a == nil || a.Method != summary.MethodModel {
		t.Errorf("active summary: %+v", a)
	}
}

func TestRulesReplaceAFailingSummaryModel(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	s.summaryModel.err = fault.New(fault.Blocked, "no")
	s.insertExchanges(14)
	s.chatAndSummarise(3)
	a := s.active()
	if a == nil || a.Method != summary.MethodExtractive || a.Model != "" {
		t.Fatalf("active summary: %+v, want one by rule", a)
	}
	s.runIdleJobs()
	if views := s.summaries(); len(views) != 1 {
		t.Errorf("%d summaries: the summary by rule was made again", len(views))
	}
	s.summaryModel.err = nil
	s.runIdleJobs()
	if a := s.active(); a == nil || a.Method != summary.MethodModel || a.Generation != 2 {
		t.Errorf("when the model is back: %+v", a)
	}
	if s.runIdleJobs() != 0 {
		t.Error("the summary is made again and again")
	}
}

// If a change overtakes a summary that is being written, the summary is made again,
// once.
func TestChangesWhileASummaryIsWritten(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *summaryFixture) error{
		"by another summary": func(s *summaryFixture) error {
			_, err := s.Chats.Summarise(s.t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
			return err
		},
		"by an edit": func(s *summaryFixture) error {
			s.edit(s.path()[4], "In other words.")
			return nil
		},
		"by a delete": func(s *summaryFixture) error {
			_, err := s.Chats.DeleteMessage(s.t.Context(), s.call(), s.path()[4].ID, "")
			return err
		},
		"by another branch": func(s *summaryFixture) error {
			_, err := s.Chats.ChooseHead(s.t.Context(), s.call(), s.chat.ID, s.path()[5].ID)
			return err
		},
		"by new messages, which do not matter": func(s *summaryFixture) error {
			s.sendExchanges(1)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSummaryFixture(t, "")
			s.summaryModel.meanwhile = func(context.Context) error { return meanwhile(s) }
			s.insertExchanges(14)
			s.chatAndSummarise(3)
			views := s.summaries()
			if len(views) > 1 {
				t.Errorf("%d summaries: %+v", len(views), views)
			}
			branch := name == "by another branch"
			if a := s.active(); (a == nil) != branch || a != nil && a.Stale {
				t.Errorf("active summary: %+v", a)
			}
		})
	}
}

// A process that crashes leaves a valid conversation, and the next process makes the
// summary.
func TestSummariesSurviveCrashes(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(s *summaryFixture, j *jobs.Job) error{
		"before it begins": func(*summaryFixture, *jobs.Job) error { return nil },
		"while the model is writing": func(s *summaryFixture, j *jobs.Job) error {
			ctx, die := context.WithCancel(s.t.Context())
			s.summaryModel.meanwhile = func(context.Context) error { die(); return ctx.Err() }
			return s.Chats.Kinds()[0].Run(ctx, j)
		},
		"at the commit, which comes too late": func(s *summaryFixture, j *jobs.Job) error {
			s.summaryModel.meanwhile = func(context.Context) error {
				expireLeases(s)
				s.must(s.endJob(s.claimJobs()[0], nil)) // another process ends it
				return nil
			}
			return s.runJob(j)
		},
		"after the commit": func(s *summaryFixture, j *jobs.Job) error { return s.runJob(j) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSummaryFixture(t, "")
			s.insertExchanges(14)
			for range 4 {
				s.sendExchanges(1)
				if claimed := s.claimJobs(); len(claimed) > 0 {
					if err := until(s, claimed[0]); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, jobs.ErrLost) {
						t.Fatal(err)
					}
					break
				}
			}
			s.prompt() // the prompt can be built
			s.crash()
			expireLeases(s)
			s.chatAndSummarise(1)
			if views := s.summaries(); len(views) != 1 || s.active() == nil {
				t.Errorf("summaries: %+v", views)
			}
		})
	}
}

// expireLeases ends the leases of all jobs.
func expireLeases(s *summaryFixture) {
	s.t.Helper()
	s.clock.advance(10 * time.Minute)
	s.must(s.db.RecoverJobs(s.t.Context(), map[string]int{chat.JobSummarise: 5}, ""))
}

func TestArchivesContainSummaries(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	save, err := s.Chats.CreateSave(t.Context(), s.call(), chat.SaveInput{ConversationID: s.chat.ID})
	s.must(err)
	_, err = s.Chats.EditSummary(t.Context(), s.call(), s.chat.ID, s.active().ID, "In my own words: they walked.")
	s.must(err)
	s.edit(s.covered(1), "Something else.")
	s.chatAndSummarise(2)
	data, _, err := written(t.Context(), s.Archives.ExportArchive, ann, s.chat.ID)
	s.must(err)
	p, err := s.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{})
	s.must(err)
	then, now, was := promptText(p.Messages), s.prompt(), s.active()

	copied, err := s.Archives.ImportArchive(t.Context(), s.call(), s.chat.CharacterID, data)
	s.must(err)
	saves, err := s.Chats.Saves(t.Context(), ann, copied.ID, false, "", 0)
	s.must(err)
	s.chat = copied
	if got := s.prompt(); got != now {
		t.Errorf("the imported copy sends\n%s\nwant\n%s", got, now)
	}
	if a := s.active(); a == nil || a.ID == was.ID || a.Text != was.Text || !a.Stale || a.Range.EndID == was.Range.EndID {
		t.Errorf("active summary: %+v", a)
	}
	p, err = s.PreviewSave(t.Context(), ann, saves.Items[0].ID, nodest.PreviewInput{})
	s.must(err)
	if got := promptText(p.Messages); got != then {
		t.Errorf("its save point shows\n%s\nwant\n%s", got, then)
	}
	var doc map[string]json.RawMessage
	s.must(json.Unmarshal(data, &doc))
	delete(doc, "summaries")
	old, err := json.Marshal(doc)
	s.must(err)
	if s.chat, err = s.Archives.ImportArchive(t.Context(), s.call(), s.chat.CharacterID, old); err != nil || s.active() != nil {
		t.Errorf("without summaries: %v", err)
	}
}

func TestSettingsReportTheTimeOfTheLastSummary(t *testing.T) {
	t.Parallel()
	s := newSummarisedChat(t)
	var got struct {
		Memory struct {
			LastSummarizedAt int64 `json:"lastSummarizedAt"`
			SummaryThreshold int   `json:"summaryThreshold"`
		} `json:"memory"`
	}
	doc, version, err := s.Characters.Settings(t.Context(), ann, s.chat.CharacterID)
	s.must(err)
	s.must(json.Unmarshal(doc, &got))
	if got.Memory.LastSummarizedAt != s.clock.Now().UnixMilli() || got.Memory.SummaryThreshold != 6000 || version != 1 {
		t.Errorf("settings at version %d: %s", version, doc)
	}
}

// A summary increases the version of its conversation but not its update time, so the
// list keeps its order.
func TestASummaryDoesNotReorderTheConversationList(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	s.insertExchanges(20)
	before, err := s.Chats.Conversation(t.Context(), ann, s.chat.ID)
	s.must(err)
	s.clock.advance(time.Minute)
	_, err = s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
	s.must(err)
	after, err := s.Chats.Conversation(t.Context(), ann, s.chat.ID)
	s.must(err)
	if after.Version != before.Version+1 || !after.UpdatedAt.Equal(before.UpdatedAt) || after.SummaryID == "" {
		t.Errorf("version %d of %v became %d of %v", before.Version, before.UpdatedAt, after.Version, after.UpdatedAt)
	}
}

// A request for a summary that another request has just made returns that summary.
func TestConcurrentSummaryRequestsGetOneSummary(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, `{"memory":{"enabled":false}}`)
	s.insertExchanges(14)
	var first *chat.SummaryView
	s.summaryModel.meanwhile = func(ctx context.Context) (err error) {
		first, err = s.Chats.Summarise(ctx, s.call(), s.chat.ID, chat.SummaryRange{})
		return err
	}
	second, err := s.Chats.Summarise(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{})
	if err != nil || second.ID != first.ID || len(s.summaries()) != 1 {
		t.Errorf("%+v and %+v, %v, %d in all", first, second, err, len(s.summaries()))
	}
}
