package websearch

import (
	"cmp"
	"embed"
	"errors"
	"slices"

	"nodest/internal/cite"
	"nodest/internal/index"
	"nodest/internal/lexicon"
	"nodest/websearch/reader"
)

//go:embed words
var wordFiles embed.FS

// words are what the block says to a model in one language.
type words struct {
	Closed string // behind the description of a result whose page is a wall
}

var wordsIn = lexicon.Texts[string, words](wordFiles)

// wordsOf are the words of a language; English ones for any other.
func wordsOf(lang string) *words { return cmp.Or(wordsIn[lang], wordsIn["en"]) }

// closed returns the kind of wall that a page is, or "" if it was read, or not read for another reason.
func closed(err error) reader.Kind {
	var e *reader.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Outcome {
	case reader.Blocked:
		return e.Kind
	case reader.Empty:
		return reader.KindScripts
	}
	return ""
}

const (
	shortPage   = 600 // UTF-16 units
	fewestTerms = 4   // content words of a description that says something
	shortTerm   = 4   // bytes; words below are often no content
)

// unrelated reports whether a page is short and has no content word of what the search provider says
// about it, nor of the question: whatever it is, it is not what was found. Walls in words that no rule
// knows are like that.
func unrelated(p *Page, found, question string) bool {
	if cite.Len16(p.Markdown) > shortPage {
		return false
	}
	said := contentOf(found)
	if len(said) < fewestTerms {
		return false
	}
	said = append(said, contentOf(question)...)
	return !slices.ContainsFunc(contentOf(p.Markdown), func(term string) bool { return slices.Contains(said, term) })
}

// contentOf are the content words of a text.
func contentOf(text string) []string {
	return slices.DeleteFunc(index.Terms(text), func(term string) bool { return len(term) < shortTerm })
}
