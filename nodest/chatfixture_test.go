package nodest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/op"
	"nodest/store"
)

// chatFixture is a fixture for tests without replies: its user has no provider. ann
// and bob are me and the stranger here.
type chatFixture struct{ *fixture }

const me, stranger = ann, bob

func newChatFixture(t *testing.T) *chatFixture {
	t.Helper()
	return newChatFixtureOn(t, database(t))
}

// newChatFixtureOn is newChatFixture on a database that open opens.
func newChatFixtureOn(t *testing.T, open func(testing.TB, store.Options) *store.DB) *chatFixture {
	t.Helper()
	s := newFixtureOn(t, nodest.Options{}, func(o store.Options) *store.DB { return open(t, o) })
	s.noModel = true
	return &chatFixture{s}
}

// Engine is the engine together with the archive and app services.
type Engine struct {
	*nodest.Engine
	Archives *archive.Service
	Apps     *app.Service
}

// The limits of forks and searches are lower in tests, which would spend most of their time
// on storing long conversations.
const (
	forkStep    = 200
	searchReach = 1000
)

// newEngine makes an engine and the other services on one store.
func newEngine(s nodest.Store, models nodest.Models, pub nodest.Publisher, o nodest.Options) *Engine {
	characters := character.New(part[character.Tx]{s, func(tx nodest.Tx) character.Tx { return tx.Characters }}, character.Options{
		CheckProvider: func(ctx context.Context, userID, name string) error {
			_, err := models.Resolve(ctx, userID, name, "", "")
			return err
		},
	})
	var e *nodest.Engine
	chatStore := part[chat.Tx]{s, func(tx nodest.Tx) chat.Tx { return tx.Chats }}
	chats := chat.New(chatStore, characters, chat.Options{
		Memory: len(o.Sources) > 0, Log: o.Log, ForkStep: forkStep, SearchReach: searchReach,
		Model: func(ctx context.Context, userID string) (llm.Asker, string, error) {
			return e.SummaryModel(ctx, userID)
		},
	})
	e = nodest.New(nodest.Deps{Store: s, Characters: characters, Chats: chats, Models: models, Publisher: pub}, o)
	made := &Engine{Engine: e, Archives: archive.New(chatStore)}
	if apps, ok := s.(interface{ App() app.Store }); ok {
		made.Apps = app.New(apps.App(), chats, made.Archives, e)
	}
	return made
}

// part narrows the transactions of a store to one subject.
type part[T any] struct {
	nodest.Store
	of func(nodest.Tx) T
}

func (p part[T]) Update(ctx context.Context, userID string, fn func(T) error) error {
	return p.Store.Update(ctx, userID, func(tx nodest.Tx) error { return fn(p.of(tx)) })
}

func (p part[T]) View(ctx context.Context, userID string, fn func(T) error) error {
	return p.Store.View(ctx, userID, func(tx nodest.Tx) error { return fn(p.of(tx)) })
}

// noModels is what a user without a provider has.
type noModels struct{}

func (noModels) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{}, fault.New(fault.NotConfigured, "no provider")
}

// takeEventTypes returns the types of the durable events since the last call.
func (h *chatFixture) takeEventTypes() []string {
	types := strings.Fields(h.events.types())
	h.events.clear()
	return types
}

// retryOf is the same call sent again by another device.
func retryOf(c *op.Call) *op.Call {
	return &op.Call{UserID: c.UserID, Device: "tablet", Key: c.Key, Hash: c.Hash}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the code and the field of an error.
func wantError(t *testing.T, err error, code fault.Code, field string) {
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

const alice = `{"name":"Alice","first_mes":"Hello {{user}}, I am {{char}}.","description":"A guide.",
	"unknown":{"z":1,"a":[2]}}`

// aliceWithGreetings is a V2 card with alternate greetings, a book and a script.
const aliceWithGreetings = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","description":"A guide.",
	"first_mes":"Hello {{user}}.","alternate_greetings":["Good day, {{User}}.","<USER>!"],
	"character_book":{"name":"b","entries":[{"keys":["tea"],"content":"Tea is green.","insertion_order":1,"enabled":true,"extensions":{}}]},
	"extensions":{"regex_scripts":[{"scriptName":"shout","findRegex":"a","replaceString":"A"}]}}}`

// newChat starts a conversation, adds n messages, alternately the user's and the
// character's, and returns all messages including the greeting.
func (h *chatFixture) newChat(t *testing.T, n int) (*chat.Conversation, []*chat.Message) {
	t.Helper()
	ch := h.character(alice)
	conv, err := h.Chats.CreateConversation(t.Context(), h.call(), chat.ConversationInput{CharacterID: ch.ID})
	must(t, err)
	for i := range n {
		conv = h.addMessage(t, conv.ID, conv.HeadID, "text "+strconv.Itoa(i+1))
	}
	page, err := h.Chats.History(t.Context(), me, conv.ID, "", 200)
	must(t, err)
	return conv, page.Items
}

// addMessage stores a message below a parent and makes it the head, as a turn does.
func (h *chatFixture) addMessage(t *testing.T, conversationID, parentID string, texts ...string) *chat.Conversation {
	t.Helper()
	var conv *chat.Conversation
	must(t, h.db.Update(t.Context(), me, func(tx nodest.Tx) error {
		var err error
		if conv, err = tx.Chats.LockConversation(conversationID); err != nil {
			return err
		}
		parent, err := tx.Chats.Message(parentID)
		if err != nil {
			return err
		}
		m := &chat.Message{
			ID: NewID(tx), ConversationID: conversationID, ParentID: parentID, Role: chat.RoleUser, Name: "User",
			Rev: 1, Status: chat.StatusComplete, CreatedAt: tx.Now(),
		}
		if parent.Role == chat.RoleUser {
			m.Role, m.Name = chat.RoleAssistant, "Alice"
		}
		for _, text := range texts {
			m.Swipes = append(m.Swipes, chat.Swipe{Text: text, Rev: 1, Finish: "stop"})
		}
		conv.HeadID, conv.Version = m.ID, conv.Version+1
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		return tx.Chats.UpdateConversation(conv)
	}))
	return conv
}

// markAsWriting marks a message as being written by a generation of another process.
func (h *chatFixture) markAsWriting(t *testing.T, m *chat.Message) (end func()) {
	t.Helper()
	g := &chat.Generation{UserID: me, ConversationID: m.ConversationID, MessageID: m.ID, Kind: chat.KindReply,
		Status: chat.GenStreaming, LeaseOwner: "other", LeaseUntil: time.Now().Add(time.Hour)}
	must(t, h.db.Update(t.Context(), me, func(tx nodest.Tx) error {
		g.ID = NewID(tx)
		return tx.InsertGeneration(g)
	}))
	return func() {
		must(t, h.db.Update(t.Context(), me, func(tx nodest.Tx) error {
			g.Status = chat.GenDone
			return tx.UpdateGeneration(g)
		}))
	}
}

var (
	idMu   sync.Mutex
	nextID int
)

// NewID makes ids that are short in failure messages, unique in the process, and
// sorted by creation, like those of the engine.
func NewID(nodest.Tx) string {
	idMu.Lock()
	defer idMu.Unlock()
	nextID++
	return fmt.Sprintf("%08d-%04d-7000-8000-000000000000", nextID/10_000, nextID%10_000)
}

// requireShared returns the files in a folder of the shared data and skips the test
// if there are none.
func requireShared(t *testing.T, folder string) []string {
	t.Helper()
	files := sharedFiles(folder)
	if len(files) == 0 {
		t.Skip("no shared data beside the project")
	}
	return files
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

// pngOfSize is a PNG of the given size.
func pngOfSize(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// sameJSON compares two documents, ignoring whitespace.
func sameJSON(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var a, b bytes.Buffer
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if json.Compact(&a, got) != nil || json.Compact(&b, want) != nil || a.String() != b.String() {
		t.Errorf("%s = %s\nwant %s", what, got, want)
	}
}
