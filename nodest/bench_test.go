package nodest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
)

// stopwatch records when the first delta of each generation is published.
type stopwatch struct {
	nodesttest.ScriptedModels
	mu    sync.Mutex
	first map[string]time.Time
}

func (w *stopwatch) Transient(ev *stream.Event) {
	if ev.Type != "gen.delta" {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.first[ev.GenerationID]; !ok {
		w.first[ev.GenerationID] = now
	}
}

// BenchmarkFirstWord measures what the engine adds to the time to the first word:
// from the call of Send to the first delta, on SQLite, with a model that answers at
// once.
func BenchmarkFirstWord(b *testing.B) {
	for _, streams := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Log: nodesttest.DiscardLog})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			watch := &stopwatch{first: map[string]time.Time{}, ScriptedModels: nodesttest.ScriptedModels{ScriptedModel: &nodesttest.ScriptedModel{}}}
			e := nodesttest.NewEngine(db, watch, watch, nodest.Options{Log: nodesttest.DiscardLog, Alone: true})
			defer func() { _ = e.Close(context.Background()) }()
			chats, users := make([]*chat.Conversation, streams), make([]string, streams)
			for i := range chats {
				users[i] = op.NewID()
				chats[i] = benchChat(b, db, e, users[i])
			}
			var mu sync.Mutex
			var times, accepted []time.Duration
			b.ResetTimer()
			for range b.N {
				var wg sync.WaitGroup
				for i, c := range chats {
					wg.Go(func() {
						user := users[i]
						begun := time.Now()
						sent, err := e.Send(b.Context(), &op.Call{UserID: user}, nodest.SendInput{ConversationID: c.ID, Text: "Hello"})
						answered := time.Since(begun)
						if err != nil {
							b.Error(err)
							return
						}
						if _, err := e.Wait(b.Context(), user, sent.GenerationID); err != nil {
							b.Error(err)
							return
						}
						watch.mu.Lock()
						took := watch.first[sent.GenerationID].Sub(begun)
						watch.mu.Unlock()
						mu.Lock()
						defer mu.Unlock()
						times, accepted = append(times, took), append(accepted, answered)
					})
				}
				wg.Wait()
			}
			b.ReportMetric(median(times), "ms-first-p50")
			b.ReportMetric(median(accepted), "ms-accepted-p50")
		})
	}
}

func benchChat(b *testing.B, db *store.DB, e *nodesttest.Engine, user string) *chat.Conversation {
	b.Helper()
	if err := db.InsertUser(b.Context(), &account.User{ID: user, Username: user, CreatedAt: time.Now()}); err != nil {
		b.Fatal(err)
	}
	call := &op.Call{UserID: user}
	ch, err := e.Characters.Create(b.Context(), call, character.Input{RoleCard: json.RawMessage(nodesttest.PlainAlice)})
	if err != nil {
		b.Fatal(err)
	}
	c, err := e.Chats.CreateConversation(b.Context(), call, chat.ConversationInput{CharacterID: ch.ID})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func median(d []time.Duration) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}

// BenchmarkLongChat measures the work before the model is asked in a chat longer than
// the context: reading the history, recalling memories, and building the prompt.
func BenchmarkLongChat(b *testing.B) {
	for _, remembers := range []bool{false, true} {
		b.Run(fmt.Sprintf("memory=%t", remembers), func(b *testing.B) {
			db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Log: nodesttest.DiscardLog})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			watch := &stopwatch{first: map[string]time.Time{}, ScriptedModels: nodesttest.ScriptedModels{ScriptedModel: &nodesttest.ScriptedModel{}}}
			opts := nodest.Options{Log: nodesttest.DiscardLog, Alone: true}
			remembered := memory.New(db.Memory(), memory.Options{Log: nodesttest.DiscardLog})
			if remembers {
				opts.Sources = []nodest.Source{nodest.Memories(remembered, nodesttest.WaitLimit)}
			}
			e := nodesttest.NewEngine(db, watch, watch, opts)
			defer func() { _ = e.Close(context.Background()) }()
			c := benchChat(b, db, e, nodesttest.Ann)
			for i := range 1000 {
				_, err := e.Send(b.Context(), &op.Call{UserID: nodesttest.Ann}, nodest.SendInput{ConversationID: c.ID, NoReply: true,
					Text: fmt.Sprintf("Message %d tells a little more of the story than the one before it did.", i)})
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range 30 {
				d := memory.Draft{Text: fmt.Sprintf("User keeps %d hens at farm number %d.", i+2, i), Kind: lang.KindProfile}
				if _, err := remembered.Create(b.Context(), &op.Call{UserID: nodesttest.Ann}, c.CharacterID, d); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				if _, err := e.PreviewPrompt(b.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And then, did the story of the lighthouse go on?"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
