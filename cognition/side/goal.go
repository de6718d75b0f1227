package side

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// GoalPatch changes a goal where it is not nil.
type GoalPatch struct {
	Description *string
	Status      *string
	IfVersion   int64
}

// CreateGoal adds a goal to a conversation; kind and status have defaults (topic, active).
//
// Errors: NotFound; Invalid.
func (svc *Service) CreateGoal(ctx context.Context, c *op.Call, g cognition.Goal) (*cognition.Goal, error) {
	g.Kind, g.Status, g.Description = cmp.Or(g.Kind, cognition.KindTopic), cmp.Or(g.Status, cognition.GoalActive), strings.TrimSpace(g.Description)
	if err := checkGoal(&g); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*cognition.Goal, error) {
		one := g
		one.ID = op.NewID()
		if g.ParentID != "" {
			parent, err := tx.Log.Goal(g.ParentID)
			if err == nil && parent.ConversationID != g.ConversationID {
				err = fault.New(fault.NotFound, "no such goal")
			}
			if err != nil {
				return nil, op.InField("parentId", err)
			}
		}
		return &one, tx.Log.InsertGoal(&one)
	})
}

// ChangeGoal changes a goal. When it ends, what was looked up and is not evaluated is due: trigger 1.
//
// Errors: NotFound; Invalid; PreconditionFailed.
func (svc *Service) ChangeGoal(ctx context.Context, c *op.Call, id string, p GoalPatch) (*cognition.Goal, error) {
	return op.LastWins(ctx, svc.store, c, p.IfVersion, func(tx Tx) (*cognition.Goal, error) {
		g, err := tx.Log.Goal(id)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(p.IfVersion, g.Version); err != nil {
			return nil, err
		}
		before := *g
		if p.Description != nil {
			g.Description = strings.TrimSpace(*p.Description)
		}
		if p.Status != nil {
			g.Status = *p.Status
		}
		if err := checkGoal(g); err != nil {
			return nil, err
		}
		if *g == before {
			return g, nil
		}
		g.Version++
		if err := tx.Log.UpdateGoal(g); err != nil {
			return nil, err
		}
		if before.Ended() || !g.Ended() {
			return g, nil
		}
		return g, goalEnded(tx, g.ConversationID)
	})
}

func checkGoal(g *cognition.Goal) error {
	var c op.Checks
	c.That(slices.Contains(cognition.GoalStatuses, g.Status), "status", "value", "must be one of pending, active, completed, abandoned")
	c.That(g.Kind == cognition.KindTopic || g.Kind == cognition.KindTask, "kind", "value", "must be topic or task")
	return cmp.Or(op.CheckText("description", g.Description, cognition.MostGoal), c.Err())
}

func goalEnded(tx Tx, conversationID string) error {
	s, err := tx.Log.LockSideState(conversationID)
	if err != nil {
		return err
	}
	conv, err := tx.Chats.Conversation(conversationID)
	if err != nil {
		return err
	}
	waiting, err := due(tx, conv, s)
	if err != nil || len(waiting) == 0 {
		return err
	}
	if slices.Contains(waiting, cognition.BranchEval) {
		s.PendingEval, s.EvalTrigger = true, cognition.GoalCompletion
	}
	if slices.Contains(waiting, cognition.BranchReflection) && !slices.Contains(s.Queue, cognition.BranchReflection) {
		s.Queue = append([]string{cognition.BranchReflection}, s.Queue...)
	}
	return cmp.Or(tx.Log.PutSideState(conversationID, s), tx.Jobs.Enqueue(Look(conversationID, tx.Now())))
}
