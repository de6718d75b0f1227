package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory/recall"
)

// The user's operations on a memory. Each acts on the user's own character or conversation;
// any other is NotFound.

// SearchQuery looks for a text in a memory.
type SearchQuery struct {
	Text           string
	ConversationID string // "" = all of the character
	Layers         []recall.Layer
	Recall         bool // mode=recall: the plain ranking
	Limit          int  // 1 to 100; default 10
}

// Found is a unit that fits, with the reasons.
type Found struct {
	ID      string             `json:"id"`
	Layer   recall.Layer       `json:"layer"`
	Memory  *Memory            `json:"memory,omitempty"` // a fact has it
	Said    *FoundText         `json:"said,omitempty"`   // a text has it
	Score   float64            `json:"score"`            // 0 to 1
	Parts   recall.Parts       `json:"parts"`
	Signals map[string]float64 `json:"signals"`
	Sources []FoundText        `json:"sources,omitempty"` // texts that a fact was taken from and that fit as well
}

// FoundText is a text of a chat that was found.
type FoundText struct {
	Evidence
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
	At   string `json:"at"`
}

// longestQuery is the maximum length of a search text, in code points.
const longestQuery = 32_000

// Limits of a search in a memory, in units.
const (
	usualFound = 10
	mostFound  = 100
	mostForget = 200
)

// Search ranks facts and texts that are shown on the branches of their conversations.
//
// Errors: Invalid with the field; NotFound.
func (s *Service) Search(ctx context.Context, userID, characterID string, q SearchQuery) ([]Found, error) {
	if err := op.CheckText("q", q.Text, longestQuery); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = usualFound
	}
	if q.Limit < 1 || q.Limit > mostFound {
		return nil, fault.InvalidField("limit", "range", "must be from 1 to %d", mostFound)
	}
	wanted := recall.Query{Text: q.Text, Mode: recall.Search, Only: recall.Filter{Layers: q.Layers, Conversation: q.ConversationID}, Limit: q.Limit}
	if q.Recall {
		wanted.Mode = recall.Ranked
	}
	hits, err := s.ask(ctx, userID, Ask{CharacterID: characterID}, wanted)
	if err != nil {
		return nil, err
	}
	return op.Read(ctx, s.store, userID, func(tx Tx) ([]Found, error) { return readFound(tx, characterID, hits) })
}

// readFound reads what was found, except what was removed meanwhile.
func readFound(tx Tx, characterID string, hits []recall.Hit) ([]Found, error) {
	found := make([]Found, len(hits))
	for i := range hits {
		h := &hits[i]
		found[i] = Found{ID: h.ID, Layer: h.Layer, Score: h.Score, Parts: h.Parts, Signals: h.Signals}
		ids := make([]string, len(h.Sources))
		for j := range h.Sources {
			ids[j] = h.Sources[j].ID
		}
		said, err := tx.SaidByID(characterID, ids...)
		if err != nil {
			return nil, err
		}
		for k := range said {
			found[i].Sources = append(found[i].Sources, foundText(&said[k]))
		}
	}
	return existing(tx, characterID, found)
}

// existing completes what was found by its facts and texts, as far as these exist.
func existing(tx Tx, characterID string, found []Found) ([]Found, error) {
	there := make([]Found, 0, len(found))
	for _, f := range found {
		ok, err := f.read(tx, characterID)
		if err != nil {
			return nil, err
		}
		if ok {
			there = append(there, f)
		}
	}
	return there, nil
}

// read completes f by its fact or text, and reports whether that exists.
func (f *Found) read(tx Tx, characterID string) (there bool, err error) {
	if f.Layer == recall.Fact {
		f.Memory, err = tx.Fact(characterID, f.ID)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	said, err := tx.SaidByID(characterID, f.ID)
	if err != nil || len(said) == 0 {
		return false, err
	}
	text := foundText(&said[0])
	f.Said = &text
	return true, nil
}

// Create stores a memory that the user has written.
func (s *Service) Create(ctx context.Context, c *op.Call, characterID string, d Draft) (*Memory, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*Memory, error) { return create(tx, c.By(), characterID, d) })
}

// Edit changes the given members of a memory.
func (s *Service) Edit(ctx context.Context, c *op.Call, characterID, id string, p Patch) (*Memory, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*Memory, error) { return edit(tx, c.By(), characterID, id, p) })
}

// Delete retires a memory, or purges it with all versions; Forget also says which lines repeat what it purges.
func (s *Service) Delete(ctx context.Context, c *op.Call, characterID, id string, purge bool) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		if purge {
			return purgeOne(tx, c.By(), characterID, id)
		}
		return retire(tx, c.By(), characterID, id)
	})
}

// Restore makes a version of a memory count again; see restore.
func (s *Service) Restore(ctx context.Context, c *op.Call, characterID, id string) (*Memory, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*Memory, error) { return restore(tx, c.By(), characterID, id) })
}

// History returns the newest 1,000 versions of a memory, oldest first.
func (s *Service) History(ctx context.Context, userID, characterID, id string) ([]Memory, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) ([]Memory, error) { return history(tx, characterID, id) })
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
		return op.CheckText("query", in.Query, limit)
	}
	return nil
}

// Forget previews or purges what fits.
//
// Errors: Invalid with the field; NotFound, also for an unknown id.
func (s *Service) Forget(ctx context.Context, c *op.Call, characterID string, in ForgetInput) (*Forgotten, error) {
	if err := in.check(longestQuery); err != nil {
		return nil, err
	}
	gone := &Forgotten{DryRun: in.DryRun, Memories: []ForgetItem{}, Echoes: []Echo{}}
	if in.Query != "" {
		ask := Ask{CharacterID: characterID, Hidden: true}
		q := recall.Query{Text: in.Query, Mode: recall.Related, Limit: mostForget + 1}
		hits, err := s.ask(ctx, c.UserID, ask, q)
		if err != nil {
			return nil, err
		}
		aside, err := s.findRetired(ctx, c.UserID, characterID, q)
		if err != nil {
			return nil, err
		}
		gone.Memories, gone.Truncated = forgettable(slices.Concat(hits, aside))
		if err := s.asTheyAre(ctx, c.UserID, characterID, gone.Memories); err != nil {
			return nil, err
		}
	}
	if in.All {
		return s.forgetAll(ctx, c, characterID, gone)
	}
	if err := s.addEchoes(ctx, c.UserID, characterID, in.IDs, gone); err != nil {
		return nil, err
	}
	do := func(tx Tx) (_ *Forgotten, err error) {
		if in.Query == "" {
			gone.Memories, err = named(tx, characterID, in.IDs)
		}
		if err != nil || in.DryRun {
			return gone, err
		}
		var ids []string
		for _, item := range gone.Memories {
			ids = append(ids, item.ID)
		}
		_, err = purge(tx, c.By(), characterID, ids)
		return gone, err
	}
	if in.DryRun {
		return op.Read(ctx, s.store, c.UserID, do)
	}
	return op.Once(ctx, s.store, c, do)
}

// addEchoes adds the lines that say what is forgotten, by ids or in gone, and are not forgotten themselves.
func (s *Service) addEchoes(ctx context.Context, userID, characterID string, ids []string, gone *Forgotten) error {
	for _, item := range gone.Memories {
		ids = append(ids, item.ID)
	}
	echoes, err := s.findEchoes(ctx, userID, characterID, ids)
	gone.Echoes = slices.DeleteFunc(echoes, func(e Echo) bool { return slices.Contains(ids, e.ID) })
	return err
}

// forgettable lists hits with the texts behind facts, each unit once, and each fact once.
func forgettable(hits []recall.Hit) (items []ForgetItem, more bool) {
	items = []ForgetItem{}
	seen := map[string]bool{}
	add := func(u *recall.Unit, score float64) {
		id := cmp.Or(u.Root, u.ID)
		if seen[id] {
			return
		}
		seen[id] = true
		if len(items) == mostForget {
			more = true
			return
		}
		items = append(items, ForgetItem{ID: u.ID, Layer: u.Layer, Text: u.Text, Score: score})
	}
	for i := range hits {
		add(&hits[i].Unit, hits[i].Score)
		for j := range hits[i].Sources {
			add(&hits[i].Sources[j], hits[i].Score)
		}
	}
	return items, more
}

// asTheyAre gives facts the id and the text of their newest version, which the user knows.
func (s *Service) asTheyAre(ctx context.Context, userID, characterID string, items []ForgetItem) error {
	return s.store.View(ctx, userID, func(tx Tx) error {
		for i := range items {
			item := &items[i]
			if item.Layer != recall.Fact {
				continue
			}
			versions, err := history(tx, characterID, item.ID)
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

// named reads units by id, each once. An unknown id is NotFound.
func named(tx Tx, characterID string, ids []string) ([]ForgetItem, error) {
	items := []ForgetItem{}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		f := Found{ID: id, Layer: recall.Fact}
		there, err := f.read(tx, characterID)
		if err == nil && !there {
			f.Layer = recall.Exchange
			there, err = f.read(tx, characterID)
		}
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fault.New(fault.NotFound, "no memory %q", id)
		}
		item := ForgetItem{ID: id, Layer: f.Layer}
		if f.Memory != nil {
			item.Text = f.Memory.Text
		} else {
			item.Text = f.Said.Text
		}
		items = append(items, item)
	}
	return items, nil
}

// purgedAtOnce is how many texts a transaction removes when everything is forgotten.
const purgedAtOnce = 2000

// forgetAll removes everything of a scope; the texts of a long one, and the segments made of them,
// in several transactions, so that other writers do not wait. If it is interrupted, the next call
// removes the rest. Its event names no memories: all of them are removed.
func (s *Service) forgetAll(ctx context.Context, c *op.Call, characterID string, gone *Forgotten) (*Forgotten, error) {
	answer, known, err := op.Earlier[*Forgotten](ctx, s.store, c)
	if known || err != nil {
		return answer, err
	}
	for left := true; left; {
		err := s.store.Update(ctx, c.UserID, func(tx Tx) (err error) {
			left, err = tx.PurgeTexts(characterID, purgedAtOnce)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return op.Once(ctx, s.store, c, func(tx Tx) (*Forgotten, error) {
		if err := tx.PurgeScope(characterID); err != nil {
			return nil, err
		}
		return gone, emitWritten(tx, c.By(), characterID, opPurged, []string{})
	})
}

// Suggestions lists suggestions, newest first; state "" = open. limit is 1 to 200, 0 = 50.
func (s *Service) Suggestions(ctx context.Context, userID, characterID, state, cursor string, limit int) (*op.Page[Suggested], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]Suggested, string, error) {
		return tx.Suggestions(characterID, cmp.Or(state, SuggestionOpen), cursor, limit)
	})
}

// Decide accepts or rejects a suggestion.
func (s *Service) Decide(ctx context.Context, c *op.Call, characterID, id, decision string) (*Suggested, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*Suggested, error) {
		return decide(tx, c.By(), characterID, id, decision)
	})
}

// Jobs lists the jobs of a character's memory, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) Jobs(ctx context.Context, userID, characterID, cursor string, limit int) (*op.Page[*jobs.Job], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*jobs.Job, string, error) {
		return tx.MemoryJobs(characterID, cursor, limit)
	})
}

func foundText(t *Text) FoundText {
	return FoundText{
		Evidence: t.Evidence, Role: string(t.Role), Name: t.Name, Text: t.Text,
		At: t.At.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
}

// ask is Recall for a user's question, with the settings of the character.
func (s *Service) ask(ctx context.Context, userID string, a Ask, q recall.Query) ([]recall.Hit, error) {
	err := s.store.View(ctx, userID, func(tx Tx) error {
		q.Now = tx.Now()
		return tx.TalkedIn(a.CharacterID, q.Only.Conversation)
	})
	if err != nil {
		return nil, err
	}
	scene, err := s.opts.Scenes(ctx, userID, a.CharacterID, q.Only.Conversation)
	if err != nil {
		return nil, err
	}
	a.Scene = &scene
	return s.Recall(ctx, userID, a, q)
}

// Export writes JSON Lines: facts, suggestions, and the settings of the character's memory.
func (s *Service) Export(ctx context.Context, userID, characterID string, w io.Writer) error {
	err := s.store.View(ctx, userID, func(tx Tx) error { return export(tx, characterID, w) })
	if err != nil || s.opts.Settings == nil {
		return err
	}
	settings, err := s.opts.Settings(ctx, userID, characterID)
	if err != nil {
		return err
	}
	settings.Type = "settings"
	return json.NewEncoder(w).Encode(settings)
}

// ExtractNow extracts facts from the unread texts of a conversation now; from all if none is.
func (s *Service) ExtractNow(ctx context.Context, c *op.Call, conversationID string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		unread, err := tx.Said(conversationID, SaidFilter{Unread: true, Limit: 1})
		if err == nil && len(unread) == 0 {
			err = tx.MarkUnread(conversationID)
		}
		if err != nil {
			return err
		}
		return ExtractNow(tx, conversationID)
	})
}

// ReadFound completes uses by the facts and texts that they name, as far as these exist.
func ReadFound(tx Tx, characterID string, uses []Use) ([]Found, error) {
	found := make([]Found, len(uses))
	for i, u := range uses {
		found[i] = Found{ID: u.ID, Layer: u.Layer, Score: u.Score, Parts: u.Parts(), Signals: u.Signals}
		if u.Signals == nil {
			found[i].Signals = map[string]float64{}
		}
	}
	return existing(tx, characterID, found)
}
