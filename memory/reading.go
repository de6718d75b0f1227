package memory

import (
	"encoding/json"

	"nodest/jobs"
)

// Reading is what the extraction of a conversation has cost, and what the user has
// ordered; the zero value is that of one that was never read. It outlives jobs and
// processes.
type Reading struct {
	Exchanges int   // read automatically with the model; an edited message counts again
	Calls     int   // of the model for them, each counted before it is made
	Ordered   int64 // unread texts up to this seq are to be read now, whatever it costs; 0 = none
}

// At most callsFor calls of a model are made per perExchanges exchanges.
const (
	callsFor     = 2
	perExchanges = 5
)

// Pays reports whether what was read, with n exchanges more, allows another call.
func (r *Reading) Pays(n int) bool {
	return callsFor*(r.Exchanges+n) >= perExchanges*(r.Calls+1)
}

// ExtractNow orders the extraction of everything in a conversation that was not read
// yet, with the model where there is one: when the user asks for it, and when the
// conversation is archived. What it costs is neither limited nor counted. The order
// stands until the texts are read, whatever becomes of the job, unless its job has failed too often.
func ExtractNow(tx Tx, conversationID string) error {
	r, err := tx.LockReading(conversationID)
	if err != nil {
		return err
	}
	last, err := tx.Said(conversationID, SaidFilter{Before: AfterAll, Limit: 1})
	if err != nil {
		return err
	}
	for _, s := range last {
		r.Ordered = max(r.Ordered, s.Seq)
	}
	if err := tx.PutReading(conversationID, r); err != nil {
		return err
	}
	return ExtractFirst(tx, conversationID)
}

// ExtractFirst enqueues the extraction before a conversation is summarised. Nothing
// waits for it, and the model is asked only as far as the exchanges allow it.
func ExtractFirst(tx Tx, conversationID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobExtract, Subject: conversationID, Payload: atOnce})
}

// atOnce is the payload of a job that does not wait for more to be said.
var atOnce = json.RawMessage(`{"now":true}`)

// AfterAll is a seq that no message has.
const AfterAll = 1 << 62
