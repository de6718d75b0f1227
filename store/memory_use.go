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

// noteUsed stores when facts were used last: now, for these texts. That is no change of a scope.
func (t *tx) noteUsed(revisions []*revisionRow) error {
	var facts []string
	for _, r := range revisions {
		for _, u := range r.Swipe.Uses {
			if u.Layer == memory.Fact {
				facts = append(facts, u.ID)
			}
		}
	}
	if len(facts) == 0 {
		return nil
	}
	return t.Run("UPDATE memories SET last_used_at = ? WHERE user_id = ? AND id IN (?)", t.Now(), t.userID, facts)
}

// Uses returns what was recalled for the chosen text of a message, as far as it is still there.
func (t *tx) Uses(messageID string) ([]memory.Use, error) {
	row, err := sqldb.Value[struct {
		MemoryIDs []string
		Uses      []byte
	}](t.withMessage(messageID), `SELECT r.memory_ids, r.uses FROM messages m
		JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
		WHERE m.user_id = ? AND m.id = ?`, t.userID, messageID)
	if err != nil {
		return nil, err
	}
	uses, err := unpackUses(row.Uses, row.MemoryIDs)
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

// dropUses removes what was recalled for texts that a condition selects.
func (t *tx) dropUses(where string, args ...any) error {
	return t.Run("UPDATE revisions SET uses = NULL WHERE user_id = ? AND uses IS NOT NULL AND id IN ("+where+")", append([]any{t.userID}, args...)...)
}

// useWords are the texts of uses that have a number, from 1. Their order never changes.
var useWords = []string{
	string(memory.Fact), string(memory.Exchange), "words", "near", "around", "session", "answer", "speaker", "day", "kind", "length",
	"vector", "spelling", "recency", "importance", "profile",
}

const (
	otherWord = 0   // before the length of a text, and the text
	knownWord = 100 // and the place of a unit among the memory ids of the text, from 0
	mostKnown = 100
	idWord    = 200 // and the number of bytes of an id, before them
	mostID    = 16
)

// packUses writes uses, by rank: the unit, the layer, and the signals by name. Most units are
// among the memory ids of the text.
func packUses(uses []memory.Use, memoryIDs []string) (b []byte) {
	for _, u := range slices.SortedStableFunc(slices.Values(uses), func(a, b memory.Use) int { return a.Rank - b.Rank }) {
		if i := slices.Index(memoryIDs, u.ID); i >= 0 && i < mostKnown {
			b = append(b, byte(knownWord+i))
		} else {
			b = appendWord(b, u.ID)
		}
		b = binary.AppendUvarint(appendWord(b, string(u.Layer)), uint64(len(u.Signals)))
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
func unpackUses(b []byte, memoryIDs []string) ([]memory.Use, error) {
	uses, r := []memory.Use{}, useReader{left: b, known: memoryIDs}
	for len(r.left) > 0 && !r.failed {
		u := memory.Use{ID: r.word(), Layer: memory.Layer(r.word()), Rank: len(uses) + 1}
		score := int64(0)
		for n := r.number(); n > 0 && !r.failed; n-- {
			if u.Signals == nil {
				u.Signals = map[string]float64{}
			}
			name := r.word()
			x, size := binary.Varint(r.left)
			r.take(cmp.Or(size, -1))
			u.Signals[name] = float64(x) / memory.SignalStep
			score += x
		}
		u.Score = float64(score) / memory.SignalStep
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
	known  []string // memory ids
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
	case code >= knownWord && code < knownWord+min(mostKnown, len(r.known)):
		return r.known[code-knownWord]
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
