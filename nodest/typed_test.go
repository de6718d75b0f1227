package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"nodest/character"
	"nodest/chat"
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
