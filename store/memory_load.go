package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/store/sqldb"
)

// counts is a condition on a fact that can count somewhere. One that the user
// retired has nobody who ended it.
func counts(table string) string {
	return strings.ReplaceAll("(@.status IN ('active', 'superseded') OR @.status = 'retired' AND @.ended_by IS NOT NULL)", "@", table)
}

// MemoryChanges reads the texts and the facts of a scope that changed and are in no segment, with
// plain scans: an index is loaded on the way of a message.
func (t *memoryTx) MemoryChanges(characterID string, since, base int64, limit int) (*memory.Changes, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	c := &memory.Changes{Version: at.Version, Base: at.WholeVersion, Whole: base != at.WholeVersion || since > at.Version || since <= 0}
	if c.Whole {
		since = 0
	}
	if at.Version == since {
		return c, nil
	}
	segments, err := t.segments(memory.Scope{UserID: t.userID, CharacterID: characterID})
	if err != nil {
		return nil, err
	}
	gaps := gapsBetween(segments, since, at.Version)
	if c.Whole {
		c.Segments = segments
		oldest, err := t.looseChange(characterID, gaps, mostLoose+1, " DESC")
		if err != nil {
			return nil, err
		}
		c.Partial, gaps = oldest > 0, gapsBetween(segments, oldest, at.Version)
	}
	if limit > 0 {
		version, err := t.looseChange(characterID, gaps, limit, "")
		if err != nil {
			return nil, err
		}
		c.Version = cmp.Or(version, at.Version)
		c.More = c.Version < at.Version
	}
	return c, t.readGaps(c, characterID, at.Models, gaps)
}

// readGaps reads the rows of gaps up to c.Version.
func (t *memoryTx) readGaps(c *memory.Changes, characterID string, models modelList, gaps []memory.Gap) error {
	for _, g := range gaps {
		if g.To = min(g.To, c.Version); g.From >= g.To {
			continue
		}
		if err := cmp.Or(t.changedTexts(c, characterID, models, g), t.changedFacts(c, characterID, models, g)); err != nil {
			return err
		}
	}
	if c.Whole {
		c.Gone = nil
	}
	addTerms(c.Units)
	return nil
}

// mostLoose is how many rows outside of segments an index has at most when it is loaded whole.
const mostLoose = 8000

// inGap is a condition on rows of a scope whose change is in a range.
const inGap = ofScope + " AND change > ? AND change <= ?"

// looseChange returns the change of the n-th row in gaps, by change; 0 if there are fewer. order is
// "" or " DESC".
func (t *memoryTx) looseChange(characterID string, gaps []memory.Gap, n int, order string) (int64, error) {
	if order != "" {
		gaps = slices.Clone(gaps)
		slices.Reverse(gaps)
	}
	for _, g := range gaps {
		args := []any{t.userID, characterID, g.From, g.To}
		found, err := sqldb.All[int64](t, "SELECT change FROM memory_texts WHERE "+inGap+" UNION ALL SELECT change FROM memories WHERE "+inGap+
			" ORDER BY change"+order+" LIMIT ?", append(append(args, args...), n)...)
		if err != nil {
			return 0, err
		}
		if n -= len(found); n == 0 {
			return found[len(found)-1], nil
		}
	}
	return 0, nil
}

// textUnit is a text with what its unit is made of.
type textUnit struct {
	recall.Unit `db:"ID=revision_id Version=change Conversation=conversation_id Message=message_id Order=seq Speaker=role At=said_at"`
	storedVector
	IsForgotten bool
	IsBuried    bool // or words like these
	IsAway      bool // its conversation was deleted, or is being loaded
}

func (u *textUnit) unit(models modelList) recall.Unit {
	u.Vectors = u.kept(models)
	said := u.Text
	u.Layer, u.Text = recall.Exchange, memory.Clean(u.Speaker, said)
	u.Cleaned = u.Text != said
	return u.Unit
}

// selectTexts looks up one key per row in each of the other tables: PostgreSQL would turn an EXISTS
// into a join.
const selectTexts = `SELECT t.revision_id, t.conversation_id, r.message_id, t.seq, t.session, t.role, t.name, t.hash,
		t.change, t.said_at, t.is_forgotten, t.model, t.vector, r.text,
		t.is_buried OR (SELECT o.hash FROM memory_tombstones o
			WHERE o.user_id = t.user_id AND o.character_id = t.character_id AND o.hash = t.hash) IS NOT NULL AS is_buried,
		(SELECT c.deleted_at FROM conversations c WHERE c.user_id = t.user_id AND c.id = t.conversation_id) IS NOT NULL AS is_away
	FROM memory_texts t CROSS JOIN revisions r
	WHERE t.user_id = ? AND t.character_id = ? AND r.user_id = t.user_id AND r.id = t.revision_id`

func (t *memoryTx) changedTexts(c *memory.Changes, characterID string, models modelList, g memory.Gap) error {
	where := ""
	if c.Whole {
		where = " AND NOT t.is_forgotten"
	}
	return sqldb.Each(t, func(u *textUnit) error {
		switch {
		case u.IsAway:
		case u.IsForgotten || u.IsBuried:
			c.Gone = append(c.Gone, u.ID)
		default:
			c.Units = append(c.Units, u.unit(models))
		}
		return nil
	}, selectTexts+" AND t.change > ? AND t.change <= ?"+where, t.userID, characterID, g.From, g.To)
}

// factUnit is a fact with what its unit is made of.
type factUnit struct {
	recall.Unit `db:"Root=root_id Version=change Conversation=conversation_id Pinned=is_pinned At=last_seen_at ByHand=is_locked"`
	storedVector
	EventTime         *time.Time
	Subject           lang.Subject
	Kind              lang.Kind
	Origin            memory.Origin
	Evidence          []memory.Evidence
	IsShareable       bool
	Retired, Searched bool
}

// unit returns the fact as a unit; false if it is none. What the user retired is not searched, but
// it shows that its sources no longer hold.
func (u *factUnit) unit(models modelList) (recall.Unit, bool) {
	u.Vectors = u.kept(models)
	if !u.Searched {
		if !u.Retired || len(u.Evidence) == 0 {
			return u.Unit, false
		}
		u.Text, u.Hash, u.Pinned = "", "", false
	}
	u.Layer = recall.Fact
	if u.EventTime != nil {
		u.At = *u.EventTime
	}
	u.Sources = memory.SourcesOf(u.Evidence)
	u.ByHand = u.ByHand || u.Origin == memory.ByUser
	u.ByRule, u.Circle, u.Public = u.Origin == memory.ByRule, u.Origin == memory.ByCircle, memory.IsPublic(u.Origin, u.IsShareable)
	u.Profile = u.Searched && memory.ForProfile(&memory.Memory{
		Text: u.Text, Rights: memory.Rights{Pinned: u.Pinned}, Subject: u.Subject, Kind: u.Kind, Origin: u.Origin,
	})
	return u.Unit, true
}

var selectFactUnits = `SELECT f.id, f.root_id, f.conversation_id, f.text, f.hash, f.change, f.event_time, f.last_seen_at, f.importance,
		f.is_pinned, f.subject, f.kind, f.origin, f.is_locked, f.is_shareable, f.model, f.vector, f.status = 'retired' AS retired, f.evidence, ` + counts("f") + ` AS searched
	FROM memories f WHERE f.user_id = ? AND f.character_id = ?`

func (t *memoryTx) changedFacts(c *memory.Changes, characterID string, models modelList, g memory.Gap) error {
	return sqldb.Each(t, func(f *factUnit) error {
		if u, ok := f.unit(models); ok {
			c.Units = append(c.Units, u)
		} else {
			c.Gone = append(c.Gone, f.ID)
		}
		return nil
	}, selectFactUnits+" AND f.change > ? AND f.change <= ?", t.userID, characterID, g.From, g.To)
}

func (t *memoryTx) MemoryUnits(characterID string, ids ...string) ([]recall.Unit, error) {
	return t.unitsByID(characterID, false, ids)
}

func (t *memoryTx) UnitsForSegment(characterID string, ids ...string) ([]recall.Unit, error) {
	units, err := t.unitsByID(characterID, true, ids)
	addTerms(units)
	return units, err
}

// addTerms gives units the terms of their texts.
func addTerms(units []recall.Unit) {
	for i := range units {
		units[i].Terms = index.Join(units[i].Text)
	}
}

// unitsByID reads units; forSegment is said at UnitsForSegment.
func (t *memoryTx) unitsByID(characterID string, forSegment bool, ids []string) ([]recall.Unit, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	units, rest := make([]recall.Unit, 0, len(ids)), setOf(ids)
	err = sqldb.Each(t, func(u *textUnit) error {
		delete(rest, u.ID)
		if !u.IsForgotten && !u.IsBuried && (forSegment || !u.IsAway) {
			units = append(units, u.unit(at.Models))
		}
		return nil
	}, selectTexts+" AND t.revision_id IN (?)", t.userID, characterID, ids)
	if err != nil || len(rest) == 0 {
		return units, err
	}
	err = sqldb.Each(t, func(f *factUnit) error { // facts have other ids
		if u, ok := f.unit(at.Models); ok {
			units = append(units, u)
		}
		return nil
	}, selectFactUnits+" AND f.id IN (?)", t.userID, characterID, slices.Collect(maps.Keys(rest)))
	return units, err
}
