// Package memory is what a character remembers about its user: texts that were said,
// and facts. It recalls what fits a message (Recall orders the units of a scope by many
// small signals, and a gate leaves out what has nothing to do with it), keeps the user's
// profile, and has what users may do with their memory: search, write, correct, forget,
// export and import. Package memory/lang has the rules of language, and memory/extract
// reads facts in what was said.
package memory
