package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Imported says what became of an import.
type Imported struct {
	Created int          `json:"created"`
	Skipped int          `json:"skipped"` // known already, or forgotten by the user's wish
	Failed  []FailedLine `json:"failed"`
}

// Import stores what ParseImport has read, each memory and each text once: what is
// there is skipped, so the same file can come again. What the user had forgotten
// stays so. A memory rests on those of its texts that this character's chats have; it
// always counts when it has none. Ids are made anew, always the same ones for the
// same user, character and line, so that they say nothing of others'.
func Import(tx Tx, by, characterID string, parsed []Memory) (*Imported, error) {
	if err := tx.LockMemory(characterID); err != nil {
		return nil, err
	}
	im := &importing{tx: tx, characterID: characterID, done: &Imported{Failed: []FailedLine{}}}
	if err := im.look(parsed); err != nil {
		return nil, err
	}
	for _, versions := range groupsOf(parsed) {
		if err := im.take(versions); err != nil {
			return nil, err
		}
	}
	return im.done, tellWritten(tx, by, characterID, opAdded, im.added...)
}

// importing is one Import.
type importing struct {
	tx          Tx
	characterID string
	words       map[string]string   // of the scope's versions: their content hash by id
	active      map[string]bool     // content hashes
	forgotten   map[string]bool     // likewise
	texts       map[string]Evidence // of the file that the scope has, by revision
	added       []string
	done        *Imported
}

// look reads what is there.
func (im *importing) look(parsed []Memory) error {
	im.words, im.active, im.forgotten, im.texts = map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]Evidence{}
	err := eachFact(im.tx, im.characterID, Filter{Status: AnyStatus}, func(m *Memory) bool {
		im.words[m.ID] = hashOf(m)
		if m.Status == Active {
			im.active[hashOf(m)] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	tombstones, err := im.tx.Tombstones(im.characterID)
	if err != nil {
		return err
	}
	for _, t := range tombstones {
		im.forgotten[t.ContentHash] = true
	}
	var revisions []string
	for i := range parsed {
		for _, e := range slices.Concat(parsed[i].Evidence, parsed[i].EndedBy) {
			revisions = append(revisions, e.RevisionID)
		}
	}
	slices.Sort(revisions)
	for some := range slices.Chunk(slices.Compact(revisions), pageOfFacts) {
		texts, err := im.tx.SaidByID(im.characterID, some...)
		if err != nil {
			return err
		}
		for _, t := range texts {
			im.texts[t.RevisionID] = t.Evidence
		}
	}
	return nil
}

// groupsOf puts the versions of a memory together, oldest first; a line without ids
// stands alone.
func groupsOf(parsed []Memory) [][]Memory {
	var groups [][]Memory
	place := map[string]int{}
	for _, m := range parsed {
		at, known := place[m.RootID]
		if m.RootID == "" || !known {
			at = len(groups)
			place[m.RootID] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], m)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b Memory) int { return cmp.Compare(a.Version, b.Version) })
	}
	return groups
}

// take stores the versions of one memory, unless they are known.
func (im *importing) take(versions []Memory) error {
	var fresh []Memory
	for i := range versions {
		m := versions[i]
		fileID := m.ID
		m.ID = im.idOf(&m)
		here := map[string]bool{im.words[fileID]: true, im.words[m.ID]: true}
		if here[m.ContentHash] || im.forgotten[m.ContentHash] || slices.ContainsFunc(fresh, func(o Memory) bool { return o.ID == m.ID }) {
			im.done.Skipped++
			continue
		}
		fresh = append(fresh, m)
	}
	if len(fresh) == 0 {
		return nil
	}
	newest := &fresh[len(fresh)-1]
	if cut := len(fresh) < len(versions) && newest.Status == Superseded; cut || newest.Status != Retired && im.active[newest.ContentHash] {
		im.done.Skipped += len(fresh) // what it became is known: an older version must not stand for it
		return nil
	}
	if newest.Status == Superseded {
		newest.Status = Active
	}
	for i := range fresh {
		if err := im.store(fresh, i); err != nil {
			return err
		}
	}
	im.added = append(im.added, newest.ID)
	return nil
}

// store stores one version of a memory.
func (im *importing) store(versions []Memory, i int) error {
	m := &versions[i]
	m.RootID, m.Version, m.SupersededBy = versions[0].ID, i+1, ""
	if i+1 < len(versions) {
		m.Status, m.SupersededBy, m.EndedBy = Superseded, versions[i+1].ID, nil
	}
	m.Evidence, m.EndedBy = im.known(m.Evidence), im.known(m.EndedBy)
	m.ConversationID = ""
	if len(m.Evidence) > 0 {
		m.ConversationID = m.Evidence[0].ConversationID
	}
	now := im.tx.Now()
	for _, t := range []*time.Time{&m.CreatedAt, &m.UpdatedAt, &m.LastSeenAt} {
		if t.IsZero() || t.After(now) {
			*t = now
		}
	}
	if err := im.tx.InsertFact(im.characterID, m); err != nil {
		return err
	}
	im.words[m.ID] = m.ContentHash
	im.active[m.ContentHash] = im.active[m.ContentHash] || m.Status == Active
	im.done.Created++
	return nil
}

// known returns the sightings of which the scope has every text.
func (im *importing) known(evidence []Evidence) []Evidence {
	missing := map[int]bool{}
	for _, e := range evidence {
		there, ok := im.texts[e.RevisionID]
		missing[e.Sighting] = missing[e.Sighting] || !ok || there.ConversationID != e.ConversationID || there.MessageID != e.MessageID
	}
	kept := []Evidence{}
	for _, e := range evidence {
		if !missing[e.Sighting] {
			there := im.texts[e.RevisionID]
			there.Sighting = e.Sighting
			kept = append(kept, there)
		}
	}
	return kept
}

// idOf derives the id of a line; one without an id gets a new one. Ids sort by the
// time at which a memory was made.
func (im *importing) idOf(m *Memory) string {
	if m.ID == "" {
		return newID()
	}
	sum := sha256.Sum256([]byte(im.tx.UserID() + "\x00" + im.characterID + "\x00" + m.ID + "\x00" + m.ContentHash))
	id := uuid.UUID(sum[:16])
	var made [8]byte
	binary.BigEndian.PutUint64(made[:], uint64(max(0, m.CreatedAt.UnixMilli()))) //nolint:gosec // it is not negative
	copy(id[:6], made[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
