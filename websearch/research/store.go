package research

import (
	"encoding/json"

	"nodest/chat"
	"nodest/cognition"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/websearch/research/agent"
)

// Store is the storage of a Service.
type Store = op.Store[Tx]

// Tx is one transaction of the acting user.
type Tx struct {
	op.Tx
	RunTx
	Jobs  jobs.Tx
	Chats chat.Tx
	Bases knowledge.BaseTx
	Log   cognition.Tx
}

// RunTx stores runs. A run that is not the user's, or whose conversation is deleted, is
// fault.NotFound for every method that takes one.
type RunTx interface {
	// AddResearch stores a new run.
	AddResearch(r *Run) error
	// Research returns a run without its steps; in an Update it is locked.
	Research(id string) (*Run, error)
	// ResearchSteps returns the steps of a run, by their numbers.
	ResearchSteps(runID string) ([]agent.Step, error)
	// Researches lists runs newest first, without steps and results; conversationID "" = all.
	Researches(conversationID, cursor string, limit int) (items []*Run, next string, err error)
	// ResearchOfMessage returns the run whose answer a message tells.
	ResearchOfMessage(messageID string) (*Run, error)
	// OpenResearches counts the runs that are queued or running; conversationID "" = all. In an Update, no
	// other one that asks gets an answer before it has ended.
	OpenResearches(conversationID string) (int, error)
	// PutResearch stores what has changed of a run, without its steps.
	PutResearch(r *Run) error
	// PurgeResearch removes a run, and what stored answers and events say of it.
	PurgeResearch(id string) error

	// PutResearchSteps stores steps, and replaces those of the same member and number.
	PutResearchSteps(runID string, steps ...agent.Step) error
	// PutResearchFiles notes files whose words a run may have: it is purged with any of them. NotFound for
	// one that is deleted.
	PutResearchFiles(runID string, fileIDs ...string) error
	// PutResearchMessages notes messages whose words a run may have: it is purged with the words of any of them.
	PutResearchMessages(runID string, messageIDs ...string) error
	// ResearchCalls returns the calls of a run that is open.
	ResearchCalls(runID string) ([]*Call, error)
	// PutResearchCall stores a call of a run.
	PutResearchCall(runID string, c *Call) error
	// DropResearchCalls removes the calls of a run.
	DropResearchCalls(runID string) error
}

// Call is a call of a run, and what earlier ones of its key may have cost whose answers were lost.
type Call struct {
	Key      string
	Answer   json.RawMessage // nil = it is being made, or was lost
	Reserved agent.Cost      // at most
	Cost     agent.Cost
	Lost     agent.Cost // at most
}
