package nodest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
	"nodest/op"
)

// changes are what may happen between a save point and its restore. One chat goes
// through all of them, so those that cannot be repeated come last.
var changes = []struct {
	name string
	make func(w *fullChat)
}{
	{"nothing", func(*fullChat) {}},
	{"more messages", func(w *fullChat) { w.sendAndWait(w.Conversation, "More."); w.sendAndWait(w.Conversation, "And more.") }},
	{"an edited message", func(w *fullChat) { w.edit(w.first, "Edited.") }},
	{"an edited reply", func(w *fullChat) { w.edit(w.thirdReply, "Edited."); w.edit(w.thirdReply, "Edited again.") }},
	{"an edited greeting", func(w *fullChat) { w.edit(w.greeting, "Edited.") }},
	{"one message deleted", func(w *fullChat) { w.deleteMessage(w.secondReply, "one") }},
	{"the head deleted", func(w *fullChat) { w.deleteMessage(w.thirdReply, "one") }},
	{"everything after deleted", func(w *fullChat) { w.deleteMessage(w.second, "after") }},
	{"everything deleted", func(w *fullChat) { w.deleteMessage(w.greeting, "after") }},
	{"a swipe deleted", func(w *fullChat) { w.deleteMessage(w.thirdReply, "swipe") }},
	{"another swipe chosen", func(w *fullChat) {
		_, err := w.Swipe(w.t.Context(), w.call(), chat.SwipeInput{MessageID: w.thirdReply.ID, Swipe: "prev"})
		w.must(err)
	}},
	{"a reply regenerated", func(w *fullChat) { w.regenerate(w.thirdReply.ID, "") }},
	{"an answered reply rewritten", func(w *fullChat) { w.regenerate(w.firstReply.ID, "") }},
	{"a greeting reset", func(w *fullChat) { w.edit(w.greeting, "x"); w.putCard(alicesCard); w.resetGreeting() }},
	{"the conversation begun anew", func(w *fullChat) { w.must(errOf(w.Chats.Reset(w.t.Context(), w.call(), w.ID))) }},
	{"an earlier head", func(w *fullChat) { w.chooseHead(w.firstReply.ID); w.sendAndWait(w.Conversation, "Otherwise.") }},
	{"a message edited as a branch", func(w *fullChat) { w.editAsBranch(w.second, "Otherwise.") }},
	{"a reply continued", func(w *fullChat) {
		w.model.enqueue(replyWith(" And on."))
		done, err := w.Continue(w.t.Context(), w.call(), nodest.GenerateInput{MessageID: w.thirdReply.ID})
		w.must(err)
		w.wait(done.GenerationID)
	}},
	{"another note", func(w *fullChat) { w.patchChat(chat.ConversationPatch{AuthorNote: note("another note")}) }},
	{"no note", func(w *fullChat) { w.patchChat(chat.ConversationPatch{AuthorNote: json.RawMessage("null")}) }},
	{"settings of the chat", func(w *fullChat) {
		w.patchChat(chat.ConversationPatch{Settings: json.RawMessage(`{"contextTokens":600}`)})
	}},
	{"settings of the user", func(w *fullChat) { w.putUserSettings(character.UserSettings{UserName: "Annabel"}) }},
	{"another card", func(w *fullChat) { w.putCard(`{"name":"Alicia","description":"Another."}`) }},
	{"settings of the character", func(w *fullChat) { w.calls++; w.setDepthMode("user_messages") }},
	{"a bound book updated", func(w *fullChat) {
		w.update(w.book, character.ResourceInput{Document: json.RawMessage(lore("new lore"))})
	}},
	{"another book bound", func(w *fullChat) { w.resource(character.WorldBook, "new", lore("new lore"), w.CharacterID) }},
	{"the global book updated", func(w *fullChat) {
		w.update(w.global, character.ResourceInput{Document: json.RawMessage(lore("new lore"))})
	}},
	{"the global preset updated", func(w *fullChat) {
		w.update(w.preset, character.ResourceInput{Document: json.RawMessage(`{"prompts":[]}`)})
	}},
	{"the regex script updated", func(w *fullChat) {
		w.update(w.script, character.ResourceInput{Document: json.RawMessage(`{"findRegex":"M"}`)})
	}},
	{"the user's persona updated", func(w *fullChat) {
		w.update(w.persona, character.ResourceInput{Document: json.RawMessage(`{"name":"Z"}`)})
	}},
	{"another persona", func(w *fullChat) {
		p := w.resource(character.Persona, "Eve", `{"name":"Eve"}`)
		w.patchChat(chat.ConversationPatch{PersonaID: &p.ID})
	}},
	{"much at once", func(w *fullChat) {
		w.edit(w.first, "Edited.")
		w.sendAndWait(w.Conversation, "More.")
		w.deleteMessage(w.secondReply, "after")
		w.sendAndWait(w.Conversation, "Otherwise.")
		w.putCard(`{"name":"Alicia","description":"Another."}`)
		w.putUserSettings(character.UserSettings{})
	}},
	{"a bound book unbound", func(w *fullChat) { w.update(w.book, character.ResourceInput{Characters: []string{}}) }},
	{"a bound book deleted", func(w *fullChat) { w.deleteResource(w.book) }},
	{"the global book deleted", func(w *fullChat) { w.deleteResource(w.global) }},
	{"the global preset deleted", func(w *fullChat) { w.deleteResource(w.preset) }},
	{"the regex script deleted", func(w *fullChat) { w.deleteResource(w.script) }},
	{"the user's persona deleted", func(w *fullChat) { w.deleteResource(w.persona) }},
}

// Whatever happened since a save point, after its restore the next request is byte
// for byte the same.
func TestARestoreRestoresThePrompt(t *testing.T) {
	t.Parallel()
	all, w := t, newFullChat(t, "5")
	want, shown := w.preview(), w.texts()
	save := w.save()
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			w.crash() // the caches are empty
			w.t = t
			defer func() { w.t = all }()
			change.make(w)
			inFull, err := w.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{Text: w.question})
			w.must(err)
			w.wantSamePrompt("preview of the save point", inFull.Messages, want)
			if got := w.restore(save); got.HeadID != save.HeadID || got.Conversation.HeadID != save.HeadID {
				t.Errorf("restored to head %s, want %s", got.HeadID, save.HeadID)
			}
			if got := w.texts(); got != shown {
				t.Errorf("shown: %s\nwant %s", got, shown)
			}
			w.wantSamePrompt("preview", w.preview(), want)
			w.sendAndWait(w.Conversation, w.question)
			asked := w.model.allRequests()
			w.wantSamePrompt("sent", asked[len(asked)-1].Messages, want)
			if temperature := asked[len(asked)-1].Temperature; temperature == nil || *temperature != 0.5 {
				t.Errorf("asked with a temperature of %v, want that of the save point", temperature)
			}
		})
	}
}

// What random macros draw in a preview depends only on what is shown.
func TestRandomMacrosAreStableInAPreview(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "{{roll::1000000}}")
	want := w.preview()
	save := w.save()
	w.wantSamePrompt("preview once more", w.preview(), want)
	dice := regexp.MustCompile(`The die shows \d+`)
	drawn := dice.FindString(fmt.Sprint(want))
	w.sendAndWait(w.Conversation, "More.")
	if now := dice.FindString(fmt.Sprint(w.preview())); drawn == "" || now == drawn {
		t.Errorf("another last message draws the same: %s", now)
	}
	w.edit(w.thirdReply, "Edited.")
	ofSave, err := w.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{Text: w.question})
	w.must(err)
	w.wantSamePrompt("preview of the save point", ofSave.Messages, want)
	w.restore(save)
	w.wantSamePrompt("preview after the restore", w.preview(), want)
}

// A document changed after a restore is used as it is now; the others stay as they
// were at the save point.
func TestADocumentChangedAfterARestoreIsUsed(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	w.putCard(`{"name":"Alice","description":"The second."}`)
	w.update(w.book, character.ResourceInput{Document: json.RawMessage(lore("second lore"))})
	w.restore(save)
	w.putCard(`{"name":"Alice","description":"The third."}`)
	got := fmt.Sprint(w.preview())
	for text, there := range map[string]bool{
		"The third.": true, "A guide.": false, "The second.": false,
		"bound lore": true, "second lore": false, "global lore": true, "likes the sea": true, "A rule.": true,
	} {
		if strings.Contains(got, text) != there {
			t.Errorf("%q in the prompt: %t, want %t\n%s", text, !there, there, got)
		}
	}
	w.putUserSettings(character.UserSettings{CustomSetting: json.RawMessage(`{"content":"likes the hills"}`)})
	w.deleteResource(w.book)
	got = fmt.Sprint(w.preview())
	for text, there := range map[string]bool{"bound lore": false, "global lore": false, "likes the hills": true, "A rule.": false} {
		if strings.Contains(got, text) != there {
			t.Errorf("afterwards %q in the prompt: %t, want %t\n%s", text, !there, there, got)
		}
	}
}

// Tags and the archive are no part of a prompt: a restored conversation keeps its
// documents when its character gets tags and is archived.
func TestTagsLeaveARestoredPromptAsItWas(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	want, save := w.preview(), w.save()
	w.putCard(`{"name":"Alicia","description":"The second."}`)
	w.restore(save)
	w.wantSamePrompt("preview after the restore", w.preview(), want)
	tagged, err := w.Characters.Update(t.Context(), w.call(), w.CharacterID, character.Input{Tags: []string{"elf"}, Archived: new(true)}, false, 0)
	w.must(err)
	w.wantSamePrompt("preview with tags", w.preview(), want)
	w.crash() // the caches are empty
	w.wantSamePrompt("preview with tags, read again", w.preview(), want)
	again, err := w.Characters.Update(t.Context(), w.call(), w.CharacterID, character.Input{IsCradle: new(true)}, false, tagged.Version)
	w.must(err)
	if got := fmt.Sprint(w.preview()); !strings.Contains(got, "The second.") || fmt.Sprint(again.Tags) != "[elf]" || !again.Archived {
		t.Errorf("after a change of the character, with tags %v, archived %t: %s", again.Tags, again.Archived, got)
	}
}

func TestChoosingALeftBranchShowsItAsItWas(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	w.edit(w.first, "Edited.")
	w.deleteMessage(w.secondReply, "one")
	w.sendAndWait(w.Conversation, "More.")
	w.patchChat(chat.ConversationPatch{AuthorNote: note("a later note")})
	left, err := w.Engine.Chats.Conversation(t.Context(), ann, w.ID)
	w.must(err)
	shown := w.texts()
	w.restore(save)
	other := w.sendAndWait(w.Conversation, "Otherwise.")
	w.events.clear()
	got := w.chooseHead(left.HeadID)
	if w.texts() != shown {
		t.Errorf("shown: %s\nwant %s", w.texts(), shown)
	}
	if !strings.Contains(string(got.AuthorNote), `"a note"`) || got.Pins == nil {
		t.Errorf("the note is %s, want that of the restored save point; pins %v", got.AuthorNote, got.Pins)
	}
	if events := w.events.types(); events != "message.updated message.deleted chat.updated" {
		t.Errorf("events = %s", events)
	}
	w.chooseHead(other.ID)
	if want := strings.Replace(strings.Replace(shown, "Edited.", "Message 0, now.", 1), "More. | Fine.", "Otherwise. | Fine.", 1); w.texts() != strings.Replace(want, "Message 1, now. |", "Message 1, now. | Reply 1. |", 1) {
		t.Errorf("back on the other branch: %s", w.texts())
	}
}

// A message that was deleted when its branch was left and restored from another
// branch can be chosen like any other.
func TestARestoredMessageCanBeChosen(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	reply := w.sendAndWait(w.Conversation, "More.")
	shown := w.texts()
	w.deleteMessage(reply, "one")
	w.restore(save)
	w.must(errOf(w.Chats.RestoreMessage(t.Context(), w.call(), reply.ID)))
	if got := w.chooseHead(reply.ID); got.HeadID != reply.ID || w.texts() != shown {
		t.Errorf("shown: %s\nwant %s", w.texts(), shown)
	}
}

func TestEventsOfARestore(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	w.deleteMessage(w.first, "one")
	save := w.save()
	w.must(errOf(w.Chats.RestoreMessage(t.Context(), w.call(), w.first.ID)))
	w.deleteMessage(w.secondReply, "one")
	w.edit(w.thirdReply, "Edited.")
	w.events.clear()
	got := w.restore(save)
	if events := w.events.types(); events != "save.created message.updated message.restored message.deleted chat.updated save.restored" {
		t.Errorf("events = %s", events)
	}
	for kind, part := range map[string]string{
		"save.created": `"automatic":true`, "message.restored": `{"messageIds":["` + w.secondReply.ID + `"]}`,
		"message.deleted": `"messageIds":["` + w.first.ID + `"]`, "save.restored": `"head":"` + save.HeadID + `"`,
	} {
		if data := w.events.data(kind); !strings.Contains(data, part) {
			t.Errorf("%s has the data %s, want %s", kind, data, part)
		}
	}
	if got.Before == nil || !got.Before.Automatic || got.Before.HeadID != save.HeadID {
		t.Errorf("before = %+v", got.Before)
	}
	w.events.clear()
	if again := w.restore(save); again.Before != nil || again.Conversation.Version != got.Conversation.Version+1 {
		t.Errorf("restored twice: before %+v, version %d", again.Before, again.Conversation.Version)
	}
	if events := w.events.types(); events != "chat.updated save.restored" {
		t.Errorf("restored twice: events = %s", events)
	}
	// The automatic save point restores what was shown before.
	w.restore(got.Before)
	if want := "Hello, traveller. | Message 0, now. | Reply 0. | Message 1, now. | Message 2, now. | Edited."; w.texts() != want {
		t.Errorf("shown: %s", w.texts())
	}
}

func TestSavePointsAreListedAndRead(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	first := w.save()
	shown := w.texts()
	w.edit(w.first, "Edited.")
	second, err := w.Chats.CreateSave(t.Context(), w.call(), chat.SaveInput{ConversationID: w.ID, PreviewText: "mine", Thumbnail: "data:,x"})
	w.must(err)
	w.restore(first)
	w.sendAndWait(w.Conversation, "More.")
	if first.MessageCount != 7 || first.PreviewText != "Another reply 2." || first.HeadID != w.thirdReply.ID || second.PreviewText != "mine" {
		t.Errorf("first = %+v, second = %+v", first, second)
	}
	for automatic, n := range map[bool]int{false: 2, true: 3} {
		page, err := w.Chats.Saves(t.Context(), ann, w.ID, automatic, "", 0)
		w.must(err)
		if len(page.Items) != n || page.Items[n-1].ID != first.ID {
			t.Errorf("automatic %t: %d save points", automatic, len(page.Items))
		}
	}
	page, err := w.Chats.Saves(t.Context(), ann, w.ID, false, "", 1)
	w.must(err)
	next, err := w.Chats.Saves(t.Context(), ann, w.ID, false, page.NextCursor, 1)
	w.must(err)
	if page.Items[0].ID != second.ID || next.Items[0].ID != first.ID || next.NextCursor != "" {
		t.Error("the pages do not follow each other")
	}
	view, err := w.Engine.Chats.Save(t.Context(), ann, first.ID, "", 0)
	w.must(err)
	if textsOf(view.Messages) != shown || view.More {
		t.Errorf("all of it: %s", textsOf(view.Messages))
	}
	view, err = w.Engine.Chats.Save(t.Context(), ann, first.ID, w.third.ID, 2)
	w.must(err)
	if textsOf(view.Messages) != "Message 1, now. | Reply 1." || !view.More {
		t.Errorf("a page: %s", textsOf(view.Messages))
	}
	w.must(w.Chats.DeleteSave(t.Context(), w.call(), second.ID))
	_, err = w.Engine.Chats.Save(t.Context(), ann, second.ID, "", 0)
	w.wantCode(err, fault.NotFound)
	w.restore(first)
}

func TestASavePointOfAnEmptyChatRestoresToTheGreeting(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	w.deleteMessage(w.greeting, "after")
	save := w.save()
	if save.HeadID != "" || save.MessageCount != 0 {
		t.Errorf("save = %+v", save)
	}
	view, err := w.Engine.Chats.Save(t.Context(), ann, save.ID, "", 0)
	w.must(err)
	if len(view.Messages) != 0 {
		t.Errorf("it shows %s", textsOf(view.Messages))
	}
	preview, err := w.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{Text: w.question})
	w.must(err)
	w.sendAndWait(w.Conversation, "More.")
	w.restore(save)
	if w.texts() != "Hello, traveller." {
		t.Errorf("shown: %s", w.texts())
	}
	w.wantSamePrompt("preview", w.preview(), preview.Messages)
}

func TestNothingIsSavedOrRestoredWhileAReplyIsWritten(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	for name, do := range map[string]func() error{
		"create": func() error {
			return errOf(w.Chats.CreateSave(t.Context(), w.call(), chat.SaveInput{ConversationID: w.ID}))
		},
		"restore": func() error { return errOf(w.Chats.RestoreSave(t.Context(), w.call(), save.ID)) },
	} {
		t.Run(name, func(t *testing.T) {
			slow := replyWith("Slowly.").gated()
			w.model.enqueue(slow)
			sent := w.send(w.Conversation, "Hello?")
			<-slow.started
			e := w.wantCode(do(), fault.Busy)
			if e.Details["generationId"] != sent.GenerationID {
				t.Errorf("details = %v", e.Details)
			}
			slow.release()
			w.wait(sent.GenerationID)
			w.must(do())
		})
	}
}

// Concurrent restores run one after the other: in the end exactly one of the save
// points is shown.
func TestConcurrentRestores(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	one, shownOne := w.save(), w.texts()
	w.edit(w.first, "Edited.")
	w.deleteMessage(w.secondReply, "one")
	w.sendAndWait(w.Conversation, "More.")
	two, shownTwo := w.save(), w.texts()
	var all sync.WaitGroup
	for i := range 8 {
		call := w.call()
		all.Go(func() {
			save := one
			if i%2 == 0 {
				save = two
			}
			if _, err := w.Chats.RestoreSave(t.Context(), call, save.ID); err != nil && !fault.Is(err, fault.Busy) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := w.Engine.Chats.Conversation(t.Context(), ann, w.ID)
	w.must(err)
	want := map[string]string{one.HeadID: shownOne, two.HeadID: shownTwo}[c.HeadID]
	if w.texts() != want {
		t.Errorf("shown: %s\nwant %s", w.texts(), want)
	}
}

func TestARepeatedSavePointCallHasOneEffect(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	call := w.call()
	first, err := w.Chats.CreateSave(t.Context(), call, chat.SaveInput{ConversationID: w.ID})
	w.must(err)
	again := *call
	second, err := w.Chats.CreateSave(t.Context(), &again, chat.SaveInput{ConversationID: w.ID})
	w.must(err)
	if first.ID != second.ID || !again.Replayed {
		t.Error("a repeated call made another save point")
	}
	call = w.call()
	restored, err := w.Chats.RestoreSave(t.Context(), call, first.ID)
	w.must(err)
	w.sendAndWait(w.Conversation, "More.")
	shown := w.texts()
	again = *call
	repeated, err := w.Chats.RestoreSave(t.Context(), &again, first.ID)
	w.must(err)
	if repeated.Conversation.Version != restored.Conversation.Version || w.texts() != shown {
		t.Error("a repeated call restored once more")
	}
}

func TestLengthLimitsOfASavePoint(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	for field, in := range map[string]chat.SaveInput{
		"description": {Description: strings.Repeat("茶", 2001)},
		"previewText": {PreviewText: strings.Repeat("茶", 1001)},
		"thumbnail":   {Thumbnail: strings.Repeat("x", 100_001)},
	} {
		in.ConversationID = w.ID
		_, err := w.Chats.CreateSave(t.Context(), w.call(), in)
		wantError(t, err, fault.Invalid, field)
	}
	_, err := w.Chats.CreateSave(t.Context(), w.call(), chat.SaveInput{ConversationID: w.ID,
		Description: strings.Repeat("茶", 2000), PreviewText: strings.Repeat("茶", 1000), Thumbnail: strings.Repeat("x", 100_000)})
	w.must(err)
}

func TestAnotherUsersSavePointsAnswerNotFound(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	data, _, err := written(t.Context(), w.Archives.ExportSave, ann, save.ID)
	w.must(err)
	ch, err := w.Characters.Create(t.Context(), &op.Call{UserID: bob}, character.Input{RoleCard: json.RawMessage(alicesCard)})
	w.must(err)
	own, err := w.Chats.CreateConversation(t.Context(), &op.Call{UserID: bob}, chat.ConversationInput{CharacterID: ch.ID})
	w.must(err)
	w.events.clear()
	c := func() *op.Call { return &op.Call{UserID: bob, Device: "pc"} }
	for name, err := range map[string]error{
		"create":  errOf(w.Chats.CreateSave(t.Context(), c(), chat.SaveInput{ConversationID: w.ID})),
		"list":    errOf(w.Chats.Saves(t.Context(), bob, w.ID, true, "", 0)),
		"read":    errOf(w.Engine.Chats.Save(t.Context(), bob, save.ID, "", 0)),
		"restore": errOf(w.Chats.RestoreSave(t.Context(), c(), save.ID)),
		"preview": errOf(w.PreviewSave(t.Context(), bob, save.ID, nodest.PreviewInput{})),
		"delete":  w.Chats.DeleteSave(t.Context(), c(), save.ID),
		"export":  func() error { _, _, err := written(t.Context(), w.Archives.ExportSave, bob, save.ID); return err }(),
		"import":  errOf(w.Archives.ImportSave(t.Context(), c(), w.ID, data)),
	} {
		t.Run(name, func(t *testing.T) { wantError(t, err, fault.NotFound, "") })
	}
	if events := w.events.types(); events != "" {
		t.Errorf("events = %s", events)
	}
	// A file in the hands of another user gives no access to documents of its owner.
	got, err := w.Archives.ImportSave(t.Context(), c(), own.ID, data)
	w.must(err)
	w.must(errOf(w.Chats.RestoreSave(t.Context(), c(), got.ID)))
	p, err := w.PreviewPrompt(t.Context(), bob, nodest.PreviewInput{ConversationID: own.ID, Text: "Hi"})
	w.must(err)
	if text := fmt.Sprint(p.Messages); strings.Contains(text, "lore") || strings.Contains(text, "likes the sea") || !strings.Contains(text, "Reply 1.") {
		t.Errorf("the prompt of the stranger: %s", text)
	}
}

// A restore that changes the texts of messages with very many swipes has events with all of a message for the
// first of them, and names the others, which clients read again.
func TestEventsOfARestoreAreBounded(t *testing.T) {
	t.Parallel()
	h := newChatFixture(t)
	var log strings.Builder
	log.WriteString(`{"chat_metadata":{},"user_name":"Mia","character_name":"Mira"}`)
	const n, swipes = 12, 8
	long := strings.Repeat("x", 64<<10)
	for i := range n {
		fmt.Fprintf(&log, "\n"+`{"name":"Mira","is_user":false,"send_date":"2025-03-14T09:00:00.000Z","mes":"%d as it was","extra":{},"swipe_id":0,"swipes":["%d as it was"`, i, i)
		for s := 1; s < swipes; s++ {
			fmt.Fprintf(&log, `,"%d, number %d %s"`, i, s, long)
		}
		log.WriteString("]}")
	}
	imported, err := h.Archives.ImportChat(t.Context(), h.call(), h.character(alicesCard).ID, []byte(log.String()), "log.jsonl")
	h.must(err)
	conversation := imported.Conversation.ID
	save, err := h.Chats.CreateSave(t.Context(), h.call(), chat.SaveInput{ConversationID: conversation})
	h.must(err)
	var ids []string
	for before, more := "", true; more; {
		page, err := h.Chats.History(t.Context(), me, conversation, before, 0)
		h.must(err)
		ids, before, more = append(chat.IDsOf(page.Items), ids...), page.Items[0].ID, page.More
	}
	for _, id := range ids {
		h.must(errOf(h.Chats.ChooseSwipe(t.Context(), h.call(), chat.SwipeInput{MessageID: id, Swipe: "next"})))
	}
	h.events.clear()
	h.must(errOf(h.Chats.RestoreSave(t.Context(), h.call(), save.ID)))
	var told []string
	for _, ev := range h.events.all() {
		switch ev.Type {
		case "message.updated":
			told = append(told, ev.MessageID)
		case "message.restored":
			var data struct{ MessageIDs []string }
			h.must(json.Unmarshal(ev.Data, &data))
			if len(told) < 1 || len(data.MessageIDs) < 2 {
				t.Errorf("%d messages are in events, and %d are named", len(told), len(data.MessageIDs))
			}
			told = append(told, data.MessageIDs...)
		}
	}
	if fmt.Sprint(told) != fmt.Sprint(ids) {
		t.Errorf("events tell of %v\nwant %v", told, ids)
	}
	page, err := h.Chats.History(t.Context(), me, conversation, "", 0)
	h.must(err)
	if last := page.Items[len(page.Items)-1]; last.Text() != "11 as it was" {
		t.Errorf("the last message says %.40q", last.Text())
	}
}
