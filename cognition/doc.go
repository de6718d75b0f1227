// Package cognition has the log of a conversation: what was looked up for it, whether that helped, what is worth
// keeping of it, and reflections. It reads and writes the log as a document with the names of its format, and has
// the goals of conversations; side branches, which ask models, are in cognition/side.
package cognition
