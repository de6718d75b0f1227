package memory

import (
	"encoding/json"
	"time"

	"nodest/jobs"
)

// soon is how long extraction waits after a text, in which others mostly follow.
const soon = time.Minute

// Heard enqueues what follows from a text that was stored, in its transaction:
// vectors for it, and a look whether it is time to read what is new. It costs two
// small writes, whatever the settings are; the jobs end by themselves where there is
// nothing to do.
func Heard(tx Tx, characterID, conversationID string) error {
	return tx.Enqueue(
		jobs.Spec{Kind: JobEmbed, Subject: characterID},
		jobs.Spec{Kind: JobExtract, Subject: conversationID, NotBefore: tx.Now().Add(soon)},
	)
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
