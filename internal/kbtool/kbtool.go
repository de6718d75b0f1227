// Package kbtool offers the documents of a character to the turns of package nodest.
package kbtool

import (
	"context"
	"time"

	"nodest/framework"
	"nodest/internal/cite"
	"nodest/knowledge"
	"nodest/knowledge/intent"
	"nodest/knowledge/shelf"
	"nodest/nodest"
	"nodest/nodest/tools"
)

// Limits of the tools for documents in one turn.
const (
	maxSearches = 4
	maxReads    = 4
)

// Toolbox is the toolbox with the documents of a character: the full texts of its files, and
// tools that search and read its knowledge bases.
func Toolbox(s *knowledge.Service, limit time.Duration) nodest.Toolbox {
	return nodest.Toolbox{
		Name: "knowledge", Limit: limit,
		Warning: framework.Warning{Code: "knowledge_unavailable", Detail: "the character's documents could not be read"},
		Wanted:  func(q *nodest.Question) bool { return q.Setup.Docs.HasKnowledge },
		Open: func(ctx context.Context, q *nodest.Question) (*nodest.Toolkit, error) {
			lang := string(q.Setup.Docs.Language)
			sh, err := shelf.Open(ctx, s, q.UserID, q.Setup.Docs.CharacterID, lang, shelf.Room{Context: q.Context, Tokenizer: q.Tokenizer, NoFeedback: !q.Setup.Docs.Settings.Retrieval.Feedback})
			if err != nil || sh == nil {
				return nil, err
			}
			kit := &nodest.Toolkit{Block: func(s *tools.Sheet) []framework.KnowledgePart { return sh.Block(s.Ref) }}
			if sh.Searchable() {
				kit.Rules = shelf.Rules(lang)
				kit.Tools = knowledgeTools(sh, lang)
				kit.Inject = func(ctx context.Context) (*tools.Answer, error) { return injectKnowledge(ctx, sh, q) }
			}
			return kit, nil
		},
	}
}

func knowledgeTools(sh *shelf.Shelf, lang string) []tools.Tool {
	search, read := shelf.Tools(lang)
	return []tools.Tool{
		{
			Tool: search, Limit: maxSearches, Query: "query", Scope: []string{"knowledgeBaseIds"}, Vector: sh.Vector,
			Call: func(ctx context.Context, c tools.Call) (*tools.Answer, error) {
				return answerOf(sh.Search(ctx, c.Round, c.Arguments))
			},
		},
		{
			Tool: read, Limit: maxReads, Reads: "fileIds",
			Call: func(ctx context.Context, c tools.Call) (*tools.Answer, error) {
				return answerOf(sh.Read(ctx, c.Arguments))
			},
		},
	}
}

// injectKnowledge searches for a message that documents may answer.
func injectKnowledge(ctx context.Context, sh *shelf.Shelf, q *nodest.Question) (*tools.Answer, error) {
	if q.Text == "" || !intent.Wanted(q.Text, sh.About()) {
		return nil, nil
	}
	before := ""
	if len(q.Before) > 0 {
		before = q.Before[0]
	}
	shown, err := sh.Inject(ctx, intent.Standalone(q.Text, before))
	if shown == nil {
		return nil, err
	}
	return answerOf(shown, err)
}

func answerOf(shown *shelf.Shown, err error) (*tools.Answer, error) {
	if err != nil {
		return nil, err
	}
	a := &tools.Answer{
		Query: shown.Query, Hits: shown.Hits, Shown: shown.Chunks, Degraded: shown.Degraded,
		Text: func(s *tools.Sheet) string {
			return shown.Text(s.Room, func(source cite.Source) int { return s.Ref(source) })
		},
	}
	for _, f := range shown.Files {
		a.Files = append(a.Files, tools.File{ID: f.ID, Name: f.Name, Relevance: f.Relevance})
	}
	return a, nil
}
