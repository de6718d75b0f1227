package server

import (
	"cmp"
	"context"
	"net/http"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
	"nodest/op"
	"nodest/stream/outbox"
)

// chatOperations are about conversations, messages, generations and prompts.
var chatOperations = []operation{
	{command: "chat.send", route: "POST /conversations/:conversationId/messages", key: true, starts: true, data: takes(chatSend)},
	{command: "gen.regenerate", route: "POST /messages/:messageId/regenerate", key: true, starts: true, data: takes(genRegenerate)},
	{command: "gen.continue", route: "POST /messages/:messageId/continue", key: true, starts: true, data: takes(genContinue)},
	{command: "gen.impersonate", route: "POST /conversations/:conversationId/impersonate", key: true, starts: true, data: takes(genImpersonate)},
	{command: "gen.cancel", route: "POST /generations/:generationId/cancel", data: takes(genCancel)},
	{command: "gen.attach", route: "GET /generations/:generationId", attaches: true, data: takes(genAttach)},
	{route: "GET /messages/:messageId", data: takes(messageGet)},
	{command: "message.swipe", route: "POST /messages/:messageId/swipe", key: true, starts: true, data: takes(messageSwipe)},
	{command: "message.delete", route: "DELETE /messages/:messageId", key: true, data: takes(messageDelete)},
	{command: "message.restore", route: "POST /messages/:messageId/restore", key: true, data: takes(messageRestore)},
	{command: "chat.create", route: "POST /conversations", status: http.StatusCreated, key: true, data: takes(chatCreate)},
	{route: "GET /conversations", data: takes(chatList)},
	{route: "GET /conversations/:conversationId", data: takes(chatGet)},
	{command: "chat.update", route: "PATCH /conversations/:conversationId", key: true, ifMatch: true, data: takes(chatUpdate)},
	{command: "chat.delete", route: "DELETE /conversations/:conversationId", status: http.StatusNoContent, key: true, data: takes(chatDelete)},
	{command: "chat.head", route: "PUT /conversations/:conversationId/head", key: true, data: takes(chatHead)},
	{command: "chat.history", route: "GET /conversations/:conversationId/messages", data: takes(chatHistory)},
	{command: "prompt.preview", route: "POST /conversations/:conversationId/prompt", data: takes(promptPreview)},
	{command: "prompt.get", route: "GET /prompts/:promptId", data: takes(promptGet)},
	{command: "prompt.diff", route: "GET /prompts/:promptId/diff", data: takes(promptDiff)},
	{command: "card.lint", data: input{prepare: prepareLint}}, // its route, which also takes files, is in ops_rest.go
	{command: "typing", data: takes(typing)},
	{command: "ack", data: takes(ack)}, // its route names the device: ops_rest.go
}

type sendData struct {
	nodest.SendInput
	Attachments []string `json:"attachments,omitempty"`
	Reply       *bool    `json:"reply,omitempty"`
}

// sent is the answer to an operation that may begin a generation. Usage and
// PromptID are there when the request waited for the reply.
type sent struct {
	UserMessage  any    `json:"userMessage,omitempty"`
	Message      any    `json:"message,omitempty"`
	Reply        any    `json:"reply,omitempty"` // of an edit that is answered
	GenerationID string `json:"generationId,omitempty"`
	Usage        any    `json:"usage,omitempty"`
	PromptID     string `json:"promptId,omitempty"`
	Text         string `json:"text,omitempty"` // of an impersonation that was waited for

	messages []string // the ids of those above
	written  string   // the one that the generation writes; "" = none is stored
	place    *any     // where that one stands above
}

func sentOf(user, reply *chat.Message, generationID string) *sent {
	a := &sent{GenerationID: generationID}
	a.has(&a.UserMessage, user)
	a.writes(&a.Message, reply)
	return a
}

// has puts a message into the answer, if there is one.
func (a *sent) has(place *any, m *chat.Message) {
	if m != nil {
		*place = chat.WireMessage(m)
		a.messages = append(a.messages, m.ID)
	}
}

// writes is has for the message that the generation writes.
func (a *sent) writes(place *any, m *chat.Message) {
	if a.has(place, m); m != nil {
		a.written, a.place = m.ID, place
	}
}

func chatSend(ctx context.Context, s *Server, c *op.Call, in sendData) (any, error) {
	if len(in.Attachments) > 0 {
		return nil, fault.InvalidField("attachments", "range", "attachments are not supported")
	}
	in.NoReply = in.Reply != nil && !*in.Reply
	got, err := s.Engine.Send(ctx, c, in.SendInput)
	if err != nil {
		return nil, err
	}
	return sentOf(got.UserMessage, got.Message, got.GenerationID), nil
}

type generateData struct {
	MessageID string                `json:"messageId"`
	Wish      string                `json:"wish,omitempty"` // regenerate: what the new text shall do better
	Options   character.TurnOptions `json:"options"`
	WhenBusy  string                `json:"whenBusy,omitempty"`
}

func genRegenerate(ctx context.Context, s *Server, c *op.Call, in generateData) (any, error) {
	return changedOf(s.Engine.Regenerate(ctx, c, nodest.GenerateInput{
		MessageID: in.MessageID, Wish: in.Wish, Options: in.Options, WhenBusy: in.WhenBusy,
	}))
}

type continueData struct {
	MessageID string                `json:"messageId"`
	Options   character.TurnOptions `json:"options"`
	WhenBusy  string                `json:"whenBusy,omitempty"`
}

func genContinue(ctx context.Context, s *Server, c *op.Call, in continueData) (any, error) {
	return changedOf(s.Engine.Continue(ctx, c, nodest.GenerateInput{
		MessageID: in.MessageID, Options: in.Options, WhenBusy: in.WhenBusy,
	}))
}

var changedOf = result(func(got *chat.Changed) *sent { return sentOf(nil, got.Message, got.GenerationID) })

type impersonateData struct {
	ConversationID string                `json:"conversationId"`
	Options        character.TurnOptions `json:"options"`
	WhenBusy       string                `json:"whenBusy,omitempty"`
}

func genImpersonate(ctx context.Context, s *Server, c *op.Call, in impersonateData) (any, error) {
	id, err := s.Engine.Impersonate(ctx, c, nodest.GenerateInput{
		ConversationID: in.ConversationID, Options: in.Options, WhenBusy: in.WhenBusy,
	})
	return &sent{GenerationID: id}, err
}

type generationData struct {
	GenerationID string `json:"generationId"`
}

func genCancel(ctx context.Context, s *Server, c *op.Call, in generationData) (any, error) {
	status, err := s.Engine.Cancel(ctx, c.UserID, in.GenerationID)
	return map[string]string{"generationId": in.GenerationID, "status": status}, err
}

type attachData struct {
	GenerationID string `json:"generationId"`
	Off          int    `json:"off,omitempty"` // code points that the client has
}

// attached is a generation and its text from a position. Off counts code points
// of the whole text of the message.
type attached struct {
	Generation     any    `json:"generation"`
	GenerationID   string `json:"generationId"`
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId,omitempty"`
	Status         string `json:"status"`
	Off            int    `json:"off"`
	Text           string `json:"text"`

	found *nodest.Attached
}

// attachedText is what the outbox needs of it.
func attachedText(a *nodest.Attached) *outbox.Text {
	g := a.Generation
	return &outbox.Text{
		GenerationID: g.ID, ConversationID: g.ConversationID, MessageID: g.MessageID,
		Off: a.Off, Text: a.Text, Ended: g.Ended(),
	}
}

func genAttach(ctx context.Context, s *Server, c *op.Call, in attachData) (any, error) {
	if in.Off < 0 {
		return nil, fault.InvalidField("off", "range", "must not be negative")
	}
	a, err := s.Engine.Attach(ctx, c.UserID, in.GenerationID, in.Off)
	if err != nil {
		return nil, err
	}
	g := a.Generation
	return &attached{
		Generation: chat.WireGeneration(g), GenerationID: g.ID, ConversationID: g.ConversationID,
		MessageID: g.MessageID, Status: g.Status, Off: a.Off, Text: a.Text, found: a,
	}, nil
}

type messageData struct {
	MessageID string `json:"messageId"`
}

func messageGet(ctx context.Context, s *Server, c *op.Call, in messageData) (any, error) {
	return result(chat.WireMessage)(s.Chats.Message(ctx, c.UserID, in.MessageID))
}

func messageSwipe(ctx context.Context, s *Server, c *op.Call, in chat.SwipeInput) (any, error) {
	return changedOf(s.Engine.Swipe(ctx, c, in))
}

type deleteData struct {
	MessageID string `json:"messageId"`
	Scope     string `json:"scope,omitempty"` // "one" (default), "after" or "swipe"
}

func messageDelete(ctx context.Context, s *Server, c *op.Call, in deleteData) (any, error) {
	return deletedOf(s.Chats.DeleteMessage(ctx, c, in.MessageID, cmp.Or(in.Scope, "one")))
}

func messageRestore(ctx context.Context, s *Server, c *op.Call, in messageData) (any, error) {
	return deletedOf(s.Chats.RestoreMessage(ctx, c, in.MessageID))
}

var deletedOf = result(func(d *chat.Deleted) map[string]any {
	answer := map[string]any{"messageIds": d.MessageIDs, "headId": nil}
	if d.HeadID != "" {
		answer["headId"] = d.HeadID
	}
	if !d.RestoredUntil.IsZero() {
		answer["restoredUntil"] = wireTime(d.RestoredUntil)
	}
	return answer
})

func chatCreate(ctx context.Context, s *Server, c *op.Call, in chat.ConversationInput) (any, error) {
	return conversationOf(s.Chats.CreateConversation(ctx, c, in))
}

var conversationOf = result(func(c *chat.Conversation) versioned { return versioned{chat.WireConversation(c), c.Version} })

type listData struct {
	CharacterID string `json:"characterId,omitempty"`
	Archived    *bool  `json:"archived,omitempty"`
	op.Listing
	pageData
}

func chatList(ctx context.Context, s *Server, c *op.Call, in listData) (any, error) {
	filter := chat.ConversationFilter{CharacterID: in.CharacterID, Archived: in.Archived, Listing: in.Listing}
	return pages(chat.WireConversation)(s.Chats.Conversations(ctx, c.UserID, filter, in.Cursor, int(in.Limit)))
}

type conversationData struct {
	ConversationID string `json:"conversationId"`
}

func chatGet(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return conversationOf(s.Chats.Conversation(ctx, c.UserID, in.ConversationID))
}

func chatUpdate(ctx context.Context, s *Server, c *op.Call, in chat.ConversationPatch) (any, error) {
	return conversationOf(s.Chats.UpdateConversation(ctx, c, in))
}

func chatDelete(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	return struct{}{}, s.Engine.DeleteConversation(ctx, c, in.ConversationID)
}

type headData struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId"`
}

func chatHead(ctx context.Context, s *Server, c *op.Call, in headData) (any, error) {
	return conversationOf(s.Chats.ChooseHead(ctx, c, in.ConversationID, in.MessageID))
}

type historyData struct {
	ConversationID string `json:"conversationId"`
	Before         string `json:"before,omitempty"`
	Limit          limit  `json:"limit,omitempty"`
}

// chatHistory pages backwards: nextCursor is the before of the next page.
func chatHistory(ctx context.Context, s *Server, c *op.Call, in historyData) (any, error) {
	h, err := s.Chats.History(ctx, c.UserID, in.ConversationID, in.Before, int(in.Limit))
	if err != nil {
		return nil, err
	}
	p := whole(h.Items, chat.WireMessage)
	if h.More && len(h.Items) > 0 {
		p.NextCursor = &h.Items[0].ID
	}
	return p, nil
}

func promptPreview(ctx context.Context, s *Server, c *op.Call, in nodest.PreviewInput) (any, error) {
	return result(promptOf)(s.Engine.PreviewPrompt(ctx, c.UserID, in))
}

type promptData struct {
	PromptID string `json:"promptId"`
}

func promptGet(ctx context.Context, s *Server, c *op.Call, in promptData) (any, error) {
	p, err := s.Engine.Prompt(ctx, c.UserID, in.PromptID)
	if err != nil {
		return nil, err
	}
	w := promptOf(p.Prompt)
	w.ID, w.ConversationID, w.GenerationID = p.ID, p.ConversationID, p.GenerationID
	return w, nil
}

type diffData struct {
	PromptID string `json:"promptId"`
	With     string `json:"with"`
}

func promptDiff(ctx context.Context, s *Server, c *op.Call, in diffData) (any, error) {
	if in.With == "" {
		return nil, fault.InvalidField("with", "required", "required: the id of the prompt to compare with")
	}
	return s.Engine.DiffPrompts(ctx, c.UserID, in.PromptID, in.With)
}

// prepareLint takes any document as its data: a card, a book, a preset or a
// script.
func prepareLint(name string, data []byte) (runner, string, error) {
	if _, err := parseJSON(data); err != nil {
		return nil, "", err
	}
	return lint(data, "document.json"), hashOf(name, data), nil
}

func lint(data []byte, filename string) runner {
	return func(context.Context, *Server, *op.Call) (any, error) {
		found, err := character.Lint(data, filename)
		return map[string]any{"findings": orEmpty(found)}, err
	}
}

func typing(ctx context.Context, s *Server, c *op.Call, in conversationData) (any, error) {
	if _, err := s.Chats.Conversation(ctx, c.UserID, in.ConversationID); err != nil {
		return nil, err
	}
	s.Engine.Typing(c, in.ConversationID)
	return struct{}{}, nil
}

type ackData struct {
	Seq  int64             `json:"seq,omitempty"`
	Read map[string]string `json:"read,omitempty"` // conversation id -> message id
}

func ack(ctx context.Context, s *Server, c *op.Call, in ackData) (any, error) {
	if in.Seq < 0 {
		return nil, fault.InvalidField("seq", "range", "must not be negative")
	}
	return struct{}{}, s.Engine.Ack(ctx, c, in.Seq, in.Read)
}
