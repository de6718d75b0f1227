package nodest_test

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

// fullChat is a chat with a character that uses everything a prompt can contain.
type fullChat struct {
	*fixture
	*chat.Conversation
	book, global, preset, script, persona                               *character.Resource
	question                                                            string
	settings                                                            character.UserSettings
	greeting, first, firstReply, second, secondReply, third, thirdReply *chat.Message
}

const aliceRolls = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide.","scenario":"The die shows %s."}`

func newFullChat(t *testing.T, roll string) *fullChat {
	t.Helper()
	s := newFixture(t, nodest.Options{})
	w := &fullChat{fixture: s, question: "And now, {{char}}?"}
	ch := s.character(fmt.Sprintf(aliceRolls, roll))
	w.book = w.resource(character.WorldBook, "bound", lore("bound lore"), ch.ID)
	w.global = w.resource(character.WorldBook, "global", lore("global lore"))
	w.preset = w.resource(character.Preset, "preset", `{"prompts":[{"name":"Rule","identifier":"rule","role":"user","content":"A rule."}],
		"prompt_order":[{"order":[{"identifier":"rule"},{"identifier":"charDescription"},{"identifier":"scenario"},{"identifier":"chatHistory"}]}]}`)
	w.script = w.resource(character.RegexScript, "script", `{"scriptName":"s","findRegex":"now","replaceString":"at once","placement":[1]}`, ch.ID)
	w.persona = w.resource(character.Persona, "Ann", `{"name":"Ann","description":"A sailor."}`)
	w.settings = character.UserSettings{
		PersonaID: w.persona.ID, GlobalRegexEnabled: true,
		GlobalPreset:    character.GlobalResource{Enabled: true, ID: w.preset.ID},
		GlobalWorldBook: character.GlobalResource{Enabled: true, ID: w.global.ID},
		CustomSetting:   json.RawMessage(`{"content":"likes the sea"}`),
	}
	w.putUserSettings(w.settings)

	w.Conversation = s.chatWith(ch.ID)
	w.patchChat(chat.ConversationPatch{AuthorNote: note("a note"), Settings: json.RawMessage(`{"temperature":0.5}`)})
	for i, into := range [][2]**chat.Message{{&w.first, &w.firstReply}, {&w.second, &w.secondReply}, {&w.third, &w.thirdReply}} {
		s.model.enqueue(replyWith(fmt.Sprintf("Reply %d.", i)))
		*into[1] = s.sendAndWait(w.Conversation, fmt.Sprintf("Message %d, now.", i))
		*into[0] = s.message((*into[1]).ParentID)
	}
	w.greeting = s.message(w.first.ParentID)
	s.model.enqueue(replyWith("Another reply 2."))
	w.regenerate(w.thirdReply.ID, "")
	return w
}

func lore(text string) string {
	return fmt.Sprintf(`{"entries":{"0":{"comment":"e","content":%q,"position":4,"depth":1,"constant":true}}}`, text)
}

func note(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"charname":"Alice","username":"Ann","content":%q,"injection_depth":1}`, text))
}

func (w *fullChat) resource(kind character.ResourceKind, name, doc string, bound ...string) *character.Resource {
	w.t.Helper()
	r, err := w.Characters.CreateResource(w.t.Context(), w.call(), kind, character.ResourceInput{Name: name, Document: json.RawMessage(doc), Characters: bound})
	w.must(err)
	return r
}

func (w *fullChat) update(r *character.Resource, in character.ResourceInput) {
	w.t.Helper()
	_, err := w.Characters.UpdateResource(w.t.Context(), w.call(), r.Kind, r.ID, in, false, 0)
	w.must(err)
}

func (w *fullChat) deleteResource(r *character.Resource) {
	w.t.Helper()
	w.must(w.Characters.DeleteResource(w.t.Context(), w.call(), r.Kind, r.ID))
}

func (w *fullChat) putUserSettings(s character.UserSettings) {
	w.t.Helper()
	_, err := w.Characters.PutUserSettings(w.t.Context(), w.call(), s, 0)
	w.must(err)
}

func (w *fullChat) patchChat(p chat.ConversationPatch) {
	w.t.Helper()
	p.ID = w.ID
	_, err := w.Chats.UpdateConversation(w.t.Context(), w.call(), p)
	w.must(err)
}

func (w *fullChat) putCard(card string) {
	w.t.Helper()
	_, err := w.Characters.Update(w.t.Context(), w.call(), w.CharacterID, character.Input{RoleCard: json.RawMessage(card)}, false, 0)
	w.must(err)
}

func (w *fullChat) edit(m *chat.Message, text string) {
	w.t.Helper()
	_, err := w.Edit(w.t.Context(), w.call(), chat.EditInput{MessageID: m.ID, Text: text})
	w.must(err)
}

func (w *fullChat) deleteMessage(m *chat.Message, scope string) {
	w.t.Helper()
	_, err := w.Chats.DeleteMessage(w.t.Context(), w.call(), m.ID, scope)
	w.must(err)
}

func (w *fullChat) chooseHead(id string) *chat.Conversation {
	w.t.Helper()
	c, err := w.Chats.ChooseHead(w.t.Context(), w.call(), w.ID, id)
	w.must(err)
	return c
}

// preview is the request that sending the question would make.
func (w *fullChat) preview() []llm.Message {
	w.t.Helper()
	p, err := w.PreviewPrompt(w.t.Context(), ann, nodest.PreviewInput{ConversationID: w.ID, Text: w.question})
	w.must(err)
	return p.Messages
}

func (w *fullChat) save() *chat.Save {
	w.t.Helper()
	s, err := w.Chats.CreateSave(w.t.Context(), w.call(), chat.SaveInput{ConversationID: w.ID, Description: "here"})
	w.must(err)
	return s
}

func (w *fullChat) restore(s *chat.Save) *chat.Restored {
	w.t.Helper()
	r, err := w.Chats.RestoreSave(w.t.Context(), w.call(), s.ID)
	w.must(err)
	return r
}

// texts returns the texts of the shown branch.
func (w *fullChat) texts() string {
	w.t.Helper()
	page, err := w.Chats.History(w.t.Context(), ann, w.ID, "", 200)
	w.must(err)
	return textsOf(page.Items)
}

func textsOf(messages []*chat.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Text())
	}
	return strings.Join(texts, " | ")
}

func (w *fullChat) wantSamePrompt(what string, got, want []llm.Message) {
	w.t.Helper()
	if !reflect.DeepEqual(got, want) {
		w.t.Errorf("%s:\n%v\nwant\n%v", what, got, want)
	}
}

func (w *fullChat) resetGreeting() {
	w.t.Helper()
	_, err := w.Regenerate(w.t.Context(), w.call(), nodest.GenerateInput{MessageID: w.greeting.ID})
	w.must(err)
}

func (w *fullChat) editAsBranch(m *chat.Message, text string) {
	w.t.Helper()
	_, err := w.Edit(w.t.Context(), w.call(), chat.EditInput{MessageID: m.ID, Text: text, Mode: chat.EditBranch})
	w.must(err)
}

func (w *fullChat) setDepthMode(mode string) {
	w.t.Helper()
	_, _, err := w.Characters.PutSettings(w.t.Context(), w.call(), w.CharacterID, json.RawMessage(`{"prompt":{"depthMode":"`+mode+`"}}`), 0)
	w.must(err)
}
