package chat

import (
	"context"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// ChooseSwipe chooses another text of a message: a swipe by its id, or the next or
// previous one. At the end of the row "next" changes nothing; so does "prev" at its
// beginning.
//
// Errors: NotFound; Conflict with details.current when IfRev is not 0 and not
// the message's rev; Busy while the message is being written.
func (svc *Service) ChooseSwipe(ctx context.Context, c *op.Call, in SwipeInput) (*Changed, error) {
	if in.Swipe == "" {
		return nil, fault.InvalidField("swipe", "required", `must be the id of a swipe, "next" or "prev"`)
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Changed, error) {
		conv, m, err := LockForEdit(tx, in.MessageID, in.IfRev)
		if err != nil {
			return nil, err
		}
		to, err := SwipeTarget(m, in.Swipe)
		if err != nil {
			return nil, err
		}
		if to == m.SwipeIndex {
			return &Changed{Message: m}, nil
		}
		m.SwipeIndex = to
		m.Status, m.Error = statusOf(m.Chosen().Finish), nil
		return &Changed{Message: m}, UpdateMessage(tx, c, conv, m)
	})
}

// SwipeTarget is the index of the swipe that is meant.
func SwipeTarget(m *Message, swipe string) (int, error) {
	step := map[string]int{"next": 1, "prev": -1}[swipe]
	if step != 0 {
		for i := m.SwipeIndex + step; i >= 0 && i < len(m.Swipes); i += step {
			if !m.Swipes[i].Deleted {
				return i, nil
			}
		}
		return m.SwipeIndex, nil
	}
	for i := range m.Swipes {
		if m.Swipes[i].ID == swipe && !m.Swipes[i].Deleted {
			return i, nil
		}
	}
	return 0, fault.New(fault.NotFound, "the message has no swipe %q", swipe)
}

// statusOf is the status of a message whose chosen text ended that way.
func statusOf(finish string) string {
	switch finish {
	case StatusCancelled, StatusInterrupted, StatusError:
		return finish
	}
	return StatusComplete
}
