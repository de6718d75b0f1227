// Package lang has the memory's rules of language, for English, Chinese, and partly Japanese
// and Korean: what a text says (names, numbers, days, negation, properties of the user,
// statements about them), whether a statement is said in its sources, and what a question asks
// for. Functions are pure; they know no store and no model.
package lang
