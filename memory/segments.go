package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/index/dict"
	"nodest/internal/op"
	"nodest/memory/recall"
)

// Units that no segment covers are searched in memory. When there are enough of them, the older
// ones become a segment, together with segments before them that are about as small: so each unit
// is written a few times in its life, and a scope has few segments.
const (
	defaultLoose = 1024
	looseKept    = 4       // share of them, the newest, that stay in memory when a segment is built
	fanOut       = 4       // segments of about one size become one
	buildBatch   = 500     // units that are read at once
	partsAtOnce  = 1 << 20 // bytes that one transaction writes
)

// piece is a range of changes: a segment, or a gap between segments.
type piece struct {
	from, to int64
	units    int
	segment  string // "" = a gap
	outdated bool   // the segment is to be built again
}

// tierOf is the size class of so many units.
func (s *Service) tierOf(units int) (t int) {
	for n := s.opts.Loose; n <= units; n *= fanOut {
		t++
	}
	return t
}

// compact builds the segments that a scope lacks. It stops without an error when the scope is
// purged meanwhile, and the next call begins again; a deleted character needs none.
func (s *Service) compact(ctx context.Context, scope Scope) error {
	for {
		base, pieces, err := s.pieces(ctx, scope)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("compact a memory: %w", err)
		}
		some := s.nextMerge(pieces)
		if some == nil {
			return nil
		}
		if err := s.outdate(ctx, scope, pieces); err != nil {
			return fmt.Errorf("compact a memory: %w", err)
		}
		some = s.nextMerge(pieces)
		err = s.build(ctx, scope, base, some)
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("build a segment: %w", err)
		}
	}
}

// pieces returns what covers a scope, oldest first, but for the newest units.
func (s *Service) pieces(ctx context.Context, scope Scope) (base int64, pieces []piece, err error) {
	err = s.store.View(ctx, scope.UserID, func(tx Tx) error {
		var segments []Segment
		if base, segments, err = tx.Segments(scope.CharacterID); err != nil {
			return err
		}
		for _, one := range segments {
			pieces = append(pieces, piece{from: one.From, to: one.To, units: one.Units, segment: one.ID})
		}
		gaps, err := tx.Gaps(scope.CharacterID)
		if err != nil {
			return err
		}
		for i, g := range gaps {
			p := piece{from: g.From, to: g.To, units: g.Units}
			last := i == len(gaps)-1 && (len(segments) == 0 || g.From >= segments[len(segments)-1].To)
			switch {
			case g.Units == 0, last && g.Units < s.opts.Loose:
				continue
			case g.Units > index.MostRows || last:
				kept := 0
				if last {
					kept = s.opts.Loose / looseKept
				}
				if p, err = cut(tx, scope, p, kept); err != nil {
					return err
				}
			}
			pieces = append(pieces, p)
		}
		return nil
	})
	slices.SortFunc(pieces, func(a, b piece) int { return int(a.from - b.from) })
	return base, pieces, err
}

// outdate turns segments of which most units have changed since into gaps: they are built again.
func (s *Service) outdate(ctx context.Context, scope Scope, pieces []piece) error {
	return s.store.View(ctx, scope.UserID, func(tx Tx) error {
		for i := range pieces {
			p := &pieces[i]
			if p.segment == "" {
				continue
			}
			left, err := tx.CountUnits(scope.CharacterID, p.from, p.to)
			if err != nil {
				return err
			}
			p.outdated, p.units = left < p.units/2, left
		}
		return nil
	})
}

// cut returns the first part of a gap, not longer than a segment, without its newest units.
func cut(tx Tx, scope Scope, p piece, without int) (piece, error) {
	keys, err := tx.UnitKeys(scope.CharacterID, p.from, p.to)
	if err != nil {
		return p, err
	}
	changes := make([]int64, len(keys))
	for i, k := range keys {
		changes[i] = k.Change
	}
	slices.Sort(changes)
	n := min(len(changes)-without, index.MostRows)
	for n > 0 && n < len(changes) && changes[n-1] == changes[n] { // a version is not divided
		n--
	}
	if n <= 0 {
		return piece{from: p.from, to: p.from}, nil
	}
	if p.units = n; n < len(changes) {
		p.to = changes[n-1]
	}
	return p, nil
}

// nextMerge returns adjacent pieces that are to become one segment: a gap, or several segments
// of about one size; nil = there are none.
func (s *Service) nextMerge(pieces []piece) []piece {
	for at := range pieces {
		if pieces[at].segment != "" && !pieces[at].outdated || pieces[at].from == pieces[at].to {
			continue
		}
		from, acc := at, pieces[at]
		for {
			first, sum := from, acc.units
			for first > 0 && s.tierOf(pieces[first-1].units) <= s.tierOf(acc.units) && pieces[first-1].to == pieces[first].from && sum+pieces[first-1].units <= index.MostRows {
				first--
				sum += pieces[first].units
			}
			if from-first < fanOut-1 {
				return pieces[from : at+1]
			}
			from, acc.units = first, sum
		}
	}
	return nil
}

// build makes one segment of adjacent pieces.
func (s *Service) build(ctx context.Context, scope Scope, base int64, pieces []piece) error {
	made := Segment{ID: op.NewID(), From: pieces[0].from, To: pieces[len(pieces)-1].to}
	var replaces []string
	for _, p := range pieces {
		if p.segment != "" {
			replaces = append(replaces, p.segment)
		}
	}
	var keys []UnitKey
	err := s.store.View(ctx, scope.UserID, func(tx Tx) (err error) {
		keys, err = tx.UnitKeys(scope.CharacterID, made.From, made.To)
		return err
	})
	if err != nil {
		return err
	}
	parts, err := s.encode(ctx, scope, made, keys)
	if err != nil {
		return err
	}
	made.Units = len(keys)
	if err := s.writeParts(ctx, scope, made.ID, parts); err != nil {
		return err
	}
	return s.store.Update(ctx, scope.UserID, func(tx Tx) error {
		return tx.PutSegment(scope.CharacterID, base, made, replaces...)
	})
}

// encode reads units and returns the parts of their segment.
func (s *Service) encode(ctx context.Context, scope Scope, made Segment, keys []UnitKey) ([][]byte, error) {
	slices.SortFunc(keys, func(a, b UnitKey) int {
		return index.Compare(a.group(), a.Order, a.ID, b.group(), b.Order, b.ID)
	})
	builder := index.NewBuilder()
	for batch := range slices.Chunk(keys, buildBatch) {
		units := map[string]*recall.Unit{}
		err := s.store.View(ctx, scope.UserID, func(tx Tx) error {
			ids := make([]string, len(batch))
			for i, k := range batch {
				ids[i] = k.ID
			}
			all, err := tx.UnitsForSegment(scope.CharacterID, ids...)
			for i := range all {
				units[all[i].ID] = &all[i]
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, k := range batch {
			u := units[k.ID]
			if u == nil || u.Version > made.To || builder.Rows() == index.MostRows {
				continue // it is gone, or has changed since
			}
			row := u.Row()
			builder.Add(&row)
		}
	}
	return builder.Encode(), nil
}

// group is the group of the unit's row.
func (k *UnitKey) group() string {
	if k.Layer == recall.Fact {
		return ""
	}
	return recall.GroupOf(k.Conversation, k.Session)
}

func (s *Service) writeParts(ctx context.Context, scope Scope, id string, parts [][]byte) error {
	for from := 0; from < len(parts); {
		to, size := from, 0
		for to < len(parts) && (to == from || size+len(parts[to]) <= partsAtOnce) {
			size += len(parts[to])
			to++
		}
		err := s.store.Update(ctx, scope.UserID, func(tx Tx) error {
			if from == 0 {
				if err := tx.DropLooseParts(scope.CharacterID); err != nil {
					return err
				}
			}
			return tx.PutSegmentParts(scope.CharacterID, id, from, parts[from:to]...)
		})
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// use calls use with the index of a scope. Segments that cannot be read are removed: they are
// made of rows, and built again.
func (s *Service) use(ctx context.Context, scope Scope, use func(x *index.Index, whole bool) error) error {
	err := s.cache.Use(ctx, scope.key(), use)
	if !errors.Is(err, dict.ErrDamaged) {
		return err
	}
	s.opts.Log.WarnContext(ctx, "the segments of a memory cannot be read and are built again", "user", scope.UserID, "character", scope.CharacterID, "err", err)
	if err := s.store.Update(ctx, scope.UserID, func(tx Tx) error { return tx.DropSegments(scope.CharacterID) }); err != nil {
		return err
	}
	return s.cache.Use(ctx, scope.key(), use)
}

// Parts implements index.Source.
func (l loader) Parts(ctx context.Context, key string, wanted []index.Part) (parts [][]byte, err error) {
	scope := scopeOf(key)
	err = l.store.View(ctx, scope.UserID, func(tx Tx) error {
		for from, to := 0, 0; from < len(wanted); from = to {
			var numbers []int
			for ; to < len(wanted) && wanted[to].Segment == wanted[from].Segment; to++ {
				numbers = append(numbers, wanted[to].Number)
			}
			some, err := tx.SegmentParts(scope.CharacterID, wanted[from].Segment, numbers...)
			if err != nil {
				return err
			}
			parts = append(parts, some...)
		}
		return nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("%w: %w", index.ErrReplaced, err)
	}
	return parts, err
}

// Rows implements index.Source.
func (l loader) Rows(ctx context.Context, key string, ids []string) (rows []index.Row, err error) {
	err = l.inBatches(ctx, key, ids, func(tx Tx, characterID string, some []string) error {
		units, err := tx.MemoryUnits(characterID, some...)
		for i := range units {
			rows = append(rows, units[i].Found())
		}
		return err
	})
	return rows, err
}

// Vectors implements index.Source.
func (l loader) Vectors(ctx context.Context, key, model string, ids []string) (map[string]index.Packed, error) {
	all := make(map[string]index.Packed, len(ids))
	err := l.inBatches(ctx, key, ids, func(tx Tx, characterID string, some []string) error {
		found, err := tx.UnitVectors(characterID, model, some...)
		maps.Copy(all, found)
		return err
	})
	return all, err
}

// unitsAtOnce is how many units one transaction reads.
const unitsAtOnce = 1000

func (l loader) inBatches(ctx context.Context, key string, ids []string, read func(tx Tx, characterID string, some []string) error) error {
	scope := scopeOf(key)
	for some := range slices.Chunk(ids, unitsAtOnce) {
		if err := l.store.View(ctx, scope.UserID, func(tx Tx) error { return read(tx, scope.CharacterID, some) }); err != nil {
			return err
		}
	}
	return nil
}
