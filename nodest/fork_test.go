package nodest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/fault"
	"nodest/nodest"
)

// whole is the shown branch, read as clients read it.
func (h *home) whole(t *testing.T, conversationID string, pageLength int) []*nodest.Message {
	t.Helper()
	var all []*nodest.Message
	for before, more := "", true; more; {
		page, err := h.History(t.Context(), me, conversationID, before, pageLength)
		must(t, err)
		all = slices.Concat(page.Items, all)
		if more = page.More; more {
			before = page.Items[0].ID
		}
	}
	return all
}

// shown is what people read of messages, without what names them.
func shown(t *testing.T, messages []*nodest.Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range messages {
		texts := []string{}
		for _, s := range m.Swipes {
			texts = append(texts, s.Text+"/"+strconv.FormatBool(s.Deleted))
		}
		line, err := json.Marshal([]any{m.Seq, m.Role, m.Name, m.Hidden, m.Greeting, m.Status, m.SwipeIndex, texts, m.CreatedAt, m.EditedAt})
		must(t, err)
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// alike checks that two branches show the same.
func alike(t *testing.T, what string, got, want []*nodest.Message) {
	t.Helper()
	a, b := strings.Split(shown(t, got), "\n"), strings.Split(shown(t, want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s shows at %d\n%s\nwant\n%s", what, i, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s has %d messages, want %d", what, len(a)-1, len(b)-1)
	}
}

// copied waits until nothing of a fork is left to be copied.
func (h *home) copied(t *testing.T, id string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		conv, err := h.Conversation(t.Context(), me, id)
		must(t, err)
		if !conv.Copying {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the fork is never complete")
		}
		<-time.After(time.Millisecond)
	}
}

// halfFork makes a fork of which the newest messages are there alone, as a process
// leaves it that stops at once.
func (h *home) halfFork(t *testing.T, source *nodest.Conversation, has int) *nodest.Conversation {
	t.Helper()
	fork := &nodest.Conversation{CharacterID: source.CharacterID, Title: source.Title, Settings: json.RawMessage("{}")}
	must(t, h.db.Update(t.Context(), me, func(tx nodest.Tx) error {
		fork.ID = newID(tx)
		return tx.InsertFork(fork, source.ID, source.HeadID, has)
	}))
	conv, err := h.Conversation(t.Context(), me, fork.ID)
	must(t, err)
	if !conv.Copying {
		t.Fatal("the fork is complete already")
	}
	return conv
}

func TestAForkIsTheBranch(t *testing.T) {
	h := newHome(t)
	conv, all := h.talk(t, 100)
	_, err := h.Edit(t.Context(), h.call(), nodest.EditInput{MessageID: all[40].ID, Text: "edited"})
	must(t, err)
	_, err = h.DeleteMessage(t.Context(), h.call(), all[10].ID, "one")
	must(t, err)
	h.say(t, conv.ID, all[60].ID, "one way", "another way")
	conv = h.say(t, conv.ID, all[70].ID, "the end")
	note := json.RawMessage(`{"content":"It rains."}`)
	conv, err = h.UpdateConversation(t.Context(), h.call(), nodest.ConversationPatch{
		ID: conv.ID, AuthorNote: note, Settings: json.RawMessage(`{"maxTokens":50}`),
	})
	must(t, err)
	want := h.whole(t, conv.ID, 200)
	h.told()

	call := h.call()
	fork, err := h.Fork(t.Context(), call, nodest.ForkInput{ConversationID: conv.ID})
	must(t, err)
	if told := h.told(); !slices.Equal(told, []string{"chat.created"}) {
		t.Errorf("events = %v", told)
	}
	if fork.ID == conv.ID || fork.Title != conv.Title || string(fork.AuthorNote) != string(note) ||
		string(fork.Settings) != `{"maxTokens":50}` || fork.Version != 1 || fork.LastMessage.Text != "the end" {
		t.Errorf("fork = %+v", fork)
	}
	got := h.whole(t, fork.ID, 13)
	alike(t, "the fork", got, want)
	for _, m := range got {
		if slices.Contains(messageIDs(want), m.ID) {
			t.Errorf("message %s is of both", m.ID)
		}
	}
	h.copied(t, fork.ID)
	alike(t, "the complete fork", h.whole(t, fork.ID, 200), want)
	second, err := h.Fork(t.Context(), again(call), nodest.ForkInput{ConversationID: conv.ID})
	must(t, err)
	if second.ID != fork.ID {
		t.Error("the same call made another fork")
	}
	// Each goes its own way.
	h.say(t, fork.ID, fork.HeadID, "only here")
	if a := shown(t, h.whole(t, conv.ID, 200)); a != shown(t, want) {
		t.Error("the source has changed")
	}
}

func TestAForkFromTheMiddleAndOfAFork(t *testing.T) {
	h := newHome(t)
	conv, all := h.talk(t, 90)
	fork, err := h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID, MessageID: all[80].ID, Title: "before the storm"})
	must(t, err)
	if fork.Title != "before the storm" {
		t.Errorf("title = %q", fork.Title)
	}
	alike(t, "the fork", h.whole(t, fork.ID, 50), all[:81])
	half := h.halfFork(t, conv, 3)
	second, err := h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: half.ID})
	must(t, err)
	alike(t, "the fork of a fork", h.whole(t, second.ID, 50), all)
}

func TestWhatCannotBeForked(t *testing.T) {
	h := newHome(t)
	conv, all := h.talk(t, 4)
	other, otherMessages := h.talk(t, 1)
	_, err := h.DeleteMessage(t.Context(), h.call(), all[1].ID, "one")
	must(t, err)
	tests := []struct {
		name  string
		in    nodest.ForkInput
		code  fault.Code
		field string
	}{
		{"an unknown conversation", nodest.ForkInput{ConversationID: "x"}, fault.NotFound, ""},
		{"an unknown message", nodest.ForkInput{ConversationID: conv.ID, MessageID: "x"}, fault.NotFound, "messageId"},
		{"a message of another conversation", nodest.ForkInput{ConversationID: conv.ID, MessageID: otherMessages[0].ID}, fault.NotFound, "messageId"},
		{"a deleted message", nodest.ForkInput{ConversationID: conv.ID, MessageID: all[1].ID}, fault.NotFound, "messageId"},
		{"a title of 201 characters", nodest.ForkInput{ConversationID: conv.ID, Title: strings.Repeat("茶", 201)}, fault.Invalid, "title"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Fork(t.Context(), h.call(), tt.in)
			refused(t, err, tt.code, tt.field)
		})
	}
	_, err = h.Fork(t.Context(), &nodest.Call{UserID: stranger}, nodest.ForkInput{ConversationID: conv.ID})
	refused(t, err, fault.NotFound, "")

	end := h.writing(t, all[4])
	_, err = h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID})
	refused(t, err, fault.Busy, "")
	_, err = h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID, MessageID: all[3].ID})
	must(t, err) // what comes before it can be had
	end()
	end = h.writing(t, all[2])
	_, err = h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID})
	refused(t, err, fault.Busy, "")
	end()
	_, err = h.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID})
	must(t, err)

	list, err := h.Conversations(t.Context(), me, nodest.ConversationFilter{CharacterID: other.CharacterID}, "", 0)
	must(t, err)
	if len(list.Items) != 1 {
		t.Errorf("the other character has %d conversations, want 1", len(list.Items))
	}
}

// Whoever reads a fork that is still being copied sees what a complete one shows.
func TestAHalfCopiedForkLooksComplete(t *testing.T) {
	h := newHome(t)
	conv, all := h.talk(t, 30)
	export := func(id string) string {
		data, _, err := h.ExportChat(t.Context(), me, id)
		must(t, err)
		return string(data)
	}
	preview := func(id string) string {
		p, err := h.PreviewPrompt(t.Context(), me, nodest.PreviewInput{ConversationID: id, Text: "And now?"})
		must(t, err)
		text := ""
		for _, m := range p.Messages {
			text += string(m.Role) + ": " + m.Text + "\n"
		}
		return text
	}
	tips := func(id string) string {
		page, err := h.Branches(t.Context(), me, id, "", 0)
		must(t, err)
		return strconv.Itoa(len(page.Items)) + "/" + strconv.Itoa(page.Items[0].MessageCount)
	}
	archive := func(id string) string {
		data, _, err := h.ExportArchive(t.Context(), me, id)
		must(t, err)
		return strconv.Itoa(strings.Count(string(data), `"parentId"`))
	}
	first := all[1].Text()
	for name, read := range map[string]func(id string) string{
		"export": export, "prompt": preview, "branches": tips, "archive": archive,
		"search": func(id string) string {
			return strings.Join(h.search(t, nodest.SearchInput{Query: first, ConversationID: id}), "|")
		},
		"history":      func(id string) string { return shown(t, h.whole(t, id, 200)) },
		"short pages":  func(id string) string { return shown(t, h.whole(t, id, 1)) },
		"the very end": func(id string) string { return shown(t, h.whole(t, id, 5)[20:]) },
	} {
		t.Run(name, func(t *testing.T) {
			half := h.halfFork(t, conv, 5)
			if got, want := read(half.ID), read(conv.ID); got != want {
				t.Errorf("of the fork\n%s\nof the source\n%s", got, want)
			}
			alike(t, "afterwards the fork", h.whole(t, half.ID, 200), all)
		})
	}
}

// A page that is there already is not waited for.
func TestAPageOfAForkCopiesNoMoreThanItNeeds(t *testing.T) {
	h := newHome(t)
	conv, _ := h.talk(t, 30)
	half := h.halfFork(t, conv, 20)
	page, err := h.History(t.Context(), me, half.ID, "", 10)
	must(t, err)
	if len(page.Items) != 10 || !page.More {
		t.Errorf("%d messages, more %v", len(page.Items), page.More)
	}
	if now, err := h.Conversation(t.Context(), me, half.ID); err != nil || !now.Copying {
		t.Errorf("it was copied for that: %+v, %v", now, err)
	}
}

func TestForksAreCompletedByTheNextProcess(t *testing.T) {
	h := newHome(t)
	conv, _ := h.talk(t, 260)
	all := h.whole(t, conv.ID, 200)
	var forks []*nodest.Conversation
	for range 6 {
		forks = append(forks, h.halfFork(t, conv, 1))
	}
	gone := h.halfFork(t, conv, 1)
	must(t, h.DeleteConversation(t.Context(), h.call(), gone.ID))
	h.told()
	for complete := false; !complete; { // as the server calls it, again and again
		must(t, h.Recover(t.Context()))
		complete = true
		for _, fork := range forks {
			now, err := h.Conversation(t.Context(), me, fork.ID)
			must(t, err)
			complete = complete && !now.Copying
		}
	}
	for _, fork := range forks {
		alike(t, "the fork", h.whole(t, fork.ID, 200), all)
	}
	if told := h.told(); len(told) != 0 {
		t.Errorf("events = %v, want none: nothing of it has changed", told)
	}
}

// Close does not wait for a long fork, and loses nothing of it.
func TestCloseLeavesAForkToTheNextProcess(t *testing.T) {
	h := newHome(t)
	conv, _ := h.talk(t, 260)
	all := h.whole(t, conv.ID, 200)
	first := nodest.New(h.db, noModels{}, h, nodest.Options{Alone: true})
	fork, err := first.Fork(t.Context(), h.call(), nodest.ForkInput{ConversationID: conv.ID})
	must(t, err)
	must(t, first.Close(context.WithoutCancel(t.Context())))
	must(t, h.Recover(t.Context()))
	alike(t, "the fork", h.whole(t, fork.ID, 200), all)
}
