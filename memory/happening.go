package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/internal/op"
	"nodest/memory/lang"
)

// Happening is something that a character has experienced in the social circle.
type Happening struct {
	CharacterID string
	Text        string // self-contained, and says that it was in the circle; it is cut at maxText
	At          time.Time
	Source      string // id of the post or comment that it is about
}

// happeningImportance puts what happens in the circle every day behind what was told in person.
const happeningImportance = 0.3

// server causes the events of what no request did.
const server = "server"

// AddHappenings stores facts of origin ByCircle. They rest on no message, so they count on every
// branch. Words that a character knows, has archived or was made to forget are not stored again:
// the first source of equal words counts.
//
// Errors: NotFound for a character that is not the user's; Invalid for a blank text or a source
// that is no id.
func AddHappenings(tx Tx, list ...Happening) error {
	of := map[string][]*Memory{}
	for _, h := range list {
		m, err := h.fact(tx.Now())
		if err != nil {
			return err
		}
		of[h.CharacterID] = append(of[h.CharacterID], m)
	}
	for _, characterID := range slices.Sorted(maps.Keys(of)) { // as locks are taken
		if err := addNew(tx, characterID, of[characterID]); err != nil {
			return fmt.Errorf("remember what happened in the circle: %w", err)
		}
	}
	return nil
}

func (h *Happening) fact(now time.Time) (*Memory, error) {
	id := op.NewID()
	m := &Memory{
		ID: id, RootID: id, Version: 1, Text: strings.TrimSpace(op.Truncate(h.Text, maxText)), Subject: lang.AboutCharacter,
		Kind: lang.KindEvent, Importance: happeningImportance, EventTime: &h.At, Evidence: []Evidence{}, Origin: ByCircle,
		Source: h.Source, Standing: Standing{Status: Active}, Sightings: Sightings{SeenCount: 1, LastSeenAt: h.At}, CreatedAt: now, UpdatedAt: now,
	}
	m.ContentHash = lang.ContentHash(m.Text)
	return m, m.Validate()
}

// addNew stores those facts whose words are new to a character.
func addNew(tx Tx, characterID string, facts []*Memory) error {
	if err := tx.LockMemory(characterID); err != nil {
		return err
	}
	hashes := make([]string, len(facts))
	for i, m := range facts {
		hashes[i] = m.ContentHash
	}
	there, err := said(tx, characterID, hashes, func(s Status) bool { return s != Superseded })
	if err != nil {
		return err
	}
	var ids []string
	facts = slices.DeleteFunc(facts, func(m *Memory) bool {
		known := there[m.ContentHash]
		if there[m.ContentHash] = true; !known {
			ids = append(ids, m.ID)
		}
		return known
	})
	if err := tx.InsertFacts(characterID, facts...); err != nil {
		return err
	}
	return EmitWritten(tx, server, characterID, WroteAdded, ids...)
}

// RemoveHappenings purges what all characters of the user remember of a post or comment, with all
// versions. The same words may be stored again.
func RemoveHappenings(tx Tx, source string) error {
	roots, err := tx.FactsFrom(source)
	if err != nil {
		return err
	}
	for _, characterID := range slices.Sorted(maps.Keys(roots)) { // as locks are taken
		if err := tx.LockMemory(characterID); err != nil {
			return err
		}
		if err := tx.PurgeFacts(characterID, roots[characterID]...); err != nil {
			return err
		}
		if err := EmitWritten(tx, server, characterID, opPurged, roots[characterID]...); err != nil {
			return err
		}
	}
	return nil
}

// Shareable returns the newest facts that the user allowed to be told in the circle and that
// count where the conversations stand now, at most limit.
func Shareable(tx Tx, characterID string, limit int) (facts []Memory, err error) {
	for cursor := ""; len(facts) < limit; {
		page, next, err := tx.Facts(characterID, Filter{Shareable: true}, cursor, max(limit, usualFound))
		if err != nil {
			return nil, err
		}
		counts, err := counting(tx, characterID, page)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if counts[i] && len(facts) < limit {
				facts = append(facts, page[i])
			}
		}
		if next == "" {
			break
		}
		cursor = next
	}
	return facts, nil
}
