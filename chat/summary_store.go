package chat

import (
	"cmp"
	"errors"

	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/summary"
)

// store stores a draft and activates it. If another summary of the same messages came
// first it returns that one, unless the user has named the messages. After other changes
// it returns errOutdated.
func (d *draft) store(tx Tx, by string) (*KeptSummary, error) {
	kept, err := insertSummary(tx, d, by)
	if errors.Is(err, errOutdated) && (d.order.Forced == nil || *d.order.Forced == (SummaryRange{})) {
		return d.concurrentSummary(tx)
	}
	return kept, err
}

// concurrentSummary is the summary of the same messages that became active since the
// draft was planned; errOutdated without one.
func (d *draft) concurrentSummary(tx Tx) (*KeptSummary, error) {
	conv, err := tx.Conversation(d.conv.ID)
	if err != nil {
		return nil, err
	}
	if conv.SummaryID == "" || conv.SummaryID == d.conv.SummaryID {
		return nil, errOutdated
	}
	made, err := tx.Summary(conv.SummaryID, 0)
	if err == nil && (made.DeletedAt != nil || made.Range.StartID != d.plan.Range.StartID || made.Range.EndID != d.plan.Range.EndID) {
		return nil, errOutdated
	}
	return made, err
}

// insertSummary stores a draft and activates it; errOutdated if the conversation has
// changed in a way that matters since it was planned.
func insertSummary(tx Tx, d *draft, by string) (*KeptSummary, error) {
	conv, err := tx.LockConversation(d.conv.ID)
	if err != nil {
		return nil, err
	}
	if err := d.holds(tx, conv); err != nil {
		return nil, err
	}
	made := d.plan.Summary(d.work, d.written)
	made.ID, made.At, made.Model = op.NewID(), tx.Now(), d.model
	attempt := summary.AttemptOf(d.lines, made)
	kept := &KeptSummary{
		Summary: made, ConversationID: conv.ID, MadeVersion: conv.Version + 1, HeadSeq: attempt.Seq, ViewLength: attempt.Length,
	}
	if err := tx.InsertSummary(kept); err != nil {
		return nil, err
	}
	conv.SummaryID = made.ID
	conv.Version++
	if err := tx.ChooseSummary(conv); err != nil {
		return nil, err
	}
	if err := d.followUp(tx); err != nil {
		return nil, err
	}
	return kept, tx.Emit(ConversationEvent(tx.UserID(), "chat.updated", by, conv), summaryEvent(tx, "created", by, kept))
}

// holds returns errOutdated unless the conversation has what the draft was made of: the
// same summary in force with the same words, and the same messages in the range.
func (d *draft) holds(tx Tx, conv *Conversation) error {
	if conv.SummaryID != d.conv.SummaryID {
		return errOutdated
	}
	if d.base != nil {
		now, err := tx.Summary(d.base.ID, 0)
		if err != nil {
			return err
		}
		if now.DeletedAt != nil || now.Text != d.base.Text || now.Method != d.base.Method {
			return errOutdated
		}
	}
	latest, err := tx.LatestGeneration(conv.ID)
	if err != nil {
		return err
	}
	r := d.plan.Range
	how, err := tx.Coverage(Covered{conv.ID, r.StartSeq, r.EndID, d.conv.Version}, conv.HeadID, 0)
	if err == nil && (how != CoverageIntact || latest >= d.plan.Generation) {
		return errOutdated
	}
	return err
}

// followUp enqueues another attempt if rules wrote the summary because a model failed.
func (d *draft) followUp(tx Tx) error {
	if d.written.Method != summary.MethodExtractive || !d.asked || d.order.Tries >= repairTries {
		return nil
	}
	later := summaryOrder{Rest: true, Tries: d.order.Tries + 1, Tokens: d.order.Tokens}
	return enqueueSummary(tx, d.conv.ID, later, tx.Now().Add(summaryRest<<d.order.Tries))
}

func summaryEvent(tx Tx, method, by string, k *KeptSummary) *stream.Event {
	type span struct {
		Start int `json:"start"`
		End   int `json:"end"`
	}
	ev := op.Event(tx.UserID(), "memory.summary", cmp.Or(by, "server"), struct {
		Op        string         `json:"op"`
		SummaryID string         `json:"summaryId"`
		Range     span           `json:"range"`
		Method    summary.Method `json:"method"`
	}{method, k.ID, span{k.Range.Start, k.Range.End}, k.Method})
	ev.ConversationID = k.ConversationID
	return ev
}
