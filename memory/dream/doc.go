// Package dream keeps the documents of a memory: what a character knows of its user, their
// relationship, open threads and itself, line by line, each line with its author and the messages
// that it rests on. It must not decide what a chat says (cognition has its log) nor what was learned
// as facts (memory/extract): it has the user's operations on documents, and the rules by which a
// document may change without the user.
package dream
