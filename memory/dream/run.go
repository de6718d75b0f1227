package dream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nodest/cognition"
	"nodest/framework"
	"nodest/internal/civil"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Modes of a character's documents.
const (
	Off        = "off"    // not in prompts, and no runs
	RecallOnly = "recall" // in prompts
	Full       = "full"   // and changed by runs
)

// Scene is the settings of one character's documents, and who speaks.
type Scene struct {
	Names    lang.Names
	Language framework.Language
	Mode     string
	At       string // HH:MM of the user's day
	Least    int    // new messages that make a run worth its price
	Zone     *time.Location
}

// States of a run.
const (
	Waiting = "waiting" // for its turn, or for the user to be away
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// Run is one dream, with its report.
type Run struct {
	ID, CharacterID string
	Cause           string // byUser or byNight
	Forced, DryRun  bool
	State           string
	Step            string // that it is at: reflect or integrate
	Reflections     int    // that were made
	Consumed        int
	Calls, Tokens   int
	Changes         []Change
	Failure         string // "" = none
	CreatedAt       time.Time
	FinishedAt      *time.Time
}

const (
	byUser  = "user"
	byNight = "night"
)

// fruitless reports whether a run has failed, or none of the changes that were proposed was of use. One
// that had nothing to say, or only what lines say already, is not.
func (r *Run) fruitless() bool {
	useless := func(c Change) bool { return c.Refused != "" && c.Refused != reasonKnown }
	return r.State == Failed || slices.ContainsFunc(r.Changes, useless) && !slices.ContainsFunc(r.Changes, func(c Change) bool { return !useless(c) })
}

// Limits of runs.
const (
	awayTime     = 10 * time.Minute // since the last message, before a run begins
	callsPerDay  = 24               // calls of a memory
	tokensPerDay = 150_000
	emptyRuns    = 2                  // in a row without result, after which nights stop
	restTime     = 7 * 24 * time.Hour // for so long
)

// JobDream is the kind of the jobs of runs. Their subject is a character.
const JobDream = "memory.dream"

// mostAttempts is how often a run is tried, also if the process dies of it.
const mostAttempts = 4

// Kinds are the jobs of the service, for jobs.Runner.Handle. The queue allows more attempts than a run
// has, so that one which a crash has ended still ends its run.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobDream, Run: s.dream, AtOnce: 2, PerUser: 1, Attempts: 5 * mostAttempts, Timeout: 30 * time.Minute}}
}

// payload names the run of a job. That of a night has none until it begins: it gets the id of its job.
type payload struct {
	RunID string `json:"runId,omitempty"`
}

func runOf(j *jobs.Job) (id string, err error) {
	var p payload
	if j.Payload != nil {
		err = json.Unmarshal(j.Payload, &p)
	}
	return cmp.Or(p.RunID, j.ID), err
}

// Order is how a user asks for a run.
type Order struct {
	Force  bool `json:"force,omitempty"`  // even if the user has just talked
	DryRun bool `json:"dryRun,omitempty"` // only tell what would change
}

// Start begins a run; while one is open, it is the answer.
//
// Errors: NotFound; Conflict if the user has just talked and does not force it, if runs are off, or if
// the calls of the day are used up.
func (s *Service) Start(ctx context.Context, c *op.Call, characterID string, o Order) (*Run, error) {
	scene, err := s.opts.Scenes(ctx, c.UserID, characterID)
	if err != nil {
		return nil, err
	}
	if scene.Mode != Full {
		return nil, fault.New(fault.Conflict, "dreams are off for this character (setting dream.mode)").With("reason", "off")
	}
	id, err := op.Once(ctx, s.store, c, func(tx Tx) (*named, error) {
		run, err := s.begin(tx, characterID, &scene, Run{Cause: byUser, Forced: o.Force, DryRun: o.DryRun})
		if err != nil {
			return nil, err
		}
		return &named{Path: run.ID}, nil
	})
	if err != nil {
		return nil, err
	}
	return op.Read(ctx, s.store, c.UserID, func(tx Tx) (*Run, error) { return tx.DreamRun(characterID, id.Path) })
}

// begin stores a run that the user has asked for, with its job, unless one is open.
func (s *Service) begin(tx Tx, characterID string, scene *Scene, run Run) (*Run, error) {
	if err := tx.Memory.LockMemory(characterID); err != nil {
		return nil, err
	}
	open, _, err := tx.Memory.Jobs.Jobs(jobs.Filter{Kind: JobDream, Subject: characterID, Open: true}, "", 1)
	if err != nil {
		return nil, err
	}
	run.ID = op.NewID()
	if len(open) > 0 {
		if run.ID, err = runOf(open[0]); err != nil {
			return nil, err
		}
		if begun, err := tx.DreamRun(characterID, run.ID); !fault.Is(err, fault.NotFound) {
			return begun, err
		} // else it is the job of a night that has not come, which now is this run's
	}
	active, err := s.active(tx, characterID)
	if err != nil {
		return nil, err
	}
	if !run.Forced && active {
		return nil, fault.New(fault.Conflict, "the user has talked in the last 10 minutes; force runs it nevertheless").With("reason", "talking")
	}
	if spent, err := s.spent(tx, characterID, scene, 0); spent || err != nil {
		return nil, cmp.Or(err, error(errSpent))
	}
	if err := add(tx, characterID, &run); err != nil {
		return nil, err
	}
	return &run, tx.Memory.Jobs.Enqueue(jobs.Spec{Kind: JobDream, Subject: characterID, Payload: op.MustJSON(payload{run.ID})})
}

func add(tx Tx, characterID string, run *Run) error {
	run.CharacterID, run.State, run.Step, run.CreatedAt = characterID, Waiting, stepReflect, tx.Now()
	return tx.AddDreamRun(run)
}

// active reports whether the user has just talked with the character.
func (s *Service) active(tx Tx, characterID string) (bool, error) {
	last, err := tx.LastSaidTo(characterID)
	return tx.Now().Sub(last) < awayTime, err
}

// spent reports whether the day has no room for a call besides those that are left for later.
func (s *Service) spent(tx Tx, characterID string, scene *Scene, left int) (bool, error) {
	calls, tokens, err := tx.DreamsSince(characterID, civil.Start(tx.Now().In(scene.Zone), scene.Zone))
	return calls+left >= callsPerDay || tokens >= tokensPerDay, err
}

// Runs lists runs, newest first.
func (s *Service) Runs(ctx context.Context, userID, characterID, cursor string, limit int) (*op.Page[*Run], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*Run, string, error) {
		return tx.DreamRuns(characterID, cursor, limit)
	})
}

// attempt is one attempt at a run.
type attempt struct {
	*Service
	job   *jobs.Job
	run   *Run
	scene Scene
	model llm.Asker          // nil = there is none
	dry   []*cognition.Event // reflections of a dry run, which are not stored
}

// errSpent says that the calls of the day are used up: what is left waits for the next run.
var errSpent = fault.New(fault.Conflict, "the model calls of this day are used up").With("reason", "spent")

// errDied ends a run that the process has died of.
var errDied = fault.New(fault.Internal, "the server stopped in the middle of it, several times")

// dream is the job. What it has done stays done, so that another attempt goes on from there.
func (s *Service) dream(ctx context.Context, j *jobs.Job) error {
	a := &attempt{Service: s, job: j}
	err := a.load(ctx)
	switch {
	case err != nil && a.run == nil, err == nil && a.run == nil:
		return err
	case err == nil && j.Attempt > mostAttempts:
		err = errDied
	case err == nil:
		err = a.all(ctx)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, jobs.ErrLost) {
		return err
	}
	if !errors.Is(err, errUnusable) && j.Attempt < mostAttempts && fault.Retry(fault.Public(err).Code) != "no" {
		return err
	}
	return a.fail(ctx, err)
}

// load reads the run, and begins that of a night. There is none where a night has nothing to do, or a run
// was purged.
func (a *attempt) load(ctx context.Context) (err error) {
	id, err := runOf(a.job)
	if err != nil {
		return err
	}
	if a.scene, err = a.opts.Scenes(ctx, a.job.UserID, a.job.Subject); err != nil {
		return err
	}
	err = a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		a.run = nil
		if err := tx.Memory.LockMemory(a.job.Subject); err != nil {
			return err
		}
		run, err := tx.DreamRun(a.job.Subject, id)
		if fault.Is(err, fault.NotFound) {
			run, err = nil, nil
			if id == a.job.ID {
				run, err = a.tonight(tx)
			}
		}
		if err != nil || run == nil || run.FinishedAt != nil {
			return err
		}
		run.State, a.run = Running, run
		return tx.PutDreamRun(run)
	})
	if err != nil || a.run == nil {
		a.run = nil
		return err
	}
	a.model, err = a.opts.Model(ctx, a.job.UserID, a.job.Subject)
	return err
}

func (a *attempt) all(ctx context.Context) error {
	for {
		away, err := a.away(ctx)
		if err != nil {
			return err
		}
		if !away {
			return a.postpone(ctx)
		}
		more, err := a.reflectOnce(ctx)
		if errors.Is(err, errSpent) {
			break
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	a.run.Step = stepIntegrate
	for range races {
		if err := a.integrate(ctx); !fault.Is(err, fault.PreconditionFailed) {
			return err
		}
	}
	return fault.New(fault.Busy, "the memory was changed by another request")
}

// races is how often an integration is done again because something has changed meanwhile.
const races = 2

// away reports whether the user does not talk, or has forced the run.
func (a *attempt) away(ctx context.Context) (bool, error) {
	return op.Read(ctx, a.store, a.job.UserID, func(tx Tx) (bool, error) {
		active, err := a.active(tx, a.run.CharacterID)
		return a.run.Forced || !active, err
	})
}

// postpone lets the run go on later.
func (a *attempt) postpone(ctx context.Context) error {
	return a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		waiting := *a.run
		waiting.State = Waiting
		if err := tx.PutDreamRun(&waiting); err != nil {
			return err
		}
		return a.later(tx, payload{a.run.ID})
	})
}

// later ends the job, and lets another one go on when the user may be away.
func (a *attempt) later(tx Tx, p payload) error {
	if err := tx.Memory.Jobs.FinishJob(a.job); err != nil {
		return err
	}
	return tx.Memory.Jobs.Enqueue(jobs.Spec{Kind: JobDream, Subject: a.job.Subject, Payload: op.MustJSON(p), NotBefore: tx.Now().Add(awayTime)})
}

// finish ends the run and its job in the transaction of its effect.
func (a *attempt) finish(tx Tx, run *Run) error {
	now := tx.Now()
	run.FinishedAt = &now
	if err := tx.PutDreamRun(run); err != nil {
		return err
	}
	if err := memory.Emit(tx.Memory, "server", "dream.finished", "", map[string]any{
		"characterId": run.CharacterID, "runId": run.ID, "state": run.State, "changes": made(run.Changes),
	}); err != nil {
		return err
	}
	return tx.Memory.Jobs.FinishJob(a.job)
}

// made counts the changes that were made.
func made(changes []Change) (n int) {
	for _, c := range changes {
		if c.Refused == "" {
			n++
		}
	}
	return n
}

func (a *attempt) fail(ctx context.Context, cause error) error {
	err := a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		run := *a.run
		run.State, run.Failure = Failed, fault.Public(cause).Message
		return a.finish(tx, &run)
	})
	if fault.Is(err, fault.NotFound) {
		return nil // it was purged
	}
	return err
}

// ask asks the model within the budget of the day. A call is counted before it is made: a crash may lose
// its answer. left calls are kept for what comes later.
func (a *attempt) ask(ctx context.Context, prompt string, left int, use func(reply string) error) error {
	again := prompt
	for try := 1; ; try++ {
		err := a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
			if spent, err := a.spent(tx, a.run.CharacterID, &a.scene, left); spent || err != nil {
				return cmp.Or(err, error(errSpent))
			}
			counted := *a.run
			counted.Calls++
			counted.Tokens += llm.EstimateTokens(again)
			return tx.PutDreamRun(&counted)
		})
		if err != nil {
			return err
		}
		a.run.Calls++
		a.run.Tokens += llm.EstimateTokens(again)
		reply, err := a.model.Ask(ctx, llm.Prompt{Text: again, JSON: true, MaxTokens: answerTokens})
		if err != nil {
			return fmt.Errorf("ask the model: %w", err)
		}
		a.run.Tokens += llm.EstimateTokens(reply)
		if err = use(reply); err == nil {
			return nil
		}
		if try == 2 {
			return fmt.Errorf("%w: %w", errUnusable, err)
		}
		again = prompt + "\n\n" + fmt.Sprintf(promptsIn(a.scene.Language)["retry"], err)
	}
}

// errUnusable ends a run: the next one asks again.
var errUnusable = fault.New(fault.EmptyReply, "the answers of the model could not be used")

// answerTokens is the limit of an answer.
const answerTokens = 4096
