package framework

import "nodest/llm"

// BookEntry says what became of a world-book entry in a prompt.
type BookEntry struct {
	Source   Source   `json:"source"`
	ID       string   `json:"id"` // as in Entry
	Name     string   `json:"name"`
	Fires    bool     `json:"fires"`            // it is in the prompt
	Why      string   `json:"why,omitempty"`    // it is, as in Entry
	Key      string   `json:"key,omitempty"`    // the key that fired, as written
	Reason   string   `json:"reason,omitempty"` // it is not, as in Dropped
	Position int      `json:"position"`
	Depth    *int     `json:"depth,omitempty"` // its place in the chat
	Order    float64  `json:"order"`
	Role     llm.Role `json:"role"`
	Tokens   int      `json:"tokens,omitempty"` // where they were counted
}

// Books reports on every entry of the world books in c: those that are in p, which was
// built from c, in the order of p, and then the others in the order of the books.
func (c *Compiled) Books(p *Prompt) []BookEntry {
	type name struct {
		source Source
		id     string
	}
	items := make(map[name]*item, len(c.books))
	for _, it := range c.books {
		items[name{it.source, it.id}] = it
	}
	reasons := map[name]Dropped{}
	for _, d := range p.Dropped {
		reasons[name{d.Source, d.ID}] = d
	}
	list := make([]BookEntry, 0, len(c.books))
	for _, e := range p.Entries {
		n := name{e.Source, e.ID}
		it := items[n]
		if it == nil {
			continue
		}
		delete(items, n)
		list = append(list, BookEntry{
			Source: e.Source, ID: e.ID, Name: e.Name, Fires: true, Why: e.Why, Key: e.Key,
			Position: it.position, Depth: e.Depth, Order: it.order, Role: e.Role, Tokens: e.Tokens,
		})
	}
	for _, it := range c.books {
		n := name{it.source, it.id}
		if items[n] == nil {
			continue
		}
		e := BookEntry{
			Source: it.source, ID: it.id, Name: it.name, Reason: reasons[n].Reason,
			Position: it.position, Order: it.order, Role: roleOf(it.role), Tokens: reasons[n].Tokens,
		}
		if it.position == atDepth {
			e.Depth = &it.depth
		}
		list = append(list, e)
	}
	return list
}
