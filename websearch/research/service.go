package research

import (
	"cmp"
	"context"
	"log/slog"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/llm"
	"nodest/websearch"
	"nodest/websearch/research/agent"
)

// Service has the operations on runs. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
}

// Options configure a Service.
type Options struct {
	Web       *websearch.Service
	Documents *knowledge.Service
	// Model returns the model that works for a user; nil = there is none but the offline demo.
	Model func(ctx context.Context, userID string) (llm.Asker, error)
	// Embedder returns what compares texts for a user; nil = they are compared by words.
	Embedder func(ctx context.Context, userID string) (llm.Embedder, error)
	// Ended are called in the transaction that ends a conversation's run, with an answer or, if it has
	// failed, without. They may set MessageID.
	Ended []func(tx Tx, r *Run) error
	// Transient passes on an event that is not stored.
	Transient func(*stream.Event)

	Budget  agent.Budget // for a plan that names none; zero members are the defaults
	PerUser int          // runs of a user side by side in this process; 0 = 2
	Log     *slog.Logger // default slog.Default()
}

// mostOpen is how many runs of a user are queued or running at most.
const mostOpen = 20

// New returns a Service.
func New(store Store, o Options) *Service {
	o.Budget.Tokens = cmp.Or(o.Budget.Tokens, 60_000)
	o.Budget.Seconds = cmp.Or(o.Budget.Seconds, 600)
	o.PerUser = cmp.Or(o.PerUser, 2)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Service{store, o}
}

// named is the answer that is stored of a command: a repeat reads the run as it is then.
type named struct {
	ID string `json:"id"`
}

// Plan makes a plan for a question, without asking a model, and starts its run at once if start is set.
//
// Errors: Invalid and TooLarge with the field; NotFound for the conversation or a knowledge base;
// Conflict if too many runs are open.
func (s *Service) Plan(ctx context.Context, c *op.Call, conversationID string, o Order, start bool) (*Run, error) {
	return s.plan(ctx, c, conversationID, o, func(tx Tx, id string) (*chat.Conversation, error) { return tx.Chats.Conversation(id) }, func(tx Tx, r *Run) error {
		if !start {
			return nil
		}
		return begin(tx, c, r)
	})
}

// StartAlone is Plan with start for a question of a conversation, in which no other run is open: else it is a Conflict.
func (s *Service) StartAlone(ctx context.Context, c *op.Call, conversationID string, o Order) (*Run, error) {
	locked := func(tx Tx, id string) (*chat.Conversation, error) { return tx.Chats.LockConversation(id) }
	return s.plan(ctx, c, conversationID, o, locked, func(tx Tx, r *Run) error {
		switch open, err := tx.OpenResearches(conversationID); {
		case err != nil:
			return err
		case open > 0:
			return fault.New(fault.Conflict, "a research of this conversation is still open; wait for it to end, or cancel it")
		}
		if _, err := history(tx, r); err != nil { // the question has words of it, whether the run gets its turn or not
			return err
		}
		return begin(tx, c, r)
	})
}

// plan stores a plan, and does what follows in its transaction. read reads the conversation.
func (s *Service) plan(ctx context.Context, c *op.Call, conversationID string, o Order, read func(tx Tx, id string) (*chat.Conversation, error), then func(tx Tx, r *Run) error) (*Run, error) {
	if err := o.check(true); err != nil {
		return nil, err
	}
	r := &Run{State: Planned, ConversationID: conversationID, Plan: agent.Plan{Web: true, Team: 1, Doubtful: agent.Mark, Budget: s.opts.Budget}}
	if err := o.onto(&r.Plan); err != nil {
		return nil, err
	}
	asks := s.asksModel(ctx, c.UserID)
	return s.once(ctx, c, func(tx Tx) (_ *Run, err error) {
		made := *r
		made.ID, made.CreatedAt = op.NewID(), tx.Now()
		if made.Estimate, err = estimate(tx, &made.Plan, asks); err != nil {
			return nil, err
		}
		if conversationID != "" {
			conv, err := read(tx, conversationID)
			if err != nil {
				return nil, err
			}
			made.HeadID = conv.HeadID
		}
		if err := readable(tx, made.Plan.Bases); err != nil {
			return nil, err
		}
		if err := tx.AddResearch(&made); err != nil {
			return nil, err
		}
		return &made, then(tx, &made)
	})
}

// readable returns NotFound unless the user may read all of some knowledge bases.
func readable(tx Tx, bases []string) error {
	for _, id := range bases {
		if _, err := tx.Bases.Base(id); err != nil {
			return err
		}
	}
	return nil
}

// once runs a command about a run and returns the run as it is then.
func (s *Service) once(ctx context.Context, c *op.Call, fn func(tx Tx) (*Run, error)) (*Run, error) {
	id, err := op.Once(ctx, s.store, c, func(tx Tx) (*named, error) {
		r, err := fn(tx)
		if err != nil {
			return nil, err
		}
		return &named{r.ID}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, c.UserID, id.ID)
}

// Change changes a plan whose run has not been started.
//
// Errors: those of Plan; Conflict if it has.
func (s *Service) Change(ctx context.Context, c *op.Call, id string, o Order) (*Run, error) {
	if err := o.check(false); err != nil {
		return nil, err
	}
	asks := s.asksModel(ctx, c.UserID)
	return s.once(ctx, c, func(tx Tx) (*Run, error) {
		r, err := tx.Research(id)
		if err != nil {
			return nil, err
		}
		if r.State != Planned {
			return nil, fault.New(fault.Conflict, "the plan cannot be changed any more: the run is %s", r.State).With("state", r.State)
		}
		if err := cmp.Or(o.onto(&r.Plan), readable(tx, o.Bases)); err != nil {
			return nil, err
		}
		if r.Estimate, err = estimate(tx, &r.Plan, asks); err != nil {
			return nil, err
		}
		return r, tx.PutResearch(r)
	})
}

// Begin starts the run of a plan. One that was started before stays as it is; if it is open and has lost its
// job, it goes on.
//
// Errors: NotFound; Conflict if it was cancelled as a plan, or if too many runs are open.
func (s *Service) Begin(ctx context.Context, c *op.Call, id string) (*Run, error) {
	return s.once(ctx, c, func(tx Tx) (*Run, error) {
		r, err := tx.Research(id)
		switch {
		case err != nil:
			return nil, err
		case r.State == Cancelled && r.StartedAt == nil:
			return nil, fault.New(fault.Conflict, "the run was cancelled; make another plan").With("state", r.State)
		case r.Open():
			job := r.job()
			job.Once = true
			return r, tx.Jobs.Enqueue(job)
		case r.State != Planned:
			return r, nil
		}
		return r, begin(tx, c, r)
	})
}

// begin puts the run of a plan into the queue.
func begin(tx Tx, c *op.Call, r *Run) error {
	open, err := tx.OpenResearches("")
	if err != nil {
		return err
	}
	if open >= mostOpen {
		return fault.New(fault.Conflict, "%d runs are waiting or running; cancel one, or wait for one to end", open).With("limit", mostOpen)
	}
	r.State = Queued
	if err := tx.PutResearch(r); err != nil {
		return err
	}
	return cmp.Or(tx.Emit(r.event(c.By(), "research.started", map[string]any{"question": r.Plan.Question})), tx.Jobs.Enqueue(r.job()))
}

// Get returns a run with all that is known of it.
func (s *Service) Get(ctx context.Context, userID, id string) (*Run, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (r *Run, err error) {
		if r, err = tx.Research(id); err == nil {
			r.Steps, err = tx.ResearchSteps(id)
		}
		return r, err
	})
}

// ToldBy returns the run that a message tells of, with its result; nil = there is none.
func (s *Service) ToldBy(ctx context.Context, userID, messageID string) (*Run, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Run, error) {
		r, err := tx.ResearchOfMessage(messageID)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		return r, err
	})
}

// List lists runs newest first, without their steps and answers; conversationID "" = all.
//
// Errors: NotFound for the conversation.
func (s *Service) List(ctx context.Context, userID, conversationID, cursor string, limit int) (*op.Page[*Run], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]*Run, string, error) {
		if conversationID != "" {
			if _, err := tx.Chats.Conversation(conversationID); err != nil {
				return nil, "", err
			}
		}
		return tx.Researches(conversationID, cursor, limit)
	})
}

// Cancel ends a run at once, without an answer: its steps stay. One that is over stays as it is.
func (s *Service) Cancel(ctx context.Context, c *op.Call, id string) (*Run, error) {
	return s.once(ctx, c, func(tx Tx) (*Run, error) {
		r, err := tx.Research(id)
		if err != nil {
			return nil, err
		}
		return r, cancel(tx, c, r)
	})
}

// cancel ends a run that is not over. Calls that it cuts off count as if they had cost what was reserved for them:
// the provider may ask it for them.
func cancel(tx Tx, c *op.Call, r *Run) error {
	if r.FinishedAt != nil {
		return nil
	}
	calls, err := tx.ResearchCalls(r.ID)
	if err != nil {
		return err
	}
	for _, call := range calls {
		if call.Answer == nil {
			r.Cost = plus(r.Cost, call.Reserved)
		}
	}
	r.end(Cancelled, tx.Now())
	return cmp.Or(tx.PutResearch(r), tx.DropResearchCalls(r.ID), tx.Emit(r.over(c.By())), tx.Jobs.CancelJobs(r.ID, JobRun))
}

// Remove cancels a run that is queued or running, and removes one that is not for good.
func (s *Service) Remove(ctx context.Context, c *op.Call, id string) error {
	return op.Do(ctx, s.store, c, func(tx Tx) error {
		r, err := tx.Research(id)
		if err != nil {
			return err
		}
		if r.Open() {
			return cancel(tx, c, r)
		}
		return cmp.Or(tx.PurgeResearch(id), tx.Emit(r.event(c.By(), EventRemoved, map[string]any{})))
	})
}
