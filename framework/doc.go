// Package framework builds the prompt of a turn from a character's documents and
// a chat: card, preset, world books, author's note, settings, history and findings
// (memories, search results). It does no I/O: the same Input gives the same Prompt, byte
// for byte. The clock is read only to stop regex scripts that take too long.
//
// Entry points: Compile prepares the documents once per version; Build makes the
// request of a turn and records why each part is included or left out. Scripts runs
// regex scripts by JavaScript's rules, Splitter and StripBlocks find tagged blocks in
// replies, Diff compares two prompts, and Lint checks documents for problems.
//
// The rules are those of the NodeST app. Characters of the SillyTavern dialect are
// built by the same rules, with that dialect's defaults.
package framework
