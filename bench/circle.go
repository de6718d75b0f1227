package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"nodest/fault"
	"nodest/jobs"
	"nodest/llm"
)

// CircleOptions are those of Circle.
type CircleOptions struct {
	Days       int    // default 30
	Characters int    // default 20
	Seed       uint64 // default 1
	JSON       bool
	Database   string // URL of an empty PostgreSQL schema; "" = SQLite in a temporary folder
}

var quiet = slog.New(slog.DiscardHandler)

// Circle lets a circle live for some days in virtual time, with a scripted model and with
// the offline model, and prints what became of it.
func Circle(ctx context.Context, out io.Writer, o CircleOptions) error {
	o.Days, o.Characters, o.Seed = cmp.Or(o.Days, 30), cmp.Or(o.Characters, 20), cmp.Or(o.Seed, 1)
	all := circleReport{Models: map[string]*circleFigures{}}
	for _, m := range []struct {
		name  string
		asker llm.Asker
	}{{"scripted", scriptedAsker(o.Seed)}, {"offline", offlineAsker()}} {
		figures, err := liveCircle(ctx, o, &watchedModel{name: m.name, asker: m.asker})
		if err != nil {
			return fmt.Errorf("with the %s model: %w", m.name, err)
		}
		all.add(m.name, figures)
		if !o.JSON {
			figures.print(out, m.name, o)
		}
	}
	if !o.JSON {
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

// liveCircle is one life of a circle.
func liveCircle(ctx context.Context, o CircleOptions, model *watchedModel) (figures *circleFigures, err error) {
	dir, err := os.MkdirTemp("", "nodest-circle-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	begun := time.Now()
	w, err := openCircleWorld(ctx, dir, o, model)
	if w != nil && w.db != nil {
		defer func() { err = errors.Join(err, w.db.Close()) }()
	}
	if err != nil {
		return nil, err
	}
	model.secrets = w.secrets
	if err := w.live(ctx); err != nil {
		return nil, err
	}
	if figures, err = w.measure(ctx); err == nil {
		figures.Seconds = time.Since(begun).Seconds()
	}
	return figures, err
}

// live lets the days pass: the user acts at set times, and jobs run when they are due.
func (w *circleWorld) live(ctx context.Context) error {
	end := w.clock.Now().AddDate(0, 0, w.o.Days)
	for _, act := range w.visits(end) {
		if err := w.work(ctx, act.at); err != nil {
			return err
		}
		w.clock.to(act.at)
		if err := act.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", act.at, err)
		}
	}
	return w.work(ctx, end)
}

// work runs the jobs that are due until a time.
func (w *circleWorld) work(ctx context.Context, until time.Time) error {
	var names []string
	var wants []jobs.Want
	for name := range w.kinds {
		names = append(names, name)
		wants = append(wants, jobs.Want{Kind: name, Free: 16, PerUser: 16})
	}
	for {
		view, err := w.db.LookAtJobs(ctx, "bench", names)
		if err != nil {
			return err
		}
		if !view.Due {
			next := w.clock.Now().Add(view.Next)
			if view.Next == 0 || next.After(until) {
				return nil
			}
			w.clock.to(next)
			continue
		}
		claimed, err := w.db.ClaimJobs(ctx, "bench", time.Hour, wants)
		if err != nil {
			return err
		}
		for _, j := range claimed {
			if err := w.run(ctx, j); err != nil {
				return err
			}
		}
	}
}

// run does one job as a runner does, and ends it.
func (w *circleWorld) run(ctx context.Context, j *jobs.Job) error {
	kind := w.kinds[j.Kind]
	failed := kind.Run(ctx, j)
	outcome := jobs.Outcome{State: jobs.Done}
	if failed != nil {
		public := fault.Public(failed)
		outcome = jobs.Outcome{State: jobs.Queued, Error: &jobs.Failure{Code: public.Code, Message: public.Message}, NotBefore: w.clock.Now().Add(time.Minute)}
		if j.Attempt >= cmp.Or(kind.Attempts, 5) {
			outcome = jobs.Outcome{State: jobs.Failed, Error: outcome.Error}
		}
	}
	if err := w.db.EndJob(ctx, j, outcome); err != nil && !errors.Is(err, jobs.ErrLost) {
		return err
	}
	return nil
}
