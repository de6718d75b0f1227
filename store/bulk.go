package store

// bulk gathers the rows of many messages, so that they are stored with few
// statements.
type bulk struct {
	messages  []*messageRow
	swipes    []*swipeRow
	revisions []*revisionRow
	states    []*messageStateRow
	texts     []*textRow
}

func (t *tx) putBulk(b *bulk) error {
	if err := t.Insert("messages", b.messages); err != nil {
		return err
	}
	if err := t.Analyze("messages"); err != nil {
		return err
	}
	if err := t.Insert("revisions", b.revisions); err != nil {
		return err
	}
	if err := t.Insert("swipes", b.swipes); err != nil {
		return err
	}
	t.texts = append(t.texts, b.texts...)
	return t.Insert("message_states", b.states)
}
