package nodest

// preview is m.Preview, nil for no message.
func preview(m *Message) *Preview {
	if m == nil {
		return nil
	}
	return m.Preview()
}
