// Package summary has the rules of rolling summaries: when a conversation is summarised
// (MakePlan), how a summary is written with a model or by picking sentences (Write), what
// a model's answer must be to count (Accept), and how a summary stands in a prompt for the
// messages that it covers (View). The rules are pure; the caller brings model and messages.
package summary
