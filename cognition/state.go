package cognition

import "slices"

// State says which side branches of a conversation wait.
type State struct {
	PendingEval bool     // pending_knowledge_eval: a goal has ended
	EvalTrigger string   // knowledge_eval_trigger: what set the evaluation off
	Queue       []string // side branches, the next one first
	Reflected   int64    // the seq up to which messages were read for what is worth keeping
}

// The side branches, in the order in which they run.
const (
	BranchReflection  = "reflection"     // proposes knowledge to keep
	BranchEval        = "knowledge_eval" // says how knowledge has worked
	BranchCompression = "compression"    // summarises
)

// Leave takes a branch out of the queue. A summary that nothing else is before waits no more.
func (s *State) Leave(branch string) {
	s.Queue = slices.DeleteFunc(s.Queue, func(b string) bool { return b == branch })
	if len(s.Queue) == 1 && s.Queue[0] == BranchCompression {
		s.Queue = nil
	}
	if !slices.Contains(s.Queue, BranchEval) && !s.PendingEval {
		s.EvalTrigger = ""
	}
}

// StateTx stores the states of conversations.
type StateTx interface {
	// SideState returns the state of a conversation, the zero value if nothing was stored.
	SideState(conversationID string) (State, error)
	// LockSideState is SideState for a transaction that changes it; it locks the conversation.
	LockSideState(conversationID string) (State, error)
	PutSideState(conversationID string, s State) error
	// ExtractionEvents returns the events of some extractions, the oldest first.
	ExtractionEvents(conversationID string, extractionIDs ...string) ([]*Event, error)
	// ExtractionSources returns the texts of the conversation that an extraction was made of, by sequence; none of one
	// that was imported.
	ExtractionSources(conversationID, extractionID string) ([]Message, error)
}
