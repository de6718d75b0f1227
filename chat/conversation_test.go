package chat_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest/nodesttest"
)

func TestAConversationStartsWithTheGreetings(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch, err := h.Characters.Create(t.Context(), h.Call(), character.Input{
		RoleCard: json.RawMessage(nodesttest.AliceWithGreetings), Dialect: "sillytavern",
	})
	nodesttest.Must(t, err)
	persona, err := h.Characters.CreateResource(t.Context(), h.Call(), character.Persona, character.ResourceInput{Document: json.RawMessage(`{"name":"$1 Mia"}`)})
	nodesttest.Must(t, err)
	h.TakeEventTypes()
	conv, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{
		CharacterID: ch.ID, PersonaID: persona.ID, Settings: json.RawMessage(`{"temperature":1.5}`),
	})
	nodesttest.Must(t, err)
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.created", "message.created"}) {
		t.Errorf("events = %v", events)
	}
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 1 || page.More {
		t.Fatalf("%d messages, more %v; want the greeting", len(page.Items), page.More)
	}
	first := page.Items[0]
	var texts []string
	for _, s := range first.Swipes {
		texts = append(texts, s.Text)
	}
	if want := []string{"Hello $1 Mia.", "Good day, $1 Mia.", "$1 Mia!"}; !slices.Equal(texts, want) {
		t.Errorf("greetings = %q, want %q", texts, want)
	}
	if !first.Greeting || first.Role != chat.RoleAssistant || first.Name != "Alice" || first.ID != conv.HeadID {
		t.Errorf("first message = %+v", first)
	}
	if conv.Title != "Alice" || conv.Version != 1 || string(conv.Settings) != `{"temperature":1.5}` {
		t.Errorf("conversation = %+v", conv)
	}
}

func TestPrecedenceOfTheUsersName(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(`{"name":"Alice","first_mes":"{{user}}"}`)
	persona := func(name string, in character.ResourceInput) string {
		in.Document = json.RawMessage(`{"name":"` + name + `"}`)
		r, err := h.Characters.CreateResource(t.Context(), h.Call(), character.Persona, in)
		nodesttest.Must(t, err)
		return r.ID
	}
	called := func(personaID string) string {
		conv, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{CharacterID: ch.ID, PersonaID: personaID})
		nodesttest.Must(t, err)
		return conv.LastMessage.Text
	}
	want := func(name string) {
		t.Helper()
		if got := called(""); got != name {
			t.Errorf("the user is called %q, want %q", got, name)
		}
	}
	want("User")
	_, err := h.Characters.PutUserSettings(t.Context(), h.Call(), character.UserSettings{UserName: "by settings"}, 0)
	nodesttest.Must(t, err)
	want("by settings")
	_, err = h.Characters.PutUserSettings(t.Context(), h.Call(), character.UserSettings{PersonaID: persona("my persona", character.ResourceInput{})}, 0)
	nodesttest.Must(t, err)
	want("my persona")
	persona("bound persona", character.ResourceInput{Characters: []string{ch.ID}})
	want("bound persona")
	_, _, err = h.Characters.PutSettings(t.Context(), h.Call(), ch.ID, json.RawMessage(`{"user":{"name":"by character"}}`), 0)
	nodesttest.Must(t, err)
	want("by character")
	if got := called(persona("of the chat", character.ResourceInput{})); got != "of the chat" {
		t.Errorf("the user is called %q, want the name of the chat's persona", got)
	}
}

func TestInvalidConversationsAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	ch := h.Character(nodesttest.Alice)
	theirs, err := h.Characters.Create(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.Input{})
	nodesttest.Must(t, err)
	tests := []struct {
		name  string
		in    chat.ConversationInput
		code  fault.Code
		field string
	}{
		{"no character", chat.ConversationInput{}, fault.Invalid, "characterId"},
		{"an unknown character", chat.ConversationInput{CharacterID: "x"}, fault.NotFound, "characterId"},
		{"another user's character", chat.ConversationInput{CharacterID: theirs.ID}, fault.NotFound, "characterId"},
		{"an unknown persona", chat.ConversationInput{CharacterID: ch.ID, PersonaID: "x"}, fault.NotFound, "personaId"},
		{"a title of 201 characters", chat.ConversationInput{CharacterID: ch.ID, Title: strings.Repeat("茶", 201)}, fault.Invalid, "title"},
		{"settings out of range", chat.ConversationInput{CharacterID: ch.ID, Settings: json.RawMessage(`{"temperature":3}`)}, fault.Invalid, "settings.temperature"},
		{"settings of another type", chat.ConversationInput{CharacterID: ch.ID, Settings: json.RawMessage(`{"maxTokens":"many"}`)}, fault.Invalid, "settings.maxTokens"},
		{"settings that are not known", chat.ConversationInput{CharacterID: ch.ID, Settings: json.RawMessage(`{"mood":1}`)}, fault.Invalid, "settings.mood"},
		{"another user's character in the settings", chat.ConversationInput{CharacterID: ch.ID,
			Settings: json.RawMessage(`{"characterId":"` + theirs.ID + `"}`)}, fault.NotFound, "settings.characterId"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Chats.CreateConversation(t.Context(), h.Call(), tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	page, err := h.Chats.Conversations(t.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 0 {
		t.Errorf("%d are stored, want none", len(page.Items))
	}
}

func TestAPatchChangesOnlyTheGivenFields(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	title, archived, nobody := strings.Repeat("茶", 200), true, "x"
	note := json.RawMessage(`{"content":"It rains.","injection_depth":2}`)

	conv, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, Title: &title, AuthorNote: note, IfVersion: 1})
	nodesttest.Must(t, err)
	conv, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{
		ID: conv.ID, Archived: &archived, Settings: json.RawMessage(`{"maxTokens":50}`),
	})
	nodesttest.Must(t, err)
	if conv.Title != title || string(conv.AuthorNote) != string(note) || !conv.Archived || conv.Version != 3 || string(conv.Settings) != `{"maxTokens":50}` {
		t.Errorf("conversation = %+v", conv)
	}
	conv, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, AuthorNote: json.RawMessage("null")})
	nodesttest.Must(t, err)
	if conv.AuthorNote != nil {
		t.Errorf("note = %s, want none", conv.AuthorNote)
	}
	for field, patch := range map[string]chat.ConversationPatch{
		"personaId":       {PersonaID: &nobody},
		"authorNote.role": {AuthorNote: json.RawMessage(`{"role":"x"}`)},
		"settings.topP":   {Settings: json.RawMessage(`{"topP":2}`)},
	} {
		patch.ID = conv.ID
		_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), patch)
		code := fault.Invalid
		if field == "personaId" {
			code = fault.NotFound
		}
		nodesttest.WantError(t, err, code, field)
	}
	_, err = h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: conv.ID, Title: &nobody, IfVersion: 1})
	nodesttest.WantError(t, err, fault.PreconditionFailed, "")
}

func TestConversationsAreFilteredByCharacterAndArchived(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	first, _ := h.NewChat(t, 0)
	second, _ := h.NewChat(t, 0)
	yes, no := true, false
	_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: second.ID, Archived: &yes})
	nodesttest.Must(t, err)
	for name, tt := range map[string]struct {
		filter chat.ConversationFilter
		want   []string
	}{
		"of a character": {chat.ConversationFilter{CharacterID: first.CharacterID}, []string{first.ID}},
		"archived":       {chat.ConversationFilter{Archived: &yes}, []string{second.ID}},
		"not archived":   {chat.ConversationFilter{Archived: &no}, []string{first.ID}},
	} {
		page, err := h.Chats.Conversations(t.Context(), nodesttest.Ann, tt.filter, "", 0)
		nodesttest.Must(t, err)
		var got []string
		for _, conv := range page.Items {
			got = append(got, conv.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	_, err = h.Chats.Conversations(t.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 500)
	nodesttest.WantError(t, err, fault.Invalid, "limit")
}

func TestHistoryIsReadBackwardsInPages(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 6)
	var read []string
	for before, more := "", true; more; {
		page, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, before, 3)
		nodesttest.Must(t, err)
		for _, m := range slices.Backward(page.Items) {
			read = append(read, m.ID)
		}
		before, more = page.Items[0].ID, page.More
	}
	slices.Reverse(read)
	if !slices.Equal(read, nodesttest.MessageIDs(all)) {
		t.Errorf("read %v, want %v", read, nodesttest.MessageIDs(all))
	}
	other, _ := h.NewChat(t, 0)
	_, err := h.Chats.History(t.Context(), nodesttest.Ann, other.ID, all[2].ID, 3)
	nodesttest.WantError(t, err, fault.NotFound, "before")
	_, err = h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 201)
	nodesttest.WantError(t, err, fault.Invalid, "limit")

	page, err := h.Chats.HistoryAfter(t.Context(), nodesttest.Ann, conv.ID, all[2].ID, 3)
	nodesttest.Must(t, err)
	if got, want := nodesttest.MessageIDs(page.Items), nodesttest.MessageIDs(all[3:6]); !slices.Equal(got, want) || !page.More {
		t.Errorf("after a message: %v, want %v, more %v", got, want, page.More)
	}
	page, err = h.Chats.HistoryAfter(t.Context(), nodesttest.Ann, conv.ID, conv.HeadID, 3)
	nodesttest.Must(t, err)
	if len(page.Items) != 0 || page.More {
		t.Errorf("after the last message: %v, more %v", nodesttest.MessageIDs(page.Items), page.More)
	}
	_, err = h.Chats.HistoryAfter(t.Context(), nodesttest.Ann, other.ID, all[2].ID, 3)
	nodesttest.WantError(t, err, fault.NotFound, "after")
	_, err = h.Chats.HistoryAfter(t.Context(), nodesttest.Ann, conv.ID, all[2].ID, 201)
	nodesttest.WantError(t, err, fault.Invalid, "limit")
}

// A message within another branch is shown with all that follows it there.
func TestShowingAMessageShowsItsBranch(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	end := all[len(all)-1]
	h.AddMessage(t, conv.ID, all[1].ID, "another way")
	show := func(id, want string) {
		t.Helper()
		conv, err := h.Chats.ShowMessage(t.Context(), h.Call(), conv.ID, id)
		nodesttest.Must(t, err)
		if conv.HeadID != want || conv.LastMessage.ID != want {
			t.Errorf("the head is %s, want %s", conv.HeadID, want)
		}
	}
	_, err := h.Chats.HistoryAfter(t.Context(), nodesttest.Ann, conv.ID, all[2].ID, 0)
	nodesttest.WantError(t, err, fault.NotFound, "after") // it is on the other branch
	show(all[2].ID, end.ID)
	h.TakeEventTypes()
	show(all[0].ID, end.ID) // it is shown already, though a newer branch has it, too
	if events := h.TakeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v, want none", events)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[3].ID, "one")
	nodesttest.Must(t, err)
	_, err = h.Chats.ShowMessage(t.Context(), h.Call(), conv.ID, all[3].ID)
	nodesttest.WantError(t, err, fault.NotFound, "messageId")
	defer h.MarkAsWriting(t, end)()
	_, err = h.Chats.ShowMessage(t.Context(), h.Call(), conv.ID, all[2].ID)
	nodesttest.WantError(t, err, fault.Busy, "")
}

func TestChoosingAHeadShowsItsBranch(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	conv, err := h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[2].ID)
	nodesttest.Must(t, err)
	if conv.HeadID != all[2].ID || conv.LastMessage.ID != all[2].ID || conv.Version != 6 {
		t.Errorf("conversation = %+v", conv)
	}
	h.AddMessage(t, conv.ID, all[2].ID, "another way")
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.Must(t, err)
	if len(page.Items) != 4 || page.Items[3].Text() != "another way" {
		t.Errorf("the branch has %d messages", len(page.Items))
	}
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[4].ID)
	nodesttest.Must(t, err) // the old branch is still there
	h.TakeEventTypes()
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[4].ID)
	nodesttest.Must(t, err) // it is the head already
	if events := h.TakeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v, want none", events)
	}

	other, _ := h.NewChat(t, 0)
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), other.ID, all[1].ID)
	nodesttest.WantError(t, err, fault.NotFound, "messageId")
	end := h.MarkAsWriting(t, all[4])
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[1].ID)
	nodesttest.WantError(t, err, fault.Busy, "")
	end()
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[1].ID)
	nodesttest.Must(t, err)
}

func TestADeletedConversationIsGone(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 2)
	h.TakeEventTypes()
	nodesttest.Must(t, h.DeleteConversation(t.Context(), h.Call(), conv.ID))
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.deleted"}) {
		t.Errorf("events = %v", events)
	}
	_, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Chats.Message(t.Context(), nodesttest.Ann, all[1].ID)
	nodesttest.WantError(t, err, fault.NotFound, "")
	nodesttest.WantError(t, h.DeleteConversation(t.Context(), h.Call(), conv.ID), fault.NotFound, "")
	nodesttest.WantError(t, h.DeleteConversation(t.Context(), h.Call(), ""), fault.NotFound, "")
}
