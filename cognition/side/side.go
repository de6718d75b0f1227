// Package side runs the side branches of conversations: model calls in the background that see a conversation and never
// enter it. It evaluates what was looked up, proposes knowledge to keep, and keeps what was reviewed as memories.
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
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]

// Options tune a Service.
type Options struct {
	// Model returns what the branches of a user ask, and its name; nil, and a nil result, mean that they wait.
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
// conversation rests, and runs the branches in the queue. One that fails is tried again with the job.
func (svc *Service) run(ctx context.Context, j *jobs.Job) error {
	queue, err := svc.queue(ctx, j)
	for _, branch := range queue {
		err = errors.Join(err, svc.branch(ctx, j.UserID, j.Subject, branch))
	}
	if err == nil && len(queue) > 0 {
		err = svc.store.Update(ctx, j.UserID, func(tx Tx) error { return tx.Jobs.FinishJob(j) })
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// branch runs a side branch, which leaves the queue with its last transaction.
func (svc *Service) branch(ctx context.Context, userID, conversationID, branch string) error {
	if branch == cognition.BranchReflection {
		return svc.reflect(ctx, userID, conversationID)
	}
	return svc.evaluate(ctx, userID, conversationID)
}

// due are the branches that have something to do, in their order.
func due(tx Tx, conv *chat.Conversation, s cognition.State) (all []string, err error) {
	unread, err := unread(tx, conv, s)
	if err != nil {
		return nil, err
	}
	open, err := pending(tx, conv.ID)
	if unread {
		all = append(all, cognition.BranchReflection)
	}
	if len(open) > 0 {
		all = append(all, cognition.BranchEval)
	}
	return all, err
}

// queue returns the branches to run. If there are none, it ends the job, and enqueues it for the time at which the
// conversation counts as ended.
func (svc *Service) queue(ctx context.Context, j *jobs.Job) (queue []string, err error) {
	return op.Write(ctx, svc.store, j.UserID, func(tx Tx) ([]string, error) {
		s, err := tx.Log.LockSideState(j.Subject)
		if err != nil {
			return nil, err
		}
		conv, err := tx.Chats.Conversation(j.Subject)
		if err != nil {
			return nil, err
		}
		waiting, err := due(tx, conv, s)
		if err != nil {
			return nil, err
		}
		if s.PendingEval {
			s.Queue = append(s.Queue, cognition.BranchEval)
		}
		asked := slices.DeleteFunc(slices.Clone(waiting), func(b string) bool { return !slices.Contains(s.Queue, b) })
		rests := conv.UpdatedAt.Add(svc.opts.Idle)
		switch {
		case len(waiting) == 0:
			return nil, cmp.Or(tx.Log.PutSideState(j.Subject, cognition.State{Reflected: s.Reflected}), tx.Jobs.FinishJob(j))
		case len(asked) > 0:
		case tx.Now().Before(rests):
			return nil, cmp.Or(tx.Jobs.FinishJob(j), tx.Jobs.Enqueue(Look(j.Subject, rests)))
		default:
			asked, s.EvalTrigger = waiting, cognition.TaskCompletion
		}
		s.PendingEval, s.Queue = false, asked
		return asked, tx.Log.PutSideState(j.Subject, s)
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

// BeforeSummary runs the branches that have something to do before messages are summarised, each within 20 seconds; a
// failure stops nothing.
func (svc *Service) BeforeSummary(ctx context.Context, userID, conversationID string) {
	waiting, err := op.Write(ctx, svc.store, userID, func(tx Tx) ([]string, error) {
		s, err := tx.Log.LockSideState(conversationID)
		if err != nil {
			return nil, err
		}
		conv, err := tx.Chats.Conversation(conversationID)
		if err != nil {
			return nil, err
		}
		waiting, err := due(tx, conv, s)
		if err != nil || len(waiting) == 0 {
			return nil, err
		}
		s.PendingEval, s.EvalTrigger, s.Queue = false, cognition.Compression, append(slices.Clone(waiting), cognition.BranchCompression)
		later := tx.Now().Add(time.Duration(len(waiting)) * branchTime)
		return waiting, cmp.Or(tx.Log.PutSideState(conversationID, s), tx.Jobs.Enqueue(Look(conversationID, later)))
	})
	for _, branch := range waiting {
		limited, cancel := context.WithTimeoutCause(ctx, branchTime, errSlow)
		err = errors.Join(err, svc.branch(limited, userID, conversationID, branch))
		cancel()
	}
	if err != nil && ctx.Err() == nil {
		svc.opts.Log.WarnContext(ctx, "summary goes on without a side branch", "conversation", conversationID, "err", err)
	}
}

// branchTime is how long a summary waits for a side branch.
const branchTime = 20 * time.Second

var errSlow = errors.New("the side branch took too long")

// model is what the branches of a user ask; nil = there is none.
func (svc *Service) model(ctx context.Context, userID string) (llm.Asker, error) {
	if svc.opts.Model == nil {
		return nil, nil
	}
	model, _, err := svc.opts.Model(ctx, userID)
	return model, err
}

// evaluate asks the model about the queries that wait and stores its answers. Nothing is stored for a query that another
// run has evaluated meanwhile.
func (svc *Service) evaluate(ctx context.Context, userID, conversationID string) error {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return err
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
	return svc.store.Update(ctx, userID, func(tx Tx) error { return keepVerdicts(tx, conversationID, found) })
}

// keepVerdicts stores evaluations of queries that still wait, and ends the branch.
func keepVerdicts(tx Tx, conversationID string, found []*verdict) error {
	s, err := tx.Log.LockSideState(conversationID)
	if err != nil {
		return err
	}
	open, err := pending(tx, conversationID)
	if err != nil {
		return err
	}
	waits := map[int64]bool{}
	for _, e := range open {
		waits[keyOf(e)] = true
	}
	var events []*cognition.Event
	for _, v := range found {
		if !waits[keyOf(v.of)] {
			continue
		}
		e := cognition.New(conversationID, &v.Evaluation)
		e.MessageID = v.of.MessageID
		events = append(events, e)
	}
	if err := tx.Log.AppendEvents(conversationID, events...); err != nil {
		return err
	}
	s.Leave(cognition.BranchEval)
	return tx.Log.PutSideState(conversationID, s)
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

// Limits of the conversation that a branch sees.
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
	path, err := newest(tx, conv, seenMessages)
	if err != nil {
		return nil, err
	}
	left, err := withoutForgotten(tx, conv, path)
	a.queries = slices.DeleteFunc(a.queries, func(e *cognition.Event) bool { return has(path, e.MessageID) && !has(left, e.MessageID) })
	a.history = history(left)
	return a, err
}

func has(path []*chat.Message, id string) bool {
	return slices.ContainsFunc(path, func(m *chat.Message) bool { return m.ID == id })
}

// newest are the last messages of the shown branch that a prompt has, without a reply that is being written.
func newest(tx Tx, conv *chat.Conversation, limit int) ([]*chat.Message, error) {
	if conv.HeadID == "" {
		return nil, nil
	}
	path, _, err := tx.Chats.Path(conv.ID, conv.HeadID, "", limit)
	return slices.DeleteFunc(chat.InPrompt(path), func(m *chat.Message) bool { return m.Status == chat.StatusStreaming }), err
}

// history is what a branch sees of messages.
func history(messages []*chat.Message) (all []llm.Message) {
	for _, m := range messages {
		role := llm.User
		if m.Role == chat.RoleAssistant {
			role = llm.Assistant
		}
		all = append(all, llm.Message{Role: role, Text: op.Truncate(m.Text(), seenText)})
	}
	return all
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
