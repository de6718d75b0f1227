package nodest_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
)

func TestAnEditKeepsTheOldText(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 2)
	was := all[2].Chosen()
	h.takeEventTypes()
	out, err := h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[2].ID, Text: "better", IfRev: 1})
	must(t, err)
	m, err := h.Chats.Message(t.Context(), me, out.Message.ID)
	must(t, err)
	if m.Text() != "better" || m.Rev != 2 || m.EditedAt == nil || m.Chosen().ID != was.ID || m.Chosen().RevisionID == was.RevisionID {
		t.Errorf("message = %+v", m)
	}
	if events := h.takeEventTypes(); !slices.Equal(events, []string{"message.updated"}) {
		t.Errorf("events = %v", events)
	}
	must(t, h.db.View(t.Context(), me, func(tx nodest.Tx) error {
		old, err := tx.Chats.Revision(was.RevisionID)
		if err == nil && old.Text != "text 2" {
			t.Errorf("the old text reads %q", old.Text)
		}
		return err
	}))
	after, err := h.Chats.Conversation(t.Context(), me, conv.ID)
	must(t, err)
	if after.Version != conv.Version+1 || after.LastMessage.Text != "better" {
		t.Errorf("conversation is at version %d and ends in %q", after.Version, after.LastMessage.Text)
	}
}

func TestAnEditOfAnOldRevisionIsAConflict(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	_, all := h.newChat(t, 1)
	_, err := h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[1].ID, Text: "one", IfRev: 1})
	must(t, err)
	_, err = h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[1].ID, Text: "two", IfRev: 1})
	wantError(t, err, fault.Conflict, "")
	var e *fault.Error
	errors.As(err, &e)
	current, err := json.Marshal(e.Details["current"])
	must(t, err)
	for _, part := range []string{`"text":"one"`, `"rev":2`, `"id":"` + all[1].ID} {
		if !strings.Contains(string(current), part) {
			t.Errorf("details.current = %s, want %s in it", current, part)
		}
	}
	_, err = h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[1].ID, Text: "two"})
	must(t, err) // without a revision the last write wins
}

func TestAFailedReplyCanBeEdited(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 1)
	conv = h.addMessage(t, conv.ID, all[1].ID)
	out, err := h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: conv.HeadID, Text: "mine"})
	must(t, err)
	if m := out.Message; m.Text() != "mine" || m.Status != chat.StatusComplete || len(m.Swipes) != 1 {
		t.Errorf("message = %+v", m)
	}
}

func TestSwipes(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 1)
	conv = h.addMessage(t, conv.ID, all[1].ID, "a", "b", "c")
	id := conv.HeadID
	m, err := h.Chats.Message(t.Context(), me, id)
	must(t, err)
	swipe := func(to, want string) {
		t.Helper()
		out, err := h.Swipe(t.Context(), h.call(), chat.SwipeInput{MessageID: id, Swipe: to})
		must(t, err)
		stored, err := h.Chats.Message(t.Context(), me, id)
		must(t, err)
		if out.Message.Text() != want || stored.Text() != want {
			t.Errorf("%s shows %q, want %q", to, stored.Text(), want)
		}
	}
	swipe("prev", "a") // at the beginning nothing changes
	swipe("next", "b")
	swipe("next", "c")
	swipe("next", "c") // nor does it at the end
	swipe(m.Swipes[0].ID, "a")

	_, err = h.Swipe(t.Context(), h.call(), chat.SwipeInput{MessageID: id, Swipe: "nothing"})
	wantError(t, err, fault.NotFound, "")
	_, err = h.Swipe(t.Context(), h.call(), chat.SwipeInput{MessageID: id, Swipe: "next", IfRev: 1})
	wantError(t, err, fault.Conflict, "")
	_, err = h.Swipe(t.Context(), h.call(), chat.SwipeInput{MessageID: id})
	wantError(t, err, fault.Invalid, "swipe")

	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), id, "swipe")
	must(t, err)
	swipe("prev", "b") // a is hidden
	swipe("next", "c")
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), id, "swipe")
	must(t, err)
	swipe("prev", "b")
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), id, "swipe")
	wantError(t, err, fault.Invalid, "scope") // the last one
	_, err = h.Chats.RestoreMessage(t.Context(), h.call(), id)
	must(t, err)
	swipe("prev", "a")
}

func TestAMessageBeingWrittenCannotBeChanged(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	_, all := h.newChat(t, 3)
	end := h.markAsWriting(t, all[2])
	_, err := h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	wantError(t, err, fault.Busy, "")
	_, err = h.Swipe(t.Context(), h.call(), chat.SwipeInput{MessageID: all[2].ID, Swipe: "next"})
	wantError(t, err, fault.Busy, "")
	for _, scope := range []string{"one", "after", "swipe"} {
		_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[2].ID, scope)
		wantError(t, err, fault.Busy, "")
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "after") // the range contains it
	wantError(t, err, fault.Busy, "")
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "one")
	must(t, err) // another message can be deleted
	end()
	_, err = h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	must(t, err)
}

func TestADeletedMessageKeepsItsChildrenAndCanBeRestored(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 4)
	whole := h.branchTexts(conv.ID)
	h.takeEventTypes()
	out, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[2].ID, "")
	must(t, err)
	if !slices.Equal(out.MessageIDs, []string{all[2].ID}) || out.HeadID != conv.HeadID || out.RestoredUntil.IsZero() {
		t.Errorf("deleted = %+v", out)
	}
	if got, want := h.branchTexts(conv.ID), slices.Delete(slices.Clone(whole), 2, 3); !slices.Equal(got, want) {
		t.Errorf("the branch reads %q, want %q", got, want)
	}
	_, err = h.Chats.Message(t.Context(), me, all[2].ID)
	wantError(t, err, fault.NotFound, "")
	_, err = h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	wantError(t, err, fault.NotFound, "")
	_, err = h.Chats.ChooseHead(t.Context(), h.call(), conv.ID, all[2].ID)
	wantError(t, err, fault.NotFound, "")

	back, err := h.Chats.RestoreMessage(t.Context(), h.call(), all[2].ID)
	must(t, err)
	if !slices.Equal(back.MessageIDs, []string{all[2].ID}) || back.HeadID != conv.HeadID {
		t.Errorf("restored = %+v", back)
	}
	if got := h.branchTexts(conv.ID); !slices.Equal(got, whole) {
		t.Errorf("the branch reads %q, want %q", got, whole)
	}
	if events := h.takeEventTypes(); !slices.Equal(events, []string{"message.deleted", "message.restored"}) {
		t.Errorf("events = %v", events)
	}
}

func TestDeletingTheHeadShowsTheMessageBeforeIt(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 3)
	_, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[2].ID, "one")
	must(t, err)
	h.takeEventTypes()
	out, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[3].ID, "one")
	must(t, err)
	after, err := h.Chats.Conversation(t.Context(), me, conv.ID)
	must(t, err)
	if out.HeadID != all[1].ID || after.HeadID != all[1].ID || after.LastMessage.ID != all[1].ID {
		t.Errorf("the head is %s, want %s", after.HeadID, all[1].ID)
	}
	if events := h.takeEventTypes(); !slices.Equal(events, []string{"message.deleted", "chat.updated"}) {
		t.Errorf("events = %v", events)
	}
	back, err := h.Chats.RestoreMessage(t.Context(), h.call(), all[3].ID)
	must(t, err)
	if back.HeadID != all[3].ID {
		t.Errorf("the head is %s again, want %s", back.HeadID, all[3].ID)
	}
}

func TestDeletingAllLeavesAnEmptyConversation(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 3)
	out, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[0].ID, "after")
	must(t, err)
	if len(out.MessageIDs) != 4 || out.HeadID != "" {
		t.Errorf("deleted = %+v", out)
	}
	if got := h.branchTexts(conv.ID); len(got) != 0 {
		t.Errorf("the branch reads %q, want nothing", got)
	}
	after, err := h.Chats.Conversation(t.Context(), me, conv.ID)
	must(t, err)
	if after.LastMessage != nil {
		t.Errorf("the last message is %+v", after.LastMessage)
	}
	back, err := h.Chats.RestoreMessage(t.Context(), h.call(), all[0].ID)
	must(t, err)
	if len(back.MessageIDs) != 4 || back.HeadID != all[3].ID || len(h.branchTexts(conv.ID)) != 4 {
		t.Errorf("restored = %+v", back)
	}
}

func TestUndoingADeleteShowsTheBranchThatWasShown(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 3)
	h.addMessage(t, conv.ID, all[1].ID, "a newer branch")
	_, err := h.Chats.ChooseHead(t.Context(), h.call(), conv.ID, all[3].ID)
	must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "after")
	must(t, err)
	back, err := h.Chats.RestoreMessage(t.Context(), h.call(), all[1].ID)
	must(t, err)
	if back.HeadID != all[3].ID || len(back.MessageIDs) != 4 {
		t.Errorf("restored = %+v, want the head %s", back, all[3].ID)
	}
}

func TestDeletingAfterDeletesTheBranchesToo(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 3)
	h.addMessage(t, conv.ID, all[1].ID, "a side branch") // this is now the head
	_, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[3].ID, "one")
	must(t, err)
	out, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "after")
	must(t, err)
	if len(out.MessageIDs) != 3 || out.HeadID != all[0].ID {
		t.Errorf("deleted = %+v, want three messages", out)
	}
	_, err = h.Chats.RestoreMessage(t.Context(), h.call(), all[1].ID)
	must(t, err)
	if got := h.branchTexts(conv.ID); !slices.Equal(got[1:], []string{"text 1", "a side branch"}) {
		t.Errorf("the branch reads %q", got)
	}
	_, err = h.Chats.Message(t.Context(), me, all[3].ID)
	wantError(t, err, fault.NotFound, "") // it was deleted separately and stays deleted
}

// Two deletes in the same millisecond are undone separately.
func TestDeletesAtTheSameTimeAreUndoneOneByOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newFixtureWithClock(t, nodest.Options{}, func() time.Time { return now })
	c := s.chat()
	first := s.sendAndWait(c, "The first turn.")
	last := s.sendAndWait(c, "The second turn.")
	for _, m := range []*chat.Message{last, first} {
		_, err := s.Chats.DeleteMessage(t.Context(), s.call(), m.ID, "one")
		s.must(err)
	}
	back, err := s.Chats.RestoreMessage(t.Context(), s.call(), first.ID)
	s.must(err)
	if !slices.Equal(back.MessageIDs, []string{first.ID}) {
		t.Errorf("restored %v, want %s alone", back.MessageIDs, first.ID)
	}
}

func TestRestoringAnExistingMessageChangesNothing(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 1)
	h.takeEventTypes()
	out, err := h.Chats.RestoreMessage(t.Context(), h.call(), all[1].ID)
	must(t, err)
	if len(out.MessageIDs) != 0 || out.HeadID != conv.HeadID || len(h.takeEventTypes()) != 0 {
		t.Errorf("restored = %+v", out)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "everything")
	wantError(t, err, fault.Invalid, "scope")
}
