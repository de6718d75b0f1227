package nodest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/llm"
)

// Retries for storing the end of a generation. If all fail, the generation is found
// after its lease has expired, and ends as interrupted.
const (
	storingTries   = 4
	storingTimeout = 30 * time.Second // each
)

// end stores the end of a generation, which came by an event with an error: the text in its message, the
// usage, and the events, in one transaction.
func (e *Engine) end(t *task, over event, err error) {
	if t.on(over) == ended {
		return
	}
	g := t.generation()
	how := e.polish(t, g, endOf(over, err))
	written, err := backoff.Retry(context.WithoutCancel(t.ctx), func() (endedGeneration, error) {
		written, err := e.commit(t, g, how)
		if errors.Is(err, errLost) {
			err = backoff.Permanent(err)
		}
		return written, err
	}, backoff.WithMaxTries(storingTries))
	if errors.Is(err, errLost) { // its user or conversation is gone, or another process took it over
		t.on(lost)
		e.opts.Log.Info("generation ended by another process", "generation", t.id)
		return
	}
	if err != nil {
		t.on(unstored)
		e.opts.Log.Error("final state of a generation not stored", "generation", t.id, "err", err)
		return
	}
	if g.Kind == chat.KindReply && written.message != nil {
		e.histories.Append(t.chat(), written.version, written.message)
	}
	t.setStored(written.gen)
	t.on(endStored)
	for _, s := range e.opts.Sources {
		if s.Stored != nil {
			s.Stored(t.userID, t.setup.Setup)
		}
	}
	e.opts.Stored(written.gen)
	e.logEnd(written.gen, how)
}

// polish applies the regex scripts for replies to what the model wrote, checks its
// citations, decides whether it is a reply at all, and counts what it cost.
func (e *Engine) polish(t *task, g *chat.Generation, how end) end {
	how.usage = t.meter.row(t.text.Tokens())
	if g.Kind != chat.KindImpersonate && g.HasText() {
		macros := t.scriptMacros(g)
		text, warnings := t.setup.Docs.Scripts.ApplyReply(g.Text, macros)
		how.play = t.keepOf(macros, g)
		for _, w := range warnings {
			e.opts.Log.Warn("regex script failed", "generation", t.id, "code", w.Code, "script", w.Path)
		}
		g.Text = text
		e.cite(t, g, how.status)
	}
	if g.Citations == nil && g.HasText() && t.shown.tells != "" { // it leads to the research also if it cites nothing
		g.Citations = &cite.Citations{References: []cite.Reference{}, ResearchID: t.shown.tells}
	}
	if g.Kind == chat.KindImpersonate && len(t.shown.sources) > 0 { // users do not cite
		g.Text = cite.StripAll(g.Text, len(t.shown.sources))
	}
	if how.status == chat.GenDone {
		how.finish = t.text.Finish()
		if !g.HasText() {
			how.status, how.finish, how.err = chat.GenFailed, llm.FinishError, fault.New(fault.EmptyReply, "the model returned no text")
		}
	}
	return how
}

func (e *Engine) commit(t *task, g *chat.Generation, how end) (endedGeneration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), storingTimeout)
	defer cancel()
	return op.Write(ctx, e.store, t.userID, func(tx Tx) (endedGeneration, error) {
		conv, stored, err := lockRunning(tx, t.conversationID, t.id)
		if err == nil && stored.LeaseOwner != e.opts.Process {
			err = errLost
		}
		if err != nil {
			return endedGeneration{}, err
		}
		if how.play != nil && conv != nil {
			if err := tx.Chats.InsertPlay(how.play); err != nil {
				return endedGeneration{}, err
			}
		}
		now := *g
		now.StartedAt = stored.StartedAt
		written, err := e.endGeneration(tx, conv, &now, how, t.device)
		if err != nil {
			return endedGeneration{}, err
		}
		return written, cmp.Or(e.ended(tx, t, written), t.dueSummary(tx, written))
	})
}

// dueSummary enqueues a summary after a reply if one may be due. The job decides.
func (t *task) dueSummary(tx Tx, written endedGeneration) error {
	sent := t.shown.sent
	if written.message == nil || written.gen.Kind == chat.KindImpersonate {
		return nil
	}
	sent.lines++
	sent.add(framework.StripBlocks(written.message.Text()))
	if tokens, due := sent.due(); due {
		return chat.SummaryDue(tx.Chats, t.conversationID, tokens)
	}
	return nil
}

type endedGeneration struct {
	gen     *chat.Generation
	message *chat.Message      // that it has changed; nil = none
	version int64              // the chat's version after that
	chat    *chat.Conversation // the message's chat
}

// lockRunning locks the conversation of a generation, so that only one caller ends it, and reads the
// generation: errLost for one that has ended. A conversation that is gone is nil.
func lockRunning(tx Tx, conversationID, id string) (*chat.Conversation, *chat.Generation, error) {
	conv, err := tx.Chats.LockConversation(conversationID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, nil, err
	}
	g, err := tx.Generation(id)
	if fault.Is(err, fault.NotFound) || err == nil && g.Ended() {
		err = errLost
	}
	return conv, g, err
}

// endGeneration ends g, which lockRunning has locked: it puts the text into its message and emits the
// events. If the message or conversation was deleted meanwhile the text is dropped, and the generation
// ends all the same.
func (e *Engine) endGeneration(tx Tx, conv *chat.Conversation, g *chat.Generation, how end, by string) (endedGeneration, error) {
	at := tx.Now()
	g.Status, g.Finish, g.Error, g.EndedAt, g.LeaseOwner, g.LeaseUntil = how.status, string(how.finish), how.err, &at, "", at
	m, events, err := applyEnd(tx, conv, g, how, by)
	if err != nil {
		return endedGeneration{}, err
	}
	if err := setGlobals(tx, g, m != nil && g.HasText()); err != nil {
		return endedGeneration{}, err
	}
	// A deleted conversation has no lock: another process may have ended it since.
	if err := tx.UpdateGeneration(g); fault.Is(err, fault.NotFound) {
		return endedGeneration{}, errLost
	} else if err != nil {
		return endedGeneration{}, err
	}
	if how.usage != nil {
		if err := e.addUsage(tx, *how.usage); err != nil {
			return endedGeneration{}, err
		}
	}
	// The message first: after the end of its generation a stored text is final.
	if err := tx.Emit(append(events, endEvent(tx.UserID(), by, g, how))...); err != nil {
		return endedGeneration{}, err
	}
	written := endedGeneration{gen: g, message: m}
	if m != nil {
		written.version, written.chat = conv.Version, conv
	}
	return written, e.Chats.TextAdded(tx.Chats, written.chat)
}

// endFromCheckpoint ends a generation of another process with the text of its last checkpoint.
func (e *Engine) endFromCheckpoint(tx Tx, conv *chat.Conversation, g *chat.Generation, over event) error {
	fromCheckpoint(g)
	_, err := e.endGeneration(tx, conv, g, ends[over], "server")
	return err
}

func endEvent(userID, by string, g *chat.Generation, how end) *stream.Event {
	if how.status == chat.GenFailed {
		return generationEvent(userID, "gen.failed", by, g, genFailed{Error: op.FailureOf(g.Error)})
	}
	return generationEvent(userID, "gen.done", by, g, genDone{
		Status: g.Status, Finish: g.Finish, Usage: g.Usage, Ms: timesOf(g),
	})
}

// applyEnd puts the text of a generation into its message and returns the
// message, nil if there is none or it has not changed, and the events to emit. conv is
// nil when the conversation is gone.
func applyEnd(tx Tx, conv *chat.Conversation, g *chat.Generation, how end, by string) (*chat.Message, []*stream.Event, error) {
	if g.MessageID == "" || conv == nil {
		return nil, nil, nil
	}
	m, err := tx.Chats.Message(g.MessageID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var had chat.Recalled
	had.MemoryIDs, had.UsedProfile, err = tx.Memory.Recalled(conv.ID, g.ID)
	if err != nil {
		return nil, nil, err
	}
	beside := madeFor(g, m) // before it is written
	if !putText(m, g, how, had, tx.Now()) {
		return nil, nil, nil
	}
	head := conv.HeadID
	if err := storeMessage(tx, conv, m, g, how, beside); err != nil {
		return nil, nil, err
	}
	g.InMessage = g.HasText()
	if m.DeletedAt != nil && beside {
		gone := chat.DeletedEvent(tx.UserID(), by, []*chat.Message{m}, chat.ScopeOne)
		gone.GenerationID = g.ID
		return nil, []*stream.Event{gone}, nil
	}
	if m.DeletedAt != nil {
		return nil, nil, nil // changes of deleted messages emit no events
	}
	var events []*stream.Event
	if c := g.Citations; c != nil && len(c.References) > 0 {
		events = append(events, generationEvent(tx.UserID(), "gen.references", by, g, ReferencesData{c.References, c.Report}))
	}
	events = append(events, chat.MessageEvent(tx.UserID(), "message.updated", by, m))
	if conv.HeadID != head {
		events = append(events, chat.ConversationEvent(tx.UserID(), "chat.updated", by, conv))
	}
	return m, events, nil
}

// storeMessage stores a message with the text of a generation. beside reports that the
// message was created for this text, beside a reply.
func storeMessage(tx Tx, conv *chat.Conversation, m *chat.Message, g *chat.Generation, how end, beside bool) error {
	if beside {
		if err := showBeside(tx, conv, m, how); err != nil {
			return err
		}
	}
	m.Rev++
	if err := tx.Chats.UpdateMessage(m); err != nil {
		return err
	}
	if err := chat.RepairSummary(tx.Chats, conv, m); err != nil {
		return err
	}
	conv.Version++
	if m.ID == conv.HeadID {
		conv.LastMessage = m.Preview()
		if conv.PlayID != "" || g.PlayID != "" {
			if err := chat.ChoosePlay(tx.Chats, conv); err != nil {
				return err
			}
		}
	}
	return tx.Chats.UpdateConversation(conv)
}

// madeFor reports whether m is the empty placeholder that was created for g beside a
// reply with messages after it.
func madeFor(g *chat.Generation, m *chat.Message) bool {
	return g.Kind == chat.KindRegenerate && m.GenerationID == g.ID && m.Status == chat.StatusPending && m.DeletedAt == nil
}

// showBeside decides what becomes of a message that was written beside a reply. It
// becomes the head when it is complete or was stopped by the user, unless messages were
// added since it was requested. Without a text it is deleted.
func showBeside(tx Tx, conv *chat.Conversation, m *chat.Message, how end) error {
	if m.Chosen() == nil {
		taken, err := chat.IsFollowed(tx.Chats, m)
		if err != nil || taken {
			return err
		}
		now := tx.Now()
		m.DeletedAt = &now
		return nil
	}
	if how.status != chat.GenDone && how.status != chat.GenCancelled {
		return nil
	}
	if conv.HeadID != "" {
		head, err := tx.Chats.Message(conv.HeadID)
		if err != nil || head.Seq > m.Seq {
			return err
		}
	}
	conv.HeadID = m.ID
	return chat.ChooseSummary(tx.Chats, conv)
}

// putText puts the text of a generation that has ended into its message, with what its prompt had of the memory. It
// returns false if the message stays as it is.
//
// A first reply ends with whatever came. A further swipe of a message that has
// one already is shown when it is whole or was stopped by the user, and only kept
// beside the shown one when it failed; without text nothing changes.
func putText(m *chat.Message, g *chat.Generation, how end, had chat.Recalled, at time.Time) bool {
	first := m.Chosen() == nil
	if !g.HasText() {
		if !first {
			return false
		}
		m.Status, m.Error, m.GenerationID = messageStatus(how.status), how.err, g.ID
		return true
	}
	shown := first || how.status == chat.GenDone || how.status == chat.GenCancelled
	if g.Kind == chat.KindContinue {
		shown = extend(m, g, had, at)
	} else {
		m.Swipes = append(m.Swipes, swipeOf(g, g.Text, had, at))
		g.SwipeID = m.Swipes[len(m.Swipes)-1].ID
		if shown {
			m.SwipeIndex = len(m.Swipes) - 1
		}
	}
	if shown {
		m.Status, m.Error, m.GenerationID = messageStatus(how.status), how.err, g.ID
	}
	return true
}

// extend adds the text of a continue to the swipe that it was asked for, as a
// new revision. If that swipe has changed meanwhile its text stays, and the
// longer one becomes a swipe of its own. It returns whether the swipe is shown.
//
// A continue has no sources: marks in it would cite those of the text before it.
func extend(m *chat.Message, g *chat.Generation, had chat.Recalled, at time.Time) (shown bool) {
	longer := swipeOf(g, g.Base+g.Text, had, at)
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.ID != g.SwipeID {
			continue
		}
		if c := s.Citations; c != nil {
			g.Text = cite.StripMarks(g.Text)
			longer.Text, longer.Citations = g.Base+g.Text, c.In(g.Base)
		}
		longer.Wish = s.Wish
		if s.Deleted || s.Text != g.Base {
			break
		}
		s.Rev++
		s.RevisionID, s.Text, s.Citations = op.NewID(), longer.Text, longer.Citations
		s.Reasoning += g.Reasoning
		s.Blocks = append(s.Blocks, g.Blocks...)
		s.Recalled, s.PlayID = had, cmp.Or(g.PlayID, s.PlayID)
		s.Model, s.RequestedModel, s.Finish, s.Usage, s.GenerationID = g.Model, g.RequestedModel, g.Finish, g.Usage, g.ID
		return i == m.SwipeIndex
	}
	m.Swipes = append(m.Swipes, longer)
	g.SwipeID = longer.ID
	return false
}

// swipeOf is what a generation has written, as a swipe of its own.
func swipeOf(g *chat.Generation, text string, had chat.Recalled, at time.Time) chat.Swipe {
	return chat.Swipe{
		ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: text, Reasoning: g.Reasoning, Blocks: g.Blocks, Model: g.Model, RequestedModel: g.RequestedModel,
		Finish: g.Finish, Usage: g.Usage, GenerationID: g.ID, Recalled: had, Citations: g.Citations, Tools: g.Tools, Wish: g.Instruction, PlayID: g.PlayID, CreatedAt: at,
	}
}

// messageStatus is the status of a message after its generation ended with a status.
func messageStatus(generation string) string {
	switch generation {
	case chat.GenDone:
		return chat.StatusComplete
	case chat.GenCancelled:
		return chat.StatusCancelled
	case chat.GenInterrupted:
		return chat.StatusInterrupted
	}
	return chat.StatusError
}

// logEnd logs one line per generation, without any of its text.
func (e *Engine) logEnd(g *chat.Generation, how end) {
	args := []any{"generation", g.ID, "kind", g.Kind, "status", g.Status, "finish", g.Finish, "model", g.Model}
	if how.cause != nil {
		e.opts.Log.Warn("generation failed", append(args, "err", how.cause)...)
		e.opts.Log.Debug("generation failed", "generation", g.ID, "message", fault.Public(how.cause).Message)
		return
	}
	e.opts.Log.Debug("generation ended", args...)
}
