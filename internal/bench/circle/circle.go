// Package circle measures a social circle: how lively it is, how much it repeats itself, and what it costs.
package circle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/store"
)

// Options are those of Measure.
type Options struct {
	Days       int    // default 30
	Characters int    // default 20
	Seed       uint64 // default 1
	JSON       bool
	Database   string // URL of a PostgreSQL, for two processes in a schema that is dropped in the end; "" = SQLite in a temporary folder
}

var quiet = slog.New(slog.DiscardHandler)

// Measure lets a circle live for some days in virtual time, with a scripted model and with
// the offline model, and prints what became of it.
func Measure(ctx context.Context, out io.Writer, o Options) error {
	o.Days, o.Characters, o.Seed = cmp.Or(o.Days, 30), cmp.Or(o.Characters, 20), cmp.Or(o.Seed, 1)
	all := circleReport{Models: map[string]*circleFigures{}}
	for _, m := range []struct {
		name  string
		asker llm.Asker
	}{{"scripted", newScripted(o.Seed)}, {"offline", offlineAsker()}} {
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
func liveCircle(ctx context.Context, o Options, model *watchedModel) (figures *circleFigures, err error) {
	options := store.Options{Log: quiet}
	var drop func() error
	if o.Database != "" {
		options.URL, drop, err = NewSchema(ctx, o.Database)
	} else if options.Dir, err = os.MkdirTemp("", "nodest-circle-"); err == nil {
		drop = func() error { return os.RemoveAll(options.Dir) }
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	begun := time.Now()
	w, err := openCircleWorld(ctx, options, o, model)
	defer func() { err = errors.Join(err, w.close()) }()
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
		w.clock.To(act.at)
		if err := act.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", act.at, err)
		}
	}
	return w.work(ctx, end)
}

// crowd is the time in which jobs become due that several processes run at once.
const crowd = 5 * time.Minute

// work runs the jobs that are due until a time. All processes work side by side; the clock
// stands still meanwhile.
func (w *circleWorld) work(ctx context.Context, until time.Time) error {
	var names []string
	for _, want := range w.first().wants {
		names = append(names, want.Kind)
	}
	for {
		view, err := w.first().db.LookAtJobs(ctx, "bench", names)
		if err != nil {
			return err
		}
		if len(view.Due) == 0 {
			next := w.clock.Now().Add(view.Next)
			if len(w.processes) > 1 { // so that there is work for both
				next = next.Add(crowd).Truncate(crowd)
			}
			if view.Next == 0 || next.After(until) {
				return nil
			}
			w.clock.To(next)
			continue
		}
		failed := make([]error, len(w.processes))
		var working sync.WaitGroup
		for i, p := range w.processes {
			working.Go(func() { failed[i] = p.work(ctx) })
		}
		working.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
}

// work runs jobs until none is due.
func (p *circleProcess) work(ctx context.Context) error {
	for {
		claimed, err := p.db.ClaimJobs(ctx, p.name, time.Hour, p.wants)
		if err != nil || len(claimed) == 0 {
			return err
		}
		for _, j := range claimed {
			if err := p.run(ctx, j); err != nil {
				return err
			}
		}
	}
}

// run does one job as a runner does, and ends it.
func (p *circleProcess) run(ctx context.Context, j *jobs.Job) error {
	kind := p.kinds[j.Kind]
	failed := kind.Run(ctx, j)
	outcome := jobs.Outcome{State: jobs.Done}
	if failed != nil {
		public := fault.Public(failed)
		if public.Code == fault.Internal && !errors.Is(failed, jobs.ErrLost) {
			return fmt.Errorf("%s: %w", j.Kind, failed)
		}
		outcome = jobs.Outcome{State: jobs.Queued, Error: &jobs.Failure{Code: public.Code, Message: public.Message}, After: time.Minute}
		if j.Attempt >= cmp.Or(kind.Attempts, 5) {
			outcome = jobs.Outcome{State: jobs.Failed, Error: outcome.Error}
		}
	}
	p.jobs++
	if err := p.db.EndJob(ctx, j, outcome); err != nil && !errors.Is(err, jobs.ErrLost) {
		return err
	}
	return nil
}
