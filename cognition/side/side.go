// Package side runs the side branches of conversations: model calls in the background that see a conversation and never
// enter it. It evaluates what was looked up, and keeps what was reviewed as memories.
package side

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// Tx is what a transaction offers for side branches.
type Tx struct {
	op.Tx
	Jobs   jobs.Tx
	Log    cognition.Tx
	Chats  chat.Tx
	Memory memory.Tx
	Votes  feedback.Tx
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]

// Options tune a Service.
type Options struct {
	// Model returns what evaluates for a user, and its name; nil, and a nil result, mean that nothing is evaluated.
	Model func(ctx context.Context, userID string) (model llm.Asker, name string, err error)
	Idle  time.Duration // after which a conversation counts as ended; default 30 min
	Log   *slog.Logger
}

// Service runs side branches. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
}

// Idle is the default of Options.Idle.
const Idle = 30 * time.Minute

// New returns a Service.
func New(store Store, o Options) *Service {
	o.Idle, o.Log = cmp.Or(o.Idle, Idle), cmp.Or(o.Log, slog.Default())
	return &Service{store, o}
}

// JobSide is the kind of job that runs the side branches of a conversation, its subject.
const JobSide = "memory.side"

// Kinds is the job, for jobs.Runner.Handle.
func (svc *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobSide, Run: svc.run, AtOnce: 2, PerUser: 1, Timeout: 5 * time.Minute}}
}

// mostUse is how long after its use a source can be evaluated.
const mostUse = 24 * time.Hour

// mostQueries are evaluated at once.
const mostQueries = 20

// run is an iteration of the conversation's worker: it clears the flag of a goal that has ended, or sees that the
// conversation rests, and runs the branches in the queue.
func (svc *Service) run(ctx context.Context, j *jobs.Job) error {
	wait, err := svc.queue(ctx, j)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil || wait {
		return err
	}
	return svc.evaluate(ctx, j.UserID, j.Subject, j)
}

// queue moves what is due into the queue. If nothing is, it ends the job, and enqueues it for the time at which the
// conversation counts as ended.
func (svc *Service) queue(ctx context.Context, j *jobs.Job) (wait bool, err error) {
	return op.Write(ctx, svc.store, j.UserID, func(tx Tx) (bool, error) {
		s, err := tx.Log.LockSideState(j.Subject)
		if err != nil {
			return false, err
		}
		open, err := pending(tx, j.Subject)
		if err != nil {
			return false, err
		}
		conv, err := tx.Chats.Conversation(j.Subject)
		if err != nil {
			return false, err
		}
		rests := conv.UpdatedAt.Add(svc.opts.Idle)
		switch {
		case len(open) == 0:
			return true, cmp.Or(tx.Log.PutSideState(j.Subject, cognition.State{}), tx.Jobs.FinishJob(j))
		case s.PendingEval, len(s.Queue) > 0:
		case tx.Now().Before(rests):
			return true, cmp.Or(tx.Jobs.FinishJob(j), tx.Jobs.Enqueue(Look(j.Subject, rests)))
		default:
			s.EvalTrigger = cognition.TaskCompletion
		}
		s.PendingEval = false
		if !slices.Contains(s.Queue, cognition.BranchEval) {
			s.Queue = append(s.Queue, cognition.BranchEval)
		}
		return false, tx.Log.PutSideState(j.Subject, s)
	})
}

// Look has the worker of a conversation look at it, not before a time.
func Look(conversationID string, at time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobSide, Subject: conversationID, NotBefore: at}
}

// pending are the queries that can still be evaluated.
func pending(tx Tx, conversationID string) ([]*cognition.Event, error) {
	open, err := tx.Log.OpenQueries(conversationID, tx.Now().Add(-mostUse), mostQueries)
	return slices.DeleteFunc(open, func(e *cognition.Event) bool { return len(sourcesOf(e)) == 0 }), err
}

func sourcesOf(e *cognition.Event) []cognition.Source {
	var q cognition.Query
	_ = cognition.Read(e, &q) // one that cannot be read has no sources
	return q.Sources
}

// BeforeSummary evaluates what waits before messages are summarised, within 20 seconds; a failure stops nothing.
func (svc *Service) BeforeSummary(ctx context.Context, userID, conversationID string) {
	due, err := op.Write(ctx, svc.store, userID, func(tx Tx) (bool, error) {
		open, err := pending(tx, conversationID)
		if err != nil || len(open) == 0 {
			return false, err
		}
		s, err := tx.Log.LockSideState(conversationID)
		if err != nil {
			return false, err
		}
		s.PendingEval, s.EvalTrigger, s.Queue = false, cognition.Compression, []string{cognition.BranchEval}
		return true, cmp.Or(tx.Log.PutSideState(conversationID, s), tx.Jobs.Enqueue(Look(conversationID, tx.Now().Add(branchTime))))
	})
	if err == nil && due {
		limited, cancel := context.WithTimeoutCause(ctx, branchTime, errSlow)
		defer cancel()
		err = svc.evaluate(limited, userID, conversationID, nil)
	}
	if err != nil && ctx.Err() == nil {
		svc.opts.Log.WarnContext(ctx, "summary goes on without an evaluation", "conversation", conversationID, "err", err)
	}
}

// branchTime is how long a summary waits for a side branch.
const branchTime = 20 * time.Second

var errSlow = errors.New("the side branch took too long")

// evaluate asks the model about the queries that wait and stores its answers. With a job it ends that. Nothing is
// stored for a query that another run has evaluated meanwhile.
func (svc *Service) evaluate(ctx context.Context, userID, conversationID string, j *jobs.Job) error {
	var model llm.Asker
	if svc.opts.Model != nil {
		var err error
		if model, _, err = svc.opts.Model(ctx, userID); err != nil {
			return err
		}
	}
	a, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*asked, error) { return read(tx, conversationID) })
	if err != nil {
		return err
	}
	var found []*verdict
	switch {
	case model == nil:
		svc.opts.Log.InfoContext(ctx, "queries wait: there is no model to evaluate them", "conversation", conversationID, "queries", len(a.queries))
	case len(a.queries) > 0:
		reply, err := model.Ask(ctx, llm.Prompt{Messages: a.messages(), JSON: true, MaxTokens: 2000})
		if err != nil {
			return err
		}
		if found, err = readEvaluations(reply, a.queries); err != nil {
			svc.opts.Log.WarnContext(ctx, "an evaluation could not be read", "conversation", conversationID, "err", err)
			svc.opts.Log.DebugContext(ctx, "an evaluation could not be read", "conversation", conversationID, "reply", op.Truncate(reply, 200))
		}
	}
	for _, v := range found {
		v.Trigger = a.trigger
	}
	return svc.store.Update(ctx, userID, func(tx Tx) error { return svc.keep(tx, conversationID, found, j) })
}

// keep stores evaluations of queries that still wait, ends the branch, and the job if there is one.
func (svc *Service) keep(tx Tx, conversationID string, found []*verdict, j *jobs.Job) error {
	s, err := tx.Log.LockSideState(conversationID)
	if err != nil {
		return err
	}
	open, err := pending(tx, conversationID)
	if err != nil {
		return err
	}
	conv, err := tx.Chats.Conversation(conversationID)
	if err != nil {
		return err
	}
	waits := map[int64]bool{}
	for _, e := range open {
		waits[keyOf(e)] = true
	}
	var events []*cognition.Event
	var votes []feedback.Evaluation
	for _, v := range found {
		if !waits[keyOf(v.of)] {
			continue
		}
		votes = append(votes, feedback.Evaluation{
			Source: v.KnowledgeID, CharacterID: conv.CharacterID, ConversationID: conversationID, Vote: feedback.Vote{Status: feedback.Status(v.Result.Status)},
		})
		e := cognition.New(conversationID, &v.Evaluation)
		e.MessageID = v.of.MessageID
		events = append(events, e)
	}
	if err := cmp.Or(tx.Log.AppendEvents(conversationID, events...), tx.Votes.PutVotes(votes...)); err != nil {
		return err
	}
	s.Queue = slices.DeleteFunc(s.Queue, func(branch string) bool { return branch == cognition.BranchEval })
	if !s.PendingEval { // else a goal has ended meanwhile
		s.EvalTrigger = ""
	}
	if err := tx.Log.PutSideState(conversationID, s); err != nil || j == nil {
		return err
	}
	return tx.Jobs.FinishJob(j)
}

// keyOf tells queries apart.
func keyOf(query *cognition.Event) int64 { return query.Ordinal }

// verdict is an evaluation of a query.
type verdict struct {
	cognition.Evaluation
	of *cognition.Event
}

// asked is what an evaluation is about.
type asked struct {
	trigger       string
	mission, goal string
	queries       []*cognition.Event
	history       []llm.Message
}

// Limits of the conversation that an evaluation sees.
const (
	seenMessages = 40
	seenText     = 2000 // code points of a message
)

func read(tx Tx, conversationID string) (*asked, error) {
	conv, err := tx.Chats.Conversation(conversationID)
	if err != nil {
		return nil, err
	}
	s, err := tx.Log.SideState(conversationID)
	if err != nil {
		return nil, err
	}
	a := &asked{trigger: s.EvalTrigger, mission: conv.Title}
	if a.queries, err = pending(tx, conversationID); err != nil {
		return nil, err
	}
	goals, _, err := tx.Log.Goals(conversationID, cognition.GoalActive, "", 1)
	if err != nil {
		return nil, err
	}
	for _, g := range goals {
		a.goal = g.Description
	}
	if conv.HeadID == "" {
		return a, nil
	}
	path, _, err := tx.Chats.Path(conv.ID, conv.HeadID, "", seenMessages)
	for _, m := range chat.InPrompt(path) {
		role := llm.User
		if m.Role == chat.RoleAssistant {
			role = llm.Assistant
		}
		a.history = append(a.history, llm.Message{Role: role, Text: op.Truncate(m.Text(), seenText)})
	}
	return a, err
}

// readEvaluations reads the verdicts of a model one by one, without those of an unknown query, source or status.
func readEvaluations(reply string, queries []*cognition.Event) (all []*verdict, _ error) {
	o, err := llm.ReadObject(reply, "evaluations")
	if err != nil {
		return nil, err
	}
	type place struct {
		query  int64
		source string
	}
	known := map[place]bool{}
	for _, raw := range o.List("evaluations") {
		one := llm.ObjectOf(string(raw), "")
		for _, v := range one.List("assessments") {
			for _, q := range queries {
				e := verdictOf(one, llm.ObjectOf(string(v), ""), q)
				if e == nil || known[place{keyOf(q), e.KnowledgeID}] {
					continue
				}
				known[place{keyOf(q), e.KnowledgeID}] = true
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// verdictOf is a verdict if it is about a source of a query, else nil.
func verdictOf(of, said llm.Object, e *cognition.Event) *verdict {
	place := cognition.PlaceOf(e)
	source := cmp.Or(said.Text("source_id"), said.Text("knowledge_id"))
	status, reason := cmp.Or(said.Text("status"), said.Text("eval_status")), said.Text("reason")
	if result := llm.ObjectOf(string(said["eval_result"]), "status"); result != nil {
		status, reason = cmp.Or(status, result.Text("status")), cmp.Or(reason, result.Text("reason"))
	}
	status = strings.ToLower(status)
	sequence := of.Integers("query_sequence")
	if len(sequence) != 1 || sequence[0] != place.Sequence || !slices.Contains(cognition.Statuses, status) {
		return nil
	}
	if !slices.ContainsFunc(sourcesOf(e), func(s cognition.Source) bool { return s.ID == source }) {
		return nil
	}
	return &verdict{cognition.Evaluation{
		QuerySequence: place.Sequence, KnowledgeID: source, QueryID: place.QueryID,
		Result: cognition.Result{Status: status, Reason: op.Truncate(reason, cognition.MostContent)},
	}, e}
}
