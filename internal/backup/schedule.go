package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/setup"
	"nodest/store"
)

// JobKind is the kind of the job that makes a scheduled backup.
const JobKind = "server.backup"

// Plan says where scheduled backups go, and how often.
type Plan struct {
	Folder string        // "" = there are none
	Every  time.Duration // between the end of one and the beginning of the next
	Keep   int           // newest backups that stay
}

// PlanOf returns the plan of a configuration.
func PlanOf(cfg *setup.Config) Plan {
	folder := cfg.Get("NODEST_BACKUP_FOLDER")
	if abs, err := filepath.Abs(folder); err == nil && folder != "" {
		folder = abs
	}
	return Plan{Folder: folder, Every: cfg.Duration("NODEST_BACKUP_INTERVAL"), Keep: cfg.Count("NODEST_BACKUP_KEEP")}
}

// Jobs is the queue as a Schedule needs it.
type Jobs interface {
	Enqueue(ctx context.Context, specs ...jobs.Spec) error
	ServerJobs(ctx context.Context, kind string) ([]*jobs.Job, error)
	NoteServerJob(ctx context.Context, j *jobs.Job, progress any) error
	Now() time.Time
}

// Schedule makes the backups of a plan. Of all processes on one database, the one that holds the job
// makes a backup.
type Schedule struct {
	maker *Maker
	plan  Plan
	jobs  Jobs
	log   *slog.Logger
}

// NewSchedule returns a Schedule, whose Run and Kinds do the work.
func NewSchedule(maker *Maker, plan Plan, queue Jobs, log *slog.Logger) *Schedule {
	return &Schedule{maker: maker, plan: plan, jobs: queue, log: log}
}

// retryEvery is how soon a backup is tried again that failed.
const retryEvery = time.Hour

// lookEvery is how often a Schedule looks whether a backup is due.
const lookEvery = time.Minute

// Run enqueues a backup whenever one is due, until ctx ends. Without a folder it does nothing.
func (s *Schedule) Run(ctx context.Context) {
	if s.plan.Folder == "" {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := s.enqueueDue(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "backup not scheduled", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Schedule) enqueueDue(ctx context.Context) error {
	state, err := s.State(ctx)
	if err != nil || state.Running || state.Next.After(s.jobs.Now()) {
		return err
	}
	return s.jobs.Enqueue(ctx, jobs.Spec{Kind: JobKind, Subject: "all", Once: true})
}

// Kinds returns the kind of the jobs; none without a folder, so that a process with one takes them.
func (s *Schedule) Kinds() []jobs.Kind {
	if s.plan.Folder == "" {
		return nil
	}
	return []jobs.Kind{{Name: JobKind, AtOnce: 1, Attempts: 3, Timeout: 6 * time.Hour, Run: s.run}}
}

// Result is how a scheduled backup ended that is complete.
type Result struct {
	File          string `json:"file"`
	Bytes         int64  `json:"bytes"`
	SchemaVersion int64  `json:"schemaVersion"`
	Users         int64  `json:"users"`
	Characters    int64  `json:"characters"`
	Conversations int64  `json:"conversations"`
	Messages      int64  `json:"messages"`
	Memories      int64  `json:"memories"`
	LostKeys      int    `json:"lostKeys"` // provider keys that its secret does not decrypt
}

// run makes a backup, has its restore rehearsed, and then removes those that are too many.
func (s *Schedule) run(ctx context.Context, j *jobs.Job) error {
	result, err := s.makeOne(ctx)
	if err != nil {
		return explained(s.plan.Folder, err)
	}
	if err := s.jobs.NoteServerJob(ctx, j, result); err != nil {
		return err
	}
	if result.LostKeys > 0 {
		s.log.WarnContext(ctx, "the secret key does not decrypt all stored provider keys; their users must enter them again", "keys", result.LostKeys)
	}
	s.log.InfoContext(ctx, "backup written, and its restore rehearsed", "file", result.File, "bytes", result.Bytes)
	return explained(s.plan.Folder, s.prune())
}

func (s *Schedule) makeOne(ctx context.Context) (*Result, error) {
	if err := s.removeLeftovers(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.plan.Folder, filePrefix+s.jobs.Now().UTC().Format("20060102T150405Z")+fileSuffix)
	v, err := s.maker.Make(ctx, path, nil, func(ctx context.Context, path string) error { return Rehearse(ctx, path, s.plan.Folder) })
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &Result{
		File: path, Bytes: info.Size(), SchemaVersion: v.SchemaVersion, LostKeys: v.LostKeys, Users: v.Rows("users"),
		Characters: v.Rows("characters"), Conversations: v.Rows("conversations"), Messages: v.Rows("messages"), Memories: v.Rows("memories"),
	}, nil
}

// Names of scheduled backups, which those of nodest backup do not have: only these are removed.
const (
	filePrefix = "nodest-scheduled-"
	fileSuffix = ".zip"
)

var scheduledName = regexp.MustCompile(`^` + filePrefix + `\d{8}T\d{6}Z\.zip$`)

// files are the scheduled backups in the folder, the oldest first.
func (s *Schedule) files() ([]string, error) {
	entries, err := os.ReadDir(s.plan.Folder)
	var names []string
	for _, e := range entries {
		if scheduledName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// prune removes the oldest backups beyond those to keep.
func (s *Schedule) prune() error {
	names, err := s.files()
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-s.plan.Keep)] {
		if err := os.Remove(filepath.Join(s.plan.Folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove an old backup: %w", err)
		}
	}
	return nil
}

// removeLeftovers removes what backups have left that were killed. Only one runs at a time.
func (s *Schedule) removeLeftovers() error {
	entries, err := os.ReadDir(s.plan.Folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if whole, partial := strings.CutSuffix(e.Name(), partialSuffix); partial && scheduledName.MatchString(whole) || e.IsDir() && strings.HasPrefix(e.Name(), rehearsalPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.plan.Folder, e.Name())))
		}
	}
	return err
}

// State is what is known of scheduled backups.
type State struct {
	Plan
	Running bool
	Next    time.Time // when the next one is due; zero = now, if there is a folder
	Good    *Result   // the last that was complete; nil = none
	GoodAt  time.Time
	Failed  string // why the last one failed; "" = it has not
	EndedAt time.Time
}

// State returns what is known.
func (s *Schedule) State(ctx context.Context) (*State, error) {
	found, err := s.jobs.ServerJobs(ctx, JobKind)
	return stateOf(s.plan, found), err
}

// ReadState is Schedule.State for a database that a server may be using.
func ReadState(ctx context.Context, plan Plan, o store.Options) (*State, error) {
	found, err := store.ServerJobs(ctx, o, JobKind)
	return stateOf(plan, found), err
}

func stateOf(plan Plan, found []*jobs.Job) *State {
	st := &State{Plan: plan}
	for _, j := range found {
		switch j.State {
		case jobs.Queued, jobs.Running:
			st.Running = true
			continue
		case jobs.Done:
			if r := new(Result); st.Good == nil && json.Unmarshal(j.Progress, r) == nil {
				st.Good, st.GoodAt = r, j.UpdatedAt
			}
		}
		if j.UpdatedAt.Before(st.EndedAt) {
			continue
		}
		st.EndedAt, st.Failed = j.UpdatedAt, ""
		if j.Error != nil && j.State == jobs.Failed {
			st.Failed = j.Error.Message
		}
	}
	switch {
	case plan.Folder == "" || st.EndedAt.IsZero():
	case st.Failed != "":
		st.Next = st.EndedAt.Add(min(plan.Every, retryEvery))
	default:
		st.Next = st.EndedAt.Add(plan.Every)
	}
	return st
}

// Report says in words how the backups are going, and what to mend; "" = nothing.
func (st *State) Report() (detail, fix string) {
	detail = fmt.Sprintf("every %s to %s, the last %d are kept", shortly(st.Every), st.Folder, st.Keep)
	if st.Folder == "" {
		detail = "not scheduled by the settings of this terminal (NODEST_BACKUP_FOLDER)"
	}
	if g := st.Good; g == nil && st.Folder != "" {
		detail += "; none is complete yet"
	} else if g != nil {
		detail += fmt.Sprintf("; the last of %s (%s, %d chats, %d messages) was restored on trial",
			st.GoodAt.Local().Format("2006-01-02 15:04"), fault.Size(int(g.Bytes)), g.Conversations, g.Messages)
	}
	if st.Failed != "" {
		fix = fmt.Sprintf("the backup of %s failed: %s", st.EndedAt.Local().Format("2006-01-02 15:04"), st.Failed)
	} else if st.Folder != "" && st.Good != nil && st.overdue() {
		fix = "the last backup is older than two intervals: is the server running?"
	}
	return detail, fix
}

// overdue reports whether a backup is missing, and not merely late.
func (st *State) overdue() bool { return time.Since(st.GoodAt) > 2*st.Every+time.Hour }

// shortly is a duration without units that are zero: 24h, not 24h0m0s.
func shortly(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
