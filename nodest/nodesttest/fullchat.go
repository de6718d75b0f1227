package nodesttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
)

// FullChat is a chat with a character that uses everything a prompt can contain.
type FullChat struct {
	*Fixture
	*chat.Conversation
	Book, Global, Preset, Script, Persona                               *character.Resource
	Question                                                            string
	settings                                                            character.UserSettings
	Greeting, First, FirstReply, Second, SecondReply, Third, ThirdReply *chat.Message
}

const aliceRolls = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide.","scenario":"The die shows %s."}`

// NewFullChat begins such a chat; roll is the text behind "The die shows".
func NewFullChat(t *testing.T, roll string) *FullChat {
	t.Helper()
	s := New(t, nodest.Options{})
	w := &FullChat{Fixture: s, Question: "And now, {{char}}?"}
	ch := s.Character(fmt.Sprintf(aliceRolls, roll))
	w.Book = w.Resource(character.WorldBook, "bound", Lore("bound lore"), ch.ID)
	w.Global = w.Resource(character.WorldBook, "global", Lore("global lore"))
	w.Preset = w.Resource(character.Preset, "preset", `{"prompts":[{"name":"Rule","identifier":"rule","role":"user","content":"A rule."}],
		"prompt_order":[{"order":[{"identifier":"rule"},{"identifier":"charDescription"},{"identifier":"scenario"},{"identifier":"chatHistory"}]}]}`)
	w.Script = w.Resource(character.RegexScript, "script", `{"scriptName":"s","findRegex":"now","replaceString":"at once","placement":[1]}`, ch.ID)
	w.Persona = w.Resource(character.Persona, "Ann", `{"name":"Ann","description":"A sailor."}`)
	w.settings = character.UserSettings{
		PersonaID: w.Persona.ID, GlobalRegexEnabled: true,
		GlobalPreset:    character.GlobalResource{Enabled: true, ID: w.Preset.ID},
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: w.Global.ID},
		CustomSetting:   json.RawMessage(`{"content":"likes the sea"}`),
	}
	w.PutUserSettings(w.settings)

	w.Conversation = s.ChatWith(ch.ID)
	w.PatchChat(chat.ConversationPatch{AuthorNote: Note("a note"), Settings: json.RawMessage(`{"temperature":0.5}`)})
	for i, into := range [][2]**chat.Message{{&w.First, &w.FirstReply}, {&w.Second, &w.SecondReply}, {&w.Third, &w.ThirdReply}} {
		s.Model.Enqueue(Reply(fmt.Sprintf("Reply %d.", i)))
		*into[1] = s.SayAndWait(w.Conversation, fmt.Sprintf("Message %d, now.", i))
		*into[0] = s.Message((*into[1]).ParentID)
	}
	w.Greeting = s.Message(w.First.ParentID)
	s.Model.Enqueue(Reply("Another reply 2."))
	w.RegenerateReply(w.ThirdReply.ID, "")
	return w
}

// Lore is a world book whose only entry has the text.
func Lore(text string) string {
	return fmt.Sprintf(`{"entries":{"0":{"comment":"e","content":%q,"position":4,"depth":1,"constant":true}}}`, text)
}

// Note is an author's note with the text.
func Note(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"charname":"Alice","username":"Ann","content":%q,"injection_depth":1}`, text))
}

// Resource creates a resource.
func (w *FullChat) Resource(kind character.ResourceKind, name, doc string, bound ...string) *character.Resource {
	w.T.Helper()
	r, err := w.Characters.CreateResource(w.T.Context(), w.Call(), kind, character.ResourceInput{Name: name, Document: json.RawMessage(doc), Characters: bound})
	w.Must(err)
	return r
}

// Update changes a resource.
func (w *FullChat) Update(r *character.Resource, in character.ResourceInput) {
	w.T.Helper()
	_, err := w.Characters.UpdateResource(w.T.Context(), w.Call(), r.Kind, r.ID, in, false, 0)
	w.Must(err)
}

// DeleteResource deletes a resource.
func (w *FullChat) DeleteResource(r *character.Resource) {
	w.T.Helper()
	w.Must(w.Characters.DeleteResource(w.T.Context(), w.Call(), r.Kind, r.ID))
}

// PutUserSettings replaces the settings of the user.
func (w *FullChat) PutUserSettings(s character.UserSettings) {
	w.T.Helper()
	_, err := w.Characters.PutUserSettings(w.T.Context(), w.Call(), s, 0)
	w.Must(err)
}

// PatchChat changes the conversation.
func (w *FullChat) PatchChat(p chat.ConversationPatch) {
	w.T.Helper()
	p.ID = w.ID
	_, err := w.Chats.UpdateConversation(w.T.Context(), w.Call(), p)
	w.Must(err)
}

// PutCard replaces the card of the character.
func (w *FullChat) PutCard(card string) {
	w.T.Helper()
	_, err := w.Characters.Update(w.T.Context(), w.Call(), w.CharacterID, character.Input{RoleCard: json.RawMessage(card)}, false, 0)
	w.Must(err)
}

// EditText edits a message.
func (w *FullChat) EditText(m *chat.Message, text string) {
	w.T.Helper()
	_, err := w.Edit(w.T.Context(), w.Call(), chat.EditInput{MessageID: m.ID, Text: text})
	w.Must(err)
}

// DeleteMessage deletes a message, or those after it too.
func (w *FullChat) DeleteMessage(m *chat.Message, scope string) {
	w.T.Helper()
	_, err := w.Chats.DeleteMessage(w.T.Context(), w.Call(), m.ID, scope)
	w.Must(err)
}

// ChooseHead shows another branch.
func (w *FullChat) ChooseHead(id string) *chat.Conversation {
	w.T.Helper()
	c, err := w.Chats.ChooseHead(w.T.Context(), w.Call(), w.ID, id)
	w.Must(err)
	return c
}

// Preview is the request that sending the question would make.
func (w *FullChat) Preview() []llm.Message {
	w.T.Helper()
	p, err := w.PreviewPrompt(w.T.Context(), Ann, nodest.PreviewInput{ConversationID: w.ID, Text: w.Question})
	w.Must(err)
	return p.Messages
}

// Save makes a save point.
func (w *FullChat) Save() *chat.Save {
	w.T.Helper()
	s, err := w.Chats.CreateSave(w.T.Context(), w.Call(), chat.SaveInput{ConversationID: w.ID, Description: "here"})
	w.Must(err)
	return s
}

// Restore restores a save point.
func (w *FullChat) Restore(s *chat.Save) *chat.Restored {
	w.T.Helper()
	r, err := w.Chats.RestoreSave(w.T.Context(), w.Call(), s.ID)
	w.Must(err)
	return r
}

// Texts returns the texts of the shown branch.
func (w *FullChat) Texts() string {
	w.T.Helper()
	page, err := w.Chats.History(w.T.Context(), Ann, w.ID, "", 200)
	w.Must(err)
	return TextsOf(page.Items)
}

// TextsOf joins the texts of messages.
func TextsOf(messages []*chat.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Text())
	}
	return strings.Join(texts, " | ")
}

// WantSamePrompt compares two requests.
func (w *FullChat) WantSamePrompt(what string, got, want []llm.Message) {
	w.T.Helper()
	if !reflect.DeepEqual(got, want) {
		w.T.Errorf("%s:\n%v\nwant\n%v", what, got, want)
	}
}

// ResetGreeting writes the greeting of the card again.
func (w *FullChat) ResetGreeting() {
	w.T.Helper()
	_, err := w.Regenerate(w.T.Context(), w.Call(), nodest.GenerateInput{MessageID: w.Greeting.ID})
	w.Must(err)
}

// EditAsBranch edits a message on a branch of its own.
func (w *FullChat) EditAsBranch(m *chat.Message, text string) {
	w.T.Helper()
	_, err := w.Edit(w.T.Context(), w.Call(), chat.EditInput{MessageID: m.ID, Text: text, Mode: chat.EditBranch})
	w.Must(err)
}

// SetDepthMode changes how the character counts depths.
func (w *FullChat) SetDepthMode(mode string) {
	w.T.Helper()
	_, _, err := w.Characters.PutSettings(w.T.Context(), w.Call(), w.CharacterID, json.RawMessage(`{"prompt":{"depthMode":"`+mode+`"}}`), 0)
	w.Must(err)
}
