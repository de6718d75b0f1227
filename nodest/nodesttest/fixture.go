package nodesttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/record"
	"nodest/store"
)

// WaitLimit is how long a test waits for something that must happen. It only matters
// when that never happens.
const WaitLimit = 60 * time.Second

// Fixture is an engine on a database of its own, with two users and a scripted model.
type Fixture struct {
	*Engine
	T         *testing.T
	DB        *store.DB
	Model     *ScriptedModel
	RealModel *nodest.Model // used instead of the scripted model; nil = none
	noModel   bool          // no provider is set up
	Options   nodest.Options
	Memory    *memory.Service // used by the engine; nil = none
	Events    *EventLog
	Calls     int
}

// DiscardLog logs nothing.
var DiscardLog = slog.New(slog.DiscardHandler)

// Ann and Bob are the users of a fixture.
const Ann, Bob = "019a0000-0000-7000-8000-00000000000a", "019a0000-0000-7000-8000-00000000000b"

// New returns a fixture on a new database.
func New(t *testing.T, opts nodest.Options) *Fixture {
	t.Helper()
	return NewWithClock(t, opts, time.Now)
}

// NewWithClock is New with a clock of its own.
func NewWithClock(t *testing.T, opts nodest.Options, now func() time.Time) *Fixture {
	t.Helper()
	return NewOn(t, opts, func(o store.Options) *store.DB {
		o.Now = now
		return database(t)(t, o)
	})
}

// NewOn is New on a database that the test opens.
func NewOn(t *testing.T, opts nodest.Options, open func(store.Options) *store.DB) *Fixture {
	t.Helper()
	s := &Fixture{T: t, Model: &ScriptedModel{}, Options: opts, Events: &EventLog{}}
	s.DB = open(store.Options{Committed: s.Events.Committed, Log: DiscardLog})
	for _, id := range []string{Ann, Bob} {
		s.Must(s.DB.InsertUser(t.Context(), &account.User{ID: id, Username: id, CreatedAt: time.Now()}))
	}
	t.Cleanup(func() { s.Events.compare(t, s.DB) })
	t.Cleanup(s.comparePrompts)
	s.Options.Alone = true
	if s.Options.Log == nil {
		s.Options.Log = DiscardLog
	}
	s.Engine = s.AnotherEngine()
	return s
}

// Crash replaces the engine as after a crash: the old one stores nothing any more,
// and the new one recovers.
func (s *Fixture) Crash() {
	s.T.Helper()
	s.Engine = s.AnotherEngine()
	s.Must(s.Recover(s.T.Context()))
}

// Must ends the test on an error.
func (s *Fixture) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// WantCode checks the code of an error and returns the error.
func (s *Fixture) WantCode(err error, code fault.Code) *fault.Error {
	s.T.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		s.T.Fatalf("error = %v, want code %s", err, code)
	}
	return e
}

// Call is a call of Ann with a key of its own.
func (s *Fixture) Call() *op.Call {
	s.Calls++
	return &op.Call{UserID: Ann, Device: "phone", Key: fmt.Sprintf("key-%d", s.Calls), Hash: "h"}
}

// PlainAlice is a card without macros.
const PlainAlice = `{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide of few words.","personality":"calm"}`

// Character creates a character of Ann from a card.
func (s *Fixture) Character(card string) *character.Character {
	s.T.Helper()
	ch, err := s.Characters.Create(s.T.Context(), s.Call(), character.Input{RoleCard: json.RawMessage(card)})
	s.Must(err)
	return ch
}

// Chat begins a conversation with Alice.
func (s *Fixture) Chat() *chat.Conversation {
	s.T.Helper()
	return s.ChatWith(s.Character(PlainAlice).ID)
}

// ChatWith begins a conversation with a character.
func (s *Fixture) ChatWith(characterID string) *chat.Conversation {
	s.T.Helper()
	c, err := s.Chats.CreateConversation(s.T.Context(), s.Call(), chat.ConversationInput{CharacterID: characterID})
	s.Must(err)
	return c
}

// Say sends a message without waiting for the reply.
func (s *Fixture) Say(c *chat.Conversation, text string) *nodest.Sent {
	s.T.Helper()
	sent, err := s.Send(s.T.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: text})
	s.Must(err)
	return sent
}

// SayAndWait sends a message and returns the reply when it has ended.
func (s *Fixture) SayAndWait(c *chat.Conversation, text string) *chat.Message {
	s.T.Helper()
	sent := s.Say(c, text)
	s.Await(sent.GenerationID)
	return s.Message(sent.Message.ID)
}

// Await returns a generation when it has ended.
func (s *Fixture) Await(generationID string) *chat.Generation {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), WaitLimit)
	defer cancel()
	g, err := s.Wait(ctx, Ann, generationID)
	s.Must(err)
	return g
}

// Message returns a message as it is stored, deleted or not.
func (s *Fixture) Message(id string) (m *chat.Message) {
	s.T.Helper()
	s.View(func(tx nodest.Tx) (err error) {
		m, err = tx.Chats.Message(id)
		return err
	})
	return m
}

// Generation returns a generation as it is stored.
func (s *Fixture) Generation(id string) (g *chat.Generation) {
	s.T.Helper()
	s.View(func(tx nodest.Tx) (err error) {
		g, err = tx.Generation(id)
		return err
	})
	return g
}

// View reads the database as Ann.
func (s *Fixture) View(fn func(tx nodest.Tx) error) {
	s.T.Helper()
	s.Must(s.DB.View(s.T.Context(), Ann, fn))
}

// Eventually waits until ok reports true. ok has no side effects.
func (s *Fixture) Eventually(what string, ok func() bool) {
	s.T.Helper()
	for end := time.Now().Add(WaitLimit); !ok(); {
		if time.Now().After(end) {
			s.T.Fatalf("never happened: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// comparePrompts fails the test unless each prompt that is still stored is read as it was sent, whatever has
// become of its chat.
func (s *Fixture) comparePrompts() {
	ctx := context.Background()
	for _, ev := range s.Events.All() {
		if ev.Type != "gen.started" {
			continue
		}
		var started struct{ PromptID string }
		if err := json.Unmarshal(ev.Data, &started); err != nil {
			s.T.Error(err)
		}
		err := s.DB.View(ctx, ev.UserID, func(tx nodest.Tx) error {
			stored, err := tx.Prompt(started.PromptID)
			if fault.Is(err, fault.NotFound) {
				return nil // it was purged
			}
			if err == nil {
				_, err = record.Unpack(tx.Chats, stored.ConversationID, stored.Body)
			}
			return err
		})
		if err != nil {
			s.T.Errorf("a prompt cannot be read any more: %v", err)
		}
	}
}

// RegenerateReply requests another text of a reply, waits for it, and returns the
// message that has it.
func (s *Fixture) RegenerateReply(messageID, wish string) *chat.Message {
	s.T.Helper()
	done, err := s.Regenerate(s.T.Context(), s.Call(), nodest.GenerateInput{MessageID: messageID, Wish: wish})
	s.Must(err)
	s.Await(done.GenerationID)
	return s.Message(done.Message.ID)
}

// NewWithoutModel returns a fixture whose users have no provider.
func NewWithoutModel(t *testing.T) *Fixture {
	t.Helper()
	return NewWithoutModelOn(t, database(t))
}

// NewWithoutModelOn is NewWithoutModel on a database that open opens.
func NewWithoutModelOn(t *testing.T, open func(testing.TB, store.Options) *store.DB) *Fixture {
	t.Helper()
	s := NewOn(t, nodest.Options{}, func(o store.Options) *store.DB { return open(t, o) })
	s.noModel = true
	return s
}

// RetryOf is the same call sent again by another device.
func RetryOf(c *op.Call) *op.Call {
	return &op.Call{UserID: c.UserID, Device: "tablet", Key: c.Key, Hash: c.Hash}
}

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantError checks the code and the field of an error.
func WantError(t *testing.T, err error, code fault.Code, field string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error = %v, want code %s", err, code)
		return
	}
	got := ""
	if len(e.Fields) > 0 {
		got = e.Fields[0].Field
	}
	if field != "" && got != field {
		t.Errorf("error %v is about field %q, want %q", err, got, field)
	}
}

// Alice is a card with macros in its greeting and a member that nothing knows.
const Alice = `{"name":"Alice","first_mes":"Hello {{user}}, I am {{char}}.","description":"A guide.",
	"unknown":{"z":1,"a":[2]}}`

// AliceWithGreetings is a V2 card with alternate greetings, a book and a script.
const AliceWithGreetings = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"A guide.",
	"first_mes":"Hello {{user}}.","alternate_greetings":["Good day, {{User}}.","<USER>!"],
	"character_book":{"name":"b","entries":[{"keys":["tea"],"content":"Tea is green.","insertion_order":1,"enabled":true,"extensions":{}}]},
	"extensions":{"regex_scripts":[{"scriptName":"shout","findRegex":"a","replaceString":"A"}]}}}`

// ReadFile returns a file.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	Must(t, err)
	return data
}

// SameJSON compares two documents, ignoring whitespace.
func SameJSON(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var a, b bytes.Buffer
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if json.Compact(&a, got) != nil || json.Compact(&b, want) != nil || a.String() != b.String() {
		t.Errorf("%s = %s\nwant %s", what, got, want)
	}
}

// Long scales a number by NODEST_LONG, which is 1 in `make test-long`.
func Long(least, all int) int {
	share, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	if err != nil {
		return least
	}
	return max(least, int(share*float64(all)))
}

// ErrOf drops the value of an answer.
func ErrOf[T any](_ T, err error) error { return err }

// AsJSON encodes a value.
func AsJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	Must(t, err)
	return b
}
