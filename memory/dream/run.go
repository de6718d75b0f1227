package dream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nodest/framework"
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

// Limits of runs.
const (
	awayTime     = 10 * time.Minute // since the last message, before a run begins
	callsPerDay  = 24               // of a memory
	tokensPerDay = 150_000
	emptyRuns    = 2                  // nights without result, after which nights stop
	restTime     = 7 * 24 * time.Hour // for so long
)

// JobDream is the kind of the jobs of runs. Their subject is a character.
const JobDream = "memory.dream"

// Kinds are the jobs of the service, for jobs.Runner.Handle.
func (s *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobDream, Run: s.dream, AtOnce: 2, PerUser: 1, Attempts: 4, Timeout: 30 * time.Minute}}
}

type payload struct {
	RunID string `json:"runId"`
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

// begin stores a run with its job, unless one is open.
func (s *Service) begin(tx Tx, characterID string, scene *Scene, run Run) (*Run, error) {
	if err := tx.Memory.LockMemory(characterID); err != nil {
		return nil, err
	}
	open, _, err := tx.Memory.Jobs.Jobs(jobs.Filter{Kind: JobDream, Subject: characterID, Open: true}, "", 1)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		var p payload
		if err := json.Unmarshal(open[0].Payload, &p); err != nil {
			return nil, err
		}
		return tx.DreamRun(characterID, p.RunID)
	}
	last, err := tx.LastSaidTo(characterID)
	if err != nil {
		return nil, err
	}
	if !run.Forced && tx.Now().Sub(last) < awayTime {
		return nil, fault.New(fault.Conflict, "the user has talked in the last 10 minutes; force runs it nevertheless").With("reason", "talking")
	}
	calls, tokens, err := tx.DreamsSince(characterID, dayOf(tx.Now(), scene.Zone))
	if err != nil {
		return nil, err
	}
	if calls >= callsPerDay || tokens >= tokensPerDay {
		return nil, fault.New(fault.Conflict, "the model calls of this day are used up").With("reason", "spent")
	}
	run.ID, run.CharacterID, run.State, run.Step, run.CreatedAt = op.NewID(), characterID, Waiting, stepReflect, tx.Now()
	if err := tx.PutDreamRun(&run); err != nil {
		return nil, err
	}
	return &run, tx.Memory.Jobs.Enqueue(jobs.Spec{Kind: JobDream, Subject: characterID, Payload: op.MustJSON(payload{run.ID})})
}

// dayOf is the beginning of a user's day.
func dayOf(now time.Time, zone *time.Location) time.Time {
	return lang.Midnight(now.In(zone))
}

// Runs lists runs, newest first.
func (s *Service) Runs(ctx context.Context, userID, characterID, cursor string, limit int) (*op.Page[*Run], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*Run, string, error) {
		return tx.DreamRuns(characterID, cursor, limit)
	})
}

// Sweep begins the runs of all memories whose night has come.
func (s *Service) Sweep(ctx context.Context) error {
	for after := (memory.Scope{}); ; {
		scopes, err := s.store.DueForDreams(ctx, 1, after, 200)
		if err != nil || len(scopes) == 0 {
			return err
		}
		for _, scope := range scopes {
			if err := s.tonight(ctx, scope); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
				return fmt.Errorf("begin a dream: %w", err)
			}
		}
		after = scopes[len(scopes)-1]
	}
}

func (s *Service) tonight(ctx context.Context, scope memory.Scope) error {
	scene, err := s.opts.Scenes(ctx, scope.UserID, scope.CharacterID)
	if err != nil || scene.Mode != Full {
		return err
	}
	return s.store.Update(ctx, scope.UserID, func(tx Tx) error {
		traces, err := tx.TracesBehind(scope.CharacterID, mostTraces)
		if err != nil {
			return err
		}
		unread := int64(0)
		for _, t := range traces {
			unread += t.Newest - t.Reflected
		}
		runs, _, err := tx.DreamRuns(scope.CharacterID, "", emptyRuns)
		if err != nil || unread < int64(scene.Least) || !nightHasCome(tx.Now(), &scene, runs) {
			return err
		}
		_, err = s.begin(tx, scope.CharacterID, &scene, Run{Cause: byNight})
		return err
	})
}

// nightHasCome reports whether a run is to begin; runs are the newest first.
func nightHasCome(now time.Time, scene *Scene, runs []*Run) bool {
	at, err := time.Parse("15:04", scene.At)
	if err != nil {
		return false
	}
	local := now.In(scene.Zone)
	due := time.Date(local.Year(), local.Month(), local.Day(), at.Hour(), at.Minute(), 0, 0, scene.Zone)
	if now.Before(due) {
		due = due.AddDate(0, 0, -1)
	}
	if len(runs) > 0 && !runs[0].CreatedAt.Before(due) {
		return false
	}
	empty := 0
	for _, r := range runs {
		if r.Cause == byNight && r.State == Failed {
			empty++
		}
	}
	return empty < emptyRuns || now.Sub(runs[0].CreatedAt) >= restTime
}

// attempt is one attempt at a run.
type attempt struct {
	*Service
	job   *jobs.Job
	run   *Run
	scene Scene
	model llm.Asker // nil = there is none
}

// errSpent says that the calls of the day are used up: what is left waits for the next run.
var errSpent = errors.New("the model calls of this day are used up")

// dream is the job. What it has done stays done, so that another attempt goes on from there.
func (s *Service) dream(ctx context.Context, j *jobs.Job) error {
	a := &attempt{Service: s, job: j}
	var p payload
	if err := json.Unmarshal(j.Payload, &p); err != nil {
		return err
	}
	err := a.load(ctx, p.RunID)
	if fault.Is(err, fault.NotFound) {
		return nil // it was purged
	}
	if err == nil {
		err = a.all(ctx)
	}
	if err == nil || ctx.Err() != nil || !errors.Is(err, errUnusable) && j.Attempt < 3 && fault.Retry(fault.Public(err).Code) != "no" {
		return err
	}
	return a.fail(ctx, err)
}

func (a *attempt) load(ctx context.Context, runID string) (err error) {
	if a.scene, err = a.opts.Scenes(ctx, a.job.UserID, a.job.Subject); err != nil {
		return err
	}
	if a.model, err = a.opts.Model(ctx, a.job.UserID, a.job.Subject); err != nil {
		return err
	}
	return a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		if a.run, err = tx.DreamRun(a.job.Subject, runID); err != nil {
			return err
		}
		a.run.State = Running
		return tx.PutDreamRun(a.run)
	})
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
		last, err := tx.LastSaidTo(a.run.CharacterID)
		return a.run.Forced || tx.Now().Sub(last) >= awayTime, err
	})
}

// postpone lets the run go on later.
func (a *attempt) postpone(ctx context.Context) error {
	return a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		a.run.State = Waiting
		if err := tx.PutDreamRun(a.run); err != nil {
			return err
		}
		if err := tx.Memory.Jobs.FinishJob(a.job); err != nil {
			return err
		}
		return tx.Memory.Jobs.Enqueue(jobs.Spec{Kind: JobDream, Subject: a.run.CharacterID, Payload: a.job.Payload, NotBefore: tx.Now().Add(awayTime)})
	})
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
	return a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		run := *a.run
		run.State, run.Failure = Failed, fault.Public(cause).Message
		return a.finish(tx, &run)
	})
}

// ask asks the model within the budget of the day. A call is counted before it is made: a crash may lose
// its answer. left calls are kept for what comes later.
func (a *attempt) ask(ctx context.Context, prompt string, left int, use func(reply string) error) error {
	again := prompt
	for try := 1; ; try++ {
		err := a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
			calls, tokens, err := tx.DreamsSince(a.run.CharacterID, dayOf(tx.Now(), a.scene.Zone))
			if err != nil {
				return err
			}
			if calls+left >= callsPerDay || tokens >= tokensPerDay {
				return errSpent
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
