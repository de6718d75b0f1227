package memory

import (
	"time"

	"nodest/jobs"
)

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
