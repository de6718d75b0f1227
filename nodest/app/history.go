package app

import (
	"context"
	"encoding/json"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
)

// History reads and changes a history as the app does. Indexes start at 1: an AI index
// counts replies without greetings, a user index counts the user's messages. An index out
// of range is no error: OK is false and nothing has changed.
//
// A delete hides a reply and the user's message before it, or a user's message and
// its reply, as one: RestoreMessage of the first brings both back. A regenerate
// cuts the shown history behind the new reply, which it waits for; one that fails
// changes nothing. Index 0 sets the greeting back to the card. A restore shows what
// it is given as a branch of its own, and a reset a fresh greeting; what was shown
// before stays in the tree.
//
// Errors: Invalid with the field; NotFound; TooLarge; Busy while a reply is being
// written; those of Regenerate, and the failure of the reply.
func (svc *Service) History(ctx context.Context, c *op.Call, in HistoryRequest) (*HistoryAnswer, error) {
	if err := checkKeys(in.ConversationID, ""); err != nil {
		return nil, err
	}
	if in.Index == nil {
		if in.Action == ActionRegenerate { // not a request to restore the greeting, which is number 0
			return nil, fault.InvalidField("index", "required", "required")
		}
		in.Index = new(int)
	}
	var change func(context.Context, *op.Call, *chat.Conversation, HistoryRequest) (*outcome, error)
	switch in.Action {
	case ActionGet:
	case ActionEditAI, ActionEditUser, ActionDeleteAI, ActionDeleteUser:
		change = svc.revise
	case ActionRegenerate:
		change = svc.regenerate
	case ActionRestore:
		change = svc.restore
	case ActionReset:
		change = svc.reset
	default:
		return nil, fault.InvalidField("action", "enum", "unknown")
	}
	conv, err := op.Read(ctx, svc.store, c.UserID, func(tx Tx) (*chat.Conversation, error) { return find(tx, in.ConversationID) })
	if err != nil {
		return nil, err
	}
	done := &outcome{OK: true}
	if change != nil {
		if done, err = change(ctx, c, conv, in); err != nil {
			return nil, err
		}
	}
	answer := &HistoryAnswer{OK: done.OK, Response: done.Response}
	err = svc.store.View(ctx, c.UserID, func(tx Tx) error {
		now, err := tx.Chats.Conversation(conv.ID)
		if err != nil {
			return err
		}
		branch, err := chat.ShownBranch(tx.Chats, now)
		answer.History = archive.History(branch)
		return err
	})
	return answer, err
}

// outcome is the result of a change by index, stored for repeated calls.
type outcome struct {
	OK       bool   `json:"ok"`
	Response string `json:"response,omitempty"`
	TargetID string `json:"targetId,omitempty"` // the reply to regenerate
	Of       string `json:"of,omitempty"`       // the message that Response is of
}

func (svc *Service) revise(ctx context.Context, c *op.Call, conv *chat.Conversation, in HistoryRequest) (*outcome, error) {
	counted, edits := isReply, true
	switch in.Action {
	case ActionEditUser:
		counted = isUsers
	case ActionDeleteAI:
		edits = false
	case ActionDeleteUser:
		counted, edits = isUsers, false
	}
	if edits {
		if err := op.CheckText("text", in.Text, chat.MaxText); err != nil {
			return nil, err
		}
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*outcome, error) {
		conv, shown, err := idleHistory(tx, conv.ID)
		if err != nil {
			return nil, err
		}
		at := nth(shown, counted, *in.Index)
		if at < 0 {
			return &outcome{}, nil
		}
		if edits {
			chat.Reword(shown[at], in.Text, tx.Now())
			return &outcome{OK: true}, chat.UpdateMessage(tx.Chats, c, conv, shown[at])
		}
		_, err = chat.DeleteMessages(tx.Chats, c, conv, exchangeOf(shown, at), chat.ScopeOne)
		return &outcome{OK: true}, err
	})
}

// regenerate first resolves the index, under a key of its own: a repeated call must not
// resolve it in the history that the first one has changed.
func (svc *Service) regenerate(ctx context.Context, c *op.Call, conv *chat.Conversation, in HistoryRequest) (*outcome, error) {
	if err := op.CheckLength("text", in.Text, nodest.MaxWish); err != nil {
		return nil, err
	}
	before := c.Part("target")
	done, err := op.Once(ctx, svc.store, before, func(tx Tx) (*outcome, error) {
		chat, shown, err := idleHistory(tx, conv.ID)
		if err != nil {
			return nil, err
		}
		if *in.Index == 0 {
			return regreet(tx, before, chat, shown)
		}
		at := nth(shown, isReply, *in.Index)
		if at < 0 {
			return &outcome{}, nil
		}
		return &outcome{OK: true, TargetID: firstReply(shown, at).ID}, nil
	})
	if err != nil || done.TargetID == "" {
		c.Replayed = before.Replayed
		return done, err
	}
	begun, err := svc.engine.Regenerate(ctx, c, nodest.GenerateInput{MessageID: done.TargetID, Wish: in.Text, APIKey: in.APIKey, App: true})
	if err != nil {
		return nil, err
	}
	done.Response, err = svc.reply(ctx, c, begun.GenerationID)
	return done, err
}

// regreet sets the greeting of a history back to the card.
func regreet(tx Tx, c *op.Call, conv *chat.Conversation, shown []*chat.Message) (*outcome, error) {
	at := nth(shown, func(m *chat.Message) bool { return m.Greeting }, 1)
	if at < 0 {
		return &outcome{}, nil
	}
	m := shown[at]
	if err := chat.RestoreGreeting(tx.Chats, conv, m); err != nil {
		return nil, err
	}
	return &outcome{OK: true, Response: m.Text(), Of: m.ID}, chat.UpdateMessage(tx.Chats, c, conv, m)
}

func (svc *Service) restore(ctx context.Context, c *op.Call, conv *chat.Conversation, in HistoryRequest) (*outcome, error) {
	if op.IsNull(in.History) {
		return nil, fault.InvalidField("history", "required", "required")
	}
	var named struct{ Parts json.RawMessage }
	if err := op.DecodeLenient("history", in.History, &named); err != nil {
		return nil, err
	}
	if op.IsNull(named.Parts) { // an empty list empties the history; forgetting it does not
		return nil, fault.InvalidField("history.parts", "required", "required")
	}
	entries, err := archive.ReadHistory("history", in.History)
	if err != nil {
		return nil, err
	}
	if done, known, err := op.Earlier[*outcome](ctx, svc.store, c); known || err != nil {
		return done, err
	}
	var messages []*chat.Message
	err = svc.store.View(ctx, c.UserID, func(tx Tx) error {
		if err := chat.CheckIdle(tx.Chats, conv.ID, chat.AnyMessage); err != nil {
			return err
		}
		ch, err := tx.Characters.Character(conv.CharacterID)
		if err != nil {
			return err
		}
		user, err := chat.UserNameIn(tx.Chats, ch, conv)
		messages = archive.Messages(entries, ch.Name, user, tx.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	branch := archive.Branch(conv.ID, messages)
	return archive.Import(ctx, svc.archives, c, branch, func() (*outcome, error) {
		return op.Once(ctx, svc.store, c, func(tx Tx) (*outcome, error) {
			conv, err := chat.LockIdle(tx.Chats, conv.ID)
			if err != nil {
				return nil, err
			}
			if err := branch.Finish(tx.Chats); err != nil {
				return nil, err
			}
			head := ""
			if n := len(messages); n > 0 {
				head = messages[n-1].ID
			}
			// As with a new conversation, clients read what they show of it.
			return &outcome{OK: true}, chat.MoveHead(tx.Chats, c, conv, head)
		})
	})
}

func (svc *Service) reset(ctx context.Context, c *op.Call, conv *chat.Conversation, _ HistoryRequest) (*outcome, error) {
	_, err := svc.chats.Reset(ctx, c, conv.ID)
	return &outcome{OK: true}, err
}

// idleHistory is chat.LockIdle with what indexes count: the shown branch without that
// which a chat history leaves out.
func idleHistory(tx Tx, id string) (*chat.Conversation, []*chat.Message, error) {
	conv, err := chat.LockIdle(tx.Chats, id)
	if err != nil {
		return nil, nil, err
	}
	branch, err := chat.ShownBranch(tx.Chats, conv)
	return conv, chat.InPrompt(branch), err
}

func isUsers(m *chat.Message) bool { return m.Role == chat.RoleUser }

func isReply(m *chat.Message) bool { return m.Role == chat.RoleAssistant && !m.Greeting }

// nth is the index of the nth message of a kind, n from 1; -1 = none.
func nth(history []*chat.Message, is func(*chat.Message) bool, n int) int {
	for i, m := range history {
		if !is(m) {
			continue
		}
		if n--; n == 0 {
			return i
		}
	}
	return -1
}

// exchangeOf is a reply with the user's message before it, or a user's message with
// its reply: the one that comes before the user speaks again. Either may be missing.
func exchangeOf(history []*chat.Message, at int) []*chat.Message {
	m := history[at]
	if !isUsers(m) {
		if user := userBefore(history, at); user >= 0 {
			return []*chat.Message{history[user], m}
		}
		return []*chat.Message{m}
	}
	for _, next := range history[at+1:] {
		if isUsers(next) {
			break
		}
		if isReply(next) {
			return []*chat.Message{m, next}
		}
	}
	return []*chat.Message{m}
}

// firstReply is the first reply to the user's message that a reply answers.
func firstReply(history []*chat.Message, at int) *chat.Message {
	user := userBefore(history, at)
	if user < 0 {
		return history[at]
	}
	for at = user + 1; !isReply(history[at]); at++ {
	}
	return history[at]
}

// userBefore is the index of the user's last message before at; -1 = none.
func userBefore(history []*chat.Message, at int) int {
	for at--; at >= 0 && !isUsers(history[at]); at-- {
	}
	return at
}
