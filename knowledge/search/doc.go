// Package search ranks the chunks of documents for a question: by words (index.Question) and by vectors. It
// does no I/O. Each file has a segment of its own, so that a search reads exactly the files
// that the asking user may read, and word frequencies are counted inside that set.
//
// Words are counted in small windows of the text. A chunk is a range of windows, so the text
// that two chunks share is indexed once, and a chunk is scored as a whole and by its best
// window.
package search
