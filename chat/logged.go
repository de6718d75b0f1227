package chat

import (
	"encoding/json"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// Logged is what the log of events keeps of a message or a conversation that an event shows. The rest is
// in rows that do not change: revisions, and what a message is from its beginning.
type Logged struct {
	Rev          int64        `json:"rev,omitempty"` // this and the next fields are the message's
	Status       string       `json:"status,omitempty"`
	GenerationID string       `json:"generationId,omitempty"`
	Revisions    []string     `json:"revisions,omitempty"` // revisions of its swipes
	SwipeIndex   int          `json:"swipeIndex,omitempty"`
	Error        *fault.Error `json:"error,omitempty"`
	EditedAt     *time.Time   `json:"editedAt,omitempty"`
	Hidden       bool         `json:"hidden,omitempty"`

	Conversation *Conversation `json:"conversation,omitempty"` // without the text of its last message; nil = it is a message

	Size int `json:"size,omitempty"` // bytes of the data of an event with texts
}

// logged is what the log keeps of an event that shows m; nil = all of it.
func (m *Message) logged(ev *stream.Event) json.RawMessage {
	l := &Logged{Rev: m.Rev, Status: m.Status, GenerationID: m.GenerationID, SwipeIndex: -1, Error: m.Error, EditedAt: m.EditedAt, Hidden: m.Hidden}
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.Deleted {
			continue
		}
		if s.RevisionID == "" {
			return nil
		}
		if i == m.SwipeIndex {
			l.SwipeIndex = len(l.Revisions)
		}
		l.Revisions = append(l.Revisions, s.RevisionID)
	}
	if len(l.Revisions) == 0 {
		l.SwipeIndex = 0
	} else {
		l.Size = len(ev.Data)
	}
	kept, _ := json.Marshal(l) // ev.Data has the same members
	return kept
}

// logged is what the log keeps of an event that shows c; nil = all of it.
func (c *Conversation) logged(ev *stream.Event) json.RawMessage {
	if c.LastMessage == nil || c.LastMessage.RevisionID == "" {
		return nil
	}
	bare, last := *c, *c.LastMessage
	last.Text, bare.LastMessage, bare.Pins, bare.SummaryID, bare.PlayID, bare.Play = "", &last, nil, "", "", nil
	kept, err := json.Marshal(&Logged{Conversation: &bare, Size: len(ev.Data)})
	if err != nil { // as in op.Event
		return nil
	}
	return kept
}

// ParseLogged reads what the log has kept.
func ParseLogged(kept json.RawMessage) (l *Logged, err error) {
	return l, json.Unmarshal(kept, &l)
}

// LastRevision is the revision with the last message of a conversation.
func (l *Logged) LastRevision() string { return l.Conversation.LastMessage.RevisionID }

// Data is what the event carried, with the row of its message, and with what its revisions have, by their
// ids; nil = one of them is gone. It changes l and m.
func (l *Logged) Data(m *Message, written map[string]*Swipe) any {
	if c := l.Conversation; c != nil {
		s := written[l.LastRevision()]
		if s == nil {
			return nil
		}
		c.LastMessage.Text = op.Truncate(s.Text, previewSize)
		return ConversationData(c)
	}
	if m == nil {
		return nil
	}
	m.Rev, m.Status, m.GenerationID, m.SwipeIndex, m.Error, m.EditedAt = l.Rev, l.Status, l.GenerationID, l.SwipeIndex, l.Error, l.EditedAt
	m.Hidden = l.Hidden
	m.Swipes = make([]Swipe, len(l.Revisions))
	for i, id := range l.Revisions {
		s := written[id]
		if s == nil {
			return nil
		}
		m.Swipes[i] = *s
		m.Swipes[i].Deleted = false
	}
	return MessageData(m)
}
