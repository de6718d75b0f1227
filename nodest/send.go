package nodest

import (
	"context"
	"errors"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest/admission"
)

// acceptTimeout bounds the accepting transaction. The transaction does not end with the
// caller's context, because a generation that is committed must also start.
const acceptTimeout = 30 * time.Second

// Send accepts a user's message: it stores the message, the placeholder of the reply and
// their events in one transaction, and then answers. The engine writes the reply
// afterwards.
//
// The text is stored as it was typed, and regex scripts for user input change what
// is sent to the model, each time it is sent. In the SillyTavern dialect they change what is stored.
//
// Errors: Invalid, TooLarge, NotFound, Busy with details.generationId,
// TooManyGenerations, QuotaExceeded, NotConfigured, ShuttingDown; Conflict with
// details.messageId when another message has the clientMsgId.
func (e *Engine) Send(ctx context.Context, c *op.Call, in SendInput) (*Sent, error) {
	if err := e.checkSend(in); err != nil {
		return nil, err
	}
	if c.Key != "" || in.ClientMsgID == "" {
		return e.send(ctx, c, in)
	}
	// The clientMsgId serves as the key. No client can send a space in a key, so they cannot collide.
	c.Key = "message " + in.ConversationID + " " + in.ClientMsgID
	sent, err := e.send(ctx, c, in)
	if fault.Is(err, fault.KeyReused) { // by a message with other content: send reports it as a Conflict
		c.Key = ""
		return e.send(ctx, c, in)
	}
	return sent, err
}

func (e *Engine) send(ctx context.Context, c *op.Call, in SendInput) (*Sent, error) {
	if in.NoReply {
		return e.add(ctx, c, in)
	}
	q := query{conversationID: in.ConversationID, options: in.Options, typed: in.Text, model: true, apiKey: in.APIKey, app: in.App}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (*Sent, *assignment, error) {
		conv, parent, err := sendTo(tx, in)
		if err != nil {
			return nil, nil, err
		}
		message := said(tx.Now(), in, s.typed, parent, s.Persona.Name)
		ch := chat.Change{Created: []*chat.Message{message}, Head: message}
		reply, as, err := e.answer(tx, c, s, conv, message, in.WhenBusy, &ch)
		if err != nil {
			return nil, nil, err
		}
		if err := ch.Apply(tx.Chats, c, conv); err != nil {
			return nil, nil, err
		}
		as.message = message
		return &Sent{UserMessage: message, Message: reply, GenerationID: as.gen.ID}, as, nil
	})
}

// add stores a message that is not answered. It reads the setup, of which it needs only the user's
// name in the chat, within its transaction, where the conversation is read anyway.
func (e *Engine) add(ctx context.Context, c *op.Call, in SendInput) (*Sent, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	sent, err := e.addWith(storing, c, in, func(tx Tx, conv *chat.Conversation) (*turnSetup, error) {
		s, err := e.Chats.CompiledSetup(tx.Chats, conv, in.Options)
		if err == nil && (s == nil || s.Rewrites()) {
			err = errPrepare
		}
		return &turnSetup{Setup: s, typed: in.Text}, err
	})
	if !errors.Is(err, errPrepare) {
		return sent, err
	}
	s, err := e.loadSetup(ctx, c.UserID, query{conversationID: in.ConversationID, options: in.Options, typed: in.Text})
	if err != nil {
		return nil, err
	}
	return e.addWith(storing, c, in, func(Tx, *chat.Conversation) (*turnSetup, error) { return s, nil })
}

func (e *Engine) addWith(
	ctx context.Context, c *op.Call, in SendInput, setup func(Tx, *chat.Conversation) (*turnSetup, error),
) (*Sent, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*Sent, error) {
		conv, parent, err := sendTo(tx, in)
		if err != nil {
			return nil, err
		}
		s, err := setup(tx, conv)
		if err != nil {
			return nil, err
		}
		message := said(tx.Now(), in, s.typed, parent, s.Persona.Name)
		if err := (chat.Change{Created: []*chat.Message{message}, Head: message}).Apply(tx.Chats, c, conv); err != nil {
			return nil, err
		}
		return &Sent{UserMessage: message}, e.Chats.TextAdded(tx.Chats, conv)
	})
}

// errPrepare ends a transaction that others wait for, before it has to compile documents or run scripts.
var errPrepare = errors.New("the character's documents or scripts must work first")

// said is the user's message with the text that is stored, and the name that the user has in the chat.
func said(at time.Time, in SendInput, text, parent, name string) *chat.Message {
	return &chat.Message{
		ID: op.NewID(), ConversationID: in.ConversationID, ParentID: parent, ClientMsgID: in.ClientMsgID, AuthorID: in.AuthorID,
		Role: chat.RoleUser, Name: name, Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: at},
		Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: text, CreatedAt: at}},
	}
}

// sendTo locks the conversation and finds the message that a new one follows.
func sendTo(tx Tx, in SendInput) (conv *chat.Conversation, parent string, err error) {
	if conv, err = tx.Chats.LockConversation(in.ConversationID); err != nil {
		return nil, "", err
	}
	if in.ClientMsgID != "" {
		taken, err := tx.Chats.MessageByClientID(conv.ID, in.ClientMsgID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, "", err
		}
		if taken != nil {
			return nil, "", fault.New(fault.Conflict, "the clientMsgId %q is already used", in.ClientMsgID).With("messageId", taken.ID)
		}
	}
	if in.ParentID == "" || in.ParentID == conv.HeadID {
		return conv, conv.HeadID, nil
	}
	m, err := chat.LiveMessage(tx.Chats, in.ParentID)
	if err != nil {
		return nil, "", err
	}
	if m.ConversationID != conv.ID {
		return nil, "", fault.New(fault.NotFound, "no message %q in this conversation", in.ParentID)
	}
	return conv, m.ID, nil
}

// answer accepts a reply to a message and puts its place into ch, as the head.
// The caller stores both, ch first.
func (e *Engine) answer(
	tx Tx, c *op.Call, s *turnSetup, conv *chat.Conversation, message *chat.Message, whenBusy string, ch *chat.Change,
) (*chat.Message, *assignment, error) {
	reply := placeholder(tx.Now(), s, message.ConversationID, message.ID)
	as, err := e.reply(tx, c, s, conv, reply, whenBusy, ch)
	return reply, as, err
}

// reply is answer with the placeholder that is to be the reply.
func (e *Engine) reply(
	tx Tx, c *op.Call, s *turnSetup, conv *chat.Conversation, reply *chat.Message, whenBusy string, ch *chat.Change,
) (*assignment, error) {
	as, err := e.assign(tx, c, s, conv, reply, whenBusy, &chat.Generation{ID: reply.GenerationID, Kind: chat.KindReply})
	if err != nil {
		return nil, err
	}
	ch.Created, ch.Head = append(ch.Created, reply), reply
	return as, nil
}

// placeholder is the place of a reply that a generation, named in it, is to write.
func placeholder(at time.Time, s *turnSetup, conversationID, parentID string) *chat.Message {
	return &chat.Message{
		ID: op.NewID(), ConversationID: conversationID, ParentID: parentID, GenerationID: op.NewID(),
		Role: chat.RoleAssistant, Name: s.Docs.Card.Name, Rev: 1, Status: chat.StatusPending, Dates: chat.Dates{CreatedAt: at},
	}
}

// assign gives a new generation its place: at work, or in the queue. g is completed. It is to write target,
// which is the placeholder of a reply, or the message that gets another swipe or is lengthened; nil for an
// impersonation.
func (e *Engine) assign(tx Tx, c *op.Call, s *turnSetup, conv *chat.Conversation, target *chat.Message, whenBusy string, g *chat.Generation) (*assignment, error) {
	limits, err := tx.LockLimits()
	if err != nil {
		return nil, err
	}
	running, err := tx.Chats.Running("")
	if err != nil {
		return nil, err
	}
	if err := e.opts.limitsOf(limits).Check(tx, reservedTokens(running)+e.addReserved(c.UserID, 0)); err != nil {
		return nil, err
	}
	place, err := admission.Admit(running, conv.ID, whenBusy, parallel(limits, e.opts), e.opts.QueuePerUser)
	if err != nil {
		return nil, err
	}
	if target != nil {
		g.MessageID = target.ID
	}
	g.ConversationID, g.UserID, g.By, g.CreatedAt, g.Status = conv.ID, c.UserID, c.By(), s.at, chat.GenBuilding
	g.Options, g.Model = s.Options, s.model.Name
	g.LeaseOwner, g.LeaseUntil = e.opts.Process, tx.Now().Add(e.opts.Lease)
	if place.Queued {
		g.Status = chat.GenQueued
	}
	h := &storedChat{engine: e, userID: c.UserID, conv: conv, kind: g.Kind, target: target, plays: s.Docs.Tavern != nil}
	return &assignment{gen: g, history: h, conv: conv, cancel: place.Cancel}, nil
}

func (e *Engine) checkSend(in SendInput) error {
	if err := op.CheckText("text", in.Text, chat.MaxText); err != nil {
		return err
	}
	if err := op.CheckClientID("clientMsgId", in.ClientMsgID); err != nil {
		return err
	}
	if err := op.CheckClientID("authorId", in.AuthorID); err != nil {
		return err
	}
	if err := checkWhenBusy(in.WhenBusy); err != nil {
		return err
	}
	return in.Options.Validate("options")
}

func checkWhenBusy(word string) error {
	switch word {
	case admission.Fail, admission.Queue, admission.Cancel:
		return nil
	}
	return fault.InvalidField("whenBusy", "enum", "must be queue or cancel")
}
