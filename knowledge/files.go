package knowledge

import (
	"cmp"
	"context"
	"errors"
	"io"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge/filename"
)

// states are the states of a file.
var states = []string{Pending, Parsing, Chunking, Embedding, Ready, Failed}

// Upload stores a file and enqueues its processing. A content that the user has already is
// not stored again: its file is returned with Duplicate, added to the knowledge base too, and
// processed again if that had failed.
//
// Errors: TooLarge for the file, or with those that the user has; NotFound and Forbidden for
// the knowledge base; StorageFull.
func (s *Service) Upload(ctx context.Context, c *op.Call, in NewFile) (*File, error) {
	if err := s.checkSize(in); err != nil {
		return nil, err
	}
	if f, known, err := op.Earlier[*File](ctx, s.store, c); known || err != nil {
		return f, err
	}
	hash, err := hashOf(ctx, in)
	if err != nil {
		return nil, err
	}
	f := &File{
		ID: op.NewID(), Name: filename.Clean(in.Name), Original: Original{Declared: op.Truncate(in.Type, filename.Longest), Size: in.Size, SHA256: hash},
		Source: SourceUpload, SourceURL: in.SourceURL, State: Pending, Version: 1,
	}
	if in.Source == SourceWeb {
		f.Source = SourceWeb
	}
	put := func(tx Tx) (*File, error) { return s.put(tx, c, *f, in) }
	known, err := s.expect(ctx, c.UserID, f, in.BaseID)
	if err != nil {
		return nil, err
	}
	if known {
		stored, err := op.Once(ctx, s.store, c, put)
		if !errors.Is(err, errNoContent) {
			return stored, err
		}
	}
	if f.ContentID, err = s.storeParts(ctx, c.UserID, in); err != nil {
		return nil, err
	}
	stored, err := op.Once(ctx, s.store, c, put)
	if err != nil || stored.ContentID != f.ContentID {
		s.dropParts(ctx, c.UserID, f.ContentID)
	}
	return stored, err
}

// errNoContent says that a file was deleted whose content was to be used.
var errNoContent = errors.New("the content is not stored any more")

func (s *Service) checkSize(in NewFile) error {
	if in.Size > s.opts.MaxFile {
		e := fault.New(fault.TooLarge, "a file may have %s", fault.Size(int(s.opts.MaxFile)))
		return e.With("limit", s.opts.MaxFile).With("length", in.Size)
	}
	return nil
}

// Room returns how many bytes a new file of the user may have, or the new content of the own file
// with an id, so that more need not be read. A file that the user has already needs the room, too,
// but not a call that is repeated under its key.
//
// Errors: TooLarge if there is no room for a file; NotFound, and Forbidden for a file that is not
// the user's own.
func (s *Service) Room(ctx context.Context, c *op.Call, replaced string) (int64, error) {
	return op.Read(ctx, s.store, c.UserID, func(tx Tx) (int64, error) {
		if c.Key != "" {
			if known, err := tx.Key(c.Key); known != nil || err != nil {
				return s.opts.MaxFile, err
			}
		}
		files, bytes, err := tx.CountFiles()
		if err != nil {
			return 0, err
		}
		if replaced == "" {
			files++
		} else {
			f, err := ownFile(tx, replaced)
			if err != nil {
				return 0, err
			}
			bytes -= f.Size
		}
		if err := s.checkQuota(files, bytes+1); err != nil {
			return 0, err
		}
		return min(s.opts.MaxFile, s.opts.MaxBytes-bytes), nil
	})
}

// expect finds what would refuse a file before its content is stored, and whether the user
// has the content already.
func (s *Service) expect(ctx context.Context, userID string, f *File, baseID string) (known bool, err error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (bool, error) {
		if baseID != "" {
			if _, err := writableBase(tx, baseID); err != nil {
				return false, err
			}
		}
		same, err := tx.FileByHash(f.SHA256)
		if err != nil || same != nil {
			return same != nil, err
		}
		files, bytes, err := tx.CountFiles()
		if err != nil {
			return false, err
		}
		return false, s.checkQuota(files+1, bytes+f.Size)
	})
}

func (s *Service) checkQuota(files int, bytes int64) error {
	switch {
	case files > s.opts.MaxFiles:
		return fault.New(fault.TooLarge, "a user may have %d files; delete some first", s.opts.MaxFiles).With("limit", s.opts.MaxFiles)
	case bytes > s.opts.MaxBytes:
		return fault.New(fault.TooLarge, "the files of a user may have %s together; delete some first", fault.Size(int(s.opts.MaxBytes))).
			With("limit", s.opts.MaxBytes)
	}
	return nil
}

// put finds the file with a content, or stores f, whose content is stored unless it returns
// errNoContent.
func (s *Service) put(tx Tx, c *op.Call, f File, in NewFile) (*File, error) {
	files, bytes, err := tx.LockFiles()
	if err != nil {
		return nil, err
	}
	var base *Base
	if in.BaseID != "" {
		if base, err = writableBase(tx, in.BaseID); err != nil {
			return nil, err
		}
	}
	same, err := tx.FileByHash(f.SHA256)
	if err != nil {
		return nil, err
	}
	if same != nil {
		if same.State == Failed {
			if same, err = again(tx, c, same.ID); err != nil {
				return nil, err
			}
		}
		same.Duplicate = true
		return same, addFile(tx, c, base, same, in.Source == SourceSync)
	}
	if f.ContentID == "" {
		return nil, errNoContent
	}
	if err := s.checkQuota(files+1, bytes+f.Size); err != nil {
		return nil, err
	}
	if err := tx.InsertFile(&f); err != nil {
		return nil, err
	}
	if err := addFile(tx, c, base, &f, in.Source == SourceSync); err != nil {
		return nil, err
	}
	if err := ingest(tx, f.ID); err != nil {
		return nil, err
	}
	return &f, tx.Emit(fileUpdated(c, &f))
}

// Replace gives an own file another content, and another name if in has one; the old one is
// searched until the new one is complete. The same content and name change nothing.
//
// Errors: those of Upload; NotFound, and Forbidden for a file that is not the user's own;
// PreconditionFailed when ifVersion is not 0 and not its version; Conflict with
// details.fileId if the user has the content in another file.
func (s *Service) Replace(ctx context.Context, c *op.Call, id string, ifVersion int64, in NewFile) (*File, error) {
	if err := s.checkSize(in); err != nil {
		return nil, err
	}
	if f, known, err := op.Earlier[*File](ctx, s.store, c); known || err != nil {
		return f, err
	}
	old, err := op.Read(ctx, s.store, c.UserID, func(tx Tx) (*File, error) { return ownFile(tx, id) })
	if err != nil {
		return nil, err
	}
	if err := op.CheckVersion(ifVersion, old.Version); err != nil {
		return nil, err
	}
	hash, err := hashOf(ctx, in)
	if err != nil {
		return nil, err
	}
	next := File{Original: Original{SHA256: hash, Size: in.Size, Declared: op.Truncate(in.Type, filename.Longest)}}
	if in.Name != "" {
		next.Name = filename.Clean(in.Name)
	}
	if hash != old.SHA256 {
		if next.ContentID, err = s.storeParts(ctx, c.UserID, in); err != nil {
			return nil, err
		}
	}
	f, err := op.Once(ctx, s.store, c, func(tx Tx) (*File, error) { return s.replace(tx, c, id, ifVersion, next) })
	for _, content := range []string{old.ContentID, next.ContentID} {
		s.dropParts(ctx, c.UserID, content) // drops only parts that no file has now
	}
	return f, err
}

func (s *Service) replace(tx Tx, c *op.Call, id string, ifVersion int64, next File) (*File, error) {
	files, bytes, err := tx.LockFiles()
	if err != nil {
		return nil, err
	}
	f, err := ownFile(tx, id)
	if err != nil {
		return nil, err
	}
	if err := op.CheckVersion(ifVersion, f.Version); err != nil {
		return nil, err
	}
	name := cmp.Or(next.Name, f.Name)
	switch {
	case next.SHA256 == f.SHA256 && name == f.Name:
		return f, nil
	case next.SHA256 == f.SHA256:
	case next.ContentID == "":
		return nil, fault.New(fault.PreconditionFailed, "the file was changed by another request").With("version", f.Version)
	default:
		if err := noOther(tx, next.SHA256); err != nil {
			return nil, err
		}
		if err := s.checkQuota(files, bytes-f.Size+next.Size); err != nil {
			return nil, err
		}
		f.ContentID, f.SHA256, f.Size, f.Declared = next.ContentID, next.SHA256, next.Size, next.Declared
	}
	f.Name = name
	f.Version++
	f.UpdatedAt = tx.Now()
	return f, requeue(tx, c, f)
}

// noOther refuses a content that the user has already.
func noOther(tx Tx, hash string) error {
	same, err := tx.FileByHash(hash)
	if err != nil || same == nil {
		return err
	}
	return fault.New(fault.Conflict, "the file %q has this content already", same.Name).With("fileId", same.ID)
}

// requeue has a file processed from the beginning.
func requeue(tx Tx, c *op.Call, f *File) error {
	f.State, f.Error, f.Progress = Pending, nil, nil
	if err := tx.UpdateFile(f); err != nil {
		return err
	}
	if err := ingest(tx, f.ID); err != nil {
		return err
	}
	return tx.Emit(fileUpdated(c, f))
}

// again is requeue of a file that may have changed meanwhile.
func again(tx Tx, c *op.Call, id string) (*File, error) {
	f, err := ownFile(tx, id)
	if err != nil || f.State != Failed {
		return f, err
	}
	return f, requeue(tx, c, f)
}

// Retry processes a failed file again.
//
// Errors: NotFound, and Forbidden for a file that is not the user's own; Conflict unless it
// has failed.
func (s *Service) Retry(ctx context.Context, c *op.Call, id string) (*File, error) {
	return op.Once(ctx, s.store, c, func(tx Tx) (*File, error) {
		f, err := ownFile(tx, id)
		if err != nil {
			return nil, err
		}
		if f.State != Failed {
			return nil, fault.New(fault.Conflict, "only a file that has failed can be retried; this one is %s", f.State).With("state", f.State)
		}
		return f, requeue(tx, c, f)
	})
}

// File returns a file that the user may read.
//
// Errors: NotFound.
func (s *Service) File(ctx context.Context, userID, id string) (*File, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*File, error) { return tx.File(id) })
}

// Files lists the user's own files, newest first; state "" = all.
//
// Errors: Invalid for an unknown state, the cursor or the limit.
func (s *Service) Files(ctx context.Context, userID, state, cursor string, limit int) (op.Page[*File], error) {
	if state != "" {
		var check op.Checks
		if op.OneOf(&check, "state", state, states); check.Err() != nil {
			return op.Page[*File]{}, check.Err()
		}
	}
	return page(ctx, s, userID, limit, func(tx Tx, limit int) ([]*File, string, error) { return tx.Files(state, cursor, limit) })
}

// Content returns the original of a file that the user may read; the caller closes it. It is
// read in parts, and reading fails with NotFound as soon as the file is gone, has another
// content, or may not be read any more.
//
// Errors: NotFound.
func (s *Service) Content(ctx context.Context, userID, id string) (*File, io.ReadSeekCloser, error) {
	f, err := s.File(ctx, userID, id)
	if err != nil {
		return nil, nil, err
	}
	return f, s.original(ctx, userID, f), nil
}

// DeleteFile deletes an own file: it is gone at once, also from knowledge bases and
// characters; a job removes what was made of it.
//
// Errors: NotFound, and Forbidden for a file that is not the user's own.
func (s *Service) DeleteFile(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		if _, err := ownFile(tx, id); err != nil {
			return err
		}
		return deleteFiles(tx, c, id)
	})
}

// deleteFiles hides own files.
func deleteFiles(tx Tx, c *op.Call, ids ...string) error {
	for _, id := range ids {
		if err := tx.DeleteFile(id); err != nil {
			return err
		}
		if err := tx.Jobs.CancelJobs(id); err != nil {
			return err
		}
		if err := tx.Emit(fileDeleted(c, id)); err != nil {
			return err
		}
	}
	return purge(tx)
}

// ownFile returns an own file: fault.Forbidden for one that the user may only read.
func ownFile(tx Tx, id string) (*File, error) {
	f, err := tx.OwnFile(id)
	if !fault.Is(err, fault.NotFound) {
		return f, err
	}
	if _, readable := tx.File(id); readable == nil {
		return nil, fault.New(fault.Forbidden, "the file belongs to another user")
	}
	return nil, err
}
