package store

import (
	"encoding/json"
	"reflect"

	"nodest/character"
	"nodest/chat"
	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/summary"
	"nodest/knowledge"
	"nodest/knowledge/parse"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/lang"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// forms are the types that JSON of columns is read into: a row with other JSON could be stored, and then no page with
// it could be read. Columns that are missing here have rules of their own, or any JSON.
var forms = map[string]reflect.Type{
	"circle_comments.emotion": form[rules.Emotion](), "circle_comments.evidence": form[[]string](),
	"circle_plans.items":   form[[]circle.PlanItem](),
	"circle_posts.emotion": form[rules.Emotion](), "circle_posts.evidence": form[[]string](),
	"circle_turns.error":     form[op.Failure](),
	"cognition_events.body":  form[map[string]any](),
	"cognition_states.queue": form[[]string](),

	"conversation_states.pins": form[character.Pins](), "conversations.pins": form[character.Pins](), "saves.pins": form[character.Pins](),
	"conversations.extra": form[map[string]any](), "saves.extra": form[map[string]any](),
	"conversations.last_message": form[chat.Preview](),
	"generations.blocks":         form[[]chat.Block](), "revisions.blocks": form[[]chat.Block](),
	"generations.error": form[fault.Error](), "messages.error": form[fault.Error](),
	"generations.globals": form[map[string]any](),
	"generations.options": form[character.TurnOptions](),
	"generations.timing":  form[chat.Timing](),
	"generations.tools":   form[chat.ToolTrace](), "revisions.tools": form[chat.ToolTrace](),
	"generations.usage": form[llm.Usage](), "revisions.usage": form[llm.Usage](),
	"play_states.document":   form[chat.Play](),
	"revisions.citations":    form[cite.Citations](),
	"summary_texts.document": form[summary.Summary](),

	"dream_runs.changes": form[[]dream.Change](), "memory_document_versions.lines": form[[]dream.Line](),
	"memories.ended_by": form[[]memory.Evidence](), "memories.evidence": form[[]memory.Evidence](),
	"memory_suggestions.evidence": form[[]memory.Evidence](), "memory_tombstones.evidence": form[[]memory.Evidence](),
	"memory_tombstones.gist": form[lang.Gist](),
	"memory_uses.signals":    form[[]int64](),

	"files.error": form[knowledge.FileError](), "files.warnings": form[[]string](),
	"knowledge_documents.outline": form[[]parse.Heading](), "knowledge_documents.pages": form[[]parse.Page](),
	"knowledge_queries.sources": form[knowledge.Sources](),

	"research_runs.plan": form[agent.Plan](), "research_runs.estimate": form[research.Estimate](), "research_runs.cost": form[agent.Cost](),
	"research_runs.failure": form[jobs.Failure](), "research_runs.result": form[agent.Result](), "research_steps.step": form[agent.Step](),
}

func form[T any]() reflect.Type { return reflect.TypeFor[T]() }

// checkForms refuses JSON that cannot be read.
func (r *ownedRow) checkForms() error {
	for i, c := range r.of.columns {
		t := forms[r.of.name+"."+c.Name]
		if t == nil || r.values[i] == nil {
			continue
		}
		doc := r.document(c.Name)
		if doc == nil && !c.isNull || doc != nil && json.Unmarshal(doc, reflect.New(t).Interface()) != nil {
			return badRow("%s.%s has another form than it must have", r.of.name, c.Name)
		}
	}
	return nil
}
