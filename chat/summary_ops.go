package chat

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/summary"
)

// SummaryView is a summary and whether it is in force.
type SummaryView struct {
	*summary.Summary
	Active bool
}

// summaryView is what is written of a SummaryView.
type summaryView struct {
	Summary *summary.Summary `json:"summary"`
	Active  bool             `json:"active"`
}

// MarshalJSON writes both; that of the summary would leave Active out.
func (v *SummaryView) MarshalJSON() ([]byte, error) {
	return json.Marshal(summaryView{v.Summary, v.Active})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *SummaryView) UnmarshalJSON(data []byte) error {
	var w summaryView
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*v = SummaryView{w.Summary, w.Active}
	return nil
}

// SummaryRange selects the messages to summarise. A missing end means the end of the
// range that may be summarised.
type SummaryRange struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Summaries lists those of a conversation, newest first; Active is the one in force.
func (svc *Service) Summaries(ctx context.Context, userID, conversationID string) ([]*SummaryView, error) {
	var views []*SummaryView
	err := svc.store.View(ctx, userID, func(tx Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		kept, err := tx.Summaries(conv.ID)
		if err != nil {
			return err
		}
		views = make([]*SummaryView, len(kept))
		for i, k := range kept {
			how, err := tx.Coverage(k.covered(), conv.HeadID, 0)
			if err != nil {
				return err
			}
			k.Stale = how == CoverageChanged || how == CoverageBroken
			views[i] = &SummaryView{k.Summary, k.ID == conv.SummaryID && how >= CoverageChanged}
		}
		return nil
	})
	return views, err
}

// Summarise makes a summary now and waits for it.
//
// Errors: NotFound; Invalid for a range; Conflict with details.reason (memory.Skip)
// when there is nothing to summarise.
func (svc *Service) Summarise(ctx context.Context, c *op.Call, conversationID string, r SummaryRange) (*SummaryView, error) {
	known, err := op.Answered(ctx, svc.store, c)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		var d *draft
		if !known {
			if d, err = svc.draftSummary(ctx, c.UserID, conversationID, summaryOrder{Forced: &r}); err != nil {
				return nil, err
			}
		}
		view, err := op.Once(ctx, svc.store, c, func(tx Tx) (*SummaryView, error) {
			if d == nil {
				return nil, fault.New(fault.InProgress, "the idempotency key has just expired; send the request again with a new one")
			}
			kept, err := d.store(tx, c.By())
			if err != nil {
				return nil, err
			}
			return &SummaryView{kept.Summary, true}, nil
		})
		if !errors.Is(err, errOutdated) || tries > 0 {
			return view, err
		}
	}
}

// SummariseLater enqueues what Summarise does.
func (svc *Service) SummariseLater(ctx context.Context, c *op.Call, conversationID string, r SummaryRange) error {
	_, err := svc.planSummary(ctx, c.UserID, conversationID, summaryOrder{Forced: &r}, false)
	if err != nil {
		return err
	}
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		if _, err := tx.LockConversation(conversationID); err != nil { // a reply may be looking for it: enqueueSummary
			return err
		}
		return tx.Jobs.Enqueue(summaryOrder{Forced: &r}.spec(conversationID, time.Time{}))
	})
}

// EditSummary replaces the text by the user's (method user). Save points keep the
// text that was in force when they were made.
//
// Errors: NotFound; Invalid for the text.
func (svc *Service) EditSummary(ctx context.Context, c *op.Call, conversationID, id, text string) (*SummaryView, error) {
	if err := op.CheckText("summary", text, MaxText); err != nil {
		return nil, err
	}
	setup, err := svc.memorySetup(ctx, c.UserID, "", conversationID)
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*SummaryView, error) {
		conv, k, err := lockSummary(tx, conversationID, id)
		if err != nil {
			return nil, err
		}
		k.Text, k.Method, k.Model = summary.StripMarkers(text), summary.MethodUser, ""
		if err := k.Validate(setup.Summaries()); err != nil {
			return nil, err
		}
		if err := tx.UpdateSummary(conv.Version+1, k.Summary); err != nil {
			return nil, err
		}
		view := &SummaryView{k.Summary, conv.SummaryID == k.ID}
		if err := updateConversation(tx, c, conv); err != nil {
			return nil, err
		}
		return view, tx.Emit(summaryEvent(tx, "updated", c.By(), k))
	})
}

// DeleteSummary restores the full history in prompts. No other summary is made
// automatically until enough new text triggers one.
func (svc *Service) DeleteSummary(ctx context.Context, c *op.Call, conversationID, id string) error {
	return op.Do(ctx, svc.store, c, func(tx Tx) error {
		conv, k, err := lockSummary(tx, conversationID, id)
		if err != nil {
			return err
		}
		newest := k.HeadSeq
		if conv.HeadID != "" {
			head, err := tx.Message(conv.HeadID)
			if err != nil {
				return err
			}
			newest = max(newest, head.Seq)
		}
		if err := tx.DeleteSummary(id, newest); err != nil {
			return err
		}
		if conv.SummaryID == id {
			conv.SummaryID = ""
			if err := updateConversation(tx, c, conv); err != nil {
				return err
			}
		}
		return tx.Emit(summaryEvent(tx, "deleted", c.By(), k))
	})
}

// lockSummary returns a summary that is not deleted, and its conversation, which
// stays as it is until the transaction ends.
func lockSummary(tx Tx, conversationID, id string) (*Conversation, *KeptSummary, error) {
	conv, err := tx.LockConversation(conversationID)
	if err != nil {
		return nil, nil, err
	}
	k, err := tx.Summary(id, 0)
	if err == nil && (k.ConversationID != conv.ID || k.DeletedAt != nil) {
		err = fault.New(fault.NotFound, "no summary %q in this conversation", id)
	}
	return conv, k, err
}
