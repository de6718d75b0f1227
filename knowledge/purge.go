package knowledge

import (
	"context"

	"nodest/internal/jobs"
)

// PurgeKind is the kind of the job that removes what its user has deleted.
const PurgeKind = "knowledge.purge"

// How many rows a transaction of a purge removes, and of these of an original: a part is
// larger than other rows. The questions and events about a file are looked for with its own row.
const (
	purgeAtOnce    = 500
	partsAtOnce    = 16
	fileRowsAtOnce = 20
)

// purgeSubject makes it one job for all that a user has deleted.
const purgeSubject = "all"

// purge has what was deleted removed.
func purge(tx Tx) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: PurgeKind, UserID: tx.UserID(), Subject: purgeSubject})
}

func (s *Service) purgeKind() jobs.Kind {
	return jobs.Kind{Name: PurgeKind, AtOnce: 1, Run: s.runPurge}
}

// runPurge removes hidden files and knowledge bases in small transactions. It can be
// interrupted.
func (s *Service) runPurge(ctx context.Context, j *jobs.Job) error {
	for {
		var files []*File
		err := s.store.View(ctx, j.UserID, func(tx Tx) (err error) {
			files, err = tx.DeletedFiles(fileRowsAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return s.inBatches(ctx, j.UserID, func(tx Tx) (int, error) { return tx.PurgeBases(purgeAtOnce) })
		}
		var ids []string
		for _, f := range files {
			ids = append(ids, f.ID)
			if err := s.emptyFile(ctx, j.UserID, f); err != nil {
				return err
			}
		}
		if err := s.store.Update(ctx, j.UserID, func(tx Tx) error { return tx.PurgeFiles(ids...) }); err != nil {
			return err
		}
	}
}

// emptyFile removes all of a hidden file but its row.
func (s *Service) emptyFile(ctx context.Context, userID string, f *File) error {
	err := s.inBatches(ctx, userID, func(tx Tx) (int, error) { return tx.PurgeIndex(f.ID, purgeAtOnce) })
	if err != nil {
		return err
	}
	return s.inBatches(ctx, userID, func(tx Tx) (int, error) { return tx.DropParts(f.ContentID, partsAtOnce) })
}

// inBatches repeats a transaction until it removes nothing.
func (s *Service) inBatches(ctx context.Context, userID string, remove func(tx Tx) (int, error)) error {
	for removed := 1; removed > 0; {
		err := s.store.Update(ctx, userID, func(tx Tx) (err error) {
			removed, err = remove(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
