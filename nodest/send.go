package nodest

import (
	"context"
	"errors"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/op"
)

// acceptTimeout bounds the accepting transaction. The transaction does not end with the
// caller's context, because a generation that is committed must also start.
const acceptTimeout = 30 * time.Second

// Send accepts a user's message: it stores the message, the placeholder of the reply and
// their events in one transaction, and then answers. The engine writes the reply
// afterwards.
//
// The text is stored as it was typed. Regex scripts for user input change what
// is sent to the model, each time it is sent.
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
	q := query{conversationID: in.ConversationID, options: in.Options, model: true, apiKey: in.APIKey}
	return begin(ctx, e, c, q, func(tx Tx, s *turnSetup) (*Sent, *accepted, error) {
		conv, parent, err := sendTo(tx, in)
		if err != nil {
			return nil, nil, err
		}
		message := said(tx, in, parent, s.Persona.Name)
		ch := chat.Change{Created: []*chat.Message{message}, Head: message}
		started, err := e.answer(tx, c, s, message, in.WhenBusy, &ch)
		if err != nil {
			return nil, nil, err
		}
		started.from = conv.Version
		if err := ch.Apply(tx.Chats, c, conv); err != nil {
			return nil, nil, err
		}
		started.assignment.version, started.assignment.fresh = conv.Version, message
		return &Sent{UserMessage: message, Message: started.assignment.target, GenerationID: started.gen.ID}, started, tx.InsertGeneration(started.gen)
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
	read := e.Chats.CompiledSetup
	add := func(tx Tx) (*Sent, error) {
		conv, parent, err := sendTo(tx, in)
		if err != nil {
			return nil, err
		}
		s, err := read(tx.Chats, conv, in.Options)
		if err == nil && s == nil {
			err = errNotCompiled
		}
		if err != nil {
			return nil, err
		}
		message := said(tx, in, parent, s.Persona.Name)
		if err := (chat.Change{Created: []*chat.Message{message}, Head: message}).Apply(tx.Chats, c, conv); err != nil {
			return nil, err
		}
		return &Sent{UserMessage: message}, e.Chats.TextAdded(tx.Chats, conv)
	}
	sent, err := op.Once(storing, e.store, c, add)
	if errors.Is(err, errNotCompiled) { // outside of a transaction that others wait for
		_, _ = e.loadSetup(ctx, c.UserID, query{conversationID: in.ConversationID, options: in.Options}) // add meets its errors too
		read = e.Chats.ReadSetup
		sent, err = op.Once(storing, e.store, c, add)
	}
	return sent, err
}

var errNotCompiled = errors.New("the character's documents must be compiled first")

// said is the user's message, with the name that the user has in the chat.
func said(tx Tx, in SendInput, parent, name string) *chat.Message {
	return &chat.Message{
		ID: op.NewID(), ConversationID: in.ConversationID, ParentID: parent, ClientMsgID: in.ClientMsgID, AuthorID: in.AuthorID,
		Role: chat.RoleUser, Name: name, Rev: 1, Status: chat.StatusComplete, CreatedAt: tx.Now(),
		Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: in.Text, CreatedAt: tx.Now()}},
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
func (e *Engine) answer(tx Tx, c *op.Call, s *turnSetup, message *chat.Message, whenBusy string, ch *chat.Change) (*accepted, error) {
	reply := placeholder(tx, s, message.ConversationID, message.ID)
	started, err := e.accept(tx, c, s, whenBusy, &chat.Generation{
		ID: reply.GenerationID, ConversationID: reply.ConversationID, MessageID: reply.ID, Kind: chat.KindReply,
	})
	if err != nil {
		return nil, err
	}
	ch.Created, ch.Head = append(ch.Created, reply), reply
	started.assignment = assignment{target: reply}
	return started, nil
}

// placeholder is the place of a reply that a generation, named in it, is to write.
func placeholder(tx Tx, s *turnSetup, conversationID, parentID string) *chat.Message {
	return &chat.Message{
		ID: op.NewID(), ConversationID: conversationID, ParentID: parentID, GenerationID: op.NewID(),
		Role: chat.RoleAssistant, Name: s.Docs.Card.Name, Rev: 1, Status: chat.StatusPending, CreatedAt: tx.Now(),
	}
}

// accepted is a generation that was accepted and can begin.
type accepted struct {
	gen        *chat.Generation
	assignment assignment
	cancel     []string // generations that it replaces
	// from is the version of the chat from which its prompt can be built before it is
	// committed; 0 = the prompt needs what is stored with it.
	from int64
}

// early reports whether the generation can begin while it is being committed: it does
// not have to wait, and the setup has the chat as it was just before.
func (a *accepted) early(s *turnSetup) bool {
	return a != nil && a.gen.Status != chat.GenQueued && a.from != 0 && a.from == s.Conversation.Version
}

// accept gives a new generation its place: at work, or in the queue. g is
// completed; the caller stores it.
func (e *Engine) accept(tx Tx, c *op.Call, s *turnSetup, whenBusy string, g *chat.Generation) (*accepted, error) {
	limits, err := tx.LockLimits()
	if err != nil {
		return nil, err
	}
	running, err := tx.Chats.Running("")
	if err != nil {
		return nil, err
	}
	if err := checkQuota(tx, limits, e.opts, reservedTokens(running)+e.held(c.UserID, 0)); err != nil {
		return nil, err
	}
	place, err := admit(running, g.ConversationID, whenBusy, parallel(limits, e.opts), e.opts.QueuePerUser)
	if err != nil {
		return nil, err
	}
	g.UserID, g.By, g.CreatedAt = c.UserID, c.By(), tx.Now()
	g.Options, g.Model = s.Options, s.model.Name
	g.LeaseOwner, g.LeaseUntil = e.opts.Process, tx.Now().Add(e.opts.Lease)
	g.Status = chat.GenBuilding
	if place.queued {
		g.Status = chat.GenQueued
	}
	return &accepted{gen: g, cancel: place.cancel}, nil
}

// begin runs the accepting transaction of an operation that may start a
// generation, and starts the one that do returns. A repeated call starts nothing.
//
// Where it can, the generation starts before the commit, so that the model is asked while
// the transaction is written to the disk. Nothing of the generation is published or stored
// before it is confirmed; if the commit fails, it is refused and leaves no trace.
func begin[T any](ctx context.Context, e *Engine, c *op.Call, q query, do func(tx Tx, s *turnSetup) (T, *accepted, error)) (T, error) {
	var zero T
	if err := e.enter(); err != nil {
		return zero, err
	}
	defer e.leave()
	s, missing := e.loadSetup(ctx, c.UserID, q)
	if missing == nil {
		e.prepareSources(c.UserID, s)
	}
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	var started *accepted
	var early *task
	answer, err := op.Once(storing, e.store, c, func(tx Tx) (T, error) {
		early.refuse() // its transaction runs again
		started, early = nil, nil
		if missing != nil { // reported here, because a repeated call must get its first answer
			return zero, missing
		}
		answer, st, err := do(tx, s)
		if started = st; err == nil && st.early(s) {
			tx.BeforeCommit(func() { early = e.start(c, s, st) })
		}
		return answer, err
	})
	if err != nil || c.Replayed || started == nil {
		early.refuse()
		return answer, err
	}
	for _, id := range started.cancel {
		e.stop(c.UserID, id)
	}
	if early == nil {
		early = e.start(c, s, started)
	}
	e.confirm(early)
	return answer, nil
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
	case busyFail, busyQueue, busyCancel:
		return nil
	}
	return fault.InvalidField("whenBusy", "enum", "must be queue or cancel")
}
