package nodest

import (
	"encoding/json"
	"time"

	"nodest/fault"
	"nodest/llm"
	"nodest/stream"
)

// The objects as clients see them, in events and in answers. API page, "Message
// object" and "Conversation object".

// WireTime is RFC 3339 in UTC with milliseconds.
type WireTime time.Time

func (t WireTime) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

func optionalTime(t *time.Time) *WireTime {
	if t == nil {
		return nil
	}
	w := WireTime(*t)
	return &w
}

type wireMessage struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	ParentID       *string     `json:"parentId"`
	ClientMsgID    string      `json:"clientMsgId,omitempty"`
	Seq            int64       `json:"seq"`
	Role           string      `json:"role"`
	Name           string      `json:"name"`
	AuthorID       string      `json:"authorId,omitempty"`
	Greeting       bool        `json:"greeting,omitempty"`
	Text           string      `json:"text"`
	Swipes         []wireSwipe `json:"swipes"`
	SwipeIndex     int         `json:"swipeIndex"`
	Rev            int64       `json:"rev"`
	Status         string      `json:"status"`
	GenerationID   string      `json:"generationId,omitempty"`
	References     []any       `json:"references"`
	MemoryIDs      []string    `json:"memoryIds"`
	Model          string      `json:"model,omitempty"`
	Usage          *llm.Usage  `json:"usage,omitempty"`
	Error          *wireError  `json:"error,omitempty"`
	CreatedAt      WireTime    `json:"createdAt"`
	EditedAt       *WireTime   `json:"editedAt,omitempty"`
}

type wireSwipe struct {
	ID           string     `json:"id"`
	Rev          int64      `json:"rev"`
	Text         string     `json:"text"`
	Reasoning    string     `json:"reasoning,omitempty"`
	Blocks       []Block    `json:"blocks,omitempty"`
	Model        string     `json:"model,omitempty"`
	Finish       string     `json:"finish,omitempty"`
	Usage        *llm.Usage `json:"usage,omitempty"`
	GenerationID string     `json:"generationId,omitempty"`
	Wish         string     `json:"wish,omitempty"`
	CreatedAt    WireTime   `json:"createdAt"`
}

// WireMessage is m as clients see it: deleted swipes are not in it, and
// swipeIndex counts the others.
func WireMessage(m *Message) any { return messageOf(m) }

func messageOf(m *Message) wireMessage {
	w := wireMessage{
		ID: m.ID, ConversationID: m.ConversationID, ClientMsgID: m.ClientMsgID, Seq: m.Seq,
		Role: m.Role, Name: m.Name, AuthorID: m.AuthorID, Greeting: m.Greeting,
		Swipes: make([]wireSwipe, 0, len(m.Swipes)), Rev: m.Rev, Status: m.Status,
		GenerationID: m.GenerationID, References: []any{}, MemoryIDs: []string{},
		Error: errorOf(m.Error), CreatedAt: WireTime(m.CreatedAt), EditedAt: optionalTime(m.EditedAt),
	}
	if m.ParentID != "" {
		w.ParentID = &m.ParentID
	}
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.Deleted {
			continue
		}
		if i == m.SwipeIndex {
			w.SwipeIndex = len(w.Swipes)
			w.Text, w.Model, w.Usage = s.Text, s.Model, s.Usage
			w.MemoryIDs = append(w.MemoryIDs, s.MemoryIDs...)
		}
		w.Swipes = append(w.Swipes, wireSwipe{
			ID: s.ID, Rev: s.Rev, Text: s.Text, Reasoning: s.Reasoning, Blocks: s.Blocks, Model: s.Model,
			Finish: s.Finish, Usage: s.Usage, GenerationID: s.GenerationID,
			Wish: s.Wish, CreatedAt: WireTime(s.CreatedAt),
		})
	}
	return w
}

type wireConversation struct {
	ID          string          `json:"id"`
	CharacterID string          `json:"characterId"`
	Title       string          `json:"title"`
	PersonaID   string          `json:"personaId,omitempty"`
	HeadID      *string         `json:"headId"`
	AuthorNote  json.RawMessage `json:"authorNote,omitempty"`
	Settings    json.RawMessage `json:"settings"`
	Archived    bool            `json:"archived"`
	Copying     bool            `json:"copying,omitempty"`
	Version     int64           `json:"version"`
	LastMessage *wirePreview    `json:"lastMessage,omitempty"`
	CreatedAt   WireTime        `json:"createdAt"`
	UpdatedAt   WireTime        `json:"updatedAt"`
}

type wirePreview struct {
	ID        string   `json:"id"`
	Role      string   `json:"role"`
	Text      string   `json:"text"`
	CreatedAt WireTime `json:"createdAt"`
}

// WireConversation is c as clients see it.
func WireConversation(c *Conversation) any { return conversationOf(c) }

func conversationOf(c *Conversation) wireConversation {
	w := wireConversation{
		ID: c.ID, CharacterID: c.CharacterID, Title: c.Title, PersonaID: c.PersonaID,
		AuthorNote: c.AuthorNote, Settings: c.Settings, Archived: c.Archived, Copying: c.Copying, Version: c.Version,
		CreatedAt: WireTime(c.CreatedAt), UpdatedAt: WireTime(c.UpdatedAt),
	}
	if len(w.Settings) == 0 {
		w.Settings = json.RawMessage("{}")
	}
	if c.HeadID != "" {
		w.HeadID = &c.HeadID
	}
	if p := c.LastMessage; p != nil {
		w.LastMessage = &wirePreview{p.ID, p.Role, p.Text, WireTime(p.CreatedAt)}
	}
	return w
}

type wireGeneration struct {
	ID             string     `json:"id"`
	ConversationID string     `json:"conversationId"`
	MessageID      string     `json:"messageId,omitempty"`
	SwipeID        string     `json:"swipeId,omitempty"`
	Kind           string     `json:"kind"`
	Status         string     `json:"status"`
	Finish         string     `json:"finish,omitempty"`
	Model          string     `json:"model,omitempty"`
	PromptID       string     `json:"promptId,omitempty"`
	Usage          *llm.Usage `json:"usage,omitempty"`
	Error          *wireError `json:"error,omitempty"`
	By             string     `json:"by"`
	CreatedAt      WireTime   `json:"createdAt"`
	StartedAt      *WireTime  `json:"startedAt,omitempty"`
	FirstTokenAt   *WireTime  `json:"firstTokenAt,omitempty"`
	EndedAt        *WireTime  `json:"endedAt,omitempty"`
}

// WireGeneration is g as clients see it, without its text.
func WireGeneration(g *Generation) any {
	return wireGeneration{
		ID: g.ID, ConversationID: g.ConversationID, MessageID: g.MessageID, SwipeID: g.SwipeID,
		Kind: g.Kind, Status: g.Status, Finish: g.Finish, Model: g.Model, PromptID: g.PromptID,
		Usage: g.Usage, Error: errorOf(g.Error), By: g.By, CreatedAt: WireTime(g.CreatedAt),
		StartedAt: optionalTime(g.StartedAt), FirstTokenAt: optionalTime(g.FirstTokenAt), EndedAt: optionalTime(g.EndedAt),
	}
}

// WireUsage is u as clients see it; nil stays nil.
func WireUsage(u *llm.Usage) any {
	if u == nil {
		return nil // a nil *llm.Usage would be there, and null
	}
	return u
}

type wireError struct {
	Code         fault.Code     `json:"code"`
	Status       int            `json:"status"`
	Title        string         `json:"title"`
	Detail       string         `json:"detail"`
	Retry        string         `json:"retry"`
	RetryAfterMs *int64         `json:"retryAfterMs"`
	Errors       []fault.Field  `json:"errors,omitempty"`
	Details      map[string]any `json:"details,omitempty"`
}

// WireError is a failure as clients see it (protocol page, section 8), without a
// request id; nil stays nil.
func WireError(err error) any {
	return errorOf(fault.Public(err))
}

func errorOf(e *fault.Error) *wireError {
	if e == nil {
		return nil
	}
	w := &wireError{
		Code: e.Code, Status: fault.Status(e.Code), Title: fault.Title(e.Code), Detail: e.Message,
		Retry: e.Retry(), Errors: e.Fields, Details: e.Details,
	}
	if e.RetryAfter > 0 {
		ms := e.RetryAfter.Milliseconds()
		w.RetryAfterMs = &ms
	}
	return w
}

// event makes an event of the user. data is what its type carries besides the
// ids, nil for nothing.
func event(userID, kind, by string, data any) *stream.Event {
	ev := &stream.Event{UserID: userID, Type: kind, By: by, Data: json.RawMessage("{}")}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil { // a document that is not JSON, which no transport lets in
			b = []byte("{}")
		}
		ev.Data = b
	}
	return ev
}

// messageEvent tells that a message was made or changed ("message.created",
// "message.updated").
func messageEvent(userID, kind, by string, m *Message) *stream.Event {
	ev := event(userID, kind, by, struct {
		Message wireMessage `json:"message"`
	}{messageOf(m)})
	ev.ConversationID, ev.MessageID, ev.GenerationID = m.ConversationID, m.ID, m.GenerationID
	return ev
}

// conversationEvent tells that a conversation was made or changed
// ("chat.created", "chat.updated").
func conversationEvent(userID, kind, by string, c *Conversation) *stream.Event {
	ev := event(userID, kind, by, struct {
		Conversation wireConversation `json:"conversation"`
	}{conversationOf(c)})
	ev.ConversationID = c.ID
	return ev
}
