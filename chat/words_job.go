package chat

import (
	"context"
	"slices"

	"nodest/chat/words"
	"nodest/internal/fault"
	"nodest/internal/jobs"
)

// JobWords is the kind of job that stores the words of a conversation, its subject, for Search.
const JobWords = "chat.words"

// The newest messages are not indexed: they change most. IndexedTo counts in steps, so that a
// range is not stored for each message anew.
const (
	// WordRange is how many seqs a range of indexed messages has; it begins with a multiple.
	WordRange = 256
	wordStep  = 64
	wordRest  = 16
)

// IndexedTo returns up to which message, by seq, a conversation with so many is indexed at most;
// 0 = it is too short.
func IndexedTo(newestSeq int64) int64 { return max(0, newestSeq-wordRest) / wordStep * wordStep }

// wordConflicts is how often a job begins a range again that changes meanwhile.
const wordConflicts = 20

// indexWords does one job. A conversation that changes all the time is left to the next job.
func (svc *Service) indexWords(ctx context.Context, j *jobs.Job) error {
	var due []TextRange
	err := svc.store.View(ctx, j.UserID, func(tx Tx) (err error) {
		due, err = tx.WordsDue(j.Subject)
		return err
	})
	conflicts := 0
	for err == nil && len(due) > 0 {
		err = svc.indexRange(ctx, j.UserID, due[0])
		if conflicts < wordConflicts && fault.Is(err, fault.Conflict) {
			conflicts, err = conflicts+1, nil
			continue
		}
		due = due[1:]
	}
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return ignoreGone(err)
}

func (svc *Service) indexRange(ctx context.Context, userID string, r TextRange) error {
	var list words.Set
	var revisions []string
	err := svc.store.View(ctx, userID, func(tx Tx) error {
		return tx.RangeRevisions(r, func(id, text string) error {
			revisions = append(revisions, id)
			list.Add(text)
			return nil
		})
	})
	if err != nil {
		return err
	}
	stored := list.Stored()
	slices.Sort(revisions)
	return svc.store.Update(ctx, userID, func(tx Tx) error { return tx.PutWords(r, revisions, stored) })
}

// mend removes stored words that cannot be read, so that they are made again.
func (svc *Service) mend(ctx context.Context, userID string, damaged []TextRange) {
	if len(damaged) == 0 {
		return
	}
	svc.opts.Log.WarnContext(ctx, "the index of messages cannot be read and is built again", "user", userID, "ranges", len(damaged))
	err := svc.store.Update(ctx, userID, func(tx Tx) error { return tx.DropWords(damaged...) })
	if err != nil {
		svc.opts.Log.WarnContext(ctx, "repair of the index of messages", "user", userID, "err", err)
	}
}
