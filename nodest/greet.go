package nodest

import (
	"cmp"
	"context"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/op"
	"nodest/llm"
)

// GreetInput says where a character writes without being asked.
type GreetInput struct {
	ConversationID string
	MessageID      string // that the message will have, by which a source may know it; "" = any
	WhenBusy       string // as in SendInput
}

// Greet lets a character write without being asked: it accepts a reply at the end of the
// shown branch, whoever wrote last. The engine writes it afterwards: the character gets in touch, unless
// a source has something for it to tell (Findings.Instruction).
//
// Errors: NotFound, Busy with details.generationId, TooManyGenerations, QuotaExceeded,
// NotConfigured, ShuttingDown.
func (e *Engine) Greet(ctx context.Context, c *op.Call, in GreetInput) (*Sent, error) {
	q := query{conversationID: in.ConversationID, model: true}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (*Sent, *assignment, error) {
		conv, err := tx.Chats.LockConversation(in.ConversationID)
		if err != nil {
			return nil, nil, err
		}
		reply := placeholder(tx.Now(), s, conv.ID, conv.HeadID)
		reply.ID = cmp.Or(in.MessageID, reply.ID)
		var ch chat.Change
		as, err := e.reply(tx, c, s, conv, reply, in.WhenBusy, &ch)
		if err != nil {
			return nil, nil, err
		}
		if err := ch.Apply(tx.Chats, c, conv); err != nil {
			return nil, nil, err
		}
		return &Sent{Message: reply, GenerationID: as.gen.ID}, as, nil
	})
}

// opensWith asks for a message that answers nothing.
var opensWith = map[framework.Language]string{
	framework.English: "[{{user}} has been silent for some time. Write {{char}}'s next message: {{char}} gets in touch again, naturally, with something of interest to both, and without reproach.]",
	framework.Chinese: "[{{user}}已经有一段时间没有说话了。写出{{char}}的下一条消息：{{char}}自然地主动联系，谈一件双方都感兴趣的事，不要责备。]",
}

// opens makes the reply one that answers nothing, unless the user wrote last.
func (t *turn) opens() {
	if t.input.User.Text != "" {
		return
	}
	t.question.Unasked = t.gen.MessageID
	text := opensWith[t.setup.Docs.Language]
	if text == "" {
		text = opensWith[framework.English]
	}
	t.instruct(llm.Reply, text)
	t.instructFound()
}

// instructFound has the model write as a source says.
func (t *turn) instructFound() {
	if t.found.instruction != "" {
		t.instruct(llm.Reply, t.found.instruction)
	}
}

const (
	newestChats    = 100 // conversations that LastChats looks at
	newestMessages = 20  // messages of each of them
)

// LastChats returns when the user wrote in a conversation last, zero for never, and the
// newest conversation with each character, by its id. It looks at the end of the newest
// conversations alone.
func (e *Engine) LastChats(ctx context.Context, userID string) (wrote time.Time, newest map[string]string, err error) {
	err = e.store.View(ctx, userID, func(tx Tx) error {
		wrote, newest = time.Time{}, map[string]string{}
		shown := false
		f := chat.ConversationFilter{Archived: &shown, Listing: op.Listing{Sort: op.SortUpdated}}
		conversations, _, err := tx.Chats.Conversations(f, "", newestChats)
		if err != nil {
			return err
		}
		for _, conv := range conversations {
			if newest[conv.CharacterID] == "" {
				newest[conv.CharacterID] = conv.ID
			}
			if conv.HeadID == "" || conv.UpdatedAt.Before(wrote) {
				continue
			}
			path, _, err := tx.Chats.Path(conv.ID, conv.HeadID, "", newestMessages)
			if err != nil {
				return err
			}
			for _, m := range path {
				if m.Role == chat.RoleUser && m.CreatedAt.After(wrote) {
					wrote = m.CreatedAt
				}
			}
		}
		return nil
	})
	return wrote, newest, err
}
