package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"nodest/internal/fault"
)

// Kind says how jobs of a kind are done.
type Kind struct {
	Name string // area.verb

	// Run does one job, in a goroutine of its own. nil ends it as done, if Run has
	// not done so itself with Tx.FinishJob. After an error it is tried again where
	// that can help (fault.Retry: not for a wrong request or a refused key), after
	// a backoff or what the error asks for; what the user may see of the error is
	// stored. After ErrLater it goes on at its next turn, or behind what the error asks
	// for. ctx ends when the job was lost or cancelled, on timeout, and when the server
	// stops. It may also end when Run has finished the job.
	Run func(ctx context.Context, j *Job) error

	AtOnce   int           // that run side by side in this process; default 4
	PerUser  int           // how many of these may be one user's; default half of AtOnce, at least 1
	Attempts int           // default 5; a crash counts, a stop does not
	Timeout  time.Duration // time for one attempt; default 10 min
}

func (k Kind) withDefaults() Kind {
	k.AtOnce = cmp.Or(k.AtOnce, 4)
	k.PerUser = cmp.Or(k.PerUser, max(1, k.AtOnce/2))
	k.Attempts = cmp.Or(k.Attempts, 5)
	k.Timeout = cmp.Or(k.Timeout, 10*time.Minute)
	return k
}

// backoff is 1 s after the first attempt, then 4 s, 16 s, …, at most 15 min.
func backoff(attempt int) time.Duration {
	return min(time.Second<<min(2*(attempt-1), 20), 15*time.Minute)
}

// Options tune a Runner. The zero value fits one of several processes.
type Options struct {
	Process string // name of this process in leases; default: random
	// Alone says that no other process works on the database: what a predecessor
	// was doing is taken over at once.
	Alone bool
	Lease time.Duration // after a crash, a job waits so long; default 30 s
	Poll  time.Duration // how often the queue is checked for changes by other processes; default 1 s
	Log   *slog.Logger  // default slog.Default()
}

// Runner claims jobs and runs them. Of several Runners on one database, in one
// process or many, one gets each job. Its methods are safe for concurrent use.
type Runner struct {
	store Store
	opts  Options
	wake  chan struct{}
	kinds []*Kind // before Start, and unchanged after it

	stop  context.CancelFunc // stops the loop
	ended chan struct{}      // closed by the loop

	working sync.WaitGroup // attempts

	mu      sync.Mutex
	started bool
	closing bool
	running map[Ref]*attempt
	last    map[string]*string // who was served last, by kind
}

// attempt is a job that this runner runs.
type attempt struct {
	job    *Job
	cancel context.CancelCauseFunc
}

var (
	errStopping = errors.New("jobs: the server is shutting down")
	errTimeout  = fault.New(fault.UpstreamTimeout, "the job took too long")
)

// New returns a runner that does nothing before Start; Close ends it.
func New(store Store, o Options) *Runner {
	o.Process = cmp.Or(o.Process, uuid.NewString())
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Runner{
		store: store, opts: o, wake: make(chan struct{}, 1),
		ended: make(chan struct{}), running: map[Ref]*attempt{}, last: map[string]*string{},
	}
}

// Handle registers kinds, each once and before Start. Jobs of a kind that no
// process handles stay in the queue.
func (r *Runner) Handle(kinds ...Kind) {
	for _, k := range kinds {
		k = k.withDefaults()
		r.kinds = append(r.kinds, &k)
	}
}

// Start begins to work. It is called once.
func (r *Runner) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.stop = true, cancel
	go r.loop(ctx)
}

// Close claims nothing more and waits for the running jobs. Those that still run
// when ctx ends are stopped and go back into the queue; the attempt does not
// count. Close returns when no goroutine of the runner is left; a second call only
// waits.
func (r *Runner) Close(ctx context.Context) (err error) {
	r.mu.Lock()
	started := r.started
	r.closing = true
	r.mu.Unlock()
	if !started {
		return nil
	}
	idle := make(chan struct{})
	go func() {
		r.working.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		err = context.Cause(ctx)
		r.mu.Lock()
		for _, a := range r.running {
			a.cancel(errStopping)
		}
		r.mu.Unlock()
		<-idle
	}
	r.stop()
	<-r.ended
	return err
}

// Changed tells the runner that jobs were enqueued, or which ones were cancelled,
// in its process. It does not wait.
func (r *Runner) Changed(cancelled []string) {
	if len(cancelled) > 0 {
		r.mu.Lock()
		for ref, a := range r.running {
			if slices.Contains(cancelled, ref.ID) {
				a.cancel(ErrLost)
			}
		}
		r.mu.Unlock()
	}
	r.poke()
}

func (r *Runner) poke() {
	select {
	case r.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// loop is the only one that claims.
func (r *Runner) loop(ctx context.Context) {
	defer close(r.ended)
	alone := ""
	if r.opts.Alone {
		alone = r.opts.Process
	}
	renewed := time.Now()
	for {
		wait, err := r.round(ctx, alone, &renewed)
		if err == nil {
			alone = ""
		} else if ctx.Err() == nil {
			r.opts.Log.ErrorContext(ctx, "job queue not available", "err", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// round looks at the queue once and returns how long the runner may sleep. alone
// is set in the first round of a runner that is.
func (r *Runner) round(ctx context.Context, alone string, renewed *time.Time) (wait time.Duration, err error) {
	wait = r.opts.Poll
	ctx, cancel := context.WithTimeout(ctx, r.opts.Lease/3)
	defer cancel()
	if held := r.held(); len(held) > 0 && time.Since(*renewed) >= r.opts.Lease/3 {
		if err := r.store.RenewJobs(ctx, r.opts.Process, held, r.opts.Lease); err != nil {
			return wait, err
		}
		*renewed = time.Now()
	} else if len(held) == 0 {
		*renewed = time.Now() // a lease is fresh when it begins
	}
	wants, attempts := r.wants()
	before := r.refs()
	view, err := r.store.LookAtJobs(ctx, r.opts.Process, kindsOf(wants))
	if err != nil {
		return wait, err
	}
	r.drop(before, view.Held)
	if view.Over || alone != "" {
		if err := r.store.RecoverJobs(ctx, attempts, alone); err != nil {
			return wait, err
		}
		view.Due = kindsOf(wants)
	}
	if view.Next > 0 {
		wait = min(wait, view.Next)
	}
	if wants = dueOf(wants, view.Due); len(wants) == 0 {
		return wait, nil
	}
	claimed, err := r.store.ClaimJobs(ctx, r.opts.Process, r.opts.Lease, wants)
	if err != nil {
		return wait, err
	}
	return wait, r.start(ctx, claimed)
}

func kindsOf(wants []Want) []string {
	names := make([]string, len(wants))
	for i, w := range wants {
		names[i] = w.Kind
	}
	return names
}

// dueOf returns what is wanted of kinds that are due.
func dueOf(wants []Want, due []string) []Want {
	return slices.DeleteFunc(wants, func(w Want) bool { return !slices.Contains(due, w.Kind) })
}

func (r *Runner) held() (ids []string) {
	for _, ref := range r.refs() {
		ids = append(ids, ref.ID)
	}
	return ids
}

func (r *Runner) refs() []Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.running))
}

// wants is what there is room for, and how often each kind is tried.
func (r *Runner) wants() (wants []Want, attempts map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempts = make(map[string]int, len(r.kinds))
	for _, k := range r.kinds {
		attempts[k.Name] = k.Attempts
		w := Want{Kind: k.Name, Free: k.AtOnce, After: r.last[k.Name], PerUser: k.PerUser, Shared: k.PerUser < k.AtOnce, Running: map[string]int{}}
		for _, a := range r.running {
			if a.job.Kind == k.Name {
				w.Free--
				w.Running[a.job.UserID]++
			}
		}
		if w.Free > 0 && !r.closing {
			wants = append(wants, w)
		}
	}
	return wants, attempts
}

// drop ends the contexts of jobs that are no longer ours. They were running
// before the store was asked.
func (r *Runner) drop(running, held []Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range running {
		if a := r.running[ref]; a != nil && !slices.Contains(held, ref) {
			a.cancel(ErrLost)
		}
	}
}

// start runs what was claimed, or gives it back when the runner closes.
func (r *Runner) start(ctx context.Context, claimed []*Job) error {
	var failed []error
	for _, j := range claimed {
		if !r.begin(j) {
			err := r.store.EndJob(context.WithoutCancel(ctx), j, Outcome{State: Queued, Uncounted: true})
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *Runner) begin(j *Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r.running[j.Ref()] = &attempt{j, cancel}
	r.last[j.Kind] = &j.UserID
	kind := r.kinds[slices.IndexFunc(r.kinds, func(k *Kind) bool { return k.Name == j.Kind })]
	r.working.Go(func() {
		defer func() { // also when the handler ended its goroutine
			cancel(nil)
			r.mu.Lock()
			delete(r.running, j.Ref())
			r.mu.Unlock()
			r.poke() // there is room
		}()
		r.work(ctx, kind, j)
	})
	return true
}

// work runs one attempt and stores how it ended, unless the handler has done so. Where that
// cannot be stored, the lease expires and the job is tried again.
func (r *Runner) work(ctx context.Context, k *Kind, j *Job) {
	err := r.attempt(ctx, k, j)
	if err == nil && j.finished {
		return
	}
	var o Outcome
	switch lost := errors.Is(err, ErrLost) || errors.Is(context.Cause(ctx), ErrLost); {
	case err == nil:
		o.State = Done
	case lost:
		r.opts.Log.DebugContext(ctx, "a job was lost or cancelled", "kind", k.Name, "job", j.ID, "err", err)
		return
	case errors.Is(context.Cause(ctx), errStopping):
		o = Outcome{State: Queued, Uncounted: true}
	case errors.Is(err, ErrLater):
		o = Outcome{State: Queued, Uncounted: true, After: fault.Public(err).RetryAfter}
	default:
		o = r.failure(ctx, k, j, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Lease)
	defer cancel()
	if err := r.store.EndJob(ctx, j, o); err != nil && !errors.Is(err, ErrLost) { // lost: mostly it has ended itself
		r.opts.Log.ErrorContext(ctx, "result of a job not stored", "kind", k.Name, "job", j.ID, "err", err)
	}
}

// attempt calls the handler and catches what it should not do.
func (r *Runner) attempt(ctx context.Context, k *Kind, j *Job) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, k.Timeout, errTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("jobs: panic in %s: %v\n%s", k.Name, p, debug.Stack())
		} else if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
			err = errors.Join(errTimeout, err)
		}
	}()
	return k.Run(ctx, j)
}

// failure decides whether an attempt that failed is worth another one.
func (r *Runner) failure(ctx context.Context, k *Kind, j *Job, err error) Outcome {
	public := fault.Public(err)
	o := Outcome{State: Failed, Error: &Failure{public.Code, public.Message}}
	if public.Retry() != "no" && j.Attempt < k.Attempts {
		o.State = Queued
		o.After = max(backoff(j.Attempt), public.RetryAfter)
	}
	r.opts.Log.WarnContext(ctx, "job attempt failed", "kind", k.Name, "job", j.ID, "attempt", j.Attempt,
		"again", o.State == Queued, "err", err)
	return o
}
