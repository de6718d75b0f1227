package nodest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/summary"
	"nodest/memory"
	"nodest/nodest/recent"
	"nodest/nodest/record"
)

// storedChat is the history of a reply in a stored chat.
type storedChat struct {
	engine *Engine
	userID string
	conv   *chat.Conversation // as it was when the reply was accepted, or had its turn
	save   *chat.Save         // read as if it were restored; nil = none
	kind   string             // the generation's kind; "" = a preview
	target *chat.Message      // that is written; nil = none
	behind int                // messages that will follow and are not stored
	made   *summary.Summary   // for this prompt alone; nil = that in force counts
	plays  bool               // prompts hand something on, see readPlay
}

func (h *storedChat) read(ctx context.Context, room int) (*past, error) {
	return op.Read(ctx, h.engine.store, h.userID, func(tx Tx) (*past, error) {
		p, err := h.readBranch(tx, room)
		if err == nil {
			err = cmp.Or(h.readTarget(tx, p), h.readPlay(tx, p))
		}
		if err != nil {
			return nil, err
		}
		p.place = memory.Place{ConversationID: h.conv.ID}
		if h.save != nil {
			p.place.HeadID, p.place.Version = h.save.HeadID, h.save.Version
		} else if len(p.messages) > 0 {
			p.place.HeadID = p.messages[len(p.messages)-1].ID
		}
		p.previous, err = h.readPrevious(tx)
		return p, err
	})
}

// readTarget reads what is lengthened or written anew.
func (h *storedChat) readTarget(tx Tx, p *past) (err error) {
	if h.target != nil {
		p.texts = len(h.target.Swipes)
	}
	switch h.kind {
	case chat.KindContinue:
		p.longer = h.target.Chosen()
		if p.longer == nil || strings.TrimSpace(p.longer.Text) == "" {
			return fault.InvalidField("messageId", "state", "the message has no text to continue")
		}
	case chat.KindRegenerate:
		p.upToUser()
		p.texts, err = textsAt(tx, h.target)
	}
	return err
}

// textsAt counts the swipes of a reply and of the replies beside it, deleted ones
// included.
func textsAt(tx Tx, reply *chat.Message) (n int, err error) {
	beside, err := tx.Chats.Children(reply.ConversationID, reply.ParentID)
	for _, m := range beside {
		n += len(m.Swipes)
	}
	return n, err
}

// upToUser cuts what follows the newest user message, if there is one behind the
// summary.
func (p *past) upToUser() {
	for i := len(p.messages) - 1; i >= p.front; i-- {
		if m := p.messages[i]; m.Role == chat.RoleUser && !m.Hidden {
			p.messages = p.messages[:i+1]
			return
		}
	}
}

// readBranch reads the branch before the reply, as far back as room reaches. What is older is noted as
// unread, so the cost of a turn does not grow with the chat. Messages that the active summary
// replaces are left out.
func (h *storedChat) readBranch(tx Tx, room int) (*past, error) {
	head, version := h.conv.HeadID, int64(0)
	switch {
	case h.save != nil && h.save.HeadID == "":
		m, err := chat.FreshGreeting(tx.Chats, h.conv)
		return &past{messages: []*chat.Message{m}}, err
	case h.save != nil:
		head, version = h.save.HeadID, h.save.Version
	case h.kind == chat.KindReply, h.kind == chat.KindRegenerate:
		head = h.target.ParentID
	case h.kind == chat.KindContinue:
		head = h.target.ID
	}
	if head == "" {
		return &past{}, nil
	}
	s := h.made
	if s == nil {
		active, err := chat.ActiveSummary(tx.Chats, h.conv.SummaryID, head, version)
		if err != nil {
			return nil, err
		}
		if active != nil {
			s = active.Summary
		}
	}
	return h.readSummarised(tx, head, s, room)
}

// readSummarised reads a branch with a summary, if that applies to it; nil = none.
func (h *storedChat) readSummarised(tx Tx, head string, s *summary.Summary, room int) (*past, error) {
	until := ""
	if s != nil {
		until = s.Range.EndID
	}
	p, err := h.readTail(tx, head, until, room)
	if err != nil || s == nil {
		return p, err
	}
	front := func(before string, size int) ([]*chat.Message, bool, error) { // as it was when the end was read
		return tx.Chats.PathAt(h.conv.ID, p.version, head, before, size)
	}
	a, ok, err := chat.ReadSummarised(s, p.messages, h.behind, p.unread, room, front)
	if err != nil {
		return nil, err
	}
	if !ok {
		return h.readSummarised(tx, head, nil, room)
	}
	p.summary, p.front, p.messages, p.unread = s, len(a.Front), slices.Concat(a.Front, a.Rest), a.More
	return p, nil
}

// readTail reads the end of a branch, as far back as room or the message until.
func (h *storedChat) readTail(tx Tx, head, until string, room int) (*past, error) {
	if s := h.save; s != nil {
		path, more, err := chat.ReadPath("", room, until, func(before string, size int) ([]*chat.Message, bool, error) {
			return tx.Chats.PathAt(s.ConversationID, s.Version, s.HeadID, before, size)
		})
		return &past{messages: path, unread: more, version: s.Version}, err
	}
	kept := h.engine.histories
	if path, more, ok := kept.Find(recent.Chat{UserID: tx.UserID(), ID: h.conv.ID}, h.conv.Version, head, until, room); ok {
		return &past{messages: path, unread: more, version: h.conv.Version}, nil
	}
	path, more, err := chat.ReadPath("", room, until, func(before string, size int) ([]*chat.Message, bool, error) {
		return tx.Chats.Path(h.conv.ID, head, before, size)
	})
	if err != nil {
		return nil, err
	}
	now, err := tx.Chats.Conversation(h.conv.ID) // its version in this snapshot
	if err != nil {
		return nil, err
	}
	kept.Put(recent.Chat{UserID: tx.UserID(), ID: h.conv.ID}, now.Version, path, !more, room)
	return &past{messages: path, unread: more, version: now.Version}, nil
}

// readPrevious reads the previous request of the conversation: the one that was sent last, even if its
// reply has been deleted since.
func (h *storedChat) readPrevious(tx Tx) (recent.Sent, error) {
	last := h.engine.histories.LastSent(recent.Chat{UserID: tx.UserID(), ID: h.conv.ID})
	if last.PromptID != "" && h.engine.opts.Alone { // no other process has sent a newer one
		return last, nil
	}
	id, err := tx.LastPrompt(h.conv.ID)
	if err != nil || id == last.PromptID {
		return last, err
	}
	if id == "" {
		return recent.Sent{}, nil
	}
	stored, err := tx.Prompt(id)
	if err != nil {
		return recent.Sent{}, err
	}
	messages, err := record.Messages(tx.Chats, h.conv.ID, stored.Body)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return recent.Sent{}, err
	}
	return recent.Sent{PromptID: id, GenerationID: stored.GenerationID, Hashes: framework.HashesOf(messages)}, nil
}

// shorten has the shown branch summarised. The summary is the model's if it is ready within
// Options.SummaryWait, else one by rule for this prompt alone.
func (h *storedChat) shorten(ctx context.Context, tokens int) (bool, error) {
	if h.kind != chat.KindReply && h.target != nil && h.target.ID != h.conv.HeadID {
		return false, nil
	}
	made, err := h.engine.Chats.SummariseNow(ctx, h.userID, h.conv.ID, tokens, h.engine.opts.SummaryWait)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // none is due, or the chat has changed
		return false, nil
	case err != nil:
		h.engine.opts.Log.WarnContext(ctx, "turn continues without a summary", "conversation", h.conv.ID, "err", err)
		return false, nil
	}
	h.made = made
	return true, nil
}
