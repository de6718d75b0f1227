package memory

// counting reports for each version whether it counts with the branches that the conversations
// show now: searches find it, and prompts may contain it.
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
