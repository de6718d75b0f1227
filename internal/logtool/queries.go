// Package logtool connects the turns of package nodest with the log of their conversations: it writes down what was
// looked up for a reply, and lets the model set goals.
package logtool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// LogQueries adds what was looked up for a reply, and shown to the model, to the log: nodest.Options.Ended. What was
// recalled from the memory counts only if a setting of the character says so.
func LogQueries(tx nodest.Tx, r *nodest.Ended) error {
	var events []*cognition.Event
	for _, l := range r.Lookups {
		q := &cognition.Query{Sequence: r.Message.Seq, Query: l.Query, QueryID: op.NewID()}
		for i := range l.Sources {
			q.Sources = append(q.Sources, sourceOf(&l.Sources[i]))
		}
		if r.Setup.Docs.Settings.Cognition.LogMemoryQueries {
			for _, m := range l.Memories {
				q.Sources = append(q.Sources, cognition.Source{ID: m.ID, Content: m.Text})
			}
		}
		if len(q.Sources) == 0 {
			continue
		}
		e := cognition.New(r.Conversation.ID, q)
		e.MessageID, e.GenerationID = r.Message.ID, r.Generation.ID
		events = append(events, e)
	}
	if len(events) == 0 && !r.Setup.Docs.Settings.Cognition.Extract {
		return nil
	}
	if err := cognition.LogQueries(tx.Cognition, r.Conversation.ID, events...); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(side.Look(r.Conversation.ID, tx.Now().Add(side.Idle)))
}

// LogAnswer adds an answer from documents that a client has asked for to the log of its conversation:
// knowledge.Options.Answered.
func LogAnswer(tx knowledge.Tx, a *knowledge.Asked) error {
	if len(a.Sources) == 0 {
		return nil
	}
	q := &cognition.Query{Query: a.Question, Response: a.Answer, QueryID: op.NewID()}
	for i := range a.Sources {
		q.Sources = append(q.Sources, sourceOf(&a.Sources[i]))
	}
	return cmp.Or(cognition.LogQueries(tx.Log, a.ConversationID, cognition.New(a.ConversationID, q)),
		tx.Jobs.Enqueue(side.Look(a.ConversationID, tx.Now().Add(side.Idle))))
}

// LogResearch adds the answer of a research to the log of its conversation, with what was learned for it:
// research.Options.Ended. All of it comes from the web, or from documents.
func LogResearch(tx research.Tx, r *research.Run) error {
	if r.Result == nil {
		return nil
	}
	q := &cognition.Query{Query: r.Plan.Question, Response: r.Result.Answer, QueryID: r.ID, Untrusted: true}
	add := func(id, title, text string) {
		known := func(s cognition.Source) bool { return s.ID == id }
		if !slices.ContainsFunc(q.Sources, known) {
			q.Sources = append(q.Sources, cognition.Source{ID: id, Task: op.Truncate(title, cognition.MostContent), Content: text})
		}
	}
	for _, ref := range r.Result.References {
		add(cmp.Or(ref.ChunkID, ref.URL), ref.Title, ref.ExactQuote)
	}
	for i, k := range r.Result.Knowledge {
		switch {
		case k.Kind == agent.KindPage && len(k.References) > 0:
			add(k.References[0], k.Question, k.Answer)
		case k.Kind == agent.KindAnswer:
			add(fmt.Sprintf("%s.%d", r.ID, i), k.Question, k.Answer)
		}
	}
	if len(q.Sources) == 0 {
		return nil
	}
	return cmp.Or(cognition.LogQueries(tx.Log, r.ConversationID, cognition.New(r.ConversationID, q)),
		tx.Jobs.Enqueue(side.Look(r.ConversationID, tx.Now().Add(side.Idle))))
}

func sourceOf(s *cite.Source) cognition.Source {
	var text strings.Builder
	for _, c := range s.Chunks {
		if text.Len() > 4*cognition.MostContent {
			break
		}
		text.WriteString(c.Text + "\n")
	}
	id := s.URL
	if s.FileID != "" {
		id = cmp.Or(s.ChunkID, s.FileID)
	}
	return cognition.Source{ID: id, Task: op.Truncate(s.Title, cognition.MostContent), Content: strings.TrimSpace(text.String())}
}
