package store

import (
	"cmp"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/store/sqldb"
)

// segmentRow is a segment in the list.
type segmentRow struct {
	memory.Segment      `db:"From=from_change To=to_change"`
	UserID, CharacterID string
	CreatedAt           time.Time
}

// segments returns those of a scope, by their ranges.
func (s *session) segments(scope memory.Scope) ([]memory.Segment, error) {
	return sqldb.Map(s, func(r *segmentRow) memory.Segment { return r.Segment }, "SELECT id, from_change, to_change, units FROM memory_segments WHERE "+
		ofScope+" ORDER BY from_change", scope.UserID, scope.CharacterID)
}

// gapsBetween returns the ranges after since, up to last, that no segment covers.
func gapsBetween(segments []memory.Segment, since, last int64) (gaps []memory.Gap) {
	for _, s := range segments {
		if s.From > since {
			gaps = append(gaps, memory.Gap{From: since, To: s.From})
		}
		since = max(since, s.To)
	}
	if since < last {
		gaps = append(gaps, memory.Gap{From: since, To: last})
	}
	return gaps
}

func (t *memoryTx) Gaps(characterID string) ([]memory.Gap, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	segments, err := t.segments(memory.Scope{UserID: t.userID, CharacterID: characterID})
	if err != nil {
		return nil, err
	}
	gaps := gapsBetween(segments, 0, at.Version)
	for i, g := range gaps {
		if gaps[i].Units, err = t.CountUnits(characterID, g.From, g.To); err != nil {
			return nil, err
		}
	}
	return gaps, nil
}

func (t *memoryTx) CountUnits(characterID string, from, to int64) (int, error) {
	args := []any{t.userID, characterID, from, to}
	return sqldb.Value[int](t.characters.with(characterID), "SELECT (SELECT COUNT(*) FROM memory_texts WHERE "+inGap+") + (SELECT COUNT(*) FROM memories WHERE "+inGap+")",
		append(args, args...)...)
}

func (t *memoryTx) Segments(characterID string) (base int64, segments []memory.Segment, err error) {
	at, err := t.scope(characterID)
	if err != nil {
		return 0, nil, err
	}
	segments, err = t.segments(memory.Scope{UserID: t.userID, CharacterID: characterID})
	return at.WholeVersion, segments, err
}

type unitKeyRow struct {
	memory.UnitKey `db:"Conversation=conversation_id Order=seq"`
}

func (t *memoryTx) UnitKeys(characterID string, from, to int64) ([]memory.UnitKey, error) {
	args := []any{t.userID, characterID, from, to}
	return sqldb.Map(t.characters.with(characterID), func(r *unitKeyRow) memory.UnitKey { return r.UnitKey },
		`SELECT revision_id AS id, conversation_id, session, seq, '`+string(recall.Exchange)+`' AS layer, change
			FROM memory_texts WHERE `+inGap+` AND NOT is_forgotten AND NOT is_buried
		UNION ALL SELECT f.id, f.conversation_id, 0, 0, '`+string(recall.Fact)+`', f.change
			FROM memories f WHERE `+inGap+` AND (`+counts("f")+` OR f.status = 'retired' AND COALESCE(f.evidence, '[]') <> '[]')`,
		append(args, args...)...)
}

// segmentPart is a part of a segment.
type segmentPart struct {
	UserID, CharacterID, SegmentID string
	Part                           int
	Data                           []byte
}

// SegmentParts returns parts of a segment, in one statement.
func (t *memoryTx) SegmentParts(characterID, segmentID string, parts ...int) ([][]byte, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	numbers := make([]any, len(parts))
	for i, part := range parts {
		numbers[i] = part
	}
	found := make(map[int][]byte, len(parts))
	err := sqldb.Each(t, func(p *segmentPart) error { found[p.Part] = p.Data; return nil }, `SELECT p.part, p.data FROM characters c
		JOIN memory_segments s ON s.user_id = c.user_id AND s.character_id = c.id AND s.id = ?
		JOIN memory_segment_parts p ON p.user_id = s.user_id AND p.character_id = s.character_id AND p.segment_id = s.id
		WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NULL AND p.part IN (`+values(1, len(parts))+")",
		append([]any{segmentID, t.userID, characterID}, numbers...)...)
	if err != nil {
		return nil, err
	}
	data := make([][]byte, len(parts))
	for i, part := range parts {
		if data[i] = found[part]; data[i] == nil {
			return nil, fault.New(fault.NotFound, "no part %d of segment %q", part, segmentID)
		}
	}
	return data, nil
}

func (t *memoryTx) PutSegmentParts(characterID, segmentID string, first int, data ...[]byte) error {
	rows := make([]segmentPart, len(data))
	for i := range data {
		rows[i] = segmentPart{t.userID, characterID, segmentID, first + i, data[i]}
	}
	return t.characters.with(characterID).Insert("memory_segment_parts", rows)
}

// PutSegment lists a segment. The row of the scope is locked first, as it is when segments are
// dropped, so a purge either sees the segment or is seen here.
func (t *memoryTx) PutSegment(characterID string, base int64, s memory.Segment, replaces ...string) error {
	if err := t.LockMemory(characterID); err != nil {
		return err
	}
	whole, err := sqldb.One[int64](t, "SELECT whole_version FROM memory_scopes WHERE "+ofScope+t.ForUpdate(), t.userID, characterID)
	if err != nil {
		return err
	}
	if whole == nil || *whole != base {
		return fault.New(fault.Conflict, "the memory has changed since this segment was begun")
	}
	segments, err := t.segments(memory.Scope{UserID: t.userID, CharacterID: characterID})
	if err != nil {
		return err
	}
	replaced := setOf(replaces)
	for _, o := range segments {
		if o.From < s.To && s.From < o.To && !replaced[o.ID] {
			return fault.New(fault.Conflict, "segment %q has some of this range", o.ID)
		}
	}
	err = t.each([]string{
		"DELETE FROM memory_segments WHERE " + ofScope + " AND id IN (?)",
		"DELETE FROM memory_segment_parts WHERE " + ofScope + " AND segment_id IN (?)",
	}, t.userID, characterID, replaces)
	if err != nil {
		return err
	}
	t.news(characterID).whole = true
	return t.Insert("memory_segments", &segmentRow{s, t.userID, characterID, t.Now()})
}

func (t *memoryTx) DropSegments(characterID string) error {
	if err := t.LockMemory(characterID); err != nil {
		return err
	}
	t.news(characterID).whole = true
	return t.each([]string{"DELETE FROM memory_segments WHERE " + ofScope, "DELETE FROM memory_segment_parts WHERE " + ofScope}, t.userID, characterID)
}

func (t *memoryTx) DropLooseParts(characterID string) error {
	return t.characters.with(characterID).Run(dropLooseParts, t.userID, characterID, t.userID, characterID)
}

const dropLooseParts = "DELETE FROM memory_segment_parts WHERE " + ofScope + " AND segment_id NOT IN (SELECT id FROM memory_segments WHERE " + ofScope + ")"

// dropSegments removes the segments that may contain words of rows that are gone, and unfinished
// ones. The scope was raised before: see PutSegment.
func (s *session) dropSegments(scope memory.Scope, gone []lived) error {
	if len(gone) == 0 {
		return nil
	}
	segments, err := s.segments(scope)
	if err != nil {
		return err
	}
	var ids []string
	for _, o := range segments {
		if slices.ContainsFunc(gone, func(g lived) bool { return g.FirstChange <= o.To && g.Change > o.From }) {
			ids = append(ids, o.ID)
		}
	}
	return cmp.Or(
		s.Run("DELETE FROM memory_segments WHERE "+ofScope+" AND id IN (?)", scope.UserID, scope.CharacterID, ids),
		s.Run(dropLooseParts, scope.UserID, scope.CharacterID, scope.UserID, scope.CharacterID),
	)
}
