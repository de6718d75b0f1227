package cognition

import (
	"context"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// Goal is what a conversation is to come to: a topic, or a task.
type Goal struct {
	ID, ConversationID string
	ParentID           string // "" = none
	Kind               string
	Description        string // at most 500 code points
	Status             string
	Version            int64
	CreatedAt          time.Time
	UpdatedAt          time.Time
}

// The kinds of goals.
const (
	KindTopic = "topic"
	KindTask  = "task"
)

// The statuses of goals.
const (
	GoalPending   = "pending"
	GoalActive    = "active"
	GoalCompleted = "completed"
	GoalAbandoned = "abandoned"
)

// GoalStatuses are all of them.
var GoalStatuses = []string{GoalPending, GoalActive, GoalCompleted, GoalAbandoned}

// Ended reports whether a goal is completed or abandoned.
func (g *Goal) Ended() bool { return g.Status == GoalCompleted || g.Status == GoalAbandoned }

// GoalTx stores the goals of conversations.
type GoalTx interface {
	InsertGoal(g *Goal) error
	Goal(id string) (*Goal, error)
	// UpdateGoal stores the next version of a goal; NotFound for one that was changed meanwhile.
	UpdateGoal(g *Goal) error
	// Goals returns goals, the newest first; status "" = all.
	Goals(conversationID, status, cursor string, limit int) ([]*Goal, string, error)
}

// Goals lists the goals of a conversation, the newest first; status "" = all.
//
// Errors: NotFound; Invalid.
func (svc *Service) Goals(ctx context.Context, userID, conversationID, status, cursor string, limit int) (*op.Page[*Goal], error) {
	if status != "" && !slices.Contains(GoalStatuses, status) {
		return nil, fault.InvalidField("status", "value", "must be one of pending, active, completed, abandoned")
	}
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Goal, string, error) {
		return tx.Goals(conversationID, status, cursor, limit)
	})
}
