package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"

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
	row, err := sqldb.Value[struct{ MemoryIDs, Uses []byte }](t.withMessage(messageID), `SELECT r.memory_ids, r.uses FROM messages m
		JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
		WHERE m.user_id = ? AND m.id = ?`, t.userID, messageID)
	if err != nil {
		return nil, err
	}
	uses, err := unpackUses(row.Uses, unpackUnits(row.MemoryIDs))
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

// useSignals are the signals of which a use has bits, the frequent ones first. Their order never
// changes.
var useSignals = []string{
	"words", "near", "around", "session", "length", "recency", "answer", "vector", "speaker", "day", "kind", "importance", "profile", "spelling",
}

// Bits of a use, below those of its signals.
const (
	isExchange = 1 << iota // else it is a fact
	hasOthers              // signals that are not in useSignals
	firstSignal
)

// What stands before a unit.
const (
	namedUnit = 0   // before the length of the id, and the id
	knownUnit = 100 // and the place of the unit among the memory ids of the text, from 0
	mostKnown = 100
	idUnit    = 200 // and the number of bytes of the id, before them
	mostID    = 16
)

// packUnits writes the memory ids of a text.
func packUnits(ids []string) (b []byte) {
	for _, id := range ids {
		b = appendUnit(b, id, nil)
	}
	return b
}

// unpackUnits reads what packUnits wrote.
func unpackUnits(b []byte) (ids []string) {
	for r := (useReader{left: b}); len(r.left) > 0; {
		id := r.unit()
		if r.failed {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// packUses writes uses, by rank: the unit, the bits, and the signals. Most units are among the
// memory ids of the text. Most signals are near those of the use before, so the difference is stored.
func packUses(uses []memory.Use, memoryIDs []string) (b []byte) {
	before := make([]int64, len(useSignals))
	for _, u := range slices.SortedStableFunc(slices.Values(uses), func(a, b memory.Use) int { return a.Rank - b.Rank }) {
		bits, values := uint64(0), []byte{}
		if u.Layer == memory.Exchange {
			bits = isExchange
		}
		for i, name := range useSignals {
			if x, ok := u.Signals[name]; ok {
				bits |= firstSignal << i
				share := shareOf(x)
				values, before[i] = binary.AppendVarint(values, share-before[i]), share
			}
		}
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(u.Signals)), func(name string) bool { return slices.Contains(useSignals, name) })
		if len(others) > 0 {
			bits |= hasOthers
			values = binary.AppendUvarint(values, uint64(len(others)))
		}
		for _, name := range others {
			values = binary.AppendVarint(appendText(values, name), shareOf(u.Signals[name]))
		}
		b = append(binary.AppendUvarint(appendUnit(b, u.ID, memoryIDs), bits), values...)
	}
	return b
}

func appendUnit(b []byte, id string, memoryIDs []string) []byte {
	if i := slices.Index(memoryIDs, id); i >= 0 && i < mostKnown {
		return append(b, byte(knownUnit+i))
	}
	if id, err := uuid.Parse(id); err == nil {
		return append(append(b, byte(idUnit+len(id))), id[:]...)
	}
	return appendText(append(b, namedUnit), id)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func shareOf(x float64) int64 { return int64(math.Round(x * memory.SignalStep)) }

var errUses = errors.New("store: the uses of memories cannot be read")

// unpackUses reads what packUses wrote. It is never nil.
func unpackUses(b []byte, memoryIDs []string) ([]memory.Use, error) {
	uses, r, before := []memory.Use{}, useReader{left: b, known: memoryIDs}, make([]int64, len(useSignals))
	for len(r.left) > 0 && !r.failed {
		u, sum := memory.Use{ID: r.unit(), Layer: memory.Fact, Rank: len(uses) + 1}, int64(0)
		signal := func(name string, before int64) int64 {
			if u.Signals == nil {
				u.Signals = map[string]float64{}
			}
			x := before + r.share()
			u.Signals[name] = float64(x) / memory.SignalStep
			sum += x
			return x
		}
		bits := r.number()
		if bits&isExchange != 0 {
			u.Layer = memory.Exchange
		}
		for i, name := range useSignals {
			if bits&(firstSignal<<i) != 0 {
				before[i] = signal(name, before[i])
			}
		}
		if bits&hasOthers != 0 {
			for n := r.number(); n > 0 && !r.failed; n-- {
				signal(r.text(), 0)
			}
		}
		u.Score = float64(sum) / memory.SignalStep
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

func (r *useReader) share() int64 {
	x, size := binary.Varint(r.left)
	r.take(cmp.Or(size, -1))
	return x
}

func (r *useReader) text() string {
	return string(r.take(int(min(r.number(), math.MaxInt32)))) //nolint:gosec // checked
}

func (r *useReader) unit() string {
	switch code := int(r.take(1)[0]); {
	case code >= knownUnit && code < knownUnit+min(mostKnown, len(r.known)):
		return r.known[code-knownUnit]
	case code > idUnit && code <= idUnit+mostID:
		return idOfBytes(r.take(code - idUnit))
	case code == namedUnit:
		return r.text()
	}
	r.failed = true
	return ""
}

func idOfBytes(b []byte) string {
	id, _ := uuid.FromBytes(b)
	return id.String()
}
