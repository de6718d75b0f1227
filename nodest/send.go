package nodest

import (
	"context"
	"errors"
	"runtime"
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
	ids := newTurnIDs()
	ahead := func(s *turnSetup) *accepted { return e.expect(c, s, in, ids) }
	return begin(ctx, e, c, q, ahead, func(tx Tx, s *turnSetup) (*Sent, *accepted, error) {
		conv, parent, err := sendTo(tx, in)
		if err != nil {
			return nil, nil, err
		}
		message := said(tx.Now(), in, ids, parent, s.Persona.Name)
		ch := chat.Change{Created: []*chat.Message{message}, Head: message}
		started, err := e.answer(tx, c, s, ids, message, in.WhenBusy, &ch)
		if err != nil {
			return nil, nil, err
		}
		started.from = conv.Version
		started.safe = tx.HasRoom(2, len(in.Text))
		started.store = func() error {
			err := ch.Apply(tx.Chats, c, conv)
			started.assignment.version, started.assignment.fresh = conv.Version, message
			return err
		}
		return &Sent{UserMessage: message, Message: started.assignment.target, GenerationID: started.gen.ID}, started, nil
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
		message := said(tx.Now(), in, newTurnIDs(), parent, s.Persona.Name)
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

// turnIDs are the ids of a message and of the reply to it. They are made before the accepting
// transaction, because the prompt names them and is made beside it.
type turnIDs struct{ message, swipe, revision, reply, generation string }

func newTurnIDs() turnIDs {
	return turnIDs{message: op.NewID(), swipe: op.NewID(), revision: op.NewID(), reply: op.NewID(), generation: op.NewID()}
}

// said is the user's message, with the name that the user has in the chat.
func said(at time.Time, in SendInput, ids turnIDs, parent, name string) *chat.Message {
	return &chat.Message{
		ID: ids.message, ConversationID: in.ConversationID, ParentID: parent, ClientMsgID: in.ClientMsgID, AuthorID: in.AuthorID,
		Role: chat.RoleUser, Name: name, Rev: 1, Status: chat.StatusComplete, CreatedAt: at,
		Swipes: []chat.Swipe{{ID: ids.swipe, RevisionID: ids.revision, Rev: 1, Text: in.Text, CreatedAt: at}},
	}
}

// expect is what send will accept, unless the chat changes before that or is busy; nil = the message
// does not go to the end of the shown branch.
func (e *Engine) expect(c *op.Call, s *turnSetup, in SendInput, ids turnIDs) *accepted {
	conv := s.Conversation
	if in.ParentID != "" && in.ParentID != conv.HeadID || e.writes(conv.ID) {
		return nil
	}
	message := said(s.at, in, ids, conv.HeadID, s.Persona.Name)
	reply := placeholder(s.at, s, ids, conv.ID, message.ID)
	g := &chat.Generation{ID: ids.generation, ConversationID: conv.ID, MessageID: reply.ID, Kind: chat.KindReply}
	e.describe(g, c, s)
	return &accepted{gen: g, from: conv.Version, assignment: assignment{target: reply, version: conv.Version + 1, fresh: message}}
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
func (e *Engine) answer(tx Tx, c *op.Call, s *turnSetup, ids turnIDs, message *chat.Message, whenBusy string, ch *chat.Change) (*accepted, error) {
	reply := placeholder(tx.Now(), s, ids, message.ConversationID, message.ID)
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
func placeholder(at time.Time, s *turnSetup, ids turnIDs, conversationID, parentID string) *chat.Message {
	return &chat.Message{
		ID: ids.reply, ConversationID: conversationID, ParentID: parentID, GenerationID: ids.generation,
		Role: chat.RoleAssistant, Name: s.Docs.Card.Name, Rev: 1, Status: chat.StatusPending, CreatedAt: at,
	}
}

// accepted is a generation that was accepted and can begin.
type accepted struct {
	gen        *chat.Generation
	assignment assignment
	cancel     []string // generations that it replaces
	// from is the version of the chat from which its prompt can be built before it is
	// committed; 0 = the prompt needs what is stored with it.
	from  int64
	safe  bool         // all checks are passed: only an error of the database can still refuse it
	store func() error // stores what it is about; nil = that is done
	start *start       // that is stored with it; nil = it is stored later
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
	e.describe(g, c, s)
	g.LeaseOwner, g.LeaseUntil = e.opts.Process, tx.Now().Add(e.opts.Lease)
	if place.queued {
		g.Status = chat.GenQueued
	}
	return &accepted{gen: g, cancel: place.cancel}, nil
}

// describe completes a generation that can begin at once.
func (e *Engine) describe(g *chat.Generation, c *op.Call, s *turnSetup) {
	g.UserID, g.By, g.CreatedAt, g.Status = c.UserID, c.By(), s.at, chat.GenBuilding
	g.Options, g.Model = s.Options, s.model.Name
}

// begin runs the accepting transaction of an operation that may start a
// generation, and stores and starts the one that do returns. A repeated call starts nothing.
//
// Where it can, the generation starts before the commit, so that the model is asked while
// the transaction is written to the disk. If ahead knows what do will accept, its prompt is made
// beside the transaction (startAhead), and the model is asked as soon as all checks are passed.
// Nothing of the generation is published or stored before it is confirmed; if the transaction
// fails, it is refused and leaves no trace.
func begin[T any](ctx context.Context, e *Engine, c *op.Call, q query, ahead func(*turnSetup) *accepted,
	do func(tx Tx, s *turnSetup) (T, *accepted, error),
) (T, error) {
	var zero T
	if err := e.enter(); err != nil {
		return zero, err
	}
	defer e.leave()
	s, missing := e.loadSetup(ctx, c.UserID, q)
	var prepared, early *task
	if missing == nil {
		prepared = e.startAhead(c, s, ahead)
	}
	defer func() { prepared.refuse() }() // it was not what is accepted
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	var started *accepted
	answer, err := op.Once(storing, e.store, c, func(tx Tx) (T, error) {
		early.refuse() // its transaction runs again
		started, early = nil, nil
		if missing != nil { // reported here, because a repeated call must get its first answer
			return zero, missing
		}
		answer, st, err := do(tx, s)
		if started = st; err != nil || st == nil {
			return answer, err
		}
		if !st.early(s) {
			return answer, e.storeAccepted(tx, nil, st)
		}
		ahead := prepared
		admit := func() {
			if early, prepared = ahead, nil; early != nil {
				e.admit(early, st.gen)
			} else {
				early = e.start(c, s, st)
			}
		}
		if st.safe && ahead != nil {
			admit()
		} else {
			tx.BeforeCommit(admit)
		}
		return answer, e.storeAccepted(tx, ahead, st)
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
	e.confirm(early, started)
	return answer, nil
}

// startAhead begins to make the prompt of a generation that will probably be accepted: the chat is
// read and the sources are asked meanwhile. It returns nil if nothing can be known.
func (e *Engine) startAhead(c *op.Call, s *turnSetup, ahead func(*turnSetup) *accepted) *task {
	if ahead == nil {
		return nil
	}
	expected := ahead(s)
	if expected == nil {
		return nil
	}
	t := newTask(c, s, expected)
	e.launch(t)
	runtime.Gosched() // the prompt first: it is the longer way, and is stored with the acceptance if it is ready
	return t
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
