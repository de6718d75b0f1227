// Package research runs deep research: a question becomes a plan that can be changed, and a run that
// searches, reads and answers within its budget (package agent). It keeps every step and every
// answered call, so that a run goes on after a crash without paying twice. It must not know how
// the loop decides, nor what a chat makes of an answer.
package research
