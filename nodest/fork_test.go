package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
	"nodest/nodest"
	"nodest/op"
)

// A fork has the messages, the note and the settings of the branch, and changes
// independently of it.
func TestAForkCopiesTheBranch(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 100)
	_, err := h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: all[40].ID, Text: "edited"})
	must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[10].ID, "one")
	must(t, err)
	h.addMessage(t, conv.ID, all[60].ID, "one way", "another way")
	conv = h.addMessage(t, conv.ID, all[70].ID, "the end")
	note := json.RawMessage(`{"content":"It rains."}`)
	conv, err = h.Chats.UpdateConversation(t.Context(), h.call(), chat.ConversationPatch{
		ID: conv.ID, AuthorNote: note, Settings: json.RawMessage(`{"maxTokens":50}`),
	})
	must(t, err)
	want := h.readAll(t, conv.ID, 200)
	h.takeEventTypes()

	call := h.call()
	fork, err := h.Chats.Fork(t.Context(), call, chat.ForkInput{ConversationID: conv.ID})
	must(t, err)
	if events := h.takeEventTypes(); !slices.Equal(events, []string{"chat.created"}) {
		t.Errorf("events = %v", events)
	}
	if fork.ID == conv.ID || fork.Title != conv.Title || string(fork.AuthorNote) != string(note) ||
		string(fork.Settings) != `{"maxTokens":50}` || fork.Version != 1 || fork.LastMessage.Text != "the end" {
		t.Errorf("fork = %+v", fork)
	}
	got := h.readAll(t, fork.ID, 13)
	sameMessages(t, "the fork", got, want)
	for _, m := range got {
		if slices.Contains(messageIDs(want), m.ID) {
			t.Errorf("message %s is in both conversations", m.ID)
		}
	}
	second, err := h.Chats.Fork(t.Context(), retryOf(call), chat.ForkInput{ConversationID: conv.ID})
	must(t, err)
	if second.ID != fork.ID {
		t.Error("the same call made another fork")
	}
	// The two change independently.
	h.addMessage(t, fork.ID, fork.HeadID, "only here")
	if a := describeMessages(t, h.readAll(t, conv.ID, 200)); a != describeMessages(t, want) {
		t.Error("the source has changed")
	}
}

func TestAForkFromTheMiddleAndOfAFork(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 90)
	fork, err := h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID, MessageID: all[80].ID, Title: "before the storm"})
	must(t, err)
	if fork.Title != "before the storm" {
		t.Errorf("title = %q", fork.Title)
	}
	sameMessages(t, "the fork", h.readAll(t, fork.ID, 50), all[:81])
	second, err := h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: fork.ID})
	must(t, err)
	sameMessages(t, "the fork of a fork", h.readAll(t, second.ID, 50), all[:81])
}

func TestInvalidForksAreRefused(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 4)
	other, otherMessages := h.newChat(t, 1)
	_, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[1].ID, "one")
	must(t, err)
	tests := []struct {
		name  string
		in    chat.ForkInput
		code  fault.Code
		field string
	}{
		{"an unknown conversation", chat.ForkInput{ConversationID: "x"}, fault.NotFound, ""},
		{"an unknown message", chat.ForkInput{ConversationID: conv.ID, MessageID: "x"}, fault.NotFound, "messageId"},
		{"a message of another conversation", chat.ForkInput{ConversationID: conv.ID, MessageID: otherMessages[0].ID}, fault.NotFound, "messageId"},
		{"a deleted message", chat.ForkInput{ConversationID: conv.ID, MessageID: all[1].ID}, fault.NotFound, "messageId"},
		{"a title of 201 characters", chat.ForkInput{ConversationID: conv.ID, Title: strings.Repeat("茶", 201)}, fault.Invalid, "title"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Chats.Fork(t.Context(), h.call(), tt.in)
			wantError(t, err, tt.code, tt.field)
		})
	}
	_, err = h.Chats.Fork(t.Context(), &op.Call{UserID: stranger}, chat.ForkInput{ConversationID: conv.ID})
	wantError(t, err, fault.NotFound, "")

	end := h.markAsWriting(t, all[4])
	_, err = h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID})
	wantError(t, err, fault.Busy, "")
	_, err = h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID, MessageID: all[3].ID})
	must(t, err) // the messages before it can be forked
	end()
	end = h.markAsWriting(t, all[2])
	_, err = h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID})
	wantError(t, err, fault.Busy, "")
	end()
	_, err = h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID})
	must(t, err)

	list, err := h.Chats.Conversations(t.Context(), me, chat.ConversationFilter{CharacterID: other.CharacterID}, "", 0)
	must(t, err)
	if len(list.Items) != 1 {
		t.Errorf("the other character has %d conversations, want 1", len(list.Items))
	}
}

// Export, prompt, branches, archive and search of a fork give the same as those of
// its source.
func TestAForkReadsLikeItsSource(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv, all := h.newChat(t, 30)
	fork, err := h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID})
	must(t, err)
	for name, read := range map[string]func(id string) string{
		"export": func(id string) string {
			data, _, err := written(t.Context(), h.Archives.ExportChat, me, id)
			must(t, err)
			return string(data)
		},
		"prompt": func(id string) string {
			p, err := h.PreviewPrompt(t.Context(), me, nodest.PreviewInput{ConversationID: id, Text: "And now?"})
			must(t, err)
			return promptText(p.Messages)
		},
		"branches": func(id string) string {
			page, err := h.Chats.Branches(t.Context(), me, id, "", 0)
			must(t, err)
			return strconv.Itoa(len(page.Items)) + "/" + strconv.Itoa(page.Items[0].MessageCount)
		},
		"archive": func(id string) string {
			data, _, err := written(t.Context(), h.Archives.ExportArchive, me, id)
			must(t, err)
			return strconv.Itoa(strings.Count(string(data), `"parentId"`))
		},
		"search": func(id string) string {
			return strings.Join(search(t, h, chat.SearchInput{Query: all[1].Text(), ConversationID: id}), "|")
		},
	} {
		if got, want := read(fork.ID), read(conv.ID); got != want {
			t.Errorf("%s of the fork\n%s\nof the source\n%s", name, got, want)
		}
	}
}

// crashingStore is a store whose process crashes after some transactions.
type crashingStore struct {
	nodest.Store
	left int
}

var errCrashed = errors.New("the process has died")

func (d *crashingStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	if d.left--; d.left < 0 {
		return errCrashed
	}
	return d.Store.Update(ctx, userID, fn)
}

// A fork of more than one step is hidden until its job has copied the rest. It
// is a copy of the branch at the time of the request, whatever happens to the source
// meanwhile, and is made once however often the process crashes.
func TestALongForkIsCompletedByItsJob(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv := h.importLongChat(t, h.character(alice).ID, 440)
	all := h.readAll(t, conv.ID, 200)
	_, err := h.Chats.DeleteMessage(t.Context(), h.call(), all[430].ID, "one")
	must(t, err)
	h.addMessage(t, conv.ID, conv.HeadID, "one way", "another way")
	all = h.readAll(t, conv.ID, 200)
	h.takeEventTypes()

	call := h.call()
	begun := time.Now()
	fork, err := h.Chats.Fork(t.Context(), call, chat.ForkInput{ConversationID: conv.ID, Title: "kept"})
	must(t, err)
	t.Logf("answered after %v", time.Since(begun))
	if !fork.Copying || len(h.takeEventTypes()) != 0 {
		t.Fatal("the fork is shown before it is complete")
	}
	_, err = h.Chats.Conversation(t.Context(), me, fork.ID)
	wantError(t, err, fault.NotFound, "")
	_, err = h.Send(t.Context(), h.call(), nodest.SendInput{ConversationID: fork.ID, Text: "too early"})
	wantError(t, err, fault.NotFound, "")
	again, err := h.Chats.Fork(t.Context(), retryOf(call), chat.ForkInput{ConversationID: conv.ID, Title: "kept"})
	must(t, err)
	if again.ID != fork.ID || !again.Copying {
		t.Errorf("the same call answers %+v", again)
	}
	// Meanwhile the source is edited and deleted.
	for _, m := range []*chat.Message{all[280], all[435]} {
		_, err = h.Edit(t.Context(), h.call(), chat.EditInput{MessageID: m.ID, Text: "edited"})
		must(t, err)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.call(), all[360].ID, "after")
	must(t, err)
	must(t, h.DeleteConversation(t.Context(), h.call(), conv.ID))
	h.takeEventTypes()

	first := newEngine(&crashingStore{h.db, 1}, noModels{}, h.events, nodest.Options{Alone: true})
	j := claimFork(t, h.db, "first")
	if err := runFork(first, j); !errors.Is(err, errCrashed) {
		t.Fatal(err)
	}
	progress := func() string {
		page, err := memory.New(h.db.Memory(), memory.Options{}).Jobs(t.Context(), me, conv.CharacterID, "", 0)
		must(t, err)
		for _, j := range page.Items {
			if j.Kind == chat.JobFork {
				return string(j.State) + " " + string(j.Progress)
			}
		}
		return "none"
	}
	if got := progress(); got != `running {"copied":400,"total":441}` {
		t.Errorf("after the first process: %s", got)
	}
	must(t, h.db.RecoverJobs(t.Context(), map[string]int{chat.JobFork: 100}, "second"))
	second := claimFork(t, h.db, "second")
	if err := runFork(h.Engine, j); !errors.Is(err, jobs.ErrLost) { // it was still running
		t.Errorf("the first process goes on: %v", err)
	}
	_, err = h.Chats.Conversation(t.Context(), stranger, fork.ID)
	wantError(t, err, fault.NotFound, "")
	must(t, runFork(h.Engine, second))
	if got := progress(); got != `done {"copied":441,"total":441}` {
		t.Errorf("in the end: %s", got)
	}
	if err := runFork(h.Engine, second); err != nil {
		t.Errorf("once more: %v", err)
	}
	if events := h.takeEventTypes(); !slices.Equal(events, []string{"chat.created"}) {
		t.Errorf("events = %v", events)
	}
	got := h.readAll(t, fork.ID, 200)
	for _, i := range []int{280, 435} {
		got[i].EditedAt = nil // the edit of the source is not in the fork
	}
	sameMessages(t, "the fork", got, all)
	list, err := h.Chats.Conversations(t.Context(), me, chat.ConversationFilter{CharacterID: conv.CharacterID}, "", 0)
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].ID != fork.ID || list.Items[0].Title != "kept" || list.Items[0].Copying || list.Items[0].Version != 1 {
		t.Errorf("conversations = %+v", list.Items)
	}
	h.addMessage(t, fork.ID, fork.HeadID, "on")
	_, err = h.Chats.Conversation(t.Context(), stranger, fork.ID)
	wantError(t, err, fault.NotFound, "")
}

// A fork whose character is deleted during the copy never appears.
func TestDeletingTheCharacterCancelsALongFork(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	conv := h.importLongChat(t, h.character(alice).ID, forkStep+1)
	fork, err := h.Chats.Fork(t.Context(), h.call(), chat.ForkInput{ConversationID: conv.ID})
	must(t, err)
	must(t, h.DeleteCharacter(t.Context(), h.call(), conv.CharacterID))
	h.takeEventTypes()
	must(t, runFork(h.Engine, claimFork(t, h.db, "p")))
	_, err = h.Chats.Conversation(t.Context(), me, fork.ID)
	wantError(t, err, fault.NotFound, "")
	if events := h.takeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v", events)
	}
}
