// Package whatlanggo stands in for github.com/RadhiFadlillah/whatlanggo, by which
// go-trafilatura guesses the language of each page, although only its TargetLanguage needs it,
// which NodeST does not set. See docs/decisions/0019-reader.md.
package whatlanggo

// Lang is a language; there is only the unknown one.
type Lang int

// DetectLang recognizes no language.
func DetectLang(string) Lang { return 0 }

// Iso6391 returns the code of a language, "" for the unknown one.
func (Lang) Iso6391() string { return "" }
