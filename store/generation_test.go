package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

func generation(conversation, owner string, until time.Time) *chat.Generation {
	return &chat.Generation{
		ID: id(), ConversationID: conversation, Kind: chat.KindReply, Status: chat.GenStreaming,
		Lease: chat.Lease{LeaseOwner: owner, LeaseUntil: until},
	}
}

// A generation that ended 90 days ago goes, unless it says who wrote the reply.
func TestOldGenerationsAreRemoved(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation, left := e.conversation(), []string{}
		for i, g := range []struct {
			kind, character string
			ended           time.Duration // 0 = it has not
			stays           bool
		}{
			{"old", "", time.Second, false}, {"younger", "", time.Hour, true}, {"open", "", 0, true}, {"of another character", id(), time.Second, true},
		} {
			made := generation(conversation, "p", start)
			made.ID = fmt.Sprintf("019c0000-0000-7000-8000-%012d", i) // made before start
			made.Kind, made.Options.CharacterID, made.Options.Model = g.kind, g.character, "m"
			if g.ended > 0 {
				made.Status, made.EndedAt = chat.GenDone, new(start.Add(g.ended))
			}
			e.update(func(tx nodest.Tx) error { return tx.InsertGeneration(made) })
			if g.stays {
				left = append(left, g.kind)
			}
		}
		e.clock.advance(90*day + time.Minute)
		e.maintain()
		kinds, err := store.Query[string](e.db, "SELECT kind FROM generations WHERE user_id = ? ORDER BY id", e.user)
		e.equal("generations", []any{kinds, err}, []any{left, nil})
	})
}

func TestAGenerationComesBackAsItWas(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		temperature, at := 0.7, start.Add(time.Second)
		want := generation(conversation, "p1", start.Add(time.Minute))
		want.MessageID, want.SwipeID, want.Instruction, want.By = id(), id(), "shorter, it's", "phone"
		want.Options = character.TurnOptions{Model: "m", Temperature: &temperature, Stop: []string{"\n"}}
		e.update(func(tx nodest.Tx) error { return tx.InsertGeneration(want) })
		want.Status, want.Finish, want.Text, want.Reasoning, want.Base = chat.GenFailed, "error", "half a", "hm", "b"
		want.Blocks = []chat.Block{{Part: "mem", Text: "x", At: 2}}
		want.Model, want.PromptID, want.Usage, want.Error = "m1", named("p"), &llm.Usage{CompletionTokens: 3}, fault.New(fault.UpstreamDown, "down")
		want.Timing = &chat.Timing{
			Accepted: 3, Gather: &chat.Span{4, 6}, Sources: []chat.SourceTiming{{Name: "memory", Took: chat.Span{6, 40}}}, LastToken: new(int64(70)),
		}
		want.StartedAt, want.FirstTokenAt, want.EndedAt = &start, &at, &at
		e.update(func(tx nodest.Tx) error { return tx.UpdateGeneration(want) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Generation(want.ID)
			if err != nil {
				return err
			}
			e.equal("parts", []any{*got.Options.Temperature, *got.Usage, *got.Error, *got.StartedAt, *got.FirstTokenAt, *got.EndedAt},
				[]any{temperature, *want.Usage, *want.Error, start, at, at})
			e.equal("timing", string(op.MustJSON(got.Timing)), string(op.MustJSON(want.Timing)))
			for _, g := range []*chat.Generation{got, want} {
				g.Timing = nil
				g.Options.Temperature, g.Usage, g.Error, g.StartedAt, g.FirstTokenAt, g.EndedAt = nil, nil, nil, nil, nil, nil
			}
			e.equal("generation", got, want)
			return nil
		})
		want.ID = id()
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.UpdateGeneration(want) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.InsertGeneration(generation(id(), "", start)) })
	})
}

func TestALeaseDecidesWhoWritesAGeneration(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		here, there := e.conversation(), e.conversation()
		mine := generation(here, "p1", start.Add(15*time.Second))
		theirs := generation(there, "p2", start.Add(time.Hour))
		queued := generation(here, "p1", start.Add(time.Hour))
		queued.Status = chat.GenQueued
		ended := generation(here, "p1", start.Add(-time.Hour))
		ended.Status = chat.GenDone
		for _, g := range []*chat.Generation{mine, theirs, queued, ended} {
			e.update(func(tx nodest.Tx) error { return tx.InsertGeneration(g) })
			e.clock.advance(time.Second)
		}
		running := func(conversation string, want ...string) {
			e.Helper()
			e.view(func(tx nodest.Tx) error {
				items, err := tx.Chats.Running(conversation)
				e.equal("running", ids(items), want)
				return err
			})
		}
		running("", mine.ID, theirs.ID, queued.ID)
		running(here, mine.ID, queued.ID)
		abandoned := func(owner string, limit int, want ...string) {
			e.Helper()
			items, err := e.db.Abandoned(ctx, owner, limit)
			if err != nil {
				e.Fatal(err)
			}
			e.equal("abandoned", ids(items), want)
		}
		abandoned("", 10)
		abandoned("p1", 10, theirs.ID)
		e.clock.advance(15 * time.Second)
		abandoned("", 10, mine.ID)

		mine.Text, mine.Reasoning, mine.Blocks = "so far", "hm", []chat.Block{{Part: "mem"}}
		if err := e.db.Checkpoint(ctx, mine, 15*time.Second); err != nil {
			e.Fatal(err)
		}
		mine.LeaseUntil = e.clock.now().Add(15 * time.Second).UTC()
		abandoned("", 10)
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Generation(mine.ID)
			e.equal("after the checkpoint", got, mine)
			return err
		})
		e.clock.advance(2 * time.Hour)
		abandoned("", 10, mine.ID, theirs.ID, queued.ID)
		abandoned("p3", 2, mine.ID, theirs.ID)

		stolen := *mine
		stolen.LeaseOwner = "p2"
		e.code(fault.Conflict, e.db.Checkpoint(ctx, &stolen, time.Hour))
		mine.Status = chat.GenInterrupted
		e.update(func(tx nodest.Tx) error { return tx.UpdateGeneration(mine) })
		e.code(fault.Conflict, e.db.Checkpoint(ctx, mine, 15*time.Second))
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.UpdateGeneration(mine) }) // it ends once
		running(here, queued.ID)
	})
}

func ids(items []*chat.Generation) (ids []string) {
	for _, g := range items {
		ids = append(ids, g.ID)
	}
	return ids
}

func TestPromptsAreKept(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.view(func(tx nodest.Tx) error {
			p, err := tx.LastPrompt(conversation)
			if p != "" {
				e.Error("a prompt before the first")
			}
			return err
		})
		var last *nodest.StoredPrompt
		for i := range 3 { // the ids decide the order
			last = &nodest.StoredPrompt{
				ID: id(), ConversationID: conversation, GenerationID: named("g"), FileIDs: []string{id(), id()},
				Body: fmt.Appendf(nil, `{"v":%d,"text":%q}`, i, strings.Repeat("long ", 1000)),
			}
			e.update(func(tx nodest.Tx) error { return tx.PutPrompt(last) })
		}
		e.view(func(tx nodest.Tx) error {
			newest, err := tx.LastPrompt(conversation)
			if err != nil {
				return err
			}
			e.equal("last prompt", newest, last.ID)
			p, err := tx.Prompt(last.ID)
			e.equal("prompt", p, last)
			return err
		})
		for _, size := range e.queryInts("SELECT octet_length(body) FROM prompts WHERE user_id = ?", e.user) {
			if size > 200 {
				e.Errorf("a long prompt takes %d bytes", size)
			}
		}
	})
}

func TestAPromptIsKeptForAWeek(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		put := func() *nodest.StoredPrompt {
			p := &nodest.StoredPrompt{ID: e.idNow(), ConversationID: conversation, GenerationID: named("g"), Body: []byte("{}"), FileIDs: []string{id()}}
			e.update(func(tx nodest.Tx) error { return tx.PutPrompt(p) })
			return p
		}
		old := put()
		e.clock.advance(3 * day)
		young := put()
		e.clock.advance(4 * day)
		e.equal("removed after 7 days", e.maintain()["prompts"], 1)
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(tx.Prompt(old.ID)) })
		e.view(func(tx nodest.Tx) error {
			p, err := tx.Prompt(young.ID)
			e.equal("the young prompt", p, young)
			return err
		})
		e.equal("documents of prompts", e.userRows("prompt_files"), 1)
		e.clock.advance(8 * day)
		e.maintain()
		e.equal("prompts", e.userRows("prompts"), 0)
		e.equal("documents of prompts", e.userRows("prompt_files"), 0)
	})
}

// The text of a reply and its usage are stored once, in its message, and read from there.
func TestAnEndedGenerationHasNoTextOfItsOwn(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		g := &chat.Generation{ID: id(), ConversationID: conversation, Kind: chat.KindContinue, Status: chat.GenStreaming, Writing: chat.Writing{Base: "Once ", Text: "upon a time"}, Usage: &llm.Usage{PromptTokens: 3, CompletionTokens: 4}}
		m := &chat.Message{ID: id(), ConversationID: conversation, Role: "assistant", Swipes: []chat.Swipe{{Text: "Once upon a time", GenerationID: g.ID, Usage: g.Usage}}}
		e.update(func(tx nodest.Tx) error {
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			g.MessageID, g.SwipeID = m.ID, m.Swipes[0].ID
			if err := tx.InsertGeneration(g); err != nil {
				return err
			}
			g.Status, g.InMessage = chat.GenDone, true
			return tx.UpdateGeneration(g)
		})
		stored, err := store.Query[string](e.db, "SELECT base || text || reasoning || COALESCE(usage, '') FROM generations WHERE user_id = ?", e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("stored texts", stored, []string{""})
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Generation(g.ID)
			if err == nil {
				e.equal("text and usage", []any{got.Base + got.Text, *got.Usage}, []any{"Once upon a time", *g.Usage})
			}
			return err
		})
	})
}
