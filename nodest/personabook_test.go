package nodest_test

import (
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// The book of a persona counts while this persona speaks, whoever made it the one that speaks, and in both dialects.
func TestTheBookOfAPersonaCountsWhileItSpeaks(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"nodest", "sillytavern"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			h := nodesttest.NewWithoutModel(t)
			ch := h.Character(nodesttest.Alice)
			_, err := h.Characters.Update(t.Context(), h.Call(), ch.ID, character.Input{Dialect: dialect}, false, 0)
			nodesttest.Must(t, err)
			create := func(kind character.ResourceKind, doc string) *character.Resource {
				t.Helper()
				r, err := h.Characters.CreateResource(t.Context(), h.Call(), kind, character.ResourceInput{Document: []byte(doc), Dialect: "sillytavern"})
				nodesttest.Must(t, err)
				return r
			}
			book := create(character.WorldBook, `{"entries":{"0":{"uid":0,"constant":true,"key":[],"content":"Mia owns the mill."}}}`)
			foreign, err := h.Characters.CreateResource(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.WorldBook, character.ResourceInput{Document: []byte(`{"entries":{"0":{"uid":0,"constant":true,"key":[],"content":"Secret of Bob."}}}`)})
			nodesttest.Must(t, err)
			mia := create(character.Persona, `{"name":"Mia","worldBookId":"`+book.ID+`"}`)
			thief := create(character.Persona, `{"name":"Thief","worldBookId":"`+foreign.ID+`"}`)
			odd := create(character.Persona, `{"name":"Odd","worldBookId":"`+mia.ID+`"}`)
			chatWith := func(persona string) string {
				t.Helper()
				conv, err := h.Chats.CreateConversation(t.Context(), h.Call(), chat.ConversationInput{CharacterID: ch.ID, PersonaID: persona})
				nodesttest.Must(t, err)
				return conv.ID
			}
			times := func(id string) int {
				t.Helper()
				p, err := h.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: id, Text: "Hello."})
				nodesttest.Must(t, err)
				n := 0
				for _, m := range p.Messages {
					if strings.Contains(m.Text, "Secret of Bob") {
						t.Error("the book of another user is in the request")
					}
					n += strings.Count(m.Text, "Mia owns the mill.")
				}
				return n
			}
			plain, hers := chatWith(""), chatWith(mia.ID)
			want := func(what string, in, inHers int) {
				t.Helper()
				if a, b := times(plain), times(hers); a != in || b != inHers {
					t.Errorf("%s: %d times, with Mia %d times; want %d and %d", what, a, b, in, inHers)
				}
			}
			want("the persona of a chat", 0, 1)
			if times(chatWith(thief.ID)) != 0 || times(chatWith(odd.ID)) != 0 {
				t.Error("another persona has the book")
			}
			set, err := h.Characters.UserSettings(t.Context(), nodesttest.Ann)
			nodesttest.Must(t, err)
			mine := *set
			mine.PersonaID = mia.ID
			_, err = h.Characters.PutUserSettings(t.Context(), h.Call(), mine, 0)
			nodesttest.Must(t, err)
			want("the persona of the user", 1, 1)
			other := create(character.Persona, `{"name":"Lea"}`)
			_, err = h.Characters.UpdateResource(t.Context(), h.Call(), character.Persona, other.ID, character.ResourceInput{Characters: []string{ch.ID}}, false, 0)
			nodesttest.Must(t, err)
			want("another persona for this character", 0, 1)
			_, err = h.Characters.UpdateResource(t.Context(), h.Call(), character.WorldBook, book.ID, character.ResourceInput{Characters: []string{ch.ID}}, false, 0)
			nodesttest.Must(t, err)
			want("the book is the character's, too", 1, 1)
			nodesttest.Must(t, h.Characters.DeleteResource(t.Context(), h.Call(), character.WorldBook, book.ID))
			want("a deleted book", 0, 0)
		})
	}
}
