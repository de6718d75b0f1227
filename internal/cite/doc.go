// Package cite connects what a reply says with what its sources say: it cuts texts into chunks,
// picks the passages of a page that answer a question, adds [^n] marks with their references to an
// answer, and checks the marks that a model wrote. Every quote is literally part of its source.
//
// Lengths are UTF-16 code units, as in the original application; texts are cut by byte
// offsets, never inside a character. The functions are pure but for the llm.Embedder they are
// given. It may be nil, and none of them fails when it does: they compare words instead.
package cite
