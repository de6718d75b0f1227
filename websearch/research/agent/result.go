package agent

import "nodest/internal/cite"

// Why a run ended.
const (
	Answered = "answered" // the answer has passed its evaluation
	Trivial  = "trivial"  // the question needed no research
	Budgeted = "budget"   // tokens or money were nearly spent
	Late     = "time"     // the time was nearly over
	Tried    = "attempts" // no attempt was good enough
	Quoted   = "quotes"   // there is no model: the answer consists of quotes
)

// Result is how a run ended. It always has an answer.
type Result struct {
	Answer     string                `json:"answer"` // Markdown; [^n] is the n-th reference
	References []cite.Reference      `json:"references"`
	Images     []cite.ImageReference `json:"images"`
	Report     cite.Report           `json:"report"`
	End        string                `json:"end"`
	Left       []string              `json:"left"`     // questions that were left open, and checks that the answer has not passed
	ReadURLs   []string              `json:"readUrls"` // pages that were read
	FoundURLs  int                   `json:"numUrls"`  // addresses that were found
	Knowledge  []Knowledge           `json:"knowledge"`
	Steps      []Step                `json:"steps"`
	Cost       Cost                  `json:"usage"`
}

// Step is one step of the loop, as it is stored and shown.
type Step struct {
	N        int      `json:"n"`      // from 1
	Member   int      `json:"member"` // member of the team; 0 = the run itself
	Action   string   `json:"action"` // search, visit, reflect, answer, coding
	Question string   `json:"question"`
	Think    string   `json:"think"`
	Queries  []string `json:"queries,omitempty"`
	URLs     []string `json:"urls,omitempty"`
	Gaps     []string `json:"gaps,omitempty"`     // sub-questions that are open after it
	Result   string   `json:"result,omitempty"`   // its outcome, in a sentence
	Rejected string   `json:"rejected,omitempty"` // the check that its answer has not passed
	Cost     Cost     `json:"cost"`
}
