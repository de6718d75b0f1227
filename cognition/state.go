package cognition

// State says which side branches of a conversation wait.
type State struct {
	PendingEval bool     // pending_knowledge_eval: a goal has ended
	EvalTrigger string   // knowledge_eval_trigger: what set the evaluation off
	Queue       []string // side branches, the next one first
}

// BranchEval is the side branch that evaluates.
const BranchEval = "knowledge_eval"

// StateTx stores the states of conversations.
type StateTx interface {
	// SideState returns the state of a conversation, the zero value if nothing was stored.
	SideState(conversationID string) (State, error)
	// LockSideState is SideState for a transaction that changes it; it locks the conversation.
	LockSideState(conversationID string) (State, error)
	PutSideState(conversationID string, s State) error
	// ExtractionEvents returns the events of some extractions, the oldest first.
	ExtractionEvents(conversationID string, extractionIDs ...string) ([]*Event, error)
}
