package nodest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
	"nodest/op"
)

// The user's rights over what a character remembers. Each operation acts on the
// user's own character or conversation; another one is NotFound.

// MemorySearch is what a user looks for in a memory.
type MemorySearch struct {
	Text           string
	ConversationID string // "" = all of the character
	Layers         []memory.Layer
	Recall         bool // mode=recall: the plain ranking
	Limit          int  // 1 to 100; default 10
}

// FoundMemory is a unit that fits, with the reasons.
type FoundMemory struct {
	ID      string             `json:"id"`
	Layer   memory.Layer       `json:"layer"`
	Memory  *memory.Memory     `json:"memory,omitempty"` // of a fact
	Said    *SaidText          `json:"said,omitempty"`   // of a text
	Score   float64            `json:"score"`            // 0 to 1
	Parts   memory.Parts       `json:"parts"`
	Signals map[string]float64 `json:"signals"`
	Sources []SaidText         `json:"sources,omitempty"` // texts that a fact was taken from and that fit as well
}

// SaidText is a text of a chat that was found.
type SaidText struct {
	memory.Evidence
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
	At   string `json:"at"`
}

// Limits of a search in a memory, in units.
const (
	usualFound = 10
	mostFound  = 100
	mostForget = 200
)

// SearchMemories ranks facts and texts. Only what is shown is found: texts of the
// branches that the conversations show, and facts that rest on such.
//
// Errors: Invalid with the field; NotFound; NotConfigured without a memory.
func (e *Engine) SearchMemories(ctx context.Context, userID, characterID string, q MemorySearch) ([]FoundMemory, error) {
	if err := checkText("q", q.Text, e.opts.TextLimit); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = usualFound
	}
	if q.Limit < 1 || q.Limit > mostFound {
		return nil, fault.InvalidField("limit", "range", "must be from 1 to %d", mostFound)
	}
	hits, err := e.searchMemory(ctx, userID, memory.Ask{
		CharacterID: characterID, Conversation: q.ConversationID, Text: q.Text, Search: true, Everything: q.Recall,
		Layers: q.Layers, Limit: q.Limit,
	})
	if err != nil {
		return nil, err
	}
	found := []FoundMemory{}
	err = e.store.View(ctx, userID, func(tx Tx) (err error) {
		found, err = readFound(tx, characterID, hits)
		return err
	})
	return found, err
}

// searchMemory asks the memory for a user.
func (e *Engine) searchMemory(ctx context.Context, userID string, a memory.Ask) ([]memory.Hit, error) {
	if e.opts.Memory == nil {
		return nil, fault.New(fault.NotConfigured, "memory is not configured on this server")
	}
	var scene memory.Scene
	err := e.store.View(ctx, userID, func(tx Tx) error {
		if err := talkedIn(tx, a.CharacterID, a.Conversation); err != nil {
			return err
		}
		s, err := e.sceneOf(tx, a.CharacterID, a.Conversation)
		if err == nil {
			scene, a.Now = s.memory(), tx.Now()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.Scene, a.Names = &scene, scene.Names
	return e.opts.Memory.Recall(ctx, userID, a)
}

// readFound reads what was found, in its order. What is gone meanwhile is left out.
func readFound(tx Tx, characterID string, hits []memory.Hit) ([]FoundMemory, error) {
	found := make([]FoundMemory, 0, len(hits))
	for i := range hits {
		h := &hits[i]
		f := FoundMemory{ID: h.ID, Layer: h.Layer, Score: h.Score, Parts: h.Parts, Signals: h.Signals}
		there, err := f.read(tx, characterID)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		var ids []string
		for j := range h.Sources {
			ids = append(ids, h.Sources[j].ID)
		}
		if len(ids) > 0 {
			said, err := tx.Memory.SaidByID(characterID, ids...)
			if err != nil {
				return nil, err
			}
			for k := range said {
				f.Sources = append(f.Sources, *saidText(&said[k]))
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// read completes f by the fact or the text that it names, and says whether that
// is there.
func (f *FoundMemory) read(tx Tx, characterID string) (there bool, err error) {
	if f.Layer == memory.Fact {
		f.Memory, err = tx.Memory.Fact(characterID, f.ID)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	said, err := tx.Memory.SaidByID(characterID, f.ID)
	if err != nil || len(said) == 0 {
		return false, err
	}
	f.Said = saidText(&said[0])
	return true, nil
}

func saidText(s *memory.SaidText) *SaidText {
	return &SaidText{
		Evidence: s.Evidence, Role: string(s.Role), Name: s.Name, Text: s.Text,
		At: s.At.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
}

// CreateMemory stores a memory by the user's hand (memory.Create).
func (e *Engine) CreateMemory(ctx context.Context, c *op.Call, characterID string, d memory.Draft) (*memory.Memory, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*memory.Memory, error) { return memory.Create(tx.Memory, c.By(), characterID, d) })
}

// EditMemory changes one; a new text makes a new version (memory.Edit).
func (e *Engine) EditMemory(ctx context.Context, c *op.Call, characterID, id string, p memory.Patch) (*memory.Memory, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*memory.Memory, error) { return memory.Edit(tx.Memory, c.By(), characterID, id, p) })
}

// DeleteMemory retires a memory, or purges it with all versions.
func (e *Engine) DeleteMemory(ctx context.Context, c *op.Call, characterID, id string, purge bool) error {
	_, err := op.Once(ctx, e.store, c, func(tx Tx) (struct{}, error) {
		if purge {
			return struct{}{}, memory.Purge(tx.Memory, c.By(), characterID, id)
		}
		_, err := memory.Retire(tx.Memory, c.By(), characterID, id)
		return struct{}{}, err
	})
	return err
}

// RestoreMemory makes a retired or older version count again.
func (e *Engine) RestoreMemory(ctx context.Context, c *op.Call, characterID, id string) (*memory.Memory, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*memory.Memory, error) { return memory.Restore(tx.Memory, c.By(), characterID, id) })
}

// MemoryHistory returns the versions of a memory, oldest first.
func (e *Engine) MemoryHistory(ctx context.Context, userID, characterID, id string) (versions []memory.Memory, err error) {
	err = e.store.View(ctx, userID, func(tx Tx) (err error) {
		versions, err = memory.History(tx.Memory, characterID, id)
		return err
	})
	return versions, err
}

// ForgetInput says what to forget: everything about Query, these IDs, or All.
type ForgetInput struct {
	Query  string   `json:"query"`
	IDs    []string `json:"ids"`
	All    bool     `json:"all"`
	DryRun bool     `json:"dryRun"`
}

func (in ForgetInput) check(limit int) error {
	n := 0
	for _, given := range []bool{in.Query != "", len(in.IDs) > 0, in.All} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return fault.InvalidField("query", "required", "give exactly one of query, ids and all")
	case len(in.IDs) > mostForget:
		return fault.InvalidField("ids", "range", "must have at most %d ids", mostForget)
	case in.All && in.DryRun:
		return fault.InvalidField("dryRun", "value", "cannot be combined with all")
	case in.Query != "":
		return checkText("query", in.Query, limit)
	}
	return nil
}

// ForgetMemories previews, or purges, what fits.
//
// Errors: Invalid with the field; NotFound, also for an id that is not there;
// NotConfigured for a query without a memory.
func (e *Engine) ForgetMemories(ctx context.Context, c *op.Call, characterID string, in ForgetInput) (*memory.Forgotten, error) {
	if err := in.check(e.opts.TextLimit); err != nil {
		return nil, err
	}
	gone := &memory.Forgotten{DryRun: in.DryRun, Memories: []memory.ForgetItem{}}
	if in.Query != "" {
		ask := memory.Ask{CharacterID: characterID, Text: in.Query, Everything: true, Relevant: true, Hidden: true, Limit: mostForget + 1}
		hits, err := e.searchMemory(ctx, c.UserID, ask)
		if err != nil {
			return nil, err
		}
		aside, err := e.opts.Memory.FindRetired(ctx, c.UserID, ask)
		if err != nil {
			return nil, err
		}
		gone.Memories, gone.Truncated = forgettable(slices.Concat(hits, aside))
		if err := e.asTheyAre(ctx, c.UserID, characterID, gone.Memories); err != nil {
			return nil, err
		}
	}
	if in.DryRun {
		return e.previewForget(ctx, c.UserID, characterID, in.IDs, gone)
	}
	return op.Once(ctx, e.store, c, func(tx Tx) (*memory.Forgotten, error) {
		if in.All {
			return gone, e.forgetAll(tx, c, characterID)
		}
		if in.Query == "" {
			items, err := named(tx, characterID, in.IDs)
			if err != nil {
				return nil, err
			}
			gone.Memories = items
		}
		var ids []string
		for _, item := range gone.Memories {
			ids = append(ids, item.ID)
		}
		return gone, memory.PurgeAll(tx.Memory, c.By(), characterID, ids)
	})
}

// forgettable lists hits with the texts behind facts, each unit once; of a fact
// with several versions that is one.
func forgettable(hits []memory.Hit) (items []memory.ForgetItem, more bool) {
	items = []memory.ForgetItem{}
	seen := map[string]bool{}
	add := func(u *memory.Unit, score float64) {
		id := cmp.Or(u.Root, u.ID)
		if seen[id] {
			return
		}
		seen[id] = true
		if len(items) == mostForget {
			more = true
			return
		}
		items = append(items, memory.ForgetItem{ID: u.ID, Layer: u.Layer, Text: u.Text, Score: score})
	}
	for i := range hits {
		add(&hits[i].Unit, hits[i].Score)
		for j := range hits[i].Sources {
			add(&hits[i].Sources[j], hits[i].Score)
		}
	}
	return items, more
}

// asTheyAre gives facts the id and the text of their newest version, by which the
// user knows them, also where an older one was found.
func (e *Engine) asTheyAre(ctx context.Context, userID, characterID string, items []memory.ForgetItem) error {
	return e.store.View(ctx, userID, func(tx Tx) error {
		for i := range items {
			item := &items[i]
			if item.Layer != memory.Fact {
				continue
			}
			versions, err := memory.History(tx.Memory, characterID, item.ID)
			if fault.Is(err, fault.NotFound) { // it has gone meanwhile
				continue
			}
			if err != nil {
				return err
			}
			newest := versions[len(versions)-1]
			item.ID, item.Text = newest.ID, newest.Text
		}
		return nil
	})
}

func (e *Engine) previewForget(ctx context.Context, userID, characterID string, ids []string, gone *memory.Forgotten) (*memory.Forgotten, error) {
	if len(ids) == 0 {
		return gone, nil
	}
	err := e.store.View(ctx, userID, func(tx Tx) (err error) {
		gone.Memories, err = named(tx, characterID, ids)
		return err
	})
	return gone, err
}

// named reads units by their ids, each once. One that is not there is NotFound.
func named(tx Tx, characterID string, ids []string) ([]memory.ForgetItem, error) {
	items := []memory.ForgetItem{}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		f := FoundMemory{ID: id, Layer: memory.Fact}
		there, err := f.read(tx, characterID)
		if err == nil && !there {
			f.Layer = memory.Exchange
			there, err = f.read(tx, characterID)
		}
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fault.New(fault.NotFound, "no memory %q", id)
		}
		item := memory.ForgetItem{ID: id, Layer: f.Layer}
		if f.Memory != nil {
			item.Text = f.Memory.Text
		} else {
			item.Text = f.Said.Text
		}
		items = append(items, item)
	}
	return items, nil
}

// forgetAll removes everything of a scope. The event names no memories: all of
// them are gone.
func (e *Engine) forgetAll(tx Tx, c *op.Call, characterID string) error {
	if _, _, err := tx.Memory.PurgeScope(characterID); err != nil {
		return err
	}
	return tx.Emit(op.Event(c.UserID, "memory.written", c.By(), struct {
		Op          string   `json:"op"`
		CharacterID string   `json:"characterId"`
		MemoryIDs   []string `json:"memoryIds"`
	}{"purged", characterID, []string{}}))
}

// MemorySuggestions lists suggestions, newest first; state "" = open. limit is 1
// to 200, 0 = 50.
func (e *Engine) MemorySuggestions(ctx context.Context, userID, characterID, state, cursor string, limit int) (items []memory.Suggested, next string, err error) {
	if limit, err = op.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	if state == "" {
		state = memory.SuggestionOpen
	}
	err = e.store.View(ctx, userID, func(tx Tx) (err error) {
		items, next, err = tx.Memory.Suggestions(characterID, state, cursor, limit)
		return err
	})
	return items, next, err
}

// DecideSuggestion accepts or rejects one (memory.Decide).
func (e *Engine) DecideSuggestion(ctx context.Context, c *op.Call, characterID, id, decision string) (*memory.Suggested, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*memory.Suggested, error) {
		return memory.Decide(tx.Memory, c.By(), characterID, id, decision)
	})
}

// ExportMemories writes JSON Lines: those of memory.Export, and one with the
// settings of the character that are about its memory.
func (e *Engine) ExportMemories(ctx context.Context, userID, characterID string, w io.Writer) error {
	return e.store.View(ctx, userID, func(tx Tx) error {
		ch, err := tx.Character(characterID)
		if err != nil {
			return err
		}
		full, err := shownSettings(tx, ch)
		if err != nil {
			return err
		}
		line := struct {
			Type      string          `json:"type"`
			Memory    json.RawMessage `json:"memory"`
			Retrieval json.RawMessage `json:"retrieval"`
		}{Type: "settings"}
		if err := json.Unmarshal(full, &line); err != nil {
			return fmt.Errorf("settings of character %s: %w", characterID, err)
		}
		line.Type = "settings"
		if err := memory.Export(tx.Memory, characterID, w); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(line)
	})
}

// MemoryJobs lists the background work about a character's memory, newest first;
// limit is 1 to 200, 0 = 50.
func (e *Engine) MemoryJobs(ctx context.Context, userID, characterID, cursor string, limit int) (items []*jobs.Job, next string, err error) {
	if limit, err = op.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = e.store.View(ctx, userID, func(tx Tx) (err error) {
		items, next, err = tx.Memory.MemoryJobs(characterID, cursor, limit)
		return err
	})
	return items, next, err
}

// ExtractNow has the texts of a conversation read for facts, at once: those that
// were not read, or all of them where there are no such.
func (e *Engine) ExtractNow(ctx context.Context, c *op.Call, conversationID string) error {
	_, err := op.Once(ctx, e.store, c, func(tx Tx) (struct{}, error) {
		conv, err := tx.LockConversation(conversationID)
		if err != nil {
			return struct{}{}, err
		}
		unread, err := tx.Memory.Said(conv.ID, memory.SaidFilter{Unread: true, Limit: 1})
		if err == nil && len(unread) == 0 {
			err = tx.Memory.MarkUnread(conv.ID)
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, memory.ExtractNow(tx.Memory, conv.ID)
	})
	return err
}

// RecalledFor returns what was recalled for the shown text of a reply, by rank, and
// then the facts of the profile (signal "profile").
// What was purged since is left out.
func (e *Engine) RecalledFor(ctx context.Context, userID, messageID string) ([]FoundMemory, error) {
	found := []FoundMemory{}
	err := e.store.View(ctx, userID, func(tx Tx) error {
		found = found[:0]
		m, err := liveMessage(tx, messageID)
		if err != nil {
			return err
		}
		uses, err := tx.Memory.Uses(m.ID)
		if err != nil || len(uses) == 0 {
			return err
		}
		characterID, err := speakerOf(tx, m)
		if err != nil {
			return err
		}
		for _, u := range uses {
			f := FoundMemory{ID: u.ID, Layer: u.Layer, Score: u.Score, Parts: u.Parts(), Signals: u.Signals}
			there, err := f.read(tx, characterID)
			if err != nil {
				return err
			}
			if there {
				found = append(found, f)
			}
		}
		return nil
	})
	return found, err
}

// speakerOf is the character that wrote the shown text of a reply: the
// conversation's, or the one that its generation was asked of.
func speakerOf(tx Tx, m *Message) (characterID string, err error) {
	if s := m.Chosen(); s != nil && s.GenerationID != "" {
		g, err := tx.Generation(s.GenerationID)
		if err == nil && g.Options.CharacterID != "" {
			return g.Options.CharacterID, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	conv, err := tx.Conversation(m.ConversationID)
	if err != nil {
		return "", err
	}
	return conv.CharacterID, nil
}
