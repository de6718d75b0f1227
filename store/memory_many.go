package store

import (
	"slices"

	"nodest/fault"
	"nodest/index"
	"nodest/memory"
)

// InsertFacts stores many versions.
func (t *tx) InsertFacts(characterID string, facts []*memory.Memory) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := t.ownsCharacter(characterID); err != nil || len(facts) == 0 {
		return err
	}
	rows := make([]*factRow, len(facts))
	active := map[string]string{} // ids by the words
	for i, m := range facts {
		row, err := t.factRow(characterID, m)
		if err != nil {
			return err
		}
		row.Terms = text(index.Join(m.Text))
		rows[i] = row
		if m.Status != memory.Active {
			continue
		}
		if other := active[row.Hash]; other != "" {
			return errSaysTheSame(other)
		}
		active[row.Hash] = m.ID
	}
	if err := t.nobodySays(characterID, active); err != nil {
		return err
	}
	if err := insertAll(t, rows); err != nil {
		return err
	}
	n := t.news(characterID)
	for _, m := range facts {
		n.facts = append(n.facts, m.ID)
	}
	return nil
}

// nobodySays returns fault.Conflict when an active fact of the scope has one of these
// hashes. It asks before anything is written, because a statement that fails ends the
// transaction.
func (t *tx) nobodySays(characterID string, hashes map[string]string) error {
	all := make([]string, 0, len(hashes))
	for hash := range hashes {
		all = append(all, hash)
	}
	slices.Sort(all)
	for part := range slices.Chunk(all, 500) {
		in, which := among(part)
		var other string
		found, err := t.scan(t.raw("SELECT id FROM memories WHERE "+ofScope+" AND status = 'active' AND hash "+in+" LIMIT 1",
			text(t.userID), text(characterID), which), &other)
		if err != nil {
			return err
		}
		if found {
			return errSaysTheSame(other)
		}
	}
	return nil
}

func errSaysTheSame(id string) error {
	return fault.New(fault.Conflict, "another memory says the same thing").With("memoryId", id)
}

// MarkFacts changes versions.
func (t *tx) MarkFacts(characterID string, ids []string, marks memory.Marks) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := t.ownsCharacter(characterID); err != nil {
		return err
	}
	set, args := "updated_at = ?", []any{t.now}
	if marks.Pinned != nil {
		set, args = set+", is_pinned = ?", append(args, *marks.Pinned)
	}
	if marks.Locked != nil {
		set, args = set+", is_locked = ?", append(args, *marks.Locked)
	}
	if marks.Status != "" {
		set, args = set+", status = ?, superseded_by = '', ended_by = NULL", append(args, text(marks.Status))
	}
	for part := range slices.Chunk(ids, 500) {
		in, which := among(part)
		_, err := t.exec(t.raw("UPDATE memories SET "+set+" WHERE "+ofScope+" AND id "+in,
			slices.Concat(args, []any{text(t.userID), text(characterID), which})...))
		if err != nil {
			return err
		}
	}
	n := t.news(characterID)
	n.facts = append(n.facts, ids...)
	return nil
}

// Known looks facts and tombstones up.
func (t *tx) Known(characterID string, ids, hashes []string) ([]memory.Known, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	known := []memory.Known{}
	for _, look := range []struct {
		query string
		keys  []string
	}{
		{"SELECT id, hash, status FROM memories WHERE " + ofScope + " AND id ", ids},
		{"SELECT id, hash, status FROM memories WHERE " + ofScope + " AND hash ", hashes},
		{"SELECT '' AS id, hash, 'deleted' AS status FROM memory_tombstones WHERE " + ofScope + " AND hash ", hashes},
	} {
		for part := range slices.Chunk(look.keys, 500) {
			in, which := among(part)
			var rows []struct {
				ID     string
				Hash   string
				Status text
			}
			if _, err := t.scan(t.raw(look.query+in, text(t.userID), text(characterID), which), &rows); err != nil {
				return nil, err
			}
			for _, row := range rows {
				known = append(known, memory.Known{ID: row.ID, Hash: row.Hash, Status: memory.Status(row.Status)})
			}
		}
	}
	return known, nil
}
