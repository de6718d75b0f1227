package character

import (
	"encoding/json"
	"fmt"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Lint examines a file for what will not work as its author meant it: a card, a
// world book, a preset or regex scripts. The warnings of an import are among the
// findings. Nothing is stored.
//
// Errors: those of the import of such a file; those of room.
func Lint(data []byte, filename string, room card.Room) ([]card.Warning, error) {
	ch, err := lintable(data, filename, room)
	if err != nil {
		return nil, err
	}
	docs, err := viewsOf(ch)
	if err != nil {
		return nil, err
	}
	findings := framework.Lint(*docs)
	if docs.Book != nil && docs.Dialect == card.SillyTavern {
		findings = append(findings, ofScan(docs, findings)...)
	}
	return append(append([]card.Warning{}, ch.Warnings...), bounded(findings)...), nil
}

// ofScan examines a book by the rules of the world-info scan, with the settings that a character
// begins with. It leaves out the places that told already has a finding for.
func ofScan(docs *framework.Documents, told []card.Warning) (more []card.Warning) {
	known := map[string]bool{}
	for _, w := range told {
		known[w.Path] = true
	}
	for _, w := range worldinfo.Lint(docs.Book.Entries, worldinfo.DefaultSettings(), 0) {
		if docs.Card != nil {
			w.Path = "worldBook." + w.Path
		}
		if !known[w.Path] {
			more = append(more, w)
		}
	}
	return more
}

// maxAlike is how many findings of one code in one document are told one by one.
const maxAlike = 5

// bounded joins what is left of many findings of one code in one document.
func bounded(findings []card.Warning) []card.Warning {
	type group struct{ code, document string }
	groupOf := func(w card.Warning) group {
		document, _, _ := strings.Cut(w.Path, ".")
		document, _, _ = strings.Cut(document, "[")
		return group{w.Code, document}
	}
	all, told := map[group]int{}, map[group]int{}
	for _, w := range findings {
		all[groupOf(w)]++
	}
	list := findings[:0]
	for _, w := range findings {
		g := groupOf(w)
		told[g]++
		switch more := all[g] - maxAlike; {
		case more <= 1, told[g] < maxAlike:
		case told[g] > maxAlike:
			continue
		default:
			w.Detail += fmt.Sprintf("; %d more like this", more)
		}
		list = append(list, w)
	}
	return list
}

// lintable reads a file as the documents of a character; any other file than a card
// has one of them.
func lintable(data []byte, filename string, room card.Room) (*card.Character, error) {
	kind := card.Detect(data)
	switch kind {
	case card.KindChat, card.KindSave, card.KindMemories:
		return nil, fault.New(fault.InvalidImport, "a %s file cannot be linted", kind)
	}
	read := fileReaders[ResourceKind(kind)]
	if read == nil || kind == card.KindPersona { // which is also a card that has little
		ch, err := card.Import(data, filename, card.Limits{Room: room})
		if err != nil {
			return nil, err
		}
		scripts, err := card.ScriptsAsOfCard(ch.RegexScripts, ch.Dialect) // as the character's group will hold them
		ch.RegexScripts = op.MustJSON(scripts)
		return ch, err
	}
	res, err := read(data, filename, card.Limits{})
	if err != nil {
		return nil, err
	}
	ch := &card.Character{Dialect: res.Dialect, Warnings: res.Warnings}
	*map[card.Kind]*json.RawMessage{
		card.KindWorldBook: &ch.WorldBook, card.KindPreset: &ch.Preset, card.KindRegex: &ch.RegexScripts,
	}[kind] = res.Doc
	return ch, nil
}

func viewsOf(ch *card.Character) (*framework.Documents, error) {
	views := &framework.Documents{Dialect: ch.Dialect}
	if !op.IsNull(ch.RoleCard) {
		role, err := card.ParseRoleCard(ch.RoleCard)
		if err != nil {
			return nil, err
		}
		views.Card = &role
	}
	if !op.IsNull(ch.WorldBook) {
		book, err := card.ParseWorldBook(ch.WorldBook, ch.Dialect)
		if err != nil {
			return nil, err
		}
		views.Book = &book
	}
	if !op.IsNull(ch.Preset) {
		preset, err := card.ParsePreset(ch.Preset)
		if err != nil {
			return nil, err
		}
		views.Preset = &preset
	}
	var err error
	if views.Note, err = card.ParseAuthorNote(ch.AuthorNote); err != nil {
		return nil, err
	}
	views.Scripts, err = card.ParseRegexScripts(ch.RegexScripts)
	return views, err
}
