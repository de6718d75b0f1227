package nodesttest

import (
	"context"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
)

// Engine is the engine together with the archive and app services.
type Engine struct {
	*nodest.Engine
	Archives *archive.Service
	Apps     *app.Service
}

// The limits of forks and searches are lower in tests, which would spend most of their time
// on storing long conversations.
const (
	ForkStep    = 200
	SearchReach = 1000
)

// NewEngine makes an engine and the other services on one store.
func NewEngine(s nodest.Store, models nodest.Models, pub nodest.Publisher, o nodest.Options) *Engine {
	characters := character.New(part[character.Tx]{s, func(tx nodest.Tx) character.Tx { return tx.Characters }}, character.Options{
		CheckProvider: func(ctx context.Context, userID, name string) error {
			_, err := models.Resolve(ctx, userID, name, "", "")
			return err
		},
	})
	var e *nodest.Engine
	chatStore := part[chat.Tx]{s, func(tx nodest.Tx) chat.Tx { return tx.Chats }}
	chats := chat.New(chatStore, characters, chat.Options{
		Memory: len(o.Sources) > 0, Log: o.Log, ForkStep: ForkStep, SearchReach: SearchReach,
		Model: func(ctx context.Context, userID string) (llm.Asker, string, error) {
			return e.SummaryModel(ctx, userID)
		},
		Context: func(ctx context.Context, userID string, o character.TurnOptions) int {
			return e.ContextTokens(ctx, userID, o)
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

// AnotherEngine makes an engine on the same database and stops it after the test.
func (s *Fixture) AnotherEngine() *Engine {
	e := NewEngine(s.DB, s, s.Events, s.Options)
	s.T.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(now) // returns the error of the cancelled context
	})
	return e
}
