package chat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// changes are what may happen between a save point and its restore. One chat goes
// through all of them, so those that cannot be repeated come last.
var changes = []struct {
	name string
	make func(w *nodesttest.FullChat)
}{
	{"nothing", func(*nodesttest.FullChat) {}},
	{"more messages", func(w *nodesttest.FullChat) {
		w.SayAndWait(w.Conversation, "More.")
		w.SayAndWait(w.Conversation, "And more.")
	}},
	{"an edited message", func(w *nodesttest.FullChat) { w.EditText(w.First, "Edited.") }},
	{"an edited reply", func(w *nodesttest.FullChat) {
		w.EditText(w.ThirdReply, "Edited.")
		w.EditText(w.ThirdReply, "Edited again.")
	}},
	{"an edited greeting", func(w *nodesttest.FullChat) { w.EditText(w.Greeting, "Edited.") }},
	{"a message hidden", func(w *nodesttest.FullChat) { hide(w, w.SecondReply, true) }},
	{"one message deleted", func(w *nodesttest.FullChat) { w.DeleteMessage(w.SecondReply, "one") }},
	{"the head deleted", func(w *nodesttest.FullChat) { w.DeleteMessage(w.ThirdReply, "one") }},
	{"everything after deleted", func(w *nodesttest.FullChat) { w.DeleteMessage(w.Second, "after") }},
	{"everything deleted", func(w *nodesttest.FullChat) { w.DeleteMessage(w.Greeting, "after") }},
	{"a swipe deleted", func(w *nodesttest.FullChat) { w.DeleteMessage(w.ThirdReply, "swipe") }},
	{"another swipe chosen", func(w *nodesttest.FullChat) {
		_, err := w.Swipe(w.T.Context(), w.Call(), chat.SwipeInput{MessageID: w.ThirdReply.ID, Swipe: "prev"})
		w.Must(err)
	}},
	{"a reply regenerated", func(w *nodesttest.FullChat) { w.RegenerateReply(w.ThirdReply.ID, "") }},
	{"an answered reply rewritten", func(w *nodesttest.FullChat) { w.RegenerateReply(w.FirstReply.ID, "") }},
	{"a greeting reset", func(w *nodesttest.FullChat) {
		w.EditText(w.Greeting, "x")
		w.PutCard(nodesttest.PlainAlice)
		w.ResetGreeting()
	}},
	{"the conversation begun anew", func(w *nodesttest.FullChat) { w.Must(nodesttest.ErrOf(w.Chats.Reset(w.T.Context(), w.Call(), w.ID))) }},
	{"an earlier head", func(w *nodesttest.FullChat) {
		w.ChooseHead(w.FirstReply.ID)
		w.SayAndWait(w.Conversation, "Otherwise.")
	}},
	{"a message edited as a branch", func(w *nodesttest.FullChat) { w.EditAsBranch(w.Second, "Otherwise.") }},
	{"a reply continued", func(w *nodesttest.FullChat) {
		w.Model.Enqueue(nodesttest.Reply(" And on."))
		done, err := w.Continue(w.T.Context(), w.Call(), nodest.GenerateInput{MessageID: w.ThirdReply.ID})
		w.Must(err)
		w.Await(done.GenerationID)
	}},
	{"another note", func(w *nodesttest.FullChat) {
		w.PatchChat(chat.ConversationPatch{AuthorNote: nodesttest.Note("another note")})
	}},
	{"no note", func(w *nodesttest.FullChat) { w.PatchChat(chat.ConversationPatch{AuthorNote: json.RawMessage("null")}) }},
	{"settings of the chat", func(w *nodesttest.FullChat) {
		w.PatchChat(chat.ConversationPatch{Settings: json.RawMessage(`{"contextTokens":600}`)})
	}},
	{"settings of the user", func(w *nodesttest.FullChat) { w.PutUserSettings(character.UserSettings{UserName: "Annabel"}) }},
	{"another card", func(w *nodesttest.FullChat) { w.PutCard(`{"name":"Alicia","description":"Another."}`) }},
	{"settings of the character", func(w *nodesttest.FullChat) { w.Calls++; w.SetDepthMode("user_messages") }},
	{"a bound book updated", func(w *nodesttest.FullChat) {
		w.Update(w.Book, character.ResourceInput{Document: json.RawMessage(nodesttest.Lore("new lore"))})
	}},
	{"another book bound", func(w *nodesttest.FullChat) {
		w.Resource(character.WorldBook, "new", nodesttest.Lore("new lore"), w.CharacterID)
	}},
	{"the global book updated", func(w *nodesttest.FullChat) {
		w.Update(w.Global, character.ResourceInput{Document: json.RawMessage(nodesttest.Lore("new lore"))})
	}},
	{"the global preset updated", func(w *nodesttest.FullChat) {
		w.Update(w.Preset, character.ResourceInput{Document: json.RawMessage(`{"prompts":[]}`)})
	}},
	{"the regex script updated", func(w *nodesttest.FullChat) {
		w.Update(w.Script, character.ResourceInput{Document: json.RawMessage(`{"findRegex":"M"}`)})
	}},
	{"the user's persona updated", func(w *nodesttest.FullChat) {
		w.Update(w.Persona, character.ResourceInput{Document: json.RawMessage(`{"name":"Z"}`)})
	}},
	{"another persona", func(w *nodesttest.FullChat) {
		p := w.Resource(character.Persona, "Eve", `{"name":"Eve"}`)
		w.PatchChat(chat.ConversationPatch{PersonaID: &p.ID})
	}},
	{"much at once", func(w *nodesttest.FullChat) {
		w.EditText(w.First, "Edited.")
		w.SayAndWait(w.Conversation, "More.")
		w.DeleteMessage(w.SecondReply, "after")
		w.SayAndWait(w.Conversation, "Otherwise.")
		w.PutCard(`{"name":"Alicia","description":"Another."}`)
		w.PutUserSettings(character.UserSettings{})
	}},
	{"a bound book unbound", func(w *nodesttest.FullChat) { w.Update(w.Book, character.ResourceInput{Characters: []string{}}) }},
	{"a bound book deleted", func(w *nodesttest.FullChat) { w.DeleteResource(w.Book) }},
	{"the global book deleted", func(w *nodesttest.FullChat) { w.DeleteResource(w.Global) }},
	{"the global preset deleted", func(w *nodesttest.FullChat) { w.DeleteResource(w.Preset) }},
	{"the regex script deleted", func(w *nodesttest.FullChat) { w.DeleteResource(w.Script) }},
	{"the user's persona deleted", func(w *nodesttest.FullChat) { w.DeleteResource(w.Persona) }},
}

// Whatever happened since a save point, after its restore the next request is byte
// for byte the same.
func TestARestoreRestoresThePrompt(t *testing.T) {
	t.Parallel()
	all, w := t, nodesttest.NewFullChat(t, "5")
	want, shown := w.Preview(), w.Texts()
	save := w.Save()
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			w.Crash() // the caches are empty
			w.T = t
			defer func() { w.T = all }()
			change.make(w)
			inFull, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
			w.Must(err)
			w.WantSamePrompt("preview of the save point", inFull.Messages, want)
			if got := w.Restore(save); got.HeadID != save.HeadID || got.Conversation.HeadID != save.HeadID {
				t.Errorf("restored to head %s, want %s", got.HeadID, save.HeadID)
			}
			if got := w.Texts(); got != shown {
				t.Errorf("shown: %s\nwant %s", got, shown)
			}
			w.WantSamePrompt("preview", w.Preview(), want)
			w.SayAndWait(w.Conversation, w.Question)
			asked := w.Model.AllRequests()
			w.WantSamePrompt("sent", asked[len(asked)-1].Messages, want)
			if temperature := asked[len(asked)-1].Temperature; temperature == nil || *temperature != 0.5 {
				t.Errorf("asked with a temperature of %v, want that of the save point", temperature)
			}
		})
	}
}

// A preview draws its random macros by nothing but the text that is shown.
func TestRandomMacrosAreStableInAPreview(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "{{roll::1000000}}")
	want := w.Preview()
	save := w.Save()
	w.WantSamePrompt("preview once more", w.Preview(), want)
	dice := regexp.MustCompile(`The die shows \d+`)
	drawn := dice.FindString(fmt.Sprint(want))
	w.SayAndWait(w.Conversation, "More.")
	if now := dice.FindString(fmt.Sprint(w.Preview())); drawn == "" || now == drawn {
		t.Errorf("another last message draws the same: %s", now)
	}
	w.EditText(w.ThirdReply, "Edited.")
	ofSave, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
	w.Must(err)
	w.WantSamePrompt("preview of the save point", ofSave.Messages, want)
	w.Restore(save)
	w.WantSamePrompt("preview after the restore", w.Preview(), want)
}

// A document changed after a restore is used as it is now; the others stay as they
// were at the save point.
func TestADocumentChangedAfterARestoreIsUsed(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	w.PutCard(`{"name":"Alice","description":"The second."}`)
	w.Update(w.Book, character.ResourceInput{Document: json.RawMessage(nodesttest.Lore("second lore"))})
	w.Restore(save)
	w.PutCard(`{"name":"Alice","description":"The third."}`)
	got := fmt.Sprint(w.Preview())
	for text, there := range map[string]bool{
		"The third.": true, "A guide.": false, "The second.": false,
		"bound lore": true, "second lore": false, "global lore": true, "likes the sea": true, "A rule.": true,
	} {
		if strings.Contains(got, text) != there {
			t.Errorf("%q in the prompt: %t, want %t\n%s", text, !there, there, got)
		}
	}
	w.PutUserSettings(character.UserSettings{CustomSetting: json.RawMessage(`{"content":"likes the hills"}`)})
	w.DeleteResource(w.Book)
	got = fmt.Sprint(w.Preview())
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
	w := nodesttest.NewFullChat(t, "5")
	want, save := w.Preview(), w.Save()
	w.PutCard(`{"name":"Alicia","description":"The second."}`)
	w.Restore(save)
	w.WantSamePrompt("preview after the restore", w.Preview(), want)
	tagged, err := w.Characters.Update(t.Context(), w.Call(), w.CharacterID, character.Input{Tags: []string{"elf"}, Archived: new(true)}, false, 0)
	w.Must(err)
	w.WantSamePrompt("preview with tags", w.Preview(), want)
	w.Crash() // the caches are empty
	w.WantSamePrompt("preview with tags, read again", w.Preview(), want)
	again, err := w.Characters.Update(t.Context(), w.Call(), w.CharacterID, character.Input{IsCradle: new(true)}, false, tagged.Version)
	w.Must(err)
	if got := fmt.Sprint(w.Preview()); !strings.Contains(got, "The second.") || fmt.Sprint(again.Tags) != "[elf]" || !again.Archived {
		t.Errorf("after a change of the character, with tags %v, archived %t: %s", again.Tags, again.Archived, got)
	}
}

func TestChoosingALeftBranchShowsItAsItWas(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	w.EditText(w.First, "Edited.")
	w.DeleteMessage(w.SecondReply, "one")
	w.SayAndWait(w.Conversation, "More.")
	w.PatchChat(chat.ConversationPatch{AuthorNote: nodesttest.Note("a later note")})
	left, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)
	shown := w.Texts()
	w.Restore(save)
	other := w.SayAndWait(w.Conversation, "Otherwise.")
	w.Events.Clear()
	got := w.ChooseHead(left.HeadID)
	if w.Texts() != shown {
		t.Errorf("shown: %s\nwant %s", w.Texts(), shown)
	}
	if !strings.Contains(string(got.AuthorNote), `"a note"`) || got.Pins == nil {
		t.Errorf("the note is %s, want that of the restored save point; pins %v", got.AuthorNote, got.Pins)
	}
	if events := w.Events.Types(); events != "message.updated message.deleted chat.updated" {
		t.Errorf("events = %s", events)
	}
	w.ChooseHead(other.ID)
	if want := strings.Replace(strings.Replace(shown, "Edited.", "Message 0, now.", 1), "More. | Fine.", "Otherwise. | Fine.", 1); w.Texts() != strings.Replace(want, "Message 1, now. |", "Message 1, now. | Reply 1. |", 1) {
		t.Errorf("back on the other branch: %s", w.Texts())
	}
}

// A message that was deleted when its branch was left and restored from another
// branch can be chosen like any other.
func TestARestoredMessageCanBeChosen(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	reply := w.SayAndWait(w.Conversation, "More.")
	shown := w.Texts()
	w.DeleteMessage(reply, "one")
	w.Restore(save)
	w.Must(nodesttest.ErrOf(w.Chats.RestoreMessage(t.Context(), w.Call(), reply.ID)))
	if got := w.ChooseHead(reply.ID); got.HeadID != reply.ID || w.Texts() != shown {
		t.Errorf("shown: %s\nwant %s", w.Texts(), shown)
	}
}

func TestEventsOfARestore(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.DeleteMessage(w.First, "one")
	save := w.Save()
	w.Must(nodesttest.ErrOf(w.Chats.RestoreMessage(t.Context(), w.Call(), w.First.ID)))
	w.DeleteMessage(w.SecondReply, "one")
	w.EditText(w.ThirdReply, "Edited.")
	w.Events.Clear()
	got := w.Restore(save)
	if events := w.Events.Types(); events != "save.created message.updated message.restored message.deleted chat.updated save.restored" {
		t.Errorf("events = %s", events)
	}
	for kind, part := range map[string]string{
		"save.created": `"automatic":true`, "message.restored": `{"messageIds":["` + w.SecondReply.ID + `"]}`,
		"message.deleted": `"messageIds":["` + w.First.ID + `"]`, "save.restored": `"head":"` + save.HeadID + `"`,
	} {
		if data := w.Events.Data(kind); !strings.Contains(data, part) {
			t.Errorf("%s has the data %s, want %s", kind, data, part)
		}
	}
	if got.Before == nil || !got.Before.Automatic || got.Before.HeadID != save.HeadID {
		t.Errorf("before = %+v", got.Before)
	}
	w.Events.Clear()
	if again := w.Restore(save); again.Before != nil || again.Conversation.Version != got.Conversation.Version+1 {
		t.Errorf("restored twice: before %+v, version %d", again.Before, again.Conversation.Version)
	}
	if events := w.Events.Types(); events != "chat.updated save.restored" {
		t.Errorf("restored twice: events = %s", events)
	}
	// The automatic save point restores what was shown before.
	w.Restore(got.Before)
	if want := "Hello, traveller. | Message 0, now. | Reply 0. | Message 1, now. | Message 2, now. | Edited."; w.Texts() != want {
		t.Errorf("shown: %s", w.Texts())
	}
}

func TestSavePointsAreListedAndRead(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	first := w.Save()
	shown := w.Texts()
	w.EditText(w.First, "Edited.")
	second, err := w.Chats.CreateSave(t.Context(), w.Call(), chat.SaveInput{ConversationID: w.ID, PreviewText: "mine", Thumbnail: "data:,x"})
	w.Must(err)
	w.Restore(first)
	w.SayAndWait(w.Conversation, "More.")
	if first.MessageCount != 7 || first.PreviewText != "Another reply 2." || first.HeadID != w.ThirdReply.ID || second.PreviewText != "mine" {
		t.Errorf("first = %+v, second = %+v", first, second)
	}
	for automatic, n := range map[bool]int{false: 2, true: 3} {
		page, err := w.Chats.Saves(t.Context(), nodesttest.Ann, w.ID, automatic, "", 0)
		w.Must(err)
		if len(page.Items) != n || page.Items[n-1].ID != first.ID {
			t.Errorf("automatic %t: %d save points", automatic, len(page.Items))
		}
	}
	page, err := w.Chats.Saves(t.Context(), nodesttest.Ann, w.ID, false, "", 1)
	w.Must(err)
	next, err := w.Chats.Saves(t.Context(), nodesttest.Ann, w.ID, false, page.NextCursor, 1)
	w.Must(err)
	if page.Items[0].ID != second.ID || next.Items[0].ID != first.ID || next.NextCursor != "" {
		t.Error("the pages do not follow each other")
	}
	view, err := w.Engine.Chats.Save(t.Context(), nodesttest.Ann, first.ID, "", 0)
	w.Must(err)
	if nodesttest.TextsOf(view.Messages) != shown || view.More {
		t.Errorf("all of it: %s", nodesttest.TextsOf(view.Messages))
	}
	view, err = w.Engine.Chats.Save(t.Context(), nodesttest.Ann, first.ID, w.Third.ID, 2)
	w.Must(err)
	if nodesttest.TextsOf(view.Messages) != "Message 1, now. | Reply 1." || !view.More {
		t.Errorf("a page: %s", nodesttest.TextsOf(view.Messages))
	}
	w.Must(w.Chats.DeleteSave(t.Context(), w.Call(), second.ID))
	_, err = w.Engine.Chats.Save(t.Context(), nodesttest.Ann, second.ID, "", 0)
	w.WantCode(err, fault.NotFound)
	w.Restore(first)
}

func TestASavePointOfAnEmptyChatRestoresToTheGreeting(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	w.DeleteMessage(w.Greeting, "after")
	save := w.Save()
	if save.HeadID != "" || save.MessageCount != 0 {
		t.Errorf("save = %+v", save)
	}
	view, err := w.Engine.Chats.Save(t.Context(), nodesttest.Ann, save.ID, "", 0)
	w.Must(err)
	if len(view.Messages) != 0 {
		t.Errorf("it shows %s", nodesttest.TextsOf(view.Messages))
	}
	preview, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
	w.Must(err)
	w.SayAndWait(w.Conversation, "More.")
	w.Restore(save)
	if w.Texts() != "Hello, traveller." {
		t.Errorf("shown: %s", w.Texts())
	}
	w.WantSamePrompt("preview", w.Preview(), preview.Messages)
}

func TestNothingIsSavedOrRestoredWhileAReplyIsWritten(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	for name, do := range map[string]func() error{
		"create": func() error {
			return nodesttest.ErrOf(w.Chats.CreateSave(t.Context(), w.Call(), chat.SaveInput{ConversationID: w.ID}))
		},
		"restore": func() error { return nodesttest.ErrOf(w.Chats.RestoreSave(t.Context(), w.Call(), save.ID)) },
	} {
		t.Run(name, func(t *testing.T) {
			slow := nodesttest.Reply("Slowly.").Gated()
			w.Model.Enqueue(slow)
			sent := w.Say(w.Conversation, "Hello?")
			<-slow.Started
			e := w.WantCode(do(), fault.Busy)
			if e.Details["generationId"] != sent.GenerationID {
				t.Errorf("details = %v", e.Details)
			}
			slow.Release()
			w.Await(sent.GenerationID)
			w.Must(do())
		})
	}
}

// Concurrent restores run one after the other: in the end exactly one of the save
// points is shown.
func TestConcurrentRestores(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	one, shownOne := w.Save(), w.Texts()
	w.EditText(w.First, "Edited.")
	w.DeleteMessage(w.SecondReply, "one")
	w.SayAndWait(w.Conversation, "More.")
	two, shownTwo := w.Save(), w.Texts()
	var all sync.WaitGroup
	for i := range 8 {
		call := w.Call()
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
	c, err := w.Engine.Chats.Conversation(t.Context(), nodesttest.Ann, w.ID)
	w.Must(err)
	want := map[string]string{one.HeadID: shownOne, two.HeadID: shownTwo}[c.HeadID]
	if w.Texts() != want {
		t.Errorf("shown: %s\nwant %s", w.Texts(), want)
	}
}

func TestARepeatedSavePointCallHasOneEffect(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	call := w.Call()
	first, err := w.Chats.CreateSave(t.Context(), call, chat.SaveInput{ConversationID: w.ID})
	w.Must(err)
	again := *call
	second, err := w.Chats.CreateSave(t.Context(), &again, chat.SaveInput{ConversationID: w.ID})
	w.Must(err)
	if first.ID != second.ID || !again.Replayed {
		t.Error("a repeated call made another save point")
	}
	call = w.Call()
	restored, err := w.Chats.RestoreSave(t.Context(), call, first.ID)
	w.Must(err)
	w.SayAndWait(w.Conversation, "More.")
	shown := w.Texts()
	again = *call
	repeated, err := w.Chats.RestoreSave(t.Context(), &again, first.ID)
	w.Must(err)
	if repeated.Conversation.Version != restored.Conversation.Version || w.Texts() != shown {
		t.Error("a repeated call restored once more")
	}
}

func TestLengthLimitsOfASavePoint(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	for field, in := range map[string]chat.SaveInput{
		"description": {Description: strings.Repeat("茶", 2001)},
		"previewText": {PreviewText: strings.Repeat("茶", 1001)},
		"thumbnail":   {Thumbnail: strings.Repeat("x", 100_001)},
	} {
		in.ConversationID = w.ID
		_, err := w.Chats.CreateSave(t.Context(), w.Call(), in)
		nodesttest.WantError(t, err, fault.Invalid, field)
	}
	_, err := w.Chats.CreateSave(t.Context(), w.Call(), chat.SaveInput{ConversationID: w.ID,
		Description: strings.Repeat("茶", 2000), PreviewText: strings.Repeat("茶", 1000), Thumbnail: strings.Repeat("x", 100_000)})
	w.Must(err)
}

func TestAnotherUsersSavePointsAnswerNotFound(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	data, _, err := nodesttest.Written(t.Context(), w.Archives.ExportSave, nodesttest.Ann, save.ID)
	w.Must(err)
	ch, err := w.Characters.Create(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.Input{RoleCard: json.RawMessage(nodesttest.PlainAlice)})
	w.Must(err)
	own, err := w.Chats.CreateConversation(t.Context(), &op.Call{UserID: nodesttest.Bob}, chat.ConversationInput{CharacterID: ch.ID})
	w.Must(err)
	w.Events.Clear()
	c := func() *op.Call { return &op.Call{UserID: nodesttest.Bob, Device: "pc"} }
	for name, err := range map[string]error{
		"create":  nodesttest.ErrOf(w.Chats.CreateSave(t.Context(), c(), chat.SaveInput{ConversationID: w.ID})),
		"list":    nodesttest.ErrOf(w.Chats.Saves(t.Context(), nodesttest.Bob, w.ID, true, "", 0)),
		"read":    nodesttest.ErrOf(w.Engine.Chats.Save(t.Context(), nodesttest.Bob, save.ID, "", 0)),
		"restore": nodesttest.ErrOf(w.Chats.RestoreSave(t.Context(), c(), save.ID)),
		"preview": nodesttest.ErrOf(w.PreviewSave(t.Context(), nodesttest.Bob, save.ID, nodest.PreviewInput{})),
		"delete":  w.Chats.DeleteSave(t.Context(), c(), save.ID),
		"export": func() error {
			_, _, err := nodesttest.Written(t.Context(), w.Archives.ExportSave, nodesttest.Bob, save.ID)
			return err
		}(),
		"import": nodesttest.ErrOf(w.Archives.ImportSave(t.Context(), c(), w.ID, data)),
	} {
		t.Run(name, func(t *testing.T) { nodesttest.WantError(t, err, fault.NotFound, "") })
	}
	if events := w.Events.Types(); events != "" {
		t.Errorf("events = %s", events)
	}
	// A file in the hands of another user gives no access to documents of its owner.
	got, err := w.Archives.ImportSave(t.Context(), c(), own.ID, data)
	w.Must(err)
	w.Must(nodesttest.ErrOf(w.Chats.RestoreSave(t.Context(), c(), got.ID)))
	p, err := w.PreviewPrompt(t.Context(), nodesttest.Bob, nodest.PreviewInput{ConversationID: own.ID, Text: "Hi"})
	w.Must(err)
	if text := fmt.Sprint(p.Messages); strings.Contains(text, "lore") || strings.Contains(text, "likes the sea") || !strings.Contains(text, "Reply 1.") {
		t.Errorf("the prompt of the stranger: %s", text)
	}
}

// A restore that changes the texts of messages with very many swipes has events with all of a message for the
// first of them, and names the others, which clients read again.
func TestEventsOfARestoreAreBounded(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
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
	imported, err := h.Archives.ImportChat(t.Context(), h.Call(), h.Character(nodesttest.PlainAlice).ID, []byte(log.String()), "log.jsonl")
	h.Must(err)
	conversation := imported.Conversation.ID
	save, err := h.Chats.CreateSave(t.Context(), h.Call(), chat.SaveInput{ConversationID: conversation})
	h.Must(err)
	var ids []string
	for before, more := "", true; more; {
		page, err := h.Chats.History(t.Context(), nodesttest.Ann, conversation, before, 0)
		h.Must(err)
		ids, before, more = append(chat.IDsOf(page.Items), ids...), page.Items[0].ID, page.More
	}
	for _, id := range ids {
		h.Must(nodesttest.ErrOf(h.Chats.ChooseSwipe(t.Context(), h.Call(), chat.SwipeInput{MessageID: id, Swipe: "next"})))
	}
	h.Events.Clear()
	h.Must(nodesttest.ErrOf(h.Chats.RestoreSave(t.Context(), h.Call(), save.ID)))
	var told []string
	for _, ev := range h.Events.All() {
		switch ev.Type {
		case "message.updated":
			told = append(told, ev.MessageID)
		case "message.restored":
			var data struct{ MessageIDs []string }
			h.Must(json.Unmarshal(ev.Data, &data))
			if len(told) < 1 || len(data.MessageIDs) < 2 {
				t.Errorf("%d messages are in events, and %d are named", len(told), len(data.MessageIDs))
			}
			told = append(told, data.MessageIDs...)
		}
	}
	if fmt.Sprint(told) != fmt.Sprint(ids) {
		t.Errorf("events tell of %v\nwant %v", told, ids)
	}
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, conversation, "", 0)
	h.Must(err)
	if last := page.Items[len(page.Items)-1]; last.Text() != "11 as it was" {
		t.Errorf("the last message says %.40q", last.Text())
	}
}
