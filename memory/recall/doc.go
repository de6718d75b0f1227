// Package recall finds what fits a message among the texts and facts of one memory: it ranks
// them by many small signals, closes a gate on what has nothing to do with the message, and
// chooses hits that differ, with current values instead of stale ones. It must not read or
// change anything but the index that it is given, so it knows no users, no storage and no jobs;
// a Branch tells it what counts.
package recall
