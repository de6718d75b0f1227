package framework

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"nodest/card"
	"nodest/internal/sharedtest"
)

// Every published card, book and preset can be built and linted, with the same result
// twice.
func TestPublishedDocumentsCanBeBuilt(t *testing.T) {
	built, findings := 0, 0
	for _, folder := range []string{"cards", "worldbooks", "presets"} {
		_ = filepath.WalkDir(sharedtest.Require(t, "data/"+folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, docs, ok := importAny(folder, data, filepath.Base(path))
			if !ok {
				return nil // refused: that is the card package's business
			}
			in := Input{
				Sources: s, Persona: Persona{Name: "Sam"}, History: chatOf(30), User: Message{ID: "u", Text: "hello, what happened?"},
				Note: &card.AuthorNote{Text: "note", Depth: 2}, Options: Options{FilterKeyed: true, Seed: 3},
			}
			p := build(t, in)
			again := in
			again.Cache = NewCache(0)
			if render(build(t, again), nil) != render(p, nil) {
				t.Errorf("%s: twice is not the same", path)
			}
			built++
			findings += len(Lint(docs))
			return nil
		})
	}
	t.Logf("%d documents, %d findings", built, findings)
}

func importAny(folder string, data []byte, name string) (s Sources, d Documents, ok bool) {
	switch folder {
	case "cards":
		ch, err := card.Import(data, name, card.Limits{})
		if err != nil {
			return s, d, false
		}
		c, err1 := card.ParseRoleCard(ch.RoleCard)
		b, err2 := card.ParseWorldBook(ch.WorldBook, ch.Dialect)
		p, err3 := card.ParsePreset(ch.Preset)
		scripts, err4 := card.ParseRegexScripts(ch.RegexScripts)
		d = Documents{Dialect: ch.Dialect, Card: &c, Book: &b, Preset: &p, Scripts: scripts}
		return Sources{Card: c, Book: b, Preset: &p}, d, err1 == nil && err2 == nil && err3 == nil && err4 == nil
	case "worldbooks":
		r, err := card.ImportWorldBook(data, name, card.Limits{})
		if err != nil {
			return s, d, false
		}
		b, err := card.ParseWorldBook(r.Doc, r.Dialect)
		return Sources{Book: b}, Documents{Dialect: r.Dialect, Book: &b}, err == nil
	}
	r, err := card.ImportPreset(data, name, card.Limits{})
	if err != nil {
		return s, d, false
	}
	p, err := card.ParsePreset(r.Doc)
	return Sources{Preset: &p}, Documents{Dialect: r.Dialect, Preset: &p}, err == nil
}
