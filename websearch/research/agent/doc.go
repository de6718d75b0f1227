// Package agent has the rules that an answer of a deep research goes through
// and a quick search does not need: what was learned, as messages for a model;
// the pages of one step, read together; search words without repetitions; and
// the repair of the Markdown that a model wrote.
//
// The rules do no I/O: a reader and an embedder are handed in. Repairs leave
// code as it is, and take time in proportion to the text. Lengths are UTF-16
// code units where package cite says so.
package agent
