// Package memory holds what is right to remember and how it is found again. Here is
// its ranking: ReadQuery reads a question (who is meant, which day, what kind of
// answer), and Recall orders the units of a scope by many small signals, the same
// for a chat and for the benchmark.
//
// It implements the memory specification 2.5. It has neither a database nor a model:
// units come through an index.Cache, vectors from whoever asks.
package memory
