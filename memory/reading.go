package memory

import (
	"encoding/json"
	"time"

	"nodest/internal/jobs"
)

// Reading is what the extraction of a conversation has cost, and what the user has ordered. It
// outlives jobs and processes.
type Reading struct {
	Exchanges int   // read automatically with the model; an edited message counts again
	Calls     int   // calls of the model for them, each counted before it is made
	Ordered   int64 // unread texts up to this seq are to be read now, whatever it costs; 0 = none
}

// At most callsFor calls of a model are made per perExchanges exchanges.
const (
	callsFor     = 2
	perExchanges = 5
)

// Pays reports whether another call is allowed, counting n more exchanges.
func (r *Reading) Pays(n int) bool {
	return callsFor*(r.Exchanges+n) >= perExchanges*(r.Calls+1)
}

// ExtractNow orders the extraction of everything not read yet in a conversation, with the model
// if there is one: when the user asks for it, and when the conversation is archived. This is
// neither limited nor counted. The order stands until the texts are read or its job has failed
// too often.
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

// ExtractFirst enqueues the extraction before a summary, within the limit of model calls.
func ExtractFirst(tx Tx, conversationID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobExtract, Subject: conversationID, Payload: atOnce})
}

// atOnce is the payload of a job that does not wait for further messages.
var atOnce = json.RawMessage(`{"now":true}`)

// AfterAll is greater than the seq of any message.
const AfterAll = 1 << 62

// How long the work on a text waits, so that one run does for several messages. Until a text
// has vectors it is found by its words, and recent messages are in the prompt anyway.
const (
	soon        = time.Minute
	vectorsSoon = 10 * time.Second
)

// TextAdded enqueues what follows from a stored text, in its transaction: vectors, and a check
// whether extraction is due. The jobs end by themselves if there is nothing to do.
func TextAdded(tx Tx, characterID, conversationID string) error {
	return tx.Jobs.Enqueue(
		jobs.Spec{Kind: JobEmbed, Subject: characterID, NotBefore: tx.Now().Add(vectorsSoon)},
		Look(conversationID, tx.Now().Add(soon)),
	)
}

// WantVectors enqueues the embedding of units without vectors.
func WantVectors(tx Tx, characterID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobEmbed, Subject: characterID})
}

// Look is a check whether extraction is due.
func Look(conversationID string, at time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobExtract, Subject: conversationID, NotBefore: at}
}
