package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
)

// chatOperations are about conversations, messages, generations and prompts.
var chatOperations = []Operation{
	{Command: "chat.send", Route: "POST /conversations/:conversationId/messages", Key: true, Starts: true, Data: takes(chatSend)},
	{Command: "gen.regenerate", Route: "POST /messages/:messageId/regenerate", Key: true, Starts: true, Data: takes(genRegenerate)},
	{Command: "gen.continue", Route: "POST /messages/:messageId/continue", Key: true, Starts: true, Data: takes(genContinue)},
	{Command: "gen.impersonate", Route: "POST /conversations/:conversationId/impersonate", Key: true, Starts: true, Data: takes(genImpersonate)},
	{Command: "gen.cancel", Route: "POST /generations/:generationId/cancel", Data: takes(genCancel)},
	{Command: "gen.attach", Route: "GET /generations/:generationId", Attaches: true, Data: takes(genAttach)},
	{Route: "GET /messages/:messageId", Data: takes(messageGet)},
	{Command: "message.swipe", Route: "POST /messages/:messageId/swipe", Key: true, Starts: true, Data: takes(func(ctx context.Context, c *Call, in chat.SwipeInput) (any, error) {
		return changedOf(c.Engine.Swipe(ctx, c.Call, in))
	})},
	{Command: "message.hide", Route: "PUT /messages/:messageId/hidden", Key: true, Data: takes(func(ctx context.Context, c *Call, in chat.HideInput) (any, error) {
		return changedOf(c.Chats.HideMessage(ctx, c.Call, in))
	})},
	{Command: "message.delete", Route: "DELETE /messages/:messageId", Key: true, Data: takes(func(ctx context.Context, c *Call, in deleteData) (any, error) {
		return deletedOf(c.Chats.DeleteMessage(ctx, c.Call, in.MessageID, cmp.Or(in.Scope, "one")))
	})},
	{Command: "message.restore", Route: "POST /messages/:messageId/restore", Key: true, Data: takes(func(ctx context.Context, c *Call, in messageData) (any, error) {
		return deletedOf(c.Chats.RestoreMessage(ctx, c.Call, in.MessageID))
	})},
	{Command: "chat.create", Route: "POST /conversations", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in chat.ConversationInput) (any, error) {
		return conversationOf(c.Chats.CreateConversation(ctx, c.Call, in))
	})},
	{Route: "GET /conversations", Data: takes(chatList)},
	{Route: "GET /conversations/:conversationId", Data: takes(func(ctx context.Context, c *Call, in conversationData) (any, error) {
		return conversationOf(c.Chats.Conversation(ctx, c.UserID, in.ConversationID))
	})},
	{Command: "chat.update", Route: "PATCH /conversations/:conversationId", Key: true, IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in chat.ConversationPatch) (any, error) {
		return conversationOf(c.Chats.UpdateConversation(ctx, c.Call, in))
	})},
	chatDeletion,
	{Command: "chat.head", Route: "PUT /conversations/:conversationId/head", Key: true, Data: takes(chatHead)},
	{Command: "chat.history", Route: "GET /conversations/:conversationId/messages", Data: takes(chatHistory)},
	{Command: "prompt.preview", Route: "POST /conversations/:conversationId/prompt", Alone: true, Data: takes(func(ctx context.Context, c *Call, in nodest.PreviewInput) (any, error) {
		return Result(explainedOf)(c.Engine.ExplainPrompt(ctx, c.UserID, in))
	})},
	{Command: "prompt.get", Route: "GET /prompts/:promptId", Data: takes(promptGet)},
	{Command: "prompt.diff", Route: "GET /prompts/:promptId/diff", Data: takes(promptDiff)},
	{Command: "card.lint", Data: Input{Prepare: prepareLint}}, // its route also takes files
	{Command: "typing", Data: takes(typing)},
	{Command: "ack", Data: takes(ack)}, // its route names the device
}

type sendData struct {
	nodest.SendInput
	Attachments []string `json:"attachments,omitempty"`
	Reply       *bool    `json:"reply,omitempty"`
}

// Sent is the answer to an operation that may begin a generation. Usage and
// PromptID are there when the request waited for the reply.
type Sent struct {
	UserMessage  any    `json:"userMessage,omitempty"`
	Message      any    `json:"message,omitempty"`
	Reply        any    `json:"reply,omitempty"` // the reply to an edit that is answered
	GenerationID string `json:"generationId,omitempty"`
	Usage        any    `json:"usage,omitempty"`
	PromptID     string `json:"promptId,omitempty"`
	Text         string `json:"text,omitempty"` // text of an impersonation that was waited for

	MessageIDs []string `json:"-"` // ids of the messages above

	written string // the one that the generation writes; "" = none is stored
	place   *any   // where that one stands above
}

func sentOf(user, reply *chat.Message, generationID string) *Sent {
	a := &Sent{GenerationID: generationID}
	a.has(&a.UserMessage, user)
	a.writes(&a.Message, reply)
	return a
}

// has puts a message into the answer, if there is one.
func (a *Sent) has(place *any, m *chat.Message) {
	if m != nil {
		*place = chat.WireMessage(m)
		a.MessageIDs = append(a.MessageIDs, m.ID)
	}
}

// writes is has for the message that the generation writes.
func (a *Sent) writes(place *any, m *chat.Message) {
	if a.has(place, m); m != nil {
		a.written, a.place = m.ID, place
	}
}

// Complete waits for the generation of an answer and fills in what came out.
// A failed generation is the failure of the request; its ids are in details.
func (s *Services) Complete(ctx context.Context, userID string, got *Sent) error {
	g, err := s.Engine.Wait(ctx, userID, got.GenerationID)
	if err != nil {
		return err
	}
	if g.Status == chat.GenFailed {
		return FailedReply(g)
	}
	got.Usage, got.PromptID = chat.WireUsage(g.Usage), g.PromptID
	if got.written == "" { // an impersonation stores no message
		got.Text = g.Text
		return nil
	}
	m, err := s.Chats.Message(ctx, userID, got.written)
	switch {
	case fault.Is(err, fault.NotFound): // it was deleted: a reply beside another one that stayed empty
		*got.place = nil
	case err != nil:
		return err
	default:
		*got.place = chat.WireMessage(m)
	}
	return nil
}

// FailedReply is the error of a request whose generation failed.
func FailedReply(g *chat.Generation) error {
	f := fault.New(fault.Internal, "the generation failed")
	if g.Error != nil {
		copied := *g.Error
		f = &copied
	}
	details := map[string]any{"generationId": g.ID}
	if g.MessageID != "" {
		details["messageId"] = g.MessageID
	}
	maps.Copy(details, f.Details)
	f.Details = details
	return f
}

func chatSend(ctx context.Context, c *Call, in sendData) (any, error) {
	if len(in.Attachments) > 0 {
		return nil, fault.InvalidField("attachments", "range", "attachments are not supported")
	}
	in.NoReply = in.Reply != nil && !*in.Reply
	got, err := c.Engine.Send(ctx, c.Call, in.SendInput)
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

func genRegenerate(ctx context.Context, c *Call, in generateData) (any, error) {
	return changedOf(c.Engine.Regenerate(ctx, c.Call, nodest.GenerateInput{
		MessageID: in.MessageID, Wish: in.Wish, Options: in.Options, WhenBusy: in.WhenBusy,
	}))
}

type continueData struct {
	MessageID string                `json:"messageId"`
	Options   character.TurnOptions `json:"options"`
	WhenBusy  string                `json:"whenBusy,omitempty"`
}

func genContinue(ctx context.Context, c *Call, in continueData) (any, error) {
	return changedOf(c.Engine.Continue(ctx, c.Call, nodest.GenerateInput{
		MessageID: in.MessageID, Options: in.Options, WhenBusy: in.WhenBusy,
	}))
}

var changedOf = Result(func(got *chat.Changed) *Sent { return sentOf(nil, got.Message, got.GenerationID) })

type impersonateData struct {
	ConversationID string                `json:"conversationId"`
	Options        character.TurnOptions `json:"options"`
	WhenBusy       string                `json:"whenBusy,omitempty"`
}

func genImpersonate(ctx context.Context, c *Call, in impersonateData) (any, error) {
	id, err := c.Engine.Impersonate(ctx, c.Call, nodest.GenerateInput{
		ConversationID: in.ConversationID, Options: in.Options, WhenBusy: in.WhenBusy,
	})
	return &Sent{GenerationID: id}, err
}

type generationData struct {
	GenerationID string `json:"generationId"`
}

func genCancel(ctx context.Context, c *Call, in generationData) (any, error) {
	status, err := c.Engine.Cancel(ctx, c.UserID, in.GenerationID)
	return map[string]string{"generationId": in.GenerationID, "status": status}, err
}

// AttachData is what gen.attach takes.
type AttachData struct {
	GenerationID string `json:"generationId"`
	Off          int    `json:"off,omitempty"` // code points that the client has
}

// Attached is a generation and its text from a position. Off counts code points
// of the whole text of the message.
type Attached struct {
	Generation     any    `json:"generation"`
	GenerationID   string `json:"generationId"`
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId,omitempty"`
	Status         string `json:"status"`
	Off            int    `json:"off"`
	Text           string `json:"text"`

	Found *nodest.Attached `json:"-"`
}

func genAttach(ctx context.Context, c *Call, in AttachData) (any, error) {
	if in.Off < 0 {
		return nil, fault.InvalidField("off", "range", "must not be negative")
	}
	a, err := c.Engine.Attach(ctx, c.UserID, in.GenerationID, in.Off)
	if err != nil {
		return nil, err
	}
	g := a.Generation
	return &Attached{
		Generation: chat.WireGeneration(g), GenerationID: g.ID, ConversationID: g.ConversationID,
		MessageID: g.MessageID, Status: g.Status, Off: a.Off, Text: a.Text, Found: a,
	}, nil
}

type messageData struct {
	MessageID string `json:"messageId"`
}

type messageGetData struct {
	MessageID string `json:"messageId"`
	Swipe     string `json:"swipe,omitempty"` // around which texts are shown; "" = the shown one
}

func messageGet(ctx context.Context, c *Call, in messageGetData) (any, error) {
	m, err := c.Chats.Message(ctx, c.UserID, in.MessageID)
	if err != nil || in.Swipe == "" {
		return Result(chat.WireMessage)(m, err)
	}
	return chat.WireMessageAround(m, in.Swipe)
}

type deleteData struct {
	MessageID string `json:"messageId"`
	Scope     string `json:"scope,omitempty"` // "one" (default), "after" or "swipe"
}

var deletedOf = Result(func(d *chat.Deleted) map[string]any {
	answer := map[string]any{"messageIds": d.MessageIDs, "headId": nil}
	if d.HeadID != "" {
		answer["headId"] = d.HeadID
	}
	if !d.RestoredUntil.IsZero() {
		answer["restoredUntil"] = op.Time(d.RestoredUntil)
	}
	return answer
})

var conversationOf = Result(func(c *chat.Conversation) Versioned { return Versioned{chat.WireConversation(c), c.Version} })

type listData struct {
	CharacterID string `json:"characterId,omitempty"`
	Archived    *bool  `json:"archived,omitempty"`
	op.Listing
	pageData
}

func chatList(ctx context.Context, c *Call, in listData) (any, error) {
	filter := chat.ConversationFilter{CharacterID: in.CharacterID, Archived: in.Archived, Listing: in.Listing}
	return Pages(chat.WireConversation)(c.Chats.Conversations(ctx, c.UserID, filter, in.Cursor, int(in.Limit)))
}

type conversationData struct {
	ConversationID string `json:"conversationId"`
}

type headData struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId"`
	ToEnd          bool   `json:"toEnd,omitempty"`
}

func chatHead(ctx context.Context, c *Call, in headData) (any, error) {
	if in.ToEnd {
		return conversationOf(c.Chats.ShowMessage(ctx, c.Call, in.ConversationID, in.MessageID))
	}
	return conversationOf(c.Chats.ChooseHead(ctx, c.Call, in.ConversationID, in.MessageID))
}

type historyData struct {
	ConversationID string `json:"conversationId"`
	Before         string `json:"before,omitempty"`
	After          string `json:"after,omitempty"`
	Limit          limit  `json:"limit,omitempty"`
}

// chatHistory pages backwards: nextCursor is the before of the next page; forwards with after.
func chatHistory(ctx context.Context, c *Call, in historyData) (any, error) {
	var h *chat.HistoryPage
	var err error
	switch {
	case in.After == "":
		h, err = c.Chats.History(ctx, c.UserID, in.ConversationID, in.Before, int(in.Limit))
	case in.Before == "":
		h, err = c.Chats.HistoryAfter(ctx, c.UserID, in.ConversationID, in.After, int(in.Limit))
	default:
		err = fault.InvalidField("after", "range", "cannot be used together with before")
	}
	if err != nil {
		return nil, err
	}
	p := whole(h.Items, chat.WireMessage)
	p.Displays = h.Displays
	if n := len(h.Items); h.More && n > 0 {
		next := h.Items[0]
		if in.After != "" {
			next = h.Items[n-1]
		}
		p.NextCursor = &next.ID
	}
	return p, nil
}

type promptData struct {
	PromptID string `json:"promptId"`
}

func promptGet(ctx context.Context, c *Call, in promptData) (any, error) {
	p, err := c.Engine.Prompt(ctx, c.UserID, in.PromptID)
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

func promptDiff(ctx context.Context, c *Call, in diffData) (any, error) {
	if in.With == "" {
		return nil, fault.InvalidField("with", "required", "required: the id of the prompt to compare with")
	}
	return c.Engine.DiffPrompts(ctx, c.UserID, in.PromptID, in.With)
}

// prepareLint takes any document as its data: a card, a book, a preset or a script.
func prepareLint(name string, data []byte) (Runner, string, error) {
	if err := CheckJSON(data); err != nil {
		return nil, "", err
	}
	run := func(_ context.Context, _ *Services, c *op.Call) (any, error) { return Lint(c, data, "document.json") }
	return run, Hash(name, data), nil
}

// Lint checks a document.
func Lint(c *op.Call, data []byte, filename string) (any, error) {
	found, err := character.Lint(data, filename, c.Room)
	return map[string]any{"findings": OrEmpty(found)}, err
}

func typing(ctx context.Context, c *Call, in conversationData) (any, error) {
	if _, err := c.Chats.Conversation(ctx, c.UserID, in.ConversationID); err != nil {
		return nil, err
	}
	c.Engine.Typing(c.Call, in.ConversationID)
	return struct{}{}, nil
}

type ackData struct {
	Seq  int64             `json:"seq,omitempty"`
	Read map[string]string `json:"read,omitempty"` // conversation id -> message id
}

func ack(ctx context.Context, c *Call, in ackData) (any, error) {
	if in.Seq < 0 {
		return nil, fault.InvalidField("seq", "range", "must not be negative")
	}
	return struct{}{}, c.Engine.Ack(ctx, c.Call, in.Seq, in.Read)
}
