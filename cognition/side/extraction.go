package side

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// Extraction is knowledge that was proposed, as its events leave it.
type Extraction struct {
	ID          string          `json:"extraction_id"`
	State       string          `json:"state"`
	Sequence    int64           `json:"sequence"`
	Payload     json.RawMessage `json:"payload"`                // as it would be committed
	Proposed    json.RawMessage `json:"proposed,omitempty"`     // the payload before an edit
	KnowledgeID string          `json:"knowledge_id,omitempty"` // the memory that it became
	Timestamp   *op.Time        `json:"timestamp,omitempty"`    // when it was proposed
}

// The states of an extraction.
const (
	StatePending   = "pending"
	StateApproved  = "approved"
	StateDiscarded = "discarded"
	StateCommitted = "committed"
)

var states = []string{StatePending, StateApproved, StateDiscarded, StateCommitted}

// fold follows the events of an extraction, oldest first: the latest decision counts, and a commit is final.
func fold(events []*cognition.Event) *Extraction {
	var x *Extraction
	for _, e := range events {
		var p cognition.ExtractionPending
		var r cognition.ExtractionReviewed
		switch {
		case e.Type == cognition.TypePending && x == nil && cognition.Read(e, &p) == nil:
			x = &Extraction{ID: p.ExtractionID, State: StatePending, Sequence: p.Sequence, Payload: objectOf(p.Payload)}
			if !e.Timestamp.IsZero() {
				at := op.Time(e.Timestamp)
				x.Timestamp = &at
			}
		case x == nil || x.State == StateCommitted:
		case e.Type == cognition.TypeCommitted:
			x.State, x.KnowledgeID = StateCommitted, cognition.PlaceOf(e).KnowledgeID
		case e.Type == cognition.TypeReviewed && cognition.Read(e, &r) == nil:
			if x.Proposed != nil { // an earlier edit counts no more
				x.Payload, x.Proposed = x.Proposed, nil
			}
			x.State = StateApproved
			if r.Decision == cognition.Discard {
				x.State = StateDiscarded
			}
			if r.Decision == cognition.Edit {
				x.Payload, x.Proposed = objectOf(r.EditedPayload), x.Payload
			}
		}
	}
	return x
}

// objectOf is a payload, which in an imported log may be missing or anything else.
func objectOf(payload json.RawMessage) json.RawMessage {
	if llm.ObjectOf(string(payload), "") == nil {
		return json.RawMessage("{}")
	}
	return payload
}

// Extractions are a page of them.
type Extractions struct {
	Items     []*Extraction `json:"items"`
	NextAfter int64         `json:"next_after,omitempty"`
}

// List returns extractions of a conversation, the oldest first, in a state or in all ("").
//
// Errors: NotFound; Invalid.
func (svc *Service) List(ctx context.Context, userID, conversationID, state string, after int64, limit int) (*Extractions, error) {
	if state != "" && !slices.Contains(states, state) {
		return nil, fault.InvalidField("state", "value", "must be one of pending, approved, discarded, committed")
	}
	limit, err := op.CheckLimit(limit)
	if err = cmp.Or(cognition.CheckAfter(after), err); err != nil {
		return nil, err
	}
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Extractions, error) {
		page := &Extractions{Items: []*Extraction{}}
		for {
			proposed, err := tx.Log.Events(conversationID, after, limit+1, cognition.TypePending)
			if err != nil {
				return nil, err
			}
			more := len(proposed) > limit
			proposed = proposed[:min(len(proposed), limit)]
			all, err := extractions(tx, conversationID, proposed)
			if err != nil {
				return nil, err
			}
			for i, x := range all {
				if after = proposed[i].Ordinal; x != nil && (state == "" || x.State == state) {
					page.Items = append(page.Items, x)
				}
				if len(page.Items) == limit {
					page.NextAfter = after
					return page, nil
				}
			}
			if !more {
				return page, nil
			}
		}
	})
}

func extraction(tx Tx, conversationID, id string) (*Extraction, error) {
	events, err := tx.Log.ExtractionEvents(conversationID, id)
	return fold(events), err
}

// extractions are those of proposals, in their order; nil for one that has no id.
func extractions(tx Tx, conversationID string, proposed []*cognition.Event) ([]*Extraction, error) {
	ids := make([]string, len(proposed))
	for i, e := range proposed {
		ids[i] = cognition.PlaceOf(e).ExtractionID
	}
	events, err := tx.Log.ExtractionEvents(conversationID, ids...)
	byID := map[string][]*cognition.Event{}
	for _, e := range events {
		id := cognition.PlaceOf(e).ExtractionID
		byID[id] = append(byID[id], e)
	}
	all := make([]*Extraction, len(ids))
	for i, id := range ids {
		all[i] = fold(byID[id])
	}
	return all, err
}

// Review is a decision about an extraction.
type Review struct {
	ConversationID string          `json:"conversationId"`
	ExtractionID   string          `json:"extractionId"`
	Decision       string          `json:"decision"`
	EditedPayload  json.RawMessage `json:"editedPayload,omitempty"`
}

func (r *Review) check() error {
	if !slices.Contains([]string{cognition.Approve, cognition.Edit, cognition.Discard}, r.Decision) {
		return fault.InvalidField("decision", "value", "must be one of approve, edit, discard")
	}
	if r.Decision != cognition.Edit {
		r.EditedPayload = nil
		return nil
	}
	if op.IsNull(r.EditedPayload) {
		return fault.InvalidField("editedPayload", "required", "an edit needs the whole payload")
	}
	if bytes.TrimSpace(r.EditedPayload)[0] != '{' || contentOf(r.EditedPayload) == "" {
		return fault.InvalidField("editedPayload", "type", "must be an object with a content")
	}
	if err := memory.CheckText("content", contentOf(r.EditedPayload)); err != nil {
		f := fault.Public(err).Fields[0]
		return fault.InvalidField("editedPayload", f.Code, "its content %s", f.Detail)
	}
	return nil
}

// checkDecision refuses to approve or edit a proposal that has lost its words, and to approve one, as it was before an edit,
// of which no memory can be made.
func checkDecision(x *Extraction, decision string) error {
	if decision == cognition.Discard {
		return nil
	}
	if string(bytes.TrimSpace(x.original())) == "{}" {
		return errWordless
	}
	if err := memory.CheckText("content", contentOf(x.original())); err != nil && decision == cognition.Approve {
		return fault.New(fault.Conflict, "no memory can be made of this proposal, edit it: %s", fault.Public(err).Message)
	}
	return nil
}

// contentOf is what a payload says.
func contentOf(payload json.RawMessage) string {
	var p struct{ Content json.RawMessage }
	_ = json.Unmarshal(payload, &p)
	var text string
	_ = json.Unmarshal(p.Content, &text)
	return strings.TrimSpace(text)
}

// ReviewOne decides about an extraction. It may be decided again until it is committed.
//
// Errors: NotFound; Invalid; Conflict after a commit, and for an approval of what can be no memory.
func (svc *Service) ReviewOne(ctx context.Context, c *op.Call, r Review) (*Extraction, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	err := op.Do(ctx, svc.store, c, func(tx Tx) error {
		if _, err := tx.Log.LockSideState(r.ConversationID); err != nil {
			return err
		}
		x, err := extraction(tx, r.ConversationID, r.ExtractionID)
		if err == nil && x == nil {
			err = fault.New(fault.NotFound, "no such extraction")
		}
		if err == nil && x.State == StateCommitted {
			err = fault.New(fault.Conflict, "the extraction is committed").With("knowledgeId", x.KnowledgeID)
		}
		if err == nil {
			err = checkDecision(x, r.Decision)
		}
		if err != nil {
			return err
		}
		e := cognition.New(r.ConversationID, &cognition.ExtractionReviewed{ExtractionID: r.ExtractionID, Decision: r.Decision, EditedPayload: r.EditedPayload})
		if err := tx.Log.AppendEvents(r.ConversationID, e); err != nil {
			return err
		}
		return tell(tx, c.By(), r.ConversationID, "extraction.reviewed", map[string]any{"extractionId": r.ExtractionID, "decision": r.Decision})
	})
	if err != nil {
		return nil, err
	}
	return op.Read(ctx, svc.store, c.UserID, func(tx Tx) (*Extraction, error) { return extraction(tx, r.ConversationID, r.ExtractionID) })
}

// tell emits an event about extractions, which has their ids and no text.
func tell(tx Tx, by, conversationID, kind string, data map[string]any) error {
	data["conversationId"] = conversationID
	ev := op.Event(tx.UserID(), kind, by, data)
	ev.ConversationID = conversationID
	return tx.Emit(ev)
}

// CommitReport says what a commit has done.
type CommitReport struct {
	Committed []Committed `json:"committed"`
	Failed    []Failed    `json:"failed"`
	Skipped   []string    `json:"skipped"` // extractions that wait for a review, or are discarded
}

// Committed is an extraction that became a memory.
type Committed struct {
	ExtractionID string `json:"extraction_id"`
	KnowledgeID  string `json:"knowledge_id"`
}

// Failed is one that did not.
type Failed struct {
	ExtractionID string     `json:"extraction_id"`
	Code         fault.Code `json:"code"`
	Error        string     `json:"error"`
}

// readAtOnce are read at once.
const readAtOnce = 500

// Commit makes memories of the extractions that are approved or edited. The memory and its event are one transaction, so
// that it can be repeated at any time. A failure writes no event.
//
// Errors: NotFound.
func (svc *Service) Commit(ctx context.Context, c *op.Call, conversationID string) (*CommitReport, error) {
	open, err := op.Read(ctx, svc.store, c.UserID, func(tx Tx) ([]*Extraction, error) { return uncommitted(tx, conversationID) })
	if err != nil {
		return nil, err
	}
	report := &CommitReport{Committed: []Committed{}, Failed: []Failed{}, Skipped: []string{}}
	for _, x := range open {
		id := x.ID
		if x.State != StateApproved {
			report.Skipped = append(report.Skipped, id)
			continue
		}
		knowledge, err := op.Write(ctx, svc.store, c.UserID, func(tx Tx) (string, error) { return commit(tx, c.By(), conversationID, id) })
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			why := fault.Public(err)
			report.Failed = append(report.Failed, Failed{id, why.Code, why.Message})
		case knowledge == "":
			report.Skipped = append(report.Skipped, id)
		default:
			report.Committed = append(report.Committed, Committed{id, knowledge})
		}
	}
	return report, nil
}

// uncommitted are the extractions that wait for a review or a commit, and those that are discarded, the oldest first.
func uncommitted(tx Tx, conversationID string) (all []*Extraction, _ error) {
	for after := int64(0); ; {
		events, err := tx.Log.OpenEvents(conversationID, cognition.TypePending, after, readAtOnce)
		if err != nil || len(events) == 0 {
			return all, err
		}
		some, err := extractions(tx, conversationID, events)
		if err != nil {
			return nil, err
		}
		after = events[len(events)-1].Ordinal
		all = append(all, slices.DeleteFunc(some, func(x *Extraction) bool { return x == nil })...)
	}
}

// commit makes a memory of an extraction and returns its id, "" if it is not approved or is committed.
func commit(tx Tx, by, conversationID, id string) (string, error) {
	conv, err := tx.Chats.LockConversation(conversationID)
	if err != nil {
		return "", err
	}
	x, err := extraction(tx, conversationID, id)
	if err != nil || x == nil || x.State != StateApproved {
		return "", err
	}
	if contentOf(x.Payload) == "" {
		return "", errWordless
	}
	if err := tx.Memory.LockMemory(conv.CharacterID); err != nil {
		return "", err
	}
	evidence, err := evidenceOf(tx, conversationID, x)
	if err != nil {
		return "", err
	}
	if err := buried(tx, conv.CharacterID, contentOf(x.Payload), evidence); err != nil {
		return "", err
	}
	m, err := memory.Keep(tx.Memory, by, conv.CharacterID, contentOf(x.Payload), evidence...)
	if err != nil {
		return "", err
	}
	done := cognition.New(conversationID, &cognition.ExtractionCommitted{ExtractionID: id, KnowledgeID: m.ID})
	err = cmp.Or(tx.Log.AppendEvents(conversationID, done),
		tell(tx, by, conversationID, "extraction.committed", map[string]any{"extractionId": id, "knowledgeId": m.ID}))
	return m.ID, err
}

// errWordless refuses an extraction whose words went with those that it was made of.
var errWordless = fault.New(fault.Conflict, "the extraction has no words: those that it was made of were forgotten")

// original is the payload as it was proposed.
func (x *Extraction) original() json.RawMessage {
	if x.Proposed != nil {
		return x.Proposed
	}
	return x.Payload
}

// buried refuses what the user had purged, as extraction and imports do.
func buried(tx Tx, characterID, text string, evidence []memory.Evidence) error {
	graves, err := tx.Memory.Tombstones(characterID)
	if err != nil {
		return err
	}
	if memory.IsBuried(graves, text, evidence) {
		return fault.New(fault.Conflict, "it was purged from the memory: write it as a memory yourself to have it again")
	}
	return nil
}

// evidenceOf is what the memory of an extraction rests on, also if the user has edited it: the newest texts that it was
// made of, which must all be shown.
func evidenceOf(tx Tx, conversationID string, x *Extraction) (all []memory.Evidence, _ error) {
	sources, err := tx.Log.ExtractionSources(conversationID, x.ID)
	if err != nil {
		return nil, err
	}
	for _, m := range sources[max(0, len(sources)-memory.MaxEvidence):] {
		all = append(all, memory.Evidence{ConversationID: conversationID, MessageID: m.MessageID, RevisionID: m.RevisionID, Seq: m.Sequence})
	}
	shown, err := tx.Memory.Shown(nil, all)
	if err == nil && slices.Contains(shown, false) {
		err = fault.New(fault.Conflict, "a message that it was made of is changed, deleted, forgotten or on another branch")
	}
	return all, err
}
