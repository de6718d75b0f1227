package tavern

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/tavern/folder"
)

// JobImport is the kind of the jobs of imports. Their subject is an import.
const JobImport = "sillytavern.import"

// Limits of attempts at an import.
const (
	allAttempts = 1000           // at its job: a crash counts
	mostStuck   = 20             // attempts between which no file was done, after which the next files are left out
	longest     = 48 * time.Hour // one attempt
)

// How often an import stores how far it is.
const (
	storeEvery = 500 * time.Millisecond
	storeFiles = 25
	tellEvery  = time.Second
)

// Kinds are the jobs of the service, for jobs.Runner.Handle.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobImport, Run: s.run, AtOnce: 2, PerUser: 1, Attempts: allAttempts, Timeout: longest}}
}

// run is an attempt at an import. It goes on behind the files that are in the report.
type run struct {
	*Service
	userID string
	job    *jobs.Job
	imp    *Import
	stuck  bool // earlier attempts ended again and again at the next files

	seen // the objects of the files so far

	files   []*File  // done, and not stored yet
	known   []*Known // the objects of files
	stored  time.Time
	told    time.Time
	stopped bool // somebody has stopped the import
}

// progress is the note of the job: where the last attempt began, and how many did so there.
type progress struct {
	Done  int `json:"done"`
	Tries int `json:"tries"`
}

func (s *Service) run(ctx context.Context, j *jobs.Job) error {
	r := &run{Service: s, userID: j.UserID, job: j}
	if err := r.begin(ctx); err != nil || r.imp == nil {
		return err
	}
	err := r.all(ctx)
	if err == nil {
		err = r.end(ctx, jobs.Done, nil)
	} else if !r.stopped {
		err = r.failed(ctx, err)
	}
	if r.stopped {
		return nil
	}
	return err
}

// begin notes that an attempt begins. An import that is gone or was stopped has no imp.
func (r *run) begin(ctx context.Context) error {
	return r.store.Update(ctx, r.userID, func(tx Tx) error {
		imp, err := tx.FolderImport(r.job.Subject)
		switch {
		case fault.Is(err, fault.NotFound), err == nil && !imp.Open():
			return nil
		case err != nil:
			return err
		}
		p := progress{Done: -1}
		_ = json.Unmarshal(r.job.Progress, &p) // nil = it is the first attempt
		if p.Done != imp.Done {
			p = progress{Done: imp.Done}
		}
		p.Tries++
		if imp.State = jobs.Running; imp.Counts == nil {
			imp.Counts = Counts{}
		}
		if err := errors.Join(tx.Jobs.NoteJob(r.job, p), tx.UpdateImport(imp)); err != nil {
			return err
		}
		r.imp, r.stuck = imp, p.Tries > mostStuck
		return tx.Emit(event(r.userID, "server", imp))
	})
}

// all reads the files that are left.
func (r *run) all(ctx context.Context) error {
	archive := r.upload(ctx, r.userID, r.imp.ID, r.imp.Size)
	entries, err := list(archive, r.imp.Size)
	if err != nil {
		return err
	}
	segments := plan(entries)
	if err := r.look(ctx, segments); err != nil {
		return err
	}
	skip := r.imp.Done
	for _, seg := range segments {
		if skip >= len(seg.files) {
			skip -= len(seg.files)
			continue
		}
		for _, unit := range r.units(&seg) {
			if skip > 0 {
				skip -= len(unit)
				continue
			}
			if err := r.one(ctx, unit); err != nil {
				return errors.Join(err, r.flush(context.WithoutCancel(ctx)))
			}
		}
	}
	return r.flush(ctx)
}

// one takes the files of a unit, and stores now and then how far the import is.
func (r *run) one(ctx context.Context, unit []*entry) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	done, err := r.take(ctx, unit)
	if err != nil {
		return err
	}
	for _, f := range done {
		if isDry(f.ObjectID) {
			f.ObjectID = ""
		}
	}
	r.files = append(r.files, done...)
	if len(r.files) < storeFiles && time.Since(r.stored) < storeEvery {
		return nil
	}
	return r.flush(ctx)
}

// flush stores what was done, and with it how far the import is. What an import has taken that was stopped is stored, too.
func (r *run) flush(ctx context.Context) error {
	if len(r.files) == 0 {
		return nil
	}
	tell := time.Since(r.told) >= tellEvery
	var imp *Import
	err := r.store.Update(ctx, r.userID, func(tx Tx) (err error) {
		if imp, err = tx.FolderImport(r.imp.ID); err != nil {
			return err
		}
		if imp.Done != r.imp.Done {
			return jobs.ErrLost // another process has gone on
		}
		if imp.Open() {
			p := progress{Done: imp.Done + len(r.files)}
			if err := tx.Jobs.NoteJob(r.job, p); err != nil {
				return err
			}
		}
		if err := r.put(tx, imp); err != nil || !tell {
			return err
		}
		return tx.Emit(event(r.userID, "server", imp))
	})
	if err != nil {
		return err
	}
	r.imp, r.files, r.known, r.stored = imp, nil, nil, time.Now()
	if tell {
		r.told = r.stored
	}
	if !imp.Open() {
		r.stopped = true
		return jobs.ErrLost
	}
	return nil
}

// put stores what was done as a part of an import.
func (r *run) put(tx Tx, imp *Import) error {
	if err := tx.AddReports(imp.ID, imp.Done, r.files); err != nil {
		return err
	}
	var chats []string
	for _, k := range r.known {
		if err := tx.PutKnown(k); err != nil {
			return err
		}
		if k.ObjectKind == ofConversation {
			chats = append(chats, k.ObjectID)
		}
	}
	if err := tx.PutReflected(chats...); err != nil {
		return err
	}
	if imp.Counts == nil {
		imp.Counts = Counts{}
	}
	for _, f := range r.files {
		n := imp.Counts[f.Kind]
		n.add(f.Outcome)
		imp.Counts[f.Kind] = n
	}
	imp.Done += len(r.files)
	return tx.UpdateImport(imp)
}

// failed decides what follows from an attempt that has failed: another one, or the end of the import.
func (r *run) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, jobs.ErrLost) || fault.Public(err).Retry() != "no" && !fault.Is(err, fault.StorageFull) {
		return err
	}
	public := fault.Public(err)
	r.opts.Log.WarnContext(ctx, "an import of a folder has failed", "import", r.imp.ID, "err", err)
	return r.end(ctx, jobs.Failed, &jobs.Failure{Code: public.Code, Message: public.Message})
}

// end stores that the import has ended, and removes its archive.
func (r *run) end(ctx context.Context, state jobs.State, why *jobs.Failure) error {
	err := r.store.Update(ctx, r.userID, func(tx Tx) error {
		imp, err := tx.FolderImport(r.imp.ID)
		if err != nil {
			return err
		}
		if !imp.Open() {
			r.stopped = true
			return nil
		}
		imp.State, imp.Error = state, why
		if err := errors.Join(tx.UpdateImport(imp), tx.Jobs.FinishJob(r.job)); err != nil {
			return err
		}
		return tx.Emit(event(r.userID, "server", imp))
	})
	if err != nil {
		return err
	}
	r.dropParts(context.WithoutCancel(ctx), r.userID, r.imp.ID)
	return nil
}

// units are the files of a segment that become one object each.
func (r *run) units(seg *segment) [][]*entry {
	if seg.kind == folder.Chat || seg.kind == folder.GroupChat {
		return families(seg)
	}
	return alone(seg.files)
}

// headBytes bounds the first line of a chat that is looked at to find the chat of a branch.
const headBytes = 256 << 10

// families groups chats and their branches. Most chats have none, and there may be very many.
func families(seg *segment) [][]*entry {
	heads := map[string]folder.Head{}
	for _, f := range seg.files {
		if f.reason != "" {
			continue
		}
		line, err := f.Head(headBytes)
		if err != nil {
			continue
		}
		if head := folder.ReadHead(firstLine(line)); head.Main != "" {
			heads[f.path] = head
		}
	}
	if len(heads) == 0 {
		return alone(seg.files)
	}
	var units [][]*entry
	byPath, paths := map[string]*entry{}, []string{}
	for _, f := range seg.files {
		if f.reason != "" { // it may have the name of another one
			units = append(units, []*entry{f})
			continue
		}
		byPath[f.path] = f
		paths = append(paths, f.path)
	}
	for _, family := range folder.Families(paths, heads) {
		unit := make([]*entry, len(family.Files))
		for i, p := range family.Files {
			unit[i] = byPath[p]
		}
		units = append(units, unit)
	}
	return units
}

// alone makes a unit of each file.
func alone(files []*entry) [][]*entry {
	units := make([][]*entry, len(files))
	for i := range files {
		units[i] = files[i : i+1 : i+1]
	}
	return units
}
