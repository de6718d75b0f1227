package chat_test

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
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// A fork has the messages, the note and the settings of the branch, and changes
// independently of it.
func TestAForkCopiesTheBranch(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 100)
	_, err := h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: all[40].ID, Text: "edited"})
	nodesttest.Must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[10].ID, "one")
	nodesttest.Must(t, err)
	h.AddMessage(t, conv.ID, all[60].ID, "one way", "another way")
	conv = h.AddMessage(t, conv.ID, all[70].ID, "the end")
	note := json.RawMessage(`{"content":"It rains."}`)
	conv, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{
		ID: conv.ID, AuthorNote: note, Settings: json.RawMessage(`{"maxTokens":50}`),
	})
	nodesttest.Must(t, err)
	want := h.ReadAll(t, conv.ID, 200)
	h.TakeEventTypes()

	call := h.Call()
	fork, err := h.Chats.Fork(t.Context(), call, chat.ForkInput{ConversationID: conv.ID})
	nodesttest.Must(t, err)
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.created"}) {
		t.Errorf("events = %v", events)
	}
	if fork.ID == conv.ID || fork.Title != conv.Title || string(fork.AuthorNote) != string(note) ||
		string(fork.Settings) != `{"maxTokens":50}` || fork.Version != 1 || fork.LastMessage.Text != "the end" {
		t.Errorf("fork = %+v", fork)
	}
	got := h.ReadAll(t, fork.ID, 13)
	nodesttest.SameMessages(t, "the fork", got, want)
	for _, m := range got {
		if slices.Contains(nodesttest.MessageIDs(want), m.ID) {
			t.Errorf("message %s is in both conversations", m.ID)
		}
	}
	second, err := h.Chats.Fork(t.Context(), nodesttest.RetryOf(call), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.Must(t, err)
	if second.ID != fork.ID {
		t.Error("the same call made another fork")
	}
	// The two change independently.
	h.AddMessage(t, fork.ID, fork.HeadID, "only here")
	if a := nodesttest.DescribeMessages(t, h.ReadAll(t, conv.ID, 200)); a != nodesttest.DescribeMessages(t, want) {
		t.Error("the source has changed")
	}
}

func TestAForkFromTheMiddleAndOfAFork(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 90)
	fork, err := h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID, MessageID: all[80].ID, Title: "before the storm"})
	nodesttest.Must(t, err)
	if fork.Title != "before the storm" {
		t.Errorf("title = %q", fork.Title)
	}
	nodesttest.SameMessages(t, "the fork", h.ReadAll(t, fork.ID, 50), all[:81])
	second, err := h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: fork.ID})
	nodesttest.Must(t, err)
	nodesttest.SameMessages(t, "the fork of a fork", h.ReadAll(t, second.ID, 50), all[:81])
}

func TestInvalidForksAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	other, otherMessages := h.NewChat(t, 1)
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[1].ID, "one")
	nodesttest.Must(t, err)
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
			_, err := h.Chats.Fork(t.Context(), h.Call(), tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	_, err = h.Chats.Fork(t.Context(), &op.Call{UserID: nodesttest.Bob}, chat.ForkInput{ConversationID: conv.ID})
	nodesttest.WantError(t, err, fault.NotFound, "")

	end := h.MarkAsWriting(t, all[4])
	_, err = h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.WantError(t, err, fault.Busy, "")
	_, err = h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID, MessageID: all[3].ID})
	nodesttest.Must(t, err) // the messages before it can be forked
	end()
	end = h.MarkAsWriting(t, all[2])
	_, err = h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.WantError(t, err, fault.Busy, "")
	end()
	_, err = h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.Must(t, err)

	list, err := h.Chats.Conversations(t.Context(), nodesttest.Ann, chat.ConversationFilter{CharacterID: other.CharacterID}, "", 0)
	nodesttest.Must(t, err)
	if len(list.Items) != 1 {
		t.Errorf("the other character has %d conversations, want 1", len(list.Items))
	}
}

// Export, prompt, branches, archive and search of a fork give the same as those of
// its source.
func TestAForkReadsLikeItsSource(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 30)
	fork, err := h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.Must(t, err)
	for name, read := range map[string]func(id string) string{
		"export": func(id string) string {
			data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportChat, nodesttest.Ann, id)
			nodesttest.Must(t, err)
			return string(data)
		},
		"prompt": func(id string) string {
			p, err := h.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: id, Text: "And now?"})
			nodesttest.Must(t, err)
			return nodesttest.PromptText(p.Messages)
		},
		"branches": func(id string) string {
			page, err := h.Chats.Branches(t.Context(), nodesttest.Ann, id, "", 0)
			nodesttest.Must(t, err)
			return strconv.Itoa(len(page.Items)) + "/" + strconv.Itoa(page.Items[0].MessageCount)
		},
		"archive": func(id string) string {
			data, _, err := nodesttest.Written(t.Context(), h.Archives.ExportArchive, nodesttest.Ann, id)
			nodesttest.Must(t, err)
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
	h := nodesttest.NewWithoutModel(t)
	conv := h.ImportLongChat(t, h.Character(nodesttest.Alice).ID, 440)
	all := h.ReadAll(t, conv.ID, 200)
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[430].ID, "one")
	nodesttest.Must(t, err)
	h.AddMessage(t, conv.ID, conv.HeadID, "one way", "another way")
	all = h.ReadAll(t, conv.ID, 200)
	h.TakeEventTypes()

	call := h.Call()
	begun := time.Now()
	fork, err := h.Chats.Fork(t.Context(), call, chat.ForkInput{ConversationID: conv.ID, Title: "kept"})
	nodesttest.Must(t, err)
	t.Logf("answered after %v", time.Since(begun))
	if !fork.Copying || len(h.TakeEventTypes()) != 0 {
		t.Fatal("the fork is shown before it is complete")
	}
	_, err = h.Chats.Conversation(t.Context(), nodesttest.Ann, fork.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Send(t.Context(), h.Call(), nodest.SendInput{ConversationID: fork.ID, Text: "too early"})
	nodesttest.WantError(t, err, fault.NotFound, "")
	again, err := h.Chats.Fork(t.Context(), nodesttest.RetryOf(call), chat.ForkInput{ConversationID: conv.ID, Title: "kept"})
	nodesttest.Must(t, err)
	if again.ID != fork.ID || !again.Copying {
		t.Errorf("the same call answers %+v", again)
	}
	// Meanwhile the source is edited and deleted.
	for _, m := range []*chat.Message{all[280], all[435]} {
		_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: m.ID, Text: "edited"})
		nodesttest.Must(t, err)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[360].ID, "after")
	nodesttest.Must(t, err)
	nodesttest.Must(t, h.DeleteConversation(t.Context(), h.Call(), conv.ID))
	h.TakeEventTypes()

	first := nodesttest.NewEngine(&crashingStore{h.DB, 1}, nodesttest.NoModels{}, h.Events, nodest.Options{Alone: true})
	j := nodesttest.ClaimFork(t, h.DB, "first")
	if err := nodesttest.RunFork(first, j); !errors.Is(err, errCrashed) {
		t.Fatal(err)
	}
	progress := func() string {
		page, err := memory.New(h.DB.Memory(), memory.Options{}).Jobs(t.Context(), nodesttest.Ann, conv.CharacterID, "", 0)
		nodesttest.Must(t, err)
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
	nodesttest.Must(t, h.DB.RecoverJobs(t.Context(), map[string]int{chat.JobFork: 100}, "second"))
	second := nodesttest.ClaimFork(t, h.DB, "second")
	if err := nodesttest.RunFork(h.Engine, j); !errors.Is(err, jobs.ErrLost) { // it was still running
		t.Errorf("the first process goes on: %v", err)
	}
	_, err = h.Chats.Conversation(t.Context(), nodesttest.Bob, fork.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	nodesttest.Must(t, nodesttest.RunFork(h.Engine, second))
	if got := progress(); got != `done {"copied":441,"total":441}` {
		t.Errorf("in the end: %s", got)
	}
	if err := nodesttest.RunFork(h.Engine, second); err != nil {
		t.Errorf("once more: %v", err)
	}
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.created"}) {
		t.Errorf("events = %v", events)
	}
	got := h.ReadAll(t, fork.ID, 200)
	for _, i := range []int{280, 435} {
		got[i].EditedAt = nil // the edit of the source is not in the fork
	}
	nodesttest.SameMessages(t, "the fork", got, all)
	list, err := h.Chats.Conversations(t.Context(), nodesttest.Ann, chat.ConversationFilter{CharacterID: conv.CharacterID}, "", 0)
	nodesttest.Must(t, err)
	if len(list.Items) != 1 || list.Items[0].ID != fork.ID || list.Items[0].Title != "kept" || list.Items[0].Copying || list.Items[0].Version != 1 {
		t.Errorf("conversations = %+v", list.Items)
	}
	h.AddMessage(t, fork.ID, fork.HeadID, "on")
	_, err = h.Chats.Conversation(t.Context(), nodesttest.Bob, fork.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
}

// A fork whose character is deleted during the copy never appears.
func TestDeletingTheCharacterCancelsALongFork(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv := h.ImportLongChat(t, h.Character(nodesttest.Alice).ID, nodesttest.ForkStep+1)
	fork, err := h.Chats.Fork(t.Context(), h.Call(), chat.ForkInput{ConversationID: conv.ID})
	nodesttest.Must(t, err)
	nodesttest.Must(t, h.DeleteCharacter(t.Context(), h.Call(), conv.CharacterID))
	h.TakeEventTypes()
	nodesttest.Must(t, nodesttest.RunFork(h.Engine, nodesttest.ClaimFork(t, h.DB, "p")))
	_, err = h.Chats.Conversation(t.Context(), nodesttest.Ann, fork.ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	if events := h.TakeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v", events)
	}
}
