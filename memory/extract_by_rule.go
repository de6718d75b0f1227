package memory

// byRules finds statements without a model: what the user says of themselves in
// plain first-person sentences, and what the character promises, in Chinese and
// English. Questions, quotations, conditions, hearsay, jokes and played scenes give
// none.
func (w Window) byRules() []Candidate {
	var out []Candidate
	all := w.all()
	lines := Lines(all)
	for i, m := range all {
		for _, f := range w.Names.statementsAt(lines, i) {
			c := Candidate{
				Text: f.text, Subject: f.subject, Kind: f.kind, Importance: f.importance, Origin: ByRule,
				Corrects: corrects(f.text, lines[i:i+1]),
			}
			c.source([]Message{m})
			c.date("", []Message{{Role: m.Role, Text: f.text}})
			out = append(out, c)
		}
	}
	return out
}
