package memory

// counting tells for each of items, versions of facts, whether it counts where the
// conversations stand now: a search finds it, and a prompt may have it. It does not
// when what it rests on is shown nowhere, when another version counts there, and when
// it was retired.
func counting(tx Tx, characterID string, items []Memory) ([]bool, error) {
	units := make([]*Unit, len(items))
	for i := range items {
		units[i] = &Unit{ID: items[i].ID, Layer: Fact, Root: items[i].RootID}
	}
	c := newCounter(nil, "", &Ask{CharacterID: characterID}, &Scene{})
	if err := c.load(tx, units); err != nil {
		return nil, err
	}
	counts := make([]bool, len(items))
	for i, u := range units {
		m := c.current(u)
		counts[i] = m != nil && m.ID == u.ID
	}
	return counts, nil
}
