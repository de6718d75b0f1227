// Package memory is what a character remembers about its user: the texts of their chats, and
// facts, each in versions with evidence, with the user's rights over them (search, write, correct,
// forget, export, import) and the jobs that embed them and build their index. It must not rank:
// memory/recall does that and is told here what counts on a branch; memory/lang has the rules of
// language, and memory/extract extracts facts from chats.
package memory
