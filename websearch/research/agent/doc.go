// Package agent is the loop of a deep research: it searches, reads pages, looks for what is missing and
// answers, until the answer passes its checks or the budget is nearly spent. It has no storage and no
// network: everything outside comes in as Outside, and every call of it goes through a Recorder, so that
// a run which is played again after a crash goes on from its last answer.
//
// Also here are the rules that such a run follows: what was learned, as messages for a model; the pages
// of one step, read together; search words without repetitions. Lengths are UTF-16 code units where
// package cite says so.
package agent
