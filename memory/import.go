package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"

	"nodest/internal/op"
)

// Imported is the result of an import.
type Imported struct {
	Created int          `json:"created"`
	Skipped int          `json:"skipped"` // known already, or deleted permanently by the user
	Failed  []FailedLine `json:"failed"`
	LeftOut []FailedLine `json:"leftOut,omitempty"` // the first line of each type that is not imported
}

// Size of the part of a file that one transaction stores: other writers must not wait long.
const (
	pieceLines = 250
	pieceBytes = 64 << 10
)

// maxSeen bounds SeenCount of a file.
const maxSeen = 1_000_000

// pieces splits parsed memories so that each piece can be imported by itself. Versions of one
// memory stay together; there is at least one piece.
func pieces(parsed []Memory) [][]Memory {
	pieces := [][]Memory{nil}
	lines, size := 0, 0
	for _, versions := range groupsOf(parsed) {
		if lines > 0 && (lines+len(versions) > pieceLines || size > pieceBytes) {
			pieces = append(pieces, nil)
			lines, size = 0, 0
		}
		last := &pieces[len(pieces)-1]
		*last = append(*last, versions...)
		lines += len(versions)
		for i := range versions {
			size += len(versions[i].Text)
		}
	}
	return pieces
}

// importPiece stores parsed memories, each memory and each text once: existing ones are
// skipped, so the same file can be imported again. What the user had forgotten stays forgotten.
// A memory keeps the evidence that this character's chats have. Ids are derived from user,
// character and line, so that they reveal nothing about others'.
func importPiece(tx Tx, by, characterID string, parsed []Memory) (*Imported, error) {
	if err := tx.LockMemory(characterID); err != nil {
		return nil, err
	}
	im := &importing{tx: tx, characterID: characterID, done: &Imported{Failed: []FailedLine{}}}
	if err := im.look(parsed); err != nil {
		return nil, err
	}
	for _, versions := range groupsOf(parsed) {
		im.take(versions)
	}
	if err := tx.InsertFacts(characterID, im.made...); err != nil {
		return nil, err
	}
	im.done.Created = len(im.made)
	return im.done, EmitWritten(tx, by, characterID, WroteAdded, im.added...)
}

type importing struct {
	tx          Tx
	characterID string
	words       map[string]string   // content hashes of versions that the scope has, by id
	has         map[Known]bool      // words with a status that the scope has, without ids
	texts       map[string]Evidence // texts of the file that the scope has, by revision
	made        []*Memory           // versions to be stored
	added       []string            // ids of the newest ones among them
	done        *Imported
}

// look reads what already exists of the file.
func (im *importing) look(parsed []Memory) error {
	var ids, hashes, revisions []string
	for i := range parsed {
		m := &parsed[i]
		hashes = append(hashes, m.ContentHash)
		if m.ID != "" {
			ids = append(ids, m.ID, im.idOf(m))
		}
		for _, e := range slices.Concat(m.Evidence, m.EndedBy) {
			revisions = append(revisions, e.RevisionID)
		}
	}
	known, err := im.tx.Known(im.characterID, once(ids), once(hashes))
	if err != nil {
		return err
	}
	im.words, im.has, im.texts = map[string]string{}, map[Known]bool{}, map[string]Evidence{}
	for _, k := range known {
		im.has[Known{Hash: k.Hash, Status: k.Status}] = true
		if k.Status != Deleted {
			im.words[k.ID] = k.Hash
		}
	}
	for some := range slices.Chunk(once(revisions), PageOfFacts) {
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

// once returns the distinct words, sorted.
func once(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// groupsOf groups the versions of a memory, oldest first; a line without ids is a group.
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

// take adds the versions of one memory that do not exist yet.
func (im *importing) take(versions []Memory) {
	var fresh []*Memory
	for _, m := range versions {
		fileID := m.ID
		m.ID = im.idOf(&m)
		here := map[string]bool{im.words[fileID]: true, im.words[m.ID]: true}
		if here[m.ContentHash] || im.says(&m, Deleted) || slices.ContainsFunc(fresh, func(o *Memory) bool { return o.ID == m.ID }) {
			im.done.Skipped++
			continue
		}
		fresh = append(fresh, &m)
	}
	if len(fresh) == 0 {
		return
	}
	newest := fresh[len(fresh)-1]
	same := newest.Status != Retired && im.says(newest, Active) || // a retired one may come beside one that counts
		versions[0].ID == "" && im.says(newest, Retired) // a plain line of what the user has set aside
	if cut := len(fresh) < len(versions) && newest.Status == Superseded; cut || same {
		im.done.Skipped += len(fresh) // its later form is known: an older version must not stand for it
		return
	}
	if newest.Status == Superseded {
		newest.Status = Active
	}
	for i := range fresh {
		im.make(fresh, i)
	}
	im.added = append(im.added, newest.ID)
}

// make completes one version of a memory.
func (im *importing) make(versions []*Memory, i int) {
	m := versions[i]
	m.RootID, m.Version, m.SupersededBy = versions[0].ID, i+1, ""
	if i+1 < len(versions) {
		m.Status, m.SupersededBy, m.EndedBy = Superseded, versions[i+1].ID, nil
	}
	m.Evidence, m.EndedBy = im.known(m.Evidence), im.known(m.EndedBy)
	m.ConversationID = ""
	if len(m.Evidence) > 0 {
		m.ConversationID = m.Evidence[0].ConversationID
	}
	m.SeenCount = min(m.SeenCount, maxSeen)
	now := im.tx.Now()
	for _, t := range []*time.Time{&m.CreatedAt, &m.UpdatedAt, &m.LastSeenAt} {
		if t.IsZero() || t.After(now) {
			*t = now
		}
	}
	im.words[m.ID] = m.ContentHash
	im.has[Known{Hash: m.ContentHash, Status: m.Status}] = true
	im.made = append(im.made, m)
}

// says reports whether the scope has the words of m with a status.
func (im *importing) says(m *Memory, status Status) bool {
	return im.has[Known{Hash: m.ContentHash, Status: status}]
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

// idOf derives the id of a line; without an id it is new. Ids sort by creation time.
func (im *importing) idOf(m *Memory) string {
	if m.ID == "" {
		return op.NewID()
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
