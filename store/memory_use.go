package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"nodest/memory"
	"nodest/store/sqldb"
)

// usesRow has what was recalled for a revision.
type usesRow struct {
	UserID, RevisionID string
	Uses               []byte // see packUses
}

// PutUses stores what was recalled for a text of a message, instead of what was
// stored for it before, and when facts were used last. That is no change of a scope.
func (t *tx) PutUses(messageID, revisionID string, uses []memory.Use) error {
	err := t.withMessage(messageID).Run("DELETE FROM memory_uses WHERE user_id = ? AND revision_id = ?", t.userID, revisionID)
	if err != nil || len(uses) == 0 {
		return err
	}
	if err := t.Insert("memory_uses", &usesRow{t.userID, revisionID, packUses(uses)}); err != nil {
		return err
	}
	var facts []string
	for _, u := range uses {
		if u.Layer == memory.Fact {
			facts = append(facts, u.ID)
		}
	}
	return t.Run("UPDATE memories SET last_used_at = ? WHERE user_id = ? AND id IN (?)", t.Now(), t.userID, facts)
}

// Uses returns what was recalled for the chosen text of a message, as far as it is still there.
func (t *tx) Uses(messageID string) ([]memory.Use, error) {
	row, err := sqldb.Value[usesRow](t.withMessage(messageID), `SELECT u.uses FROM messages m
		JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
		JOIN memory_uses u ON u.user_id = m.user_id AND u.revision_id = r.id
		WHERE m.user_id = ? AND m.id = ?`, t.userID, messageID)
	if err != nil {
		return nil, err
	}
	uses, err := unpackUses(row.Uses)
	if err != nil || len(uses) == 0 {
		return uses, err
	}
	ids := make([]string, len(uses))
	for i, u := range uses {
		ids[i] = u.ID
	}
	there, err := sqldb.All[string](t, "SELECT revision_id FROM memory_texts WHERE user_id = ? AND revision_id IN (?) AND NOT is_forgotten"+
		" UNION ALL SELECT id FROM memories WHERE user_id = ? AND id IN (?)", t.userID, ids, t.userID, ids)
	left := setOf(there)
	return slices.DeleteFunc(uses, func(u memory.Use) bool { return !left[u.ID] }), err
}

// useWords are the texts of uses that have a number, from 1. Their order never changes.
var useWords = []string{
	string(memory.Fact), string(memory.Exchange), "words", "near", "around", "session", "answer", "speaker", "day", "kind", "length",
	"vector", "spelling", "recency", "importance", "profile",
}

const (
	otherWord = 0   // before the length of a text, and the text
	idWord    = 200 // and the number of bytes of an id, before them
	mostID    = 16
)

// packUses writes uses, by rank: the unit, the layer, the rank, the score, and the signals by name.
func packUses(uses []memory.Use) (b []byte) {
	for _, u := range slices.SortedStableFunc(slices.Values(uses), func(a, b memory.Use) int { return a.Rank - b.Rank }) {
		b = appendWord(appendWord(b, u.ID), string(u.Layer))
		b = binary.AppendUvarint(b, uint64(u.Rank)) //nolint:gosec // from 1
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(u.Score))
		b = binary.AppendUvarint(b, uint64(len(u.Signals)))
		for _, name := range slices.Sorted(maps.Keys(u.Signals)) {
			b = binary.AppendVarint(appendWord(b, name), int64(math.Round(u.Signals[name]*memory.SignalStep)))
		}
	}
	return b
}

func appendWord(b []byte, word string) []byte {
	if i := slices.Index(useWords, word); i >= 0 {
		return append(b, byte(i+1))
	}
	if id := sqldb.StoredID(word); id != nil {
		return append(append(b, byte(idWord+len(id))), id...)
	}
	return append(binary.AppendUvarint(append(b, otherWord), uint64(len(word))), word...)
}

var errUses = errors.New("store: the uses of memories cannot be read")

// unpackUses reads what packUses wrote. It is never nil.
func unpackUses(b []byte) ([]memory.Use, error) {
	uses, r := []memory.Use{}, useReader{left: b}
	for len(r.left) > 0 && !r.failed {
		u := memory.Use{ID: r.word(), Layer: memory.Layer(r.word()), Rank: int(r.number())} //nolint:gosec // from 1
		u.Score = math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
		for n := r.number(); n > 0 && !r.failed; n-- {
			if u.Signals == nil {
				u.Signals = map[string]float64{}
			}
			name := r.word()
			x, size := binary.Varint(r.left)
			r.take(cmp.Or(size, -1))
			u.Signals[name] = float64(x) / memory.SignalStep
		}
		uses = append(uses, u)
	}
	if r.failed {
		return nil, errUses
	}
	return uses, nil
}

// useReader reads what is left. After it has failed it reads zeros.
type useReader struct {
	left   []byte
	failed bool
}

func (r *useReader) take(n int) []byte {
	if n < 0 || n > len(r.left) || r.failed {
		r.failed = true
		return make([]byte, 16)
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *useReader) number() uint64 {
	n, size := binary.Uvarint(r.left)
	r.take(cmp.Or(size, -1))
	return n
}

func (r *useReader) word() string {
	switch code := int(r.take(1)[0]); {
	case code > idWord && code <= idWord+mostID:
		return sqldb.UnpackID(r.take(code - idWord))
	case code > 0 && code <= len(useWords):
		return useWords[code-1]
	case code == otherWord:
		return string(r.take(int(min(r.number(), math.MaxInt32)))) //nolint:gosec // checked
	}
	r.failed = true
	return ""
}
