package research

import (
	"context"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/llm"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
	"nodest/websearch/research/agent"
)

// outside returns what a run uses of the world, in the name of its user.
func (s *Service) outside(ctx context.Context, rec *recorder) (o agent.Outside, err error) {
	userID, plan := rec.job.UserID, &rec.run.Plan
	if o.Model, err = s.opts.Model(ctx, userID); err != nil {
		return o, err
	}
	if s.opts.Embedder != nil {
		if o.Embedder, err = s.opts.Embedder(ctx, userID); err != nil {
			s.opts.Log.WarnContext(ctx, "a research compares texts by words alone", "err", err)
			o.Embedder = nil
		}
	}
	o.Search = func(ctx context.Context, q provider.Query) (provider.Results, error) {
		return s.opts.Web.Find(ctx, userID, q)
	}
	o.Read = func(ctx context.Context, address string) (*reader.Page, error) {
		return s.opts.Web.Page(ctx, userID, address, plan.Language, *rec.run.StartedAt)
	}
	o.Private, o.Log = s.opts.Web.Private, s.opts.Log
	if len(plan.Bases) > 0 {
		o.Documents = func(ctx context.Context, question string) ([]cite.Source, error) {
			return s.documents(ctx, rec, question)
		}
	}
	o.Tell = func(e agent.Event) { s.tell(rec, e) }
	return o, nil
}

// documentsFound is how many passages of documents a question gets.
const documentsFound = 8

// documents searches the knowledge bases of a plan with the rights that the user has now.
func (s *Service) documents(ctx context.Context, rec *recorder, question string) (sources []cite.Source, err error) {
	userID, bases := rec.job.UserID, rec.run.Plan.Bases
	found, err := s.opts.Documents.Search(ctx, userID, knowledge.SearchRequest{Query: question, BaseIDs: bases, TopK: documentsFound})
	if err != nil {
		return nil, err
	}
	pieces, err := s.opts.Documents.Widen(ctx, userID, knowledge.Scope{BaseIDs: bases}, found, knowledge.ExcerptRoom)
	for _, p := range pieces {
		rec.reads(p.File.ID)
		sources = append(sources, knowledge.SourceOf(cite.KindKnowledge, p.File.ID, p.File.Name, p.Chunks))
	}
	return sources, err
}

// tell passes on what happens.
func (s *Service) tell(rec *recorder, e agent.Event) {
	if s.opts.Transient != nil {
		ev := rec.run.event("server", "research."+e.Type, e.Data)
		ev.UserID = rec.job.UserID
		s.opts.Transient(ev)
	}
}

// Limits of the part of a conversation that a run knows.
const (
	historyMessages = 8
	historyText     = 2_000 // code points of each
)

// withHistory returns the plan of a run with the end of the conversation that asks, as it is now.
func (s *Service) withHistory(ctx context.Context, userID string, run *Run) (agent.Plan, error) {
	plan := run.Plan
	if run.ConversationID == "" || run.HeadID == "" {
		return plan, nil
	}
	history, err := op.Write(ctx, s.store, userID, func(tx Tx) ([]*chat.Message, error) { return history(tx, run) })
	if err != nil && !fault.Is(err, fault.NotFound) {
		return plan, err
	}
	for _, m := range history {
		plan.History = append(plan.History, llm.Message{Role: speakers[m.Role], Text: op.Truncate(m.Text(), historyText)})
	}
	return plan, nil
}

// speakers are the roles of a conversation that a run hears.
var speakers = map[string]llm.Role{chat.RoleUser: llm.User, chat.RoleAssistant: llm.Assistant}

// history returns the messages of a conversation that its run knows, and notes that the run may have their words.
func history(tx Tx, run *Run) (known []*chat.Message, err error) {
	path, _, err := tx.Chats.Path(run.ConversationID, run.HeadID, "", historyMessages)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range path {
		if speakers[m.Role] != "" && m.Text() != "" {
			known, ids = append(known, m), append(ids, m.ID)
		}
	}
	return known, tx.PutResearchMessages(run.ID, ids...)
}
