package chat

import (
	"context"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// HideInput hides a message, or shows it again.
type HideInput struct {
	MessageID string `json:"messageId"`
	Hidden    *bool  `json:"hidden"`
	IfRev     int64  `json:"ifRev,omitempty"` // 0 = last write wins
}

// HideMessage says whether a message is hidden: readers of the chat see a hidden one, while prompts,
// summaries and memories leave it out. It is a part of the message's state, so a save point brings
// it back.
//
// Errors: Invalid without the member hidden; NotFound; Conflict with details.current when IfRev is
// not 0 and not the message's rev; Busy while the message is being written.
func (svc *Service) HideMessage(ctx context.Context, c *op.Call, in HideInput) (*Changed, error) {
	if in.Hidden == nil {
		return nil, fault.InvalidField("hidden", "required", "required")
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Changed, error) {
		conv, m, err := LockForEdit(tx, in.MessageID, in.IfRev)
		if err != nil {
			return nil, err
		}
		if m.Hidden == *in.Hidden {
			return &Changed{Message: m}, nil
		}
		m.Hidden = *in.Hidden
		return &Changed{Message: m}, UpdateMessage(tx, c, conv, m)
	})
}
