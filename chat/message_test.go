package chat_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestAnEditKeepsTheOldText(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 2)
	was := all[2].Chosen()
	h.TakeEventTypes()
	out, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[2].ID, Text: "better", IfRev: 1})
	nodesttest.Must(t, err)
	m, err := h.Chats.Message(t.Context(), nodesttest.Ann, out.Message.ID)
	nodesttest.Must(t, err)
	if m.Text() != "better" || m.Rev != 2 || m.EditedAt == nil || m.Chosen().ID != was.ID || m.Chosen().RevisionID == was.RevisionID {
		t.Errorf("message = %+v", m)
	}
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"message.updated"}) {
		t.Errorf("events = %v", events)
	}
	nodesttest.Must(t, h.DB.View(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		old, err := tx.Chats.Revision(was.RevisionID)
		if err == nil && old.Text != "text 2" {
			t.Errorf("the old text reads %q", old.Text)
		}
		return err
	}))
	after, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if after.Version != conv.Version+1 || after.LastMessage.Text != "better" {
		t.Errorf("conversation is at version %d and ends in %q", after.Version, after.LastMessage.Text)
	}
}

func TestAnEditOfAnOldRevisionIsAConflict(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	_, all := h.NewChat(t, 1)
	_, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[1].ID, Text: "one", IfRev: 1})
	nodesttest.Must(t, err)
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[1].ID, Text: "two", IfRev: 1})
	nodesttest.WantError(t, err, fault.Conflict, "")
	var e *fault.Error
	errors.As(err, &e)
	current, err := json.Marshal(e.Details["current"])
	nodesttest.Must(t, err)
	for _, part := range []string{`"text":"one"`, `"rev":2`, `"id":"` + all[1].ID} {
		if !strings.Contains(string(current), part) {
			t.Errorf("details.current = %s, want %s in it", current, part)
		}
	}
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[1].ID, Text: "two"})
	nodesttest.Must(t, err) // without a revision the last write wins
}

func TestAFailedReplyCanBeEdited(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 1)
	conv = h.AddMessage(t, conv.ID, all[1].ID)
	out, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: conv.HeadID, Text: "mine"})
	nodesttest.Must(t, err)
	if m := out.Message; m.Text() != "mine" || m.Status != chat.StatusComplete || len(m.Swipes) != 1 {
		t.Errorf("message = %+v", m)
	}
}

func TestSwipes(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 1)
	conv = h.AddMessage(t, conv.ID, all[1].ID, "a", "b", "c")
	id := conv.HeadID
	m, err := h.Chats.Message(t.Context(), nodesttest.Ann, id)
	nodesttest.Must(t, err)
	swipe := func(to, want string) {
		t.Helper()
		out, err := h.Swipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: id, Swipe: to})
		nodesttest.Must(t, err)
		stored, err := h.Chats.Message(t.Context(), nodesttest.Ann, id)
		nodesttest.Must(t, err)
		if out.Message.Text() != want || stored.Text() != want {
			t.Errorf("%s shows %q, want %q", to, stored.Text(), want)
		}
	}
	swipe("prev", "a") // at the beginning nothing changes
	swipe("next", "b")
	swipe("next", "c")
	swipe("next", "c") // nor does it at the end
	swipe(m.Swipes[0].ID, "a")

	_, err = h.Swipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: id, Swipe: "nothing"})
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Swipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: id, Swipe: "next", IfRev: 1})
	nodesttest.WantError(t, err, fault.Conflict, "")
	_, err = h.Swipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: id})
	nodesttest.WantError(t, err, fault.Invalid, "swipe")

	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), id, "swipe")
	nodesttest.Must(t, err)
	swipe("prev", "b") // a is hidden
	swipe("next", "c")
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), id, "swipe")
	nodesttest.Must(t, err)
	swipe("prev", "b")
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), id, "swipe")
	nodesttest.WantError(t, err, fault.Invalid, "scope") // the last one
	_, err = h.Chats.RestoreMessage(t.Context(), h.Call(), id)
	nodesttest.Must(t, err)
	swipe("prev", "a")
}

func TestAMessageBeingWrittenCannotBeChanged(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	_, all := h.NewChat(t, 3)
	end := h.MarkAsWriting(t, all[2])
	_, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	nodesttest.WantError(t, err, fault.Busy, "")
	_, err = h.Swipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: all[2].ID, Swipe: "next"})
	nodesttest.WantError(t, err, fault.Busy, "")
	for _, scope := range []string{"one", "after", "swipe"} {
		_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[2].ID, scope)
		nodesttest.WantError(t, err, fault.Busy, "")
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "after") // the range contains it
	nodesttest.WantError(t, err, fault.Busy, "")
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "one")
	nodesttest.Must(t, err) // another message can be deleted
	end()
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	nodesttest.Must(t, err)
}

func TestADeletedMessageKeepsItsChildrenAndCanBeRestored(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	whole := h.BranchTexts(conv.ID)
	h.TakeEventTypes()
	out, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[2].ID, "")
	nodesttest.Must(t, err)
	if !slices.Equal(out.MessageIDs, []string{all[2].ID}) || out.HeadID != conv.HeadID || out.RestoredUntil.IsZero() {
		t.Errorf("deleted = %+v", out)
	}
	if got, want := h.BranchTexts(conv.ID), slices.Delete(slices.Clone(whole), 2, 3); !slices.Equal(got, want) {
		t.Errorf("the branch reads %q, want %q", got, want)
	}
	_, err = h.Chats.Message(t.Context(), nodesttest.Ann, all[2].ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[2].ID, Text: "x"})
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[2].ID)
	nodesttest.WantError(t, err, fault.NotFound, "")

	back, err := h.Chats.RestoreMessage(t.Context(), h.Call(), all[2].ID)
	nodesttest.Must(t, err)
	if !slices.Equal(back.MessageIDs, []string{all[2].ID}) || back.HeadID != conv.HeadID {
		t.Errorf("restored = %+v", back)
	}
	if got := h.BranchTexts(conv.ID); !slices.Equal(got, whole) {
		t.Errorf("the branch reads %q, want %q", got, whole)
	}
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"message.deleted", "message.restored"}) {
		t.Errorf("events = %v", events)
	}
}

func TestDeletingTheHeadShowsTheMessageBeforeIt(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 3)
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[2].ID, "one")
	nodesttest.Must(t, err)
	h.TakeEventTypes()
	out, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[3].ID, "one")
	nodesttest.Must(t, err)
	after, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if out.HeadID != all[1].ID || after.HeadID != all[1].ID || after.LastMessage.ID != all[1].ID {
		t.Errorf("the head is %s, want %s", after.HeadID, all[1].ID)
	}
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"message.deleted", "chat.updated"}) {
		t.Errorf("events = %v", events)
	}
	back, err := h.Chats.RestoreMessage(t.Context(), h.Call(), all[3].ID)
	nodesttest.Must(t, err)
	if back.HeadID != all[3].ID {
		t.Errorf("the head is %s again, want %s", back.HeadID, all[3].ID)
	}
}

func TestDeletingAllLeavesAnEmptyConversation(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 3)
	out, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[0].ID, "after")
	nodesttest.Must(t, err)
	if len(out.MessageIDs) != 4 || out.HeadID != "" {
		t.Errorf("deleted = %+v", out)
	}
	if got := h.BranchTexts(conv.ID); len(got) != 0 {
		t.Errorf("the branch reads %q, want nothing", got)
	}
	after, err := h.Chats.Conversation(t.Context(), nodesttest.Ann, conv.ID)
	nodesttest.Must(t, err)
	if after.LastMessage != nil {
		t.Errorf("the last message is %+v", after.LastMessage)
	}
	back, err := h.Chats.RestoreMessage(t.Context(), h.Call(), all[0].ID)
	nodesttest.Must(t, err)
	if len(back.MessageIDs) != 4 || back.HeadID != all[3].ID || len(h.BranchTexts(conv.ID)) != 4 {
		t.Errorf("restored = %+v", back)
	}
}

func TestUndoingADeleteShowsTheBranchThatWasShown(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 3)
	h.AddMessage(t, conv.ID, all[1].ID, "a newer branch")
	_, err := h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[3].ID)
	nodesttest.Must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "after")
	nodesttest.Must(t, err)
	back, err := h.Chats.RestoreMessage(t.Context(), h.Call(), all[1].ID)
	nodesttest.Must(t, err)
	if back.HeadID != all[3].ID || len(back.MessageIDs) != 4 {
		t.Errorf("restored = %+v, want the head %s", back, all[3].ID)
	}
}

func TestDeletingAfterDeletesTheBranchesToo(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 3)
	h.AddMessage(t, conv.ID, all[1].ID, "a side branch") // this is now the head
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[3].ID, "one")
	nodesttest.Must(t, err)
	out, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "after")
	nodesttest.Must(t, err)
	if len(out.MessageIDs) != 3 || out.HeadID != all[0].ID {
		t.Errorf("deleted = %+v, want three messages", out)
	}
	_, err = h.Chats.RestoreMessage(t.Context(), h.Call(), all[1].ID)
	nodesttest.Must(t, err)
	if got := h.BranchTexts(conv.ID); !slices.Equal(got[1:], []string{"text 1", "a side branch"}) {
		t.Errorf("the branch reads %q", got)
	}
	_, err = h.Chats.Message(t.Context(), nodesttest.Ann, all[3].ID)
	nodesttest.WantError(t, err, fault.NotFound, "") // it was deleted separately and stays deleted
}

// Two deletes in the same millisecond are undone separately.
func TestDeletesAtTheSameTimeAreUndoneOneByOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := nodesttest.NewWithClock(t, nodest.Options{}, func() time.Time { return now })
	c := s.Chat()
	first := s.SayAndWait(c, "The first turn.")
	last := s.SayAndWait(c, "The second turn.")
	for _, m := range []*chat.Message{last, first} {
		_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), m.ID, "one")
		s.Must(err)
	}
	back, err := s.Chats.RestoreMessage(t.Context(), s.Call(), first.ID)
	s.Must(err)
	if !slices.Equal(back.MessageIDs, []string{first.ID}) {
		t.Errorf("restored %v, want %s alone", back.MessageIDs, first.ID)
	}
}

func TestRestoringAnExistingMessageChangesNothing(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 1)
	h.TakeEventTypes()
	out, err := h.Chats.RestoreMessage(t.Context(), h.Call(), all[1].ID)
	nodesttest.Must(t, err)
	if len(out.MessageIDs) != 0 || out.HeadID != conv.HeadID || len(h.TakeEventTypes()) != 0 {
		t.Errorf("restored = %+v", out)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "everything")
	nodesttest.WantError(t, err, fault.Invalid, "scope")
}
