package memory

import (
	"slices"
	"strings"

	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/memory/lang"
)

// Action is what a bulk operation does to memories.
type Action string

const (
	BulkRetire  Action = "retire"
	BulkRestore Action = "restore"
	BulkPin     Action = "pin"
	BulkUnpin   Action = "unpin"
	BulkLock    Action = "lock"
	BulkUnlock  Action = "unlock"
	BulkPurge   Action = "purge"
)

// marksOf are what actions write. BulkPurge writes nothing.
var marksOf = map[Action]Marks{
	BulkRetire: {Status: Retired}, BulkRestore: {Status: Active},
	BulkPin: {Pinned: new(true)}, BulkUnpin: {Pinned: new(false)}, BulkLock: {Locked: new(true)}, BulkUnlock: {Locked: new(false)},
}

const (
	maxBulk   = 5000
	maxNamed  = 200 // ids
	bulkPiece = 200 // in one transaction
)

// Bulk is one action on all memories that a filter selects.
type Bulk struct {
	Action Action    `json:"action"`
	Filter Selection `json:"filter"`
	DryRun bool      `json:"dryRun,omitempty"`
}

// Selection selects memories by their newest version. Each member narrows it; at least one
// besides Status, or All, is required.
type Selection struct {
	IDs          []string      `json:"ids,omitempty"` // any of their versions; all must be there; nil: not by ids
	Kind         *lang.Kind    `json:"kind,omitempty"`
	Subject      *lang.Subject `json:"subject,omitempty"`
	Conversation *string       `json:"conversation,omitempty"` // where it was learned
	Pinned       *bool         `json:"pinned,omitempty"`
	Query        *string       `json:"q,omitempty"` // every word of it, as a search knows words
	All          bool          `json:"all,omitempty"`
	// Status is Active, Retired or AnyStatus. Without it: any with IDs, retired for
	// BulkRestore, else active.
	Status Status `json:"status,omitempty"`
}

// Check returns fault.Invalid with the invalid fields.
func (b *Bulk) Check() error {
	f := &b.Filter
	var c op.Checks
	c.That(b.Action == BulkPurge || marksOf[b.Action] != Marks{}, "action", "value", "must be retire, restore, pin, unpin, lock, unlock or purge")
	if f.Kind != nil {
		op.OneOf(&c, "filter.kind", *f.Kind, lang.Kinds)
	}
	if f.Subject != nil {
		op.OneOf(&c, "filter.subject", *f.Subject, lang.Subjects)
	}
	c.That(f.Conversation == nil || *f.Conversation != "", "filter.conversation", "value", "must not be empty")
	switch f.Status {
	case "", Active, Retired, AnyStatus:
	default:
		c.That(false, "filter.status", "value", "must be active, retired or any")
	}
	c.That(len(f.IDs) <= maxNamed, "filter.ids", "range", "must have at most %d ids", maxNamed)
	c.That(f.IDs == nil || len(f.IDs) > 0, "filter.ids", "range", "must have at least one id")
	c.That(f.Query == nil || index.Join(*f.Query) != "", "filter.q", "value", "contains no searchable word")
	narrow := f.IDs != nil || f.Kind != nil || f.Subject != nil || f.Conversation != nil || f.Pinned != nil || f.Query != nil
	c.That(narrow || f.All, "filter.all", "required", "must be true in a filter without other members")
	c.That(!narrow || !f.All, "filter.all", "value", "can only be combined with status")
	return c.Err()
}

func orEmpty[T ~string](p *T) (t T) {
	if p != nil {
		t = *p
	}
	return t
}

// BulkDone is the result of a Bulk, or of its dry run.
type BulkDone struct {
	Action    Action   `json:"action"`
	DryRun    bool     `json:"dryRun"`
	Matched   int      `json:"matched"`   // memories that the filter selects
	Changed   int      `json:"changed"`   // memories that were changed; the others were as they should be already
	IDs       []string `json:"ids"`       // the newest versions of those that were changed
	Conflicts []string `json:"conflicts"` // those that cannot be restored: another memory says the same
	Truncated bool     `json:"truncated"` // there are more than maxBulk to be changed: ask again
}

// selectBulk returns the roots of the memories that b has to change, newest first and at most
// maxBulk, and a result that counts what the filter selects.
//
// Errors: NotFound, also for an unknown id.
func selectBulk(tx Tx, characterID string, b *Bulk) (roots []string, done *BulkDone, err error) {
	done = &BulkDone{Action: b.Action, DryRun: b.DryRun, IDs: []string{}, Conflicts: []string{}}
	named, err := b.named(tx, characterID)
	if err != nil {
		return nil, nil, err
	}
	words := b.words()
	for some := range slices.Chunk(named, PageOfFacts) {
		versions, err := tx.FactVersions(characterID, some...)
		if err != nil {
			return nil, nil, err
		}
		groups := byRoot(versions)
		for _, root := range some {
			m := &groups[root][len(groups[root])-1]
			if !b.fits(m, words) {
				continue
			}
			done.Matched++
			switch {
			case !b.changes(m):
			case len(roots) == maxBulk:
				done.Truncated = true
			default:
				roots = append(roots, root)
			}
		}
	}
	return roots, done, nil
}

// named returns the roots of the memories with the ids of the filter, else of those with a
// version that the filter may select. That may be an older one, retired on another branch.
func (b *Bulk) named(tx Tx, characterID string) (roots []string, err error) {
	known := map[string]bool{}
	add := func(m *Memory) bool {
		if !known[m.RootID] && (m.Status != Superseded || len(b.Filter.IDs) > 0) {
			known[m.RootID] = true
			roots = append(roots, m.RootID)
		}
		return true
	}
	if len(b.Filter.IDs) == 0 {
		err = EachFact(tx, characterID, b.listed(), add)
		return roots, err
	}
	for _, id := range b.Filter.IDs {
		m, err := tx.Fact(characterID, id)
		if err != nil {
			return nil, err
		}
		add(m)
	}
	return roots, nil
}

func (b *Bulk) listed() Filter {
	f := &b.Filter
	return Filter{Status: b.status(), Kind: orEmpty(f.Kind), Subject: orEmpty(f.Subject), ConversationID: orEmpty(f.Conversation), Pinned: f.Pinned}
}

func (b *Bulk) status() Status {
	switch {
	case b.Filter.Status != "":
		return b.Filter.Status
	case len(b.Filter.IDs) > 0:
		return AnyStatus
	case b.Action == BulkRestore:
		return Retired
	}
	return Active
}

func (b *Bulk) words() []string { return strings.Fields(index.Join(orEmpty(b.Filter.Query))) }

// fits reports whether the filter selects the newest version of a memory, ids apart.
func (b *Bulk) fits(m *Memory, words []string) bool {
	f := &b.Filter
	status := b.status()
	if status != AnyStatus && m.Status != status || f.Kind != nil && m.Kind != *f.Kind || f.Subject != nil && m.Subject != *f.Subject ||
		f.Conversation != nil && m.ConversationID != *f.Conversation || f.Pinned != nil && m.Pinned != *f.Pinned {
		return false
	}
	if len(words) == 0 {
		return true
	}
	has := strings.Fields(index.Join(m.Text))
	return !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(has, word) })
}

func (b *Bulk) changes(m *Memory) bool {
	switch marks := marksOf[b.Action]; {
	case b.Action == BulkRetire:
		return m.Status != Retired || len(m.EndedBy) > 0
	case b.Action == BulkRestore:
		return m.Status == Retired
	case marks.Pinned != nil:
		return m.Pinned != *marks.Pinned
	case marks.Locked != nil:
		return m.Locked != *marks.Locked
	}
	return true
}

// applyBulk applies b to memories that the filter still selects, and adds the result to so.
func applyBulk(tx Tx, by, characterID string, b *Bulk, so *BulkDone, roots []string) (*BulkDone, error) {
	if err := tx.LockMemory(characterID); err != nil {
		return nil, err
	}
	plan, err := b.plan(tx, characterID, so, roots)
	if err != nil || len(plan.newest) == 0 {
		return plan.done, err
	}
	op, ids, change := WroteUpdated, plan.newest, plan.versions
	switch b.Action {
	case BulkPurge:
		op, ids = opPurged, plan.roots
	case BulkRetire:
		op, change = WroteRetired, plan.newest
	case BulkRestore:
		op, change = opRestored, plan.newest
	}
	if b.Action == BulkPurge {
		err = bury(tx, characterID, plan.roots)
	} else {
		err = tx.MarkFacts(characterID, change, marksOf[b.Action])
	}
	if err != nil {
		return nil, err
	}
	return plan.done, EmitWritten(tx, by, characterID, op, ids...)
}

type bulkPlan struct {
	roots, newest []string
	versions      []string // all of them
	done          *BulkDone
}

// plan reads the memories again and leaves out those that need no change.
func (b *Bulk) plan(tx Tx, characterID string, so *BulkDone, roots []string) (p bulkPlan, err error) {
	all, err := tx.FactVersions(characterID, roots...)
	if err != nil {
		return p, err
	}
	says := map[string]bool{}
	if b.Action == BulkRestore {
		hashes := make([]string, len(all))
		for i := range all {
			hashes[i] = HashOf(&all[i])
		}
		if says, err = said(tx, characterID, hashes, func(s Status) bool { return s == Active }); err != nil {
			return p, err
		}
	}
	done := *so
	done.IDs, done.Conflicts = slices.Clone(so.IDs), slices.Clone(so.Conflicts)
	words := b.words()
	groups := byRoot(all)
	for _, root := range roots {
		versions := groups[root]
		if len(versions) == 0 { // it has gone meanwhile
			continue
		}
		m := &versions[len(versions)-1]
		switch {
		case !b.fits(m, words) || !b.changes(m):
			continue
		case b.Action == BulkRestore && says[HashOf(m)]:
			done.Conflicts = append(done.Conflicts, m.ID)
			continue
		}
		says[HashOf(m)] = true
		p.roots, p.newest = append(p.roots, m.RootID), append(p.newest, m.ID)
		for i := range versions {
			p.versions = append(p.versions, versions[i].ID)
		}
	}
	done.IDs = append(done.IDs, p.newest...)
	done.Changed = len(done.IDs)
	p.done = &done
	return p, nil
}

// said returns which of some content hashes a scope has with a status that counts.
func said(tx Tx, characterID string, hashes []string, counts func(Status) bool) (map[string]bool, error) {
	known, err := tx.Known(characterID, nil, once(hashes))
	there := map[string]bool{}
	for _, k := range known {
		there[k.Hash] = there[k.Hash] || counts(k.Status)
	}
	return there, err
}

func byRoot(versions []Memory) map[string][]Memory {
	groups := map[string][]Memory{}
	for _, m := range versions {
		groups[m.RootID] = append(groups[m.RootID], m)
	}
	return groups
}
