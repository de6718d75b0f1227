// Package framework builds the prompt of a turn from a character's documents and
// a chat: card, preset, world books, author's note, settings, history and what
// was found for the message. It has no I/O: the same Input gives the same Prompt,
// byte for byte. A clock serves only to stop regex scripts that take too long.
//
// Entry points: Compile prepares the documents once per version, Build makes the
// request of a turn and says of every part why it is in or out. Around them:
// Scripts (regex scripts, JavaScript rules), Splitter and
// StripBlocks (tagged blocks in replies), Compact and Expand (the stored form),
// Diff, and Lint (the card doctor).
//
// The rules are those of the NodeST dialect (NodeST specification, sections 2 to
// 7 and 15). The SillyTavern dialect will stand beside it behind the same Build;
// until then its characters are built by the NodeST rules too.
package framework
