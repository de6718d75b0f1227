package extract

import (
	"nodest/memory"
	"nodest/memory/lang"
)

// byRules finds statements without a model, in Chinese and English: what users say of
// themselves in plain first-person sentences, and what the character promises. Questions,
// quotations, conditions, hearsay, jokes and played scenes give none.
func (w window) byRules() []candidate {
	var out []candidate
	all := w.all()
	lines := memory.Lines(all)
	for i, m := range all {
		for _, f := range w.Names.StatementsAt(lines, i) {
			c := candidate{
				Text: f.Text, Subject: f.Subject, Kind: f.Kind, Importance: f.Importance, Origin: memory.ByRule,
				Corrects: lang.Corrects(f.Text, lines[i:i+1]),
			}
			c.source([]memory.Message{m})
			c.date("", []memory.Message{{Role: m.Role, Text: f.Text}})
			out = append(out, c)
		}
	}
	return out
}
