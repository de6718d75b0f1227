package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
)

func TestManyFactsAreStoredInOneCall(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		taken := e.learn(character, fact("User drinks tea"))
		var many []*memory.Memory
		for i := range 600 {
			many = append(many, fact(fmt.Sprintf("User knows the number %d", i)))
		}
		older := fact("User lives in Paris")
		newer := fact("User lives in Lyon")
		older.Status, older.SupersededBy = memory.Superseded, newer.ID
		newer.RootID, newer.Version = older.ID, 2
		again := fact("user drinks TEA!")
		e.update(func(tx nodest.Tx) error {
			for name, wrong := range map[string][]*memory.Memory{
				"an existing text": {older, newer, again}, "the same text twice": {fact("User has a cat"), fact("User has a CAT")},
			} {
				if err := tx.Memory.InsertFacts(character, wrong...); !fault.Is(err, fault.Conflict) {
					e.Errorf("%s: %v, want conflict", name, err)
				}
			}
			again.Status = memory.Retired                                                 // a retired fact may repeat an active one
			return tx.Memory.InsertFacts(character, append(many, older, newer, again)...) // the transaction remains usable
		})
		e.view(func(tx nodest.Tx) error {
			versions, err := tx.Memory.FactVersions(character, older.ID)
			e.equal("versions", versions, []memory.Memory{*older, *newer})
			one, err2 := tx.Memory.Fact(character, many[599].ID)
			e.equal("one of many", []any{*one, err, err2}, []any{*many[599], nil, nil})
			return nil
		})
		units := e.units(character)
		e.equal("units", len(units), 603) // facts that the user retired are not units
		e.equal("terms", slices.ContainsFunc(units, func(u recall.Unit) bool {
			return u.ID == newer.ID && u.Terms == index.Join(newer.Text)
		}), true)

		e.view(func(tx nodest.Tx) error {
			known, err := tx.Memory.Known(character, []string{older.ID, id()}, []string{taken.ContentHash, lang.ContentHash("User sails")})
			slices.SortFunc(known, func(a, b memory.Known) int { return len(a.Status) - len(b.Status) })
			e.equal("known", known, []memory.Known{
				{ID: taken.ID, Hash: taken.ContentHash, Status: memory.Active}, {ID: again.ID, Hash: taken.ContentHash, Status: memory.Retired},
				{ID: older.ID, Hash: older.ContentHash, Status: memory.Superseded},
			})
			return err
		})
		e.update(func(tx nodest.Tx) error {
			return tx.Memory.PutTombstone(character, memory.Tombstone{ContentHash: lang.ContentHash("User sails")})
		})
		e.view(func(tx nodest.Tx) error {
			known, err := tx.Memory.Known(character, nil, []string{lang.ContentHash("User sails")})
			e.equal("forgotten", known, []memory.Known{{Hash: lang.ContentHash("User sails"), Status: memory.Deleted}})
			return err
		})
	})
}

func TestManyFactsAreMarkedInOneCall(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		m := e.say(e.chat(character), "", "I drink tea")
		a, b, other := e.learn(character, fact("User drinks tea")), e.learn(character, fact("User drinks milk")), e.learn(character, fact("User sails"))
		e.update(func(tx nodest.Tx) error {
			b.Status, b.EndedBy, b.Locked = memory.Retired, []memory.Evidence{evidenceOf(m)}, true
			return tx.Memory.UpdateFact(character, b)
		})
		e.clock.advance(time.Minute)
		yes, no := true, false
		ids := []string{a.ID, b.ID, id()}
		for _, step := range []struct {
			marks memory.Marks
			want  string
		}{
			{memory.Marks{Pinned: &yes}, "active pinned, retired pinned locked by 1"},
			{memory.Marks{Locked: &yes, Pinned: &no}, "active locked, retired locked by 1"},
			{memory.Marks{Status: memory.Retired}, "retired locked, retired locked"},
			{memory.Marks{Status: memory.Active, Locked: &no}, "active, active"},
		} {
			e.update(func(tx nodest.Tx) error { return tx.Memory.MarkFacts(character, ids, step.marks) })
			got := ""
			e.view(func(tx nodest.Tx) error {
				for _, id := range ids[:2] {
					m, err := tx.Memory.Fact(character, id)
					if err != nil {
						return err
					}
					got += ", " + string(m.Status)
					if m.Pinned {
						got += " pinned"
					}
					if m.Locked {
						got += " locked"
					}
					if len(m.EndedBy) > 0 {
						got += fmt.Sprintf(" by %d", len(m.EndedBy))
					}
					e.equal("changed at", m.UpdatedAt, start.Add(time.Minute))
				}
				left, err := tx.Memory.Fact(character, other.ID)
				e.equal("another", left, other)
				return err
			})
			e.equal(fmt.Sprintf("%+v", step.marks), got[2:], step.want)
		}
		e.equal("units", len(e.units(character)), 4)
	})
}
