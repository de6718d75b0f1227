// Package gomoji stands in for github.com/forPelevin/gomoji, with which go-trafilatura tidies
// the name of a page's author. NodeST does not read that name (websearch/reader takes only
// which texts are content). The original and its tables of graphemes take 1 MB of the program,
// and 1 MB of memory from the start. See docs/decisions/0019-reader.md.
package gomoji

// RemoveEmojis returns s as it is.
func RemoveEmojis(s string) string { return s }
