package character

import (
	"nodest/card"
	"nodest/fault"
	"nodest/framework"
	"nodest/op"
)

// Lint examines a file for what will not work as its author meant it: a card, a
// world book, a preset or regex scripts. Nothing is stored.
//
// Errors: those of the import of such a file.
func (svc *Service) Lint(data []byte, filename string) ([]framework.Finding, error) {
	return Lint(data, filename)
}

// Lint examines a document without an engine, as the command line does.
func Lint(data []byte, filename string) ([]framework.Finding, error) {
	docs, err := lintable(data, filename)
	if err != nil {
		return nil, err
	}
	return append([]framework.Finding{}, framework.Lint(*docs)...), nil
}

func lintable(data []byte, filename string) (*framework.Documents, error) {
	var res *card.Resource
	var err error
	switch card.Detect(data) {
	case card.KindWorldBook:
		res, err = card.ImportWorldBook(data, filename, card.Limits{})
	case card.KindPreset:
		res, err = card.ImportPreset(data, filename, card.Limits{})
	case card.KindRegex:
		res, err = card.ImportRegexScripts(data, filename, card.Limits{})
	case card.KindChat:
		return nil, fault.New(fault.InvalidImport, "a chat log cannot be linted")
	default:
		ch, err := card.Import(data, filename, card.Limits{})
		if err != nil {
			return nil, err
		}
		return viewsOf(ch)
	}
	if err != nil {
		return nil, err
	}
	views := &framework.Documents{Dialect: res.Dialect}
	switch card.Detect(data) {
	case card.KindWorldBook:
		book, err := card.ParseWorldBook(res.Doc, res.Dialect)
		views.Book = &book
		return views, err
	case card.KindPreset:
		preset, err := card.ParsePreset(res.Doc)
		views.Preset = &preset
		return views, err
	}
	views.Scripts, err = card.ParseRegexScripts(res.Doc)
	return views, err
}

// viewsOf are the documents of a character that it has.
func viewsOf(ch *card.Character) (*framework.Documents, error) {
	views := &framework.Documents{Dialect: ch.Dialect}
	role, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil {
		return nil, err
	}
	views.Card = &role
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
	if views.Note, err = NoteOf(ch.AuthorNote); err != nil {
		return nil, err
	}
	scripts, err := scriptObjects(ch.RegexScripts) // as the character's group will hold them
	if err != nil {
		return nil, err
	}
	views.Scripts, err = card.ParseRegexScripts(op.MustJSON(scripts))
	return views, err
}
