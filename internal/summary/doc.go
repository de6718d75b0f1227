// Package summary has the rules of rolling summaries: when a conversation is summarised
// (MakePlan), how a summary is written with a model or by picking sentences (Write), which
// answers of a model are accepted, and how a summary replaces messages in a prompt (Overlay).
// The rules are pure; the caller provides model and messages.
package summary
