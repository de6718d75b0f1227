package parse

import "strings"

// isBook reports whether a value is a world book: entries with keys and content, in a list or
// by their number.
func isBook(v value) bool {
	entries := v.get("entries")
	if len(entries.members) == 0 {
		return false
	}
	for _, e := range entries.members {
		if !e.has("content") || !e.has("key") && !e.has("keys") {
			return false
		}
	}
	return true
}

// isCard reports whether a value is a character card, of any version.
func isCard(v value) bool {
	if strings.HasPrefix(v.get("spec").scalar, "chara_card_") {
		return v.get("data").object
	}
	return v.has("name") && v.has("first_mes") && v.has("description")
}

// book writes a world book with a unit for each entry.
func (w *pathWriter) book(v value) {
	name := v.get("name").scalar
	if w.b.title == "" {
		w.b.title = name
	}
	for _, m := range v.members {
		if !m.object && !m.list && m.name != "entries" {
			w.line(m.name, m.scalar)
		}
	}
	for i, e := range v.get("entries").members {
		if w.b.full || i%256 == 0 && w.p.ctx.Err() != nil {
			return
		}
		w.bookEntry(e.value)
	}
}

func (w *pathWriter) bookEntry(e value) {
	keys := append(texts(e, "key", "keys"), texts(e, "keysecondary", "secondary_keys")...)
	title := e.get("comment").scalar
	if title == "" {
		title = e.get("name").scalar
	}
	if title == "" && len(keys) > 0 {
		title = keys[0]
	}
	w.b.blank()
	start := w.b.n
	w.b.heading(1, title, start)
	w.line("uid", e.get("uid").scalar)
	w.line("key", strings.Join(keys, ", "))
	w.line("comment", e.get("comment").scalar)
	w.line("content", e.get("content").scalar)
	w.b.unit(Unit{Kind: "entry", Start: start, Title: title})
}

// texts returns the strings of the first member that is there; a string is a list of one.
func texts(v value, names ...string) []string {
	for _, name := range names {
		m := v.get(name)
		if m.scalar != "" {
			return []string{m.scalar}
		}
		var out []string
		for _, e := range m.members {
			if e.scalar != "" {
				out = append(out, e.scalar)
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

// card writes a character card with a unit for each field of text, and its book.
func (w *pathWriter) card(v value) {
	if data := v.get("data"); data.object {
		v = data
	}
	w.b.title = v.get("name").scalar
	for _, m := range v.members {
		switch {
		case m.name == "character_book" || m.name == "extensions":
		case m.scalar != "" || len(m.members) > 0:
			w.b.blank()
			w.entry(m.name, m.name, m.value)
		}
	}
	if book := v.get("character_book"); isBook(book) {
		w.b.blank()
		w.book(book)
	}
}
