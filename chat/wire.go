package chat

import (
	"encoding/json"
	"time"

	"nodest/chat/attached"
	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
)

// The objects as clients see them, in events and in answers, as
// server/openapi.yaml describes them.

type wireMessage struct {
	ID             string           `json:"id"`
	ConversationID string           `json:"conversationId"`
	ParentID       *string          `json:"parentId"`
	ClientMsgID    string           `json:"clientMsgId,omitempty"`
	Seq            int64            `json:"seq"`
	Role           string           `json:"role"`
	Name           string           `json:"name"`
	AuthorID       string           `json:"authorId,omitempty"`
	Greeting       bool             `json:"greeting,omitempty"`
	Hidden         bool             `json:"hidden,omitempty"`
	Text           string           `json:"text"`
	Display        *string          `json:"display,omitempty"`
	Files          []attached.Wired `json:"files,omitempty"`
	Swipes         []wireSwipe      `json:"swipes"`
	SwipeIndex     int              `json:"swipeIndex"`
	Rev            int64            `json:"rev"`
	Status         string           `json:"status"`
	GenerationID   string           `json:"generationId,omitempty"`
	wireAnswer
	Error     *op.Failure `json:"error,omitempty"`
	CreatedAt op.Time     `json:"createdAt"`
	EditedAt  *op.Time    `json:"editedAt,omitempty"`
}

// wireAnswer is how the chosen text of a message came about: its sources, tools and model.
type wireAnswer struct {
	References     []cite.Reference `json:"references"`
	CitationReport *cite.Report     `json:"citationReport,omitempty"`
	ResearchID     string           `json:"researchId,omitempty"`
	Tools          *ToolTrace       `json:"tools,omitempty"`
	MemoryIDs      []string         `json:"memoryIds"`
	UsedProfile    bool             `json:"usedProfile,omitempty"`
	Model          string           `json:"model,omitempty"`
	RequestedModel string           `json:"requestedModel,omitempty"`
	Usage          *llm.Usage       `json:"usage,omitempty"`
}

type wireSwipe struct {
	ID             string     `json:"id"`
	Rev            int64      `json:"rev"`
	Text           string     `json:"text"`
	Omitted        bool       `json:"omitted,omitempty"`
	Reasoning      string     `json:"reasoning,omitempty"`
	Blocks         []Block    `json:"blocks,omitempty"`
	Model          string     `json:"model,omitempty"`
	RequestedModel string     `json:"requestedModel,omitempty"`
	Finish         string     `json:"finish,omitempty"`
	Usage          *llm.Usage `json:"usage,omitempty"`
	GenerationID   string     `json:"generationId,omitempty"`
	Tools          *ToolTrace `json:"tools,omitempty"`
	Wish           string     `json:"wish,omitempty"`
	CreatedAt      op.Time    `json:"createdAt"`
}

// WireMessage is m as clients see it: deleted swipes are not in it, and swipeIndex counts the others. Of many long
// swipes, those far from the shown one come without their texts.
func WireMessage(m *Message) any { return messageOf(m) }

// WireMessageAround is WireMessage with the texts of the swipes around one of them; NotFound without such a swipe.
func WireMessageAround(m *Message, swipe string) (any, error) {
	at, err := SwipeTarget(m, swipe)
	if err != nil {
		return nil, err
	}
	return messageAround(m, at), nil
}

func messageOf(m *Message) wireMessage { return messageAround(m, m.SwipeIndex) }

// messageAround is m with the texts of the shown swipe and of those around the one at a position.
func messageAround(m *Message, at int) wireMessage {
	near := m.near(at)
	w := wireMessage{
		ID: m.ID, ConversationID: m.ConversationID, ClientMsgID: m.ClientMsgID, Seq: m.Seq,
		Role: m.Role, Name: m.Name, AuthorID: m.AuthorID, Greeting: m.Greeting, Hidden: m.Hidden, Display: m.Display, Files: attached.Wire(m.Files),
		Swipes: make([]wireSwipe, 0, len(m.Swipes)), Rev: m.Rev, Status: m.Status,
		GenerationID: m.GenerationID, wireAnswer: wireAnswer{References: []cite.Reference{}, MemoryIDs: []string{}},
		Error: op.FailureOf(m.Error), CreatedAt: op.Time(m.CreatedAt), EditedAt: op.OptionalTime(m.EditedAt),
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
			w.Text, w.Model, w.RequestedModel, w.Usage, w.Tools = s.Text, s.Model, s.RequestedModel, s.Usage, s.Tools
			w.MemoryIDs, w.UsedProfile = append(w.MemoryIDs, s.MemoryIDs...), s.UsedProfile
			if c := s.Citations; c != nil {
				w.References, w.CitationReport, w.ResearchID = append(w.References, c.References...), c.Report, c.ResearchID
			}
		}
		if !near[i] && i != m.SwipeIndex {
			w.Swipes = append(w.Swipes, wireSwipe{ID: s.ID, Rev: s.Rev, Omitted: true, GenerationID: s.GenerationID, CreatedAt: op.Time(s.CreatedAt)})
			continue
		}
		w.Swipes = append(w.Swipes, wireSwipe{
			ID: s.ID, Rev: s.Rev, Text: s.Text, Reasoning: s.Reasoning, Blocks: s.Blocks, Model: s.Model, RequestedModel: s.RequestedModel,
			Finish: s.Finish, Usage: s.Usage, GenerationID: s.GenerationID,
			Tools: s.Tools, Wish: s.Wish, CreatedAt: op.Time(s.CreatedAt),
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
	Tags        []string        `json:"tags"`
	Copying     bool            `json:"copying,omitempty"`
	*wirePlay
	Version     int64        `json:"version"`
	LastMessage *wirePreview `json:"lastMessage,omitempty"`
	CreatedAt   op.Time      `json:"createdAt"`
	UpdatedAt   op.Time      `json:"updatedAt"`
}

type wirePreview struct {
	ID        string  `json:"id"`
	Role      string  `json:"role"`
	Text      string  `json:"text"`
	CreatedAt op.Time `json:"createdAt"`
}

// wirePlay is what a conversation has beside its texts.
type wirePlay struct {
	Variables json.RawMessage `json:"variables"`
	Timed     json.RawMessage `json:"timedWorldInfo"`
}

func playOf(p *Play) *wirePlay {
	if p == nil {
		return nil
	}
	object := func(doc json.RawMessage) json.RawMessage {
		if op.IsNull(doc) {
			return json.RawMessage("{}")
		}
		return doc
	}
	return &wirePlay{object(p.Variables), object(p.Timed)}
}

// WireConversation is c as clients see it.
func WireConversation(c *Conversation) any { return conversationOf(c) }

func conversationOf(c *Conversation) wireConversation {
	w := wireConversation{
		ID: c.ID, CharacterID: c.CharacterID, Title: c.Title, PersonaID: c.PersonaID,
		AuthorNote: c.AuthorNote, Settings: c.Settings, Archived: c.Archived, Tags: append([]string{}, c.Tags...), Copying: c.Copying, wirePlay: playOf(c.Play), Version: c.Version,
		CreatedAt: op.Time(c.CreatedAt), UpdatedAt: op.Time(c.UpdatedAt),
	}
	if len(w.Settings) == 0 {
		w.Settings = json.RawMessage("{}")
	}
	if c.HeadID != "" {
		w.HeadID = &c.HeadID
	}
	if p := c.LastMessage; p != nil {
		w.LastMessage = &wirePreview{p.ID, p.Role, p.Text, op.Time(p.CreatedAt)}
	}
	return w
}

type wireGeneration struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	MessageID      string      `json:"messageId,omitempty"`
	SwipeID        string      `json:"swipeId,omitempty"`
	Kind           string      `json:"kind"`
	Status         string      `json:"status"`
	Finish         string      `json:"finish,omitempty"`
	Model          string      `json:"model,omitempty"`
	RequestedModel string      `json:"requestedModel,omitempty"`
	PromptID       string      `json:"promptId,omitempty"`
	Usage          *llm.Usage  `json:"usage,omitempty"`
	Tools          *ToolTrace  `json:"tools,omitempty"`
	Error          *op.Failure `json:"error,omitempty"`
	By             string      `json:"by"`
	CreatedAt      op.Time     `json:"createdAt"`
	StartedAt      *op.Time    `json:"startedAt,omitempty"`
	FirstTokenAt   *op.Time    `json:"firstTokenAt,omitempty"`
	EndedAt        *op.Time    `json:"endedAt,omitempty"`
	Timing         *wireTiming `json:"timing,omitempty"`
}

type wireTiming struct {
	Timing
	FirstToken *int64 `json:"firstToken,omitempty"`
	Committed  *int64 `json:"committed,omitempty"`
}

func timingOf(g *Generation) *wireTiming {
	if g.Timing == nil {
		return nil
	}
	since := func(at *time.Time) *int64 {
		if at == nil {
			return nil
		}
		return new(max(at.Sub(g.CreatedAt).Milliseconds(), 0))
	}
	return &wireTiming{*g.Timing, since(g.FirstTokenAt), since(g.EndedAt)}
}

// WireGeneration is g as clients see it, without its text.
func WireGeneration(g *Generation) any {
	return wireGeneration{
		ID: g.ID, ConversationID: g.ConversationID, MessageID: g.MessageID, SwipeID: g.SwipeID,
		Kind: g.Kind, Status: g.Status, Finish: g.Finish, Model: g.Model, RequestedModel: g.RequestedModel, PromptID: g.PromptID,
		Usage: g.Usage, Tools: g.Tools, Error: op.FailureOf(g.Error), By: g.By, CreatedAt: op.Time(g.CreatedAt),
		StartedAt: op.OptionalTime(g.StartedAt), FirstTokenAt: op.OptionalTime(g.FirstTokenAt), EndedAt: op.OptionalTime(g.EndedAt),
		Timing: timingOf(g),
	}
}

// WireUsage is u as clients see it; nil stays nil.
func WireUsage(u *llm.Usage) any {
	if u == nil {
		return nil // a nil *llm.Usage would be there, and null
	}
	return u
}

// MessageEvent reports that a message was created or changed ("message.created",
// "message.updated").
func MessageEvent(userID, kind, by string, m *Message) *stream.Event {
	ev := op.Event(userID, kind, by, MessageData(m))
	ev.ConversationID, ev.MessageID, ev.GenerationID = m.ConversationID, m.ID, m.GenerationID
	ev.Logged = m.logged(ev)
	return ev
}

// ConversationEvent reports that a conversation was created or changed
// ("chat.created", "chat.updated").
func ConversationEvent(userID, kind, by string, c *Conversation) *stream.Event {
	ev := op.Event(userID, kind, by, ConversationData(c))
	ev.ConversationID = c.ID
	ev.Logged = c.logged(ev)
	return ev
}

// MessageData is what an event of a message carries.
func MessageData(m *Message) any {
	return struct {
		Message wireMessage `json:"message"`
	}{messageOf(m)}
}

// ConversationData is what an event of a conversation carries.
func ConversationData(c *Conversation) any {
	bare := *c
	bare.Play = nil // it may be large
	return struct {
		Conversation wireConversation `json:"conversation"`
	}{conversationOf(&bare)}
}

// eventSave is s in an event: without its thumbnail, which only lists contain.
func eventSave(s *Save) SaveObject {
	o := SaveOf(s)
	o.Thumbnail = ""
	return o
}

// SaveObject is a save point as clients see it in lists, answers and events: the app's
// ChatSave without messages.
type SaveObject struct {
	ID             string   `json:"id"`
	ConversationID string   `json:"conversationId"`
	CharacterID    string   `json:"characterId"`
	Timestamp      int64    `json:"timestamp"`
	CreatedAt      op.Time  `json:"createdAt"` // the same moment as Timestamp
	Description    string   `json:"description"`
	PreviewText    string   `json:"previewText"`
	MessageCount   int      `json:"messageCount"`
	Automatic      bool     `json:"automatic,omitempty"`
	Thumbnail      string   `json:"thumbnail,omitempty"`
	ImportedAt     *op.Time `json:"importedAt,omitempty"`
	HeadID         *string  `json:"headId"`
	Version        int64    `json:"version"`
}

// SaveOf is s as a SaveObject.
func SaveOf(s *Save) SaveObject {
	w := SaveObject{
		ID: s.ID, ConversationID: s.ConversationID, CharacterID: s.CharacterID, Timestamp: s.CreatedAt.UnixMilli(), CreatedAt: op.Time(s.CreatedAt),
		Description: s.Description, PreviewText: s.PreviewText, MessageCount: s.MessageCount,
		Automatic: s.Automatic, Thumbnail: s.Thumbnail, ImportedAt: op.OptionalTime(s.ImportedAt), Version: s.Version,
	}
	if s.HeadID != "" {
		w.HeadID = &s.HeadID
	}
	return w
}
