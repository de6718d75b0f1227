package tavern

import (
	"context"
	"io"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/tavern/folder"
	"nodest/knowledge/unzip"
)

// MaxArchive bounds the archive of a folder, in bytes.
const MaxArchive = 8 << 30

// Limits of an archive. Each file has one of its own, by its kind.
var limits = unzip.Limits{Entries: 200_000, Unpacked: 64 << 30, Directory: 64 << 20, Junk: true}

const (
	partSize    = 1 << 20 // bytes of an archive in a row
	dropAtOnce  = 20      // such rows in a transaction that removes them
	mostOpen    = 3       // imports of a user that are queued or running
	maxFilename = 200     // code points
)

// Options configure a Service.
type Options struct {
	Characters *character.Service
	Archives   *archive.Service
	Log        *slog.Logger // default slog.Default()

	Chats    *chat.Service
	TempDir  string                                                                   // folder of temporary files; "" = the system's
	Memories func(ctx context.Context, userID, characterID string, w io.Writer) error // writes those of a character
	Beside   []Beside                                                                 // files of an export that SillyTavern has no place for
}

// Service has the operations. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
}

// New returns a Service.
func New(store Store, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{store, o}
}

// Upload is an archive that has arrived, and what to do with it.
type Upload struct {
	Name           string
	Archive        *Intake
	DryRun         bool
	MakeCharacters bool
}

// named is the answer that is stored of a command: a repeat reads the import as it is then.
type named struct {
	ID string `json:"id"`
}

// Start begins to import the archive of a folder.
//
// Errors: TooLarge; UnsupportedMedia for what is no zip archive; InvalidImport for one without
// any folder that SillyTavern has; Conflict if three imports are open.
func (s *Service) Start(ctx context.Context, c *op.Call, in Upload) (*Import, error) {
	if done, known, err := op.Earlier[named](ctx, s.store, c); known || err != nil {
		if err != nil {
			return nil, err
		}
		return s.Get(ctx, c.UserID, done.ID)
	}
	archive, err := in.Archive.end()
	if err != nil {
		return nil, err
	}
	found, err := count(archive, archive.size)
	if err != nil {
		return nil, err
	}
	imp := &Import{
		ID: in.Archive.id, Filename: filename(in.Name), DryRun: in.DryRun, MakeCharacters: in.MakeCharacters,
		State: jobs.Queued, Found: found, Counts: Counts{}, Size: archive.size,
	}
	made, err := op.Once(ctx, s.store, c, func(tx Tx) (named, error) {
		open, err := tx.OpenImports()
		if err == nil && open >= mostOpen {
			err = fault.New(fault.Conflict, "%d imports are still open; wait for one to end, or stop it", open)
		}
		if err != nil {
			return named{}, err
		}
		made := *imp
		if err := tx.InsertImport(&made); err != nil {
			return named{}, err
		}
		if err := tx.Jobs.Enqueue(jobs.Spec{Kind: JobImport, Subject: made.ID}); err != nil {
			return named{}, err
		}
		return named{made.ID}, tx.Emit(event(c.UserID, c.By(), &made))
	})
	if err != nil {
		return nil, err
	}
	in.Archive.kept = made.ID == imp.ID
	return s.Get(ctx, c.UserID, made.ID)
}

// list reads what is in an archive, and refuses one that is no folder of SillyTavern.
func list(r io.ReaderAt, size int64) ([]*unzip.Entry, error) {
	entries, err := unzip.List(r, size, limits)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = folder.Slashes(e.Name)
	}
	if _, known := folder.Root(names); !known {
		return nil, fault.New(fault.InvalidImport, "the archive has no folder of a SillyTavern user: none of characters, chats, worlds and the like is in it")
	}
	return entries, nil
}

// count is how many files list returns.
func count(r io.ReaderAt, size int64) (int, error) {
	entries, err := list(r, size)
	return len(entries), err
}

func filename(name string) string {
	name = character.OneLine(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if name == "" || name == "." || name == "/" {
		name = "SillyTavern.zip"
	}
	return op.Truncate(name, maxFilename)
}

// dropParts removes an archive; what remains of it is for maintenance.
func (s *Service) dropParts(ctx context.Context, userID, id string) {
	for removed := 1; removed > 0; {
		err := s.store.Update(ctx, userID, func(tx Tx) (err error) {
			removed, err = tx.DropUpload(id, dropAtOnce)
			return err
		})
		if err != nil {
			s.opts.Log.WarnContext(ctx, "an imported archive is not removed yet", "err", err)
			return
		}
	}
}

// event says how far an import is.
func event(userID, by string, i *Import) *stream.Event {
	return op.Event(userID, EventImport, by, map[string]any{"import": Wire(i)})
}

// EventImport is the event of an import.
const EventImport = "sillytavern.import"

// Get returns an import.
func (s *Service) Get(ctx context.Context, userID, id string) (*Import, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Import, error) { return tx.FolderImport(id) })
}

// List lists the imports, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) List(ctx context.Context, userID, cursor string, limit int) (*op.Page[*Import], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*Import, string, error) { return tx.FolderImports(cursor, limit) })
}

// Stop ends an import that is open. What it has taken stays.
//
// Errors: Conflict for one that has ended.
func (s *Service) Stop(ctx context.Context, c *op.Call, id string) (*Import, error) {
	var stopped *Import
	_, err := op.Once(ctx, s.store, c, func(tx Tx) (named, error) {
		imp, err := tx.FolderImport(id)
		if err == nil && !imp.Open() {
			err = fault.New(fault.Conflict, "the import has ended already")
		}
		if err != nil {
			return named{}, err
		}
		imp.State = jobs.Cancelled
		if err := tx.UpdateImport(imp); err != nil {
			return named{}, err
		}
		if err := tx.Jobs.CancelJobs(id, JobImport); err != nil {
			return named{}, err
		}
		stopped = imp
		return named{id}, tx.Emit(event(c.UserID, c.By(), imp))
	})
	if err != nil {
		return nil, err
	}
	if stopped != nil {
		s.dropParts(context.WithoutCancel(ctx), c.UserID, id)
	}
	return s.Get(ctx, c.UserID, id)
}

// Delete removes an import that has ended, with its report. What it has taken stays.
//
// Errors: Conflict for one that is open.
func (s *Service) Delete(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		imp, err := tx.FolderImport(id)
		if err == nil && imp.Open() {
			err = fault.New(fault.Conflict, "the import has not ended; stop it first")
		}
		if err != nil {
			return err
		}
		return tx.DeleteImport(id)
	})
}

// Files lists the files of an import, in the order in which they were read; limit is 1 to 200, 0 = 50.
//
// Errors: Invalid for an unknown outcome or kind.
func (s *Service) Files(ctx context.Context, userID, id string, f Filter, cursor string, limit int) (*op.Page[*File], error) {
	check := &op.Checks{}
	if f.Outcome != "" {
		op.OneOf(check, "outcome", f.Outcome, []Outcome{Taken, Kept, NotTaken})
	}
	if f.Kind != "" {
		op.OneOf(check, "kind", f.Kind, folder.Kinds())
	}
	after := int64(-1)
	if cursor != "" {
		n, err := strconv.ParseInt(cursor, 10, 64)
		check.That(err == nil && n >= 0, "cursor", "value", "is not one of ours")
		after = n
	}
	if check.Err() != nil {
		return nil, check.Err()
	}
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*File, string, error) {
		files, last, err := tx.Reports(id, f, after, limit)
		if last < 0 || err != nil {
			return files, "", err
		}
		return files, strconv.FormatInt(last, 10), nil
	})
}
