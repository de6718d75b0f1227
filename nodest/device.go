package nodest

import (
	"context"
	"maps"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// maxRead is how many conversations one acknowledgement may name.
const maxRead = 200

// Ack stores the position of a device: the seq of the last event that it has, and per
// conversation the last message that was read there. The user's other devices get an
// event about what was read.
func (e *Engine) Ack(ctx context.Context, c *op.Call, seq int64, read map[string]string) error {
	switch {
	case c.Device == "":
		return fault.InvalidField("deviceId", "required", "required")
	case seq < 0:
		return fault.InvalidField("seq", "range", "must not be negative")
	case len(read) > maxRead:
		return fault.InvalidField("read", "range", "must have at most %d conversations", maxRead)
	}
	return op.Do(ctx, e.store, c, func(tx Tx) error {
		for _, conversationID := range slices.Sorted(maps.Keys(read)) {
			m, err := tx.Chats.Message(read[conversationID])
			if err != nil {
				return op.InField("read."+conversationID, err)
			}
			if m.ConversationID != conversationID {
				return op.InField("read."+conversationID, fault.New(fault.NotFound, "no message %q in this conversation", m.ID))
			}
		}
		if err := tx.Ack(c.Device, seq, read); err != nil || len(read) == 0 {
			return err
		}
		return tx.Emit(op.Event(c.UserID, "chat.read", c.By(), struct {
			DeviceID string            `json:"deviceId"`
			Read     map[string]string `json:"read"`
		}{c.Device, read}))
	})
}

// Typing reports to the user's other devices that the user is typing in a conversation.
// It is not stored, and the id is not looked up, because only the user's own devices
// receive the event.
func (e *Engine) Typing(c *op.Call, conversationID string) {
	ev := op.Event(c.UserID, "typing", c.By(), nil)
	ev.ConversationID, ev.At = conversationID, time.Now().UTC()
	e.pub.Transient(ev)
}
