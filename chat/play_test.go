package chat_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// setVariables replaces the variables of a conversation.
func setVariables(w *nodesttest.FullChat, id, variables string) {
	w.T.Helper()
	_, err := w.Chats.UpdateConversation(w.T.Context(), w.Call(), chat.ConversationPatch{ID: id, Variables: json.RawMessage(variables)})
	w.Must(err)
}

// wantVariables compares them as clients get them.
func wantVariables(w *nodesttest.FullChat, what, id, want string) {
	w.T.Helper()
	conv, err := w.Chats.Conversation(w.T.Context(), nodesttest.Ann, id)
	w.Must(err)
	var shown struct{ Variables json.RawMessage }
	w.Must(json.Unmarshal(nodesttest.AsJSON(w.T, chat.WireConversation(conv)), &shown))
	if got := string(shown.Variables); got != want {
		w.T.Errorf("%s: variables are %s, want %s", what, got, want)
	}
}

func TestVariablesBelongToTheirBranch(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	wantVariables(w, "before", w.ID, "{}")
	setVariables(w, w.ID, `{"n":1}`)
	reply := w.SayAndWait(w.Conversation, "More.")
	wantVariables(w, "after a reply that changes nothing", w.ID, `{"n":1}`)
	setVariables(w, w.ID, `{"n":2,"a":"x"}`)
	two := `{"a":"x","n":2}`
	for _, step := range []struct {
		name string
		make func()
		want string
	}{
		{"an earlier head", func() { w.ChooseHead(w.ThirdReply.ID) }, `{"n":1}`},
		{"before they were set", func() { w.ChooseHead(w.Second.ID) }, `{}`},
		{"back again", func() { w.ChooseHead(reply.ID) }, two},
		{"the reply deleted", func() { w.DeleteMessage(reply, "one") }, `{"n":1}`},
		{"the reply restored", func() {
			_, err := w.Chats.RestoreMessage(t.Context(), w.Call(), reply.ID)
			w.Must(err)
		}, two},
		{"another swipe", func() { w.RegenerateReply(reply.ID, "") }, `{"n":1}`},
		{"the first swipe", func() {
			_, err := w.Chats.ChooseSwipe(t.Context(), w.Call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "prev"})
			w.Must(err)
		}, two},
		{"an edit", func() { w.EditText(reply, "Edited.") }, two},
		{"an edit as a branch", func() { w.EditAsBranch(reply, "Edited anew.") }, two},
		{"back from it", func() { w.ChooseHead(reply.ID) }, two},
		{"the conversation begun anew", func() { w.Must(nodesttest.ErrOf(w.Chats.Reset(t.Context(), w.Call(), w.ID))) }, `{}`},
		{"and back", func() { w.ChooseHead(reply.ID) }, two},
		{"none", func() { setVariables(w, w.ID, `null`) }, `{}`},
		{"none, by another way", func() { w.ChooseHead(w.ThirdReply.ID); w.ChooseHead(reply.ID) }, `{}`},
	} {
		step.make()
		wantVariables(w, step.name, w.ID, step.want)
	}
}

func TestSavePointsRestoreVariables(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	none := w.Save()
	setVariables(w, w.ID, `{"n":1}`)
	one := w.Save()
	setVariables(w, w.ID, `{"n":2}`)
	two := w.Save()
	w.SayAndWait(w.Conversation, "More.")
	setVariables(w, w.ID, `{"n":3}`)
	for _, step := range []struct {
		save *chat.Save
		want string
	}{{one, `{"n":1}`}, {two, `{"n":2}`}, {none, `{}`}, {two, `{"n":2}`}, {one, `{"n":1}`}} {
		w.Restore(step.save)
		wantVariables(w, "restored", w.ID, step.want)
		w.ChooseHead(w.Second.ID)
		w.ChooseHead(w.ThirdReply.ID)
		wantVariables(w, "restored, left and shown again", w.ID, step.want)
		w.SayAndWait(w.Conversation, "And now?")
		wantVariables(w, "restored and played", w.ID, step.want)
	}
}

func TestForksHaveVariablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	setVariables(w, w.ID, `{"n":1}`)
	last := w.SayAndWait(w.Conversation, "More.")
	setVariables(w, w.ID, `{"n":2}`)
	for _, from := range []struct{ id, want string }{{"", `{"n":2}`}, {w.ThirdReply.ID, `{"n":1}`}, {w.Second.ID, `{}`}} {
		fork, err := w.Chats.Fork(t.Context(), w.Call(), chat.ForkInput{ConversationID: w.ID, MessageID: from.id})
		w.Must(err)
		wantVariables(w, "fork", fork.ID, from.want)
		if from.id == "" {
			setVariables(w, fork.ID, `{"n":9}`)
			wantVariables(w, "source of a changed fork", w.ID, `{"n":2}`)
			tips, err := w.Chats.History(t.Context(), nodesttest.Ann, fork.ID, "", 0)
			w.Must(err)
			_, err = w.Chats.ChooseHead(t.Context(), w.Call(), fork.ID, tips.Items[len(tips.Items)-3].ID)
			w.Must(err)
			wantVariables(w, "an earlier head of the fork", fork.ID, `{"n":1}`)
			w.Must(w.DeleteConversation(t.Context(), w.Call(), fork.ID))
		}
	}
	wantVariables(w, "source of a deleted fork", w.ID, `{"n":2}`)
	w.ChooseHead(last.ID)
}

func TestFilesKeepVariables(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	setVariables(w, w.ID, `{"n":1}`)
	save := w.Save()
	w.SayAndWait(w.Conversation, "More.")
	_, err := w.Chats.UpdateConversation(t.Context(), w.Call(), chat.ConversationPatch{
		ID: w.ID, Variables: json.RawMessage(`{"n":2}`), Timed: json.RawMessage(`{"sticky":{"book.1":{"end":9,"start":3}}}`),
	})
	w.Must(err)
	t.Run("archive", func(t *testing.T) {
		file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportArchive, nodesttest.Ann, w.ID)
		w.Must(err)
		conv, err := w.Archives.ImportArchive(t.Context(), w.Call(), w.CharacterID, file)
		w.Must(err)
		wantVariables(w, "imported", conv.ID, `{"n":2}`)
		saves, err := w.Chats.Saves(t.Context(), nodesttest.Ann, conv.ID, false, "", 0)
		w.Must(err)
		_, err = w.Chats.RestoreSave(t.Context(), w.Call(), saves.Items[0].ID)
		w.Must(err)
		wantVariables(w, "imported and restored", conv.ID, `{"n":1}`)
	})
	t.Run("chat log", func(t *testing.T) {
		file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportChat, nodesttest.Ann, w.ID)
		w.Must(err)
		header, _, _ := strings.Cut(string(file), "\n")
		for _, part := range []string{`"variables":{"n":2}`, `"timedWorldInfo":{"sticky":{"book.1":{"end":9,"start":3}}}`} {
			if !strings.Contains(header, part) {
				t.Errorf("%s is not in %s", part, header)
			}
		}
		done, err := w.Archives.ImportChat(t.Context(), w.Call(), w.CharacterID, file, "a.jsonl")
		w.Must(err)
		wantVariables(w, "imported", done.Conversation.ID, `{"n":2}`)
		again, _, err := nodesttest.Written(t.Context(), w.Archives.ExportChat, nodesttest.Ann, done.Conversation.ID)
		w.Must(err)
		if now, _, _ := strings.Cut(string(again), "\n"); now != header {
			t.Errorf("the header became\n%s\nit was\n%s", now, header)
		}
	})
	t.Run("save point", func(t *testing.T) {
		file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportSave, nodesttest.Ann, save.ID)
		w.Must(err)
		other, err := w.Chats.CreateConversation(t.Context(), w.Call(), chat.ConversationInput{CharacterID: w.CharacterID})
		w.Must(err)
		imported, err := w.Archives.ImportSave(t.Context(), w.Call(), other.ID, file)
		w.Must(err)
		wantVariables(w, "before the restore", other.ID, `{}`)
		_, err = w.Chats.RestoreSave(t.Context(), w.Call(), imported.ID)
		w.Must(err)
		wantVariables(w, "after the restore", other.ID, `{"n":1}`)
	})
}

func TestVariablesAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 2)
	for name, c := range map[string]struct {
		variables string
		code      fault.Code
	}{
		"no object":  {`[1]`, fault.Invalid},
		"no name":    {`{"":1}`, fault.Invalid},
		"a long one": {`{"` + strings.Repeat("n", 300) + `":1}`, fault.Invalid},
		"too large":  {`{"a":"` + strings.Repeat("x", chat.MaxPlay) + `"}`, fault.Invalid},
	} {
		_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, Variables: json.RawMessage(c.variables)})
		if !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	patch := chat.ConversationPatch{ID: conv.ID, Variables: json.RawMessage(`{"n":1}`)}
	end := h.MarkAsWriting(t, all[1])
	_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), patch)
	nodesttest.WantError(t, err, fault.Busy, "")
	end()
	stranger := h.Call()
	stranger.UserID = nodesttest.Bob
	_, err = h.Chats.UpdateConversation(t.Context(), stranger, patch)
	nodesttest.WantError(t, err, fault.NotFound, "")
	conv, err = h.Chats.UpdateConversation(t.Context(), h.Call(), patch)
	nodesttest.Must(t, err)
	err = h.DB.View(t.Context(), nodesttest.Bob, func(tx nodest.Tx) error {
		return nodesttest.ErrOf(tx.Chats.Play(conv.PlayID))
	})
	nodesttest.WantError(t, err, fault.NotFound, "")
}

const badTimed = `{"sticky":{"book.1":{"start":12.5,"end":3}}}`

// Effects that no prompt could read are refused where they come in, and a chat that has them goes on.
func TestMalformedTimedEffects(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	for _, bad := range []string{badTimed, `{"sticky":[]}`, `[]`, `{"cooldown":{"a":1}}`} {
		_, err := w.Chats.UpdateConversation(t.Context(), w.Call(), chat.ConversationPatch{ID: w.ID, Timed: json.RawMessage(bad)})
		if e := w.WantCode(err, fault.Invalid); !strings.HasPrefix(e.Fields[0].Field, "timedWorldInfo") {
			t.Errorf("%s: fields %v", bad, e.Fields)
		}
	}
	log := []byte(`{"user_name":"Ann","character_name":"Alice","chat_metadata":{"variables":{"n":1},"timedWorldInfo":` + badTimed + `}}
{"name":"Alice","is_user":false,"mes":"Hello."}`)
	done, err := w.Archives.ImportChat(t.Context(), w.Call(), w.CharacterID, log, "a.jsonl")
	w.Must(err)
	wantVariables(w, "imported", done.Conversation.ID, `{"n":1}`)
	if last := done.Warnings[len(done.Warnings)-1]; last.Code != "dropped_state" || last.Path != "chat_metadata.timedWorldInfo" {
		t.Errorf("warnings %v", done.Warnings)
	}
	_, err = w.Characters.Update(t.Context(), w.Call(), w.CharacterID, character.Input{Dialect: "sillytavern"}, false, 0)
	w.Must(err)
	w.Must(w.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(w.ID)
		if err != nil {
			return err
		}
		p := &chat.Play{ID: op.NewID(), ConversationID: w.ID, Variables: json.RawMessage(`{"n":2}`), Timed: json.RawMessage(badTimed)}
		conv.PlayID, conv.Version = p.ID, conv.Version+1
		if err := tx.Chats.InsertPlay(p); err != nil {
			return err
		}
		if err := tx.Chats.KeepPlay(w.ID, w.ThirdReply.ID, p.ID); err != nil {
			return err
		}
		return tx.Chats.UpdateConversation(conv)
	}))
	preview, err := w.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: w.ID, Text: "?"})
	w.Must(err)
	if !slices.ContainsFunc(preview.Warnings, func(w framework.Warning) bool { return w.Code == "unreadable_state" }) {
		t.Errorf("warnings of the preview %v", preview.Warnings)
	}
	if reply := w.SayAndWait(w.Conversation, "More."); reply.Status != chat.StatusComplete {
		t.Errorf("the reply is %s with %v", reply.Status, reply.Error)
	}
}
