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
	Description        string // at most MostGoal code points
	Status             string
	Version            int64
	CreatedAt          time.Time
	UpdatedAt          time.Time
}

// MostGoal is how long a description may be, in code points.
const MostGoal = 500

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
	// UpdateGoal stores the next version of a goal; PreconditionFailed for one that was changed meanwhile.
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

// LogQueries adds queries to a log, with the goal that the conversation has then: the newest one that is active. One whose
// answer went into no message has the sequence of the newest one.
func LogQueries(tx Tx, conversationID string, queries ...*Event) error {
	goals, _, err := tx.Goals(conversationID, GoalActive, "", 1)
	if err != nil {
		return err
	}
	for _, e := range queries {
		if PlaceOf(e).Sequence == 0 {
			sequence, err := tx.NewestSequence(conversationID)
			if err != nil {
				return err
			}
			e.Body = withMember(e.Body, "sequence", sequence)
		}
		if len(goals) > 0 {
			e.Body = withMember(e.Body, "goal_id", goals[0].ID)
		}
	}
	return tx.AppendEvents(conversationID, queries...)
}

// wireGoal is the wire format of a goal.
type wireGoal struct {
	ID             string  `json:"id"`
	ConversationID string  `json:"conversationId"`
	ParentID       string  `json:"parentId,omitempty"`
	Kind           string  `json:"kind"`
	Description    string  `json:"description"`
	Status         string  `json:"status"`
	Version        int64   `json:"version"`
	CreatedAt      op.Time `json:"createdAt"`
	UpdatedAt      op.Time `json:"updatedAt"`
}

// WireGoal returns g in its wire format.
func WireGoal(g *Goal) any {
	return wireGoal{g.ID, g.ConversationID, g.ParentID, g.Kind, g.Description, g.Status, g.Version, op.Time(g.CreatedAt), op.Time(g.UpdatedAt)}
}
