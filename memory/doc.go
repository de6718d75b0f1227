// Package memory is what a character remembers about its user: texts of the chats, and facts.
// It recalls what fits a message (Recall ranks the units of a scope by many small signals, and
// a gate leaves out what has nothing to do with the message), keeps the user's profile, and has
// the user's operations on a memory: search, write, correct, forget, export and import. Package
// memory/lang has the rules of language, and memory/extract extracts facts from chats.
package memory
