package memory

import (
	"encoding/json"
	"time"

	"nodest/jobs"
)

// How long the work on a text waits, in which others mostly follow: one run does for
// all of them. Until a text has vectors it is found by its words, and what was just
// said stands in the prompt anyway.
const (
	soon        = time.Minute
	vectorsSoon = 10 * time.Second
)

// Heard enqueues what follows from a text that was stored, in its transaction:
// vectors for it, and a look whether it is time to read what is new. It costs two
// small writes, whatever the settings are; the jobs end by themselves where there is
// nothing to do.
func Heard(tx Tx, characterID, conversationID string) error {
	return tx.Enqueue(
		jobs.Spec{Kind: JobEmbed, Subject: characterID},
		lookAt(conversationID, tx.Now().Add(soon)),
	)
}

// lookAt is a look at what is new. Where everything is to be read anyway, it is.
func lookAt(conversationID string, at time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobExtract, Subject: conversationID, NotBefore: at, Keep: true}
}

// order is the payload of an extraction.
type order struct {
	Now bool `json:"now"` // whatever there is, and with the model
}

// ExtractNow enqueues the extraction of everything in a conversation that was not
// read yet, with the model where there is one: when the user asks for it, when the
// conversation is archived, and before it is summarised.
func ExtractNow(tx Tx, conversationID string) error {
	payload, err := json.Marshal(order{Now: true})
	if err != nil {
		return err
	}
	return tx.Enqueue(jobs.Spec{Kind: JobExtract, Subject: conversationID, Payload: payload})
}

// orderOf reads a payload; nil is the zero order.
func orderOf(j *jobs.Job) (o order, err error) {
	if j.Payload != nil {
		err = json.Unmarshal(j.Payload, &o)
	}
	return o, err
}
