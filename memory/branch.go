package memory

import (
	"context"
	"fmt"
	"slices"

	"nodest/memory/recall"
)

// branch says which units count for one question, and remembers what it has read for it.
type branch struct {
	store               Store
	userID, characterID string
	here                *Place
	only                string // conversation; "" = all

	versions map[string][]Memory // versions of the facts read so far, oldest first, by root
	seen     map[string]bool     // texts asked for so far, by revision; true = the text is shown
}

func newBranch(store Store, userID string, a *Ask, only string) *branch {
	b := &branch{
		store: store, userID: userID, characterID: a.CharacterID, only: only,
		versions: map[string][]Memory{}, seen: map[string]bool{},
	}
	if a.Here.ConversationID != "" {
		b.here = &a.Here
	}
	return b
}

// Counts reports for each unit whether it is shown or, for a fact, counts there.
func (b *branch) Counts(ctx context.Context, units []*recall.Unit) ([]bool, error) {
	if err := b.read(ctx, units); err != nil {
		return nil, err
	}
	return b.countsOf(units), nil
}

// countsOf is Counts of units that were read.
func (b *branch) countsOf(units []*recall.Unit) []bool {
	counts := make([]bool, len(units))
	for i, u := range units {
		if u.Layer == recall.Exchange {
			counts[i] = b.seen[u.ID]
		} else if m := b.current(u); m != nil {
			counts[i] = m.ID == u.ID
		}
	}
	return counts
}

// current is the version of a fact that counts; nil = none.
func (b *branch) current(u *recall.Unit) *Memory { return Current(b.versions[u.Root], b.shown) }

// Over returns the facts, by id, that have ended: superseded or retired by shown texts, or by
// the user. The value is the version that counts instead; "" = none.
func (b *branch) Over(ctx context.Context, facts []*recall.Unit) (map[string]string, error) {
	if err := b.read(ctx, facts); err != nil {
		return nil, err
	}
	over := map[string]string{}
	for _, u := range facts {
		all := b.versions[u.Root]
		at := slices.IndexFunc(all, func(m Memory) bool { return m.ID == u.ID })
		if at < 0 {
			continue
		}
		if now := b.current(u); now == nil {
			if ended(all[at:], b.shown) {
				over[u.ID] = ""
			}
		} else if now.Version > all[at].Version {
			over[u.ID] = now.ID
		}
	}
	return over, nil
}

// ended reports whether the last version was retired by the user, or any by shown texts.
func ended(versions []Memory, shown func(Evidence) bool) bool {
	if last := &versions[len(versions)-1]; last.Status == Retired && len(last.EndedBy) == 0 {
		return true
	}
	return slices.ContainsFunc(versions, func(m Memory) bool {
		return m.Status == Retired && len(m.EndedBy) > 0 && holds(m.EndedBy, shown)
	})
}

// read loads, in one transaction, what Counts and Over need to know of units.
func (b *branch) read(ctx context.Context, units []*recall.Unit) error {
	if len(b.newRoots(units)) == 0 && len(b.newTexts(units)) == 0 {
		return nil
	}
	return b.store.View(ctx, b.userID, func(tx Tx) error { return b.load(tx, units) })
}

func (b *branch) load(tx Tx, units []*recall.Unit) error {
	if roots := b.newRoots(units); len(roots) > 0 {
		all, err := tx.FactVersions(b.characterID, roots...)
		if err != nil {
			return fmt.Errorf("read the versions of facts: %w", err)
		}
		for _, root := range roots {
			b.versions[root] = nil
		}
		for _, m := range all {
			b.versions[m.RootID] = append(b.versions[m.RootID], m)
		}
	}
	texts := b.newTexts(units)
	shown, err := tx.Shown(b.here, texts)
	if err != nil {
		return fmt.Errorf("read which texts are shown: %w", err)
	}
	for i, e := range texts {
		b.seen[e.RevisionID] = shown[i]
	}
	return nil
}

func (b *branch) newRoots(units []*recall.Unit) (roots []string) {
	for _, u := range units {
		if _, known := b.versions[u.Root]; u.Layer == recall.Fact && !known && !slices.Contains(roots, u.Root) {
			roots = append(roots, u.Root)
		}
	}
	return roots
}

// newTexts are the texts, not asked for before, that support units and the versions read.
func (b *branch) newTexts(units []*recall.Unit) (texts []Evidence) {
	added := map[string]bool{}
	add := func(evidence []Evidence) {
		for _, e := range evidence {
			if _, known := b.seen[e.RevisionID]; !known && !added[e.RevisionID] && (b.only == "" || e.ConversationID == b.only) {
				added[e.RevisionID] = true
				texts = append(texts, e)
			}
		}
	}
	for _, u := range units {
		if u.Layer == recall.Exchange {
			add([]Evidence{{ConversationID: u.Conversation, MessageID: u.Message, RevisionID: u.ID, Seq: u.Order}})
			continue
		}
		for _, m := range b.versions[u.Root] {
			add(m.Evidence)
			add(m.EndedBy)
		}
	}
	return texts
}

// shown is false for texts of other conversations than b.only.
func (b *branch) shown(e Evidence) bool { return b.seen[e.RevisionID] }
