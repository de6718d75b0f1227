// Package lexicon reads the rules and words of languages from data files, so that a language is
// added or corrected without a change of Go. It knows no language itself, and not what a rule is
// for. docs/languages.md describes the files.
package lexicon

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Lexicon is a folder of files, one for each language, in the order of their names. They are
// read when the first of their rules is needed.
type Lexicon struct {
	Asked     map[string]bool // names that the program asks for; complete before main begins
	Languages func() []*Language
}

// New returns the lexicon of the files in the only folder of files. A file that cannot be read is a
// mistake of the program, so the first use panics.
func New(files fs.FS) *Lexicon {
	return &Lexicon{Asked: map[string]bool{}, Languages: sync.OnceValue(func() (all []*Language) {
		names, err := fs.Glob(files, "*/*.txt")
		if err != nil || len(names) == 0 {
			panic("lexicon: there are no files")
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				panic(err)
			}
			l, err := parse(strings.TrimSuffix(path.Base(name), ".txt"), string(text))
			if err != nil {
				panic(err)
			}
			all = append(all, l)
		}
		return all
	})}
}

// find asks each of some languages, or all, for what it has under a name.
func find[T any](l *Lexicon, name string, in []string, get func(*Language) []T) (all []T) {
	for _, language := range l.Languages() {
		if len(in) == 0 || slices.Contains(in, language.Name) {
			all = append(all, get(language)...)
		}
	}
	if len(all) == 0 {
		panic("lexicon: no language has " + name)
	}
	return all
}

// Words returns the words of a name, of all languages or of these.
func (l *Lexicon) Words(name string, in ...string) func() []string {
	l.Asked[name] = true
	return sync.OnceValue(func() []string {
		return find(l, name, in, func(of *Language) []string { return of.Words[name] })
	})
}

// By returns the words of a name by the languages that have it.
func (l *Lexicon) By(name string) func() map[string][]string {
	l.Asked[name] = true
	return sync.OnceValue(func() map[string][]string {
		words := map[string][]string{}
		for _, language := range l.Languages() {
			if of := language.Words[name]; len(of) > 0 {
				words[language.Name] = of
			}
		}
		return words
	})
}

// Set is Words as a set.
func (l *Lexicon) Set(name string, in ...string) func() map[string]bool {
	list := l.Words(name, in...)
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for _, w := range list() {
			set[w] = true
		}
		return set
	})
}

// Ranks tells of each word which of the words of its language it is, from 0 on. Words of the same
// rank are separated by "/".
func (l *Lexicon) Ranks(name string, in ...string) func() map[string]int {
	l.Asked[name] = true
	return sync.OnceValue(func() map[string]int {
		ranks := map[string]int{}
		for _, list := range find(l, name, in, func(of *Language) [][]string { return [][]string{of.Words[name]} }) {
			for rank, same := range list {
				for w := range strings.SplitSeq(same, "/") {
					ranks[w] = rank
				}
			}
		}
		return ranks
	})
}

// Prompts returns the texts of a file by name. Each stands behind a line "== name ==", up to the line
// break before the next such line.
func Prompts(files fs.FS, name string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		doc, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		texts := map[string]string{}
		for part := range strings.SplitSeq("\n"+strings.TrimSuffix(string(doc), "\n"), "\n== ") {
			title, text, _ := strings.Cut(part, " ==\n")
			texts[title] = text
		}
		return texts
	})
}
