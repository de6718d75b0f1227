package chat

import "slices"

// withoutTexts is the message without what its revisions have: it only names them. nil
// stays nil.
func (m *Message) withoutTexts() *Message {
	if m == nil {
		return nil
	}
	bare := *m
	bare.Swipes = slices.Clone(m.Swipes)
	for i, s := range bare.Swipes {
		if s.RevisionID != "" {
			bare.Swipes[i] = Swipe{ID: s.ID, RevisionID: s.RevisionID, Rev: s.Rev, Deleted: s.Deleted, CreatedAt: s.CreatedAt}
		}
	}
	return &bare
}

// fillTexts undoes withoutTexts.
func fillTexts(tx Tx, messages ...*Message) error {
	var bare []*Swipe
	var ids []string
	for _, m := range messages {
		for i := range m.swipes() {
			if s := &m.Swipes[i]; s.RevisionID != "" {
				bare, ids = append(bare, s), append(ids, s.RevisionID)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	written, err := tx.Written(ids)
	if err != nil {
		return err
	}
	for _, s := range bare {
		full := *written[s.RevisionID]
		full.Rev, full.Deleted, full.CreatedAt = s.Rev, s.Deleted, s.CreatedAt
		*s = full
	}
	return nil
}

// swipes are those of m, none of nil.
func (m *Message) swipes() []Swipe {
	if m == nil {
		return nil
	}
	return m.Swipes
}
