// Package extract is the background job that extracts facts from conversations: with the user's
// model, and by rules if there is none or the limit of calls is reached (memory.Reading). What
// a run reads, what it writes, and its end are one transaction.
//
// A run asks for candidates, drops what nobody said, asks how the rest relates to what is known
// (decide), and applies the result by rules (apply).
package extract
