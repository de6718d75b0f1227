package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// twiceStore runs each change twice, as a database does where the first attempt lost a race.
type twiceStore struct{ nodest.Store }

var errLostRace = errors.New("lost a race")

func (s twiceStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	err := s.Store.Update(ctx, userID, func(tx nodest.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errLostRace
	})
	if !errors.Is(err, errLostRace) {
		return err
	}
	return s.Store.Update(ctx, userID, fn)
}

// tavernChat begins a chat with a character of the SillyTavern dialect, in which a script works.
func tavernChat(s *fixture, script string) *chat.Conversation {
	s.T.Helper()
	ch := s.Character(nodesttest.PlainAlice)
	_, err := s.Characters.Update(s.T.Context(), s.Call(), ch.ID, character.Input{Dialect: "sillytavern"}, false, 0)
	s.Must(err)
	_, err = s.Characters.CreateResource(s.T.Context(), s.Call(), character.RegexScript, character.ResourceInput{
		Name: "r", Document: json.RawMessage(script), Characters: []string{ch.ID},
	})
	s.Must(err)
	_, err = s.Characters.PutUserSettings(s.T.Context(), s.Call(), character.UserSettings{GlobalRegexEnabled: true}, 0)
	s.Must(err)
	return s.ChatWith(ch.ID)
}

// A text is rewritten once, also where the transaction that stores it runs again.
func TestScriptsRewriteATypedTextOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	conv := tavernChat(s, `{"scriptName":"in","findRegex":"/^/","replaceString":"> ","placement":[1]}`)
	s.Engine = nodesttest.NewEngine(twiceStore{s.DB}, s, s.Events, s.Options)
	for _, noReply := range []bool{false, true} {
		sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: conv.ID, Text: "my cat", NoReply: noReply})
		s.Must(err)
		if got := s.Message(sent.UserMessage.ID).Text(); got != "> my cat" {
			t.Errorf("noReply %t: stored %q", noReply, got)
		}
		if sent.GenerationID != "" {
			s.Await(sent.GenerationID)
		}
	}
}

// Scripts that change a reply know the variables, and what they set is there for the next prompt.
func TestScriptsOfAReplyKeepWhatTheySet(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	conv := tavernChat(s, `{"scriptName":"out","findRegex":"/HP (\\d+)/g","replaceString":"was {{getvar::hp}}{{setvar::hp::$1}}","placement":[2]}`)
	for _, want := range []string{"was ", "was 7"} {
		s.Model.Enqueue(nodesttest.Reply("HP 7"))
		reply := s.SayAndWait(conv, "How am I?")
		if got := reply.Text(); got != want && got+" " != want {
			t.Errorf("stored %q, want %q", got, want)
		}
	}
}

// Scripts with runOnEdit change an edited text before it is stored: those for user input change a text of the
// user, those for replies a reply. In the other dialect a text is stored as it was typed.
func TestScriptsRewriteEditedTexts(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	conv := tavernChat(s, `[{"scriptName":"in","findRegex":"/cat/g","replaceString":"dog of {{user}}","placement":[1],"runOnEdit":true,"minDepth":3},
		{"scriptName":"out","findRegex":"/cat/g","replaceString":"bird","placement":[2],"runOnEdit":true},
		{"scriptName":"sent","findRegex":"/^/","replaceString":"> ","placement":[1,2]},
		{"scriptName":"shown","findRegex":"/cat/g","replaceString":"fish","placement":[1,2],"runOnEdit":true,"markdownOnly":true}]`)
	sent := s.Say(conv, "my hat")
	s.Await(sent.GenerationID)
	edit := func(id, text string, mode string, regenerate bool) *chat.Changed {
		t.Helper()
		in := chat.EditInput{MessageID: id, Text: text, Mode: mode, Regenerate: regenerate}
		call := s.Call()
		changed, err := s.Edit(t.Context(), call, in)
		s.Must(err)
		again, err := s.Edit(t.Context(), call, in)
		s.Must(err)
		if again.Message.Text() != changed.Message.Text() {
			t.Errorf("repeated: %q, not %q", again.Message.Text(), changed.Message.Text())
		}
		if changed.GenerationID != "" {
			s.Await(changed.GenerationID)
		}
		return changed
	}
	for _, mode := range []string{chat.EditInPlace, chat.EditBranch} {
		if m := edit(sent.UserMessage.ID, "a cat", mode, false).Message; s.Message(m.ID).Text() != "a dog of User" {
			t.Errorf("%s of what the user wrote: %q", mode, s.Message(m.ID).Text())
		}
		if m := edit(sent.Message.ID, "a cat", mode, false).Message; s.Message(m.ID).Text() != "a bird" {
			t.Errorf("%s of a reply: %q", mode, s.Message(m.ID).Text())
		}
		if m := edit(sent.UserMessage.ID, "two cats", mode, true).Message; s.Message(m.ID).Text() != "two dog of Users" {
			t.Errorf("%s with a new reply: %q", mode, s.Message(m.ID).Text())
		}
	}
	_, err := s.Characters.Update(t.Context(), s.Call(), conv.CharacterID, character.Input{Dialect: "nodest"}, false, 0)
	s.Must(err)
	if m := edit(sent.UserMessage.ID, "a cat", "", false).Message; m.Text() != "a cat" {
		t.Errorf("in the NodeST dialect: %q", m.Text())
	}
	_, err = s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: "none", Text: "a cat"})
	s.WantCode(err, fault.NotFound)
}
