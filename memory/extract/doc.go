// Package extract reads what was said in conversations for facts, in the background: with
// the user's model, and by rules where there is none or the limit of calls is reached
// (memory.Reading). What a run reads, what it writes, and its end are one transaction.
//
// A run asks for Candidates, drops what nobody said, asks how the rest goes with what is
// known (Decide), and lets rules have the last word (Apply).
package extract
