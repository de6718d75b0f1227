package memory

import (
	"context"
	"fmt"
	"slices"

	"nodest/memory/lang"
	"nodest/memory/recall"
)

// branch says which units count for one question, and remembers what it has read for it.
type branch struct {
	store               Store
	userID, characterID string
	here                *Place
	only                string // conversation; "" = all

	versions map[string][]Memory // versions of the facts read so far, oldest first, by root
	purged   bool                // facts of the scope were purged, which texts may repeat
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
	if b.purged, _, err = tx.Gists(b.characterID, nil); err != nil {
		return fmt.Errorf("read whether something was purged: %w", err)
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

// Ended returns earlier values of the facts read so far, and what was purged that has one of some keys.
func (b *branch) Ended(ctx context.Context, keys func() []string) (ended []recall.Ended, err error) {
	for _, versions := range b.versions {
		ended = append(ended, b.endedOf(versions)...)
	}
	if !b.purged {
		return ended, nil
	}
	err = b.store.View(ctx, b.userID, func(tx Tx) error {
		_, stones, err := tx.Gists(b.characterID, keys())
		for _, t := range stones {
			ended = append(ended, recall.Ended{Gist: *t.Gist, At: t.CreatedAt, Purged: true})
		}
		return err
	})
	return ended, err
}

// endedOf returns the values of a fact that do not count, unless the one that counts says the same.
func (b *branch) endedOf(versions []Memory) (all []recall.Ended) {
	if len(versions) == 0 {
		return nil
	}
	now := Current(versions, b.shown)
	if now == nil && !ended(versions, b.shown) {
		return nil // no shown text supports it, or ends it
	}
	for i := range versions {
		m := &versions[i]
		at := m.UpdatedAt
		if i+1 < len(versions) {
			at = versions[i+1].CreatedAt
		}
		e := recall.Ended{Gist: lang.GistOf(m.Text, m.Subject), At: at}
		switch {
		case now == nil:
		case m.Version >= now.Version || lang.HoldsWords(now.Text, m.Text) && !lang.Differ(now.Text, m.Text):
			continue
		default:
			for _, source := range now.Evidence {
				e.Now = append(e.Now, source.RevisionID)
			}
		}
		all = append(all, e)
	}
	return all
}
