package memory

import (
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

// TextAdded enqueues what follows from a text that was stored, in its transaction:
// vectors for it, and a look whether it is time to read what is new. It costs two
// small writes, whatever the settings are; the jobs end by themselves where there is
// nothing to do.
func TextAdded(tx Tx, characterID, conversationID string) error {
	return tx.Jobs.Enqueue(
		jobs.Spec{Kind: JobEmbed, Subject: characterID, NotBefore: tx.Now().Add(vectorsSoon)},
		Look(conversationID, tx.Now().Add(soon)),
	)
}

// WantVectors enqueues the embedding of what a scope has without vectors.
func WantVectors(tx Tx, characterID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobEmbed, Subject: characterID})
}

// Look is a look at what is new.
func Look(conversationID string, at time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobExtract, Subject: conversationID, NotBefore: at}
}
