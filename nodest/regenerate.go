package nodest

import (
	"context"
	"strings"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// MaxWish bounds the instruction for a rewrite, in code points.
const MaxWish = 4_000

// Regenerate writes a character's message anew, from the chat before it. The last
// message of a branch gets another swipe. If messages follow, the new text becomes a
// sibling (Changed.Message), and the head once it is complete; the messages that follow
// stay on the old branch. A failure changes nothing visible.
//
// The instruction (Wish) is stored with the text. Prompts have it in the user's message
// before the reply, whose stored text does not change.
//
// The greeting is not written by a model: its texts are set back to those of the
// card, the first one is shown, and there is no generation.
//
// Errors: those of Send, and Invalid for a message that no character wrote.
func (e *Engine) Regenerate(ctx context.Context, c *op.Call, in GenerateInput) (*chat.Changed, error) {
	if err := checkGenerate(in); err != nil {
		return nil, err
	}
	if err := op.CheckLength("wish", in.Wish, MaxWish); err != nil {
		return nil, err
	}
	greeting, err := e.isGreeting(ctx, c.UserID, in.MessageID)
	if err != nil && !fault.Is(err, fault.NotFound) { // play reports a missing message
		return nil, err
	}
	if greeting {
		return e.resetGreeting(ctx, c, in.MessageID)
	}
	return e.generateAt(ctx, c, in, func(tx Tx, s *turnSetup, conv *chat.Conversation, m *chat.Message, ch *chat.Change) (*chat.Message, *assignment, error) {
		return e.regenerate(tx, c, s, conv, m, in, ch)
	})
}

// regenerate accepts another text for a reply. If messages follow the reply, it adds a
// placeholder for the text to ch. The caller stores both, ch first.
func (e *Engine) regenerate(
	tx Tx, c *op.Call, s *turnSetup, conv *chat.Conversation, reply *chat.Message, in GenerateInput, ch *chat.Change,
) (*chat.Message, *assignment, error) {
	taken, err := chat.IsFollowed(tx.Chats, reply)
	if err != nil {
		return nil, nil, err
	}
	id, target := op.NewID(), reply
	if taken {
		target = placeholder(tx.Now(), s, reply.ConversationID, reply.ParentID)
		id, ch.Created = target.GenerationID, append(ch.Created, target)
	}
	as, err := e.assign(tx, c, s, conv, target, in.WhenBusy, &chat.Generation{ID: id, Kind: chat.KindRegenerate, Instruction: strings.TrimSpace(in.Wish)})
	return target, as, err
}

// Continue lengthens the chosen swipe of a character's message: a new revision
// of its text. It goes on after an interruption and after a limit of length.
//
// Errors: those of Regenerate, and Invalid for a message without text.
func (e *Engine) Continue(ctx context.Context, c *op.Call, in GenerateInput) (*chat.Changed, error) {
	if err := checkGenerate(in); err != nil {
		return nil, err
	}
	return e.generateAt(ctx, c, in, func(tx Tx, s *turnSetup, conv *chat.Conversation, m *chat.Message, _ *chat.Change) (*chat.Message, *assignment, error) {
		as, err := e.assign(tx, c, s, conv, m, in.WhenBusy, &chat.Generation{ID: op.NewID(), Kind: chat.KindContinue})
		if err == nil && as.gen.Status != chat.GenQueued && strings.TrimSpace(m.Text()) == "" {
			err = fault.InvalidField("messageId", "state", "the message has no text to continue")
		}
		return m, as, err
	})
}

// Impersonate writes a line for the user. It is streamed like a reply, but no
// message is stored: the client sends it, or something else.
func (e *Engine) Impersonate(ctx context.Context, c *op.Call, in GenerateInput) (generationID string, err error) {
	if err := checkGenerate(in); err != nil {
		return "", err
	}
	q := query{conversationID: in.ConversationID, options: in.Options, model: true}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (string, *assignment, error) {
		conv, err := tx.Chats.LockConversation(in.ConversationID)
		if err != nil {
			return "", nil, err
		}
		g := &chat.Generation{ID: op.NewID(), Kind: chat.KindImpersonate}
		as, err := e.assign(tx, c, s, conv, nil, in.WhenBusy, g)
		return g.ID, as, err
	})
}

// generateAt begins what accept accepts for a character's message, and stores
// what that puts into the change.
func (e *Engine) generateAt(
	ctx context.Context, c *op.Call, in GenerateInput,
	accept func(tx Tx, s *turnSetup, conv *chat.Conversation, m *chat.Message, ch *chat.Change) (*chat.Message, *assignment, error),
) (*chat.Changed, error) {
	q := query{messageID: in.MessageID, options: in.Options, model: true, apiKey: in.APIKey, app: in.App}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (*chat.Changed, *assignment, error) {
		conv, err := tx.Chats.LockConversation(s.Conversation.ID)
		if err != nil {
			return nil, nil, err
		}
		m, err := chat.LiveMessage(tx.Chats, in.MessageID)
		if err != nil {
			return nil, nil, err
		}
		if m.Role != chat.RoleAssistant {
			return nil, nil, fault.InvalidField("messageId", "role", "only a character's message can be regenerated or continued")
		}
		var ch chat.Change
		target, as, err := accept(tx, s, conv, m, &ch)
		if err != nil {
			return nil, nil, err
		}
		if err := ch.Apply(tx.Chats, c, conv); err != nil {
			return nil, nil, err
		}
		return &chat.Changed{Message: target, GenerationID: as.gen.ID}, as, nil
	})
}

func checkGenerate(in GenerateInput) error {
	if err := checkWhenBusy(in.WhenBusy); err != nil {
		return err
	}
	return in.Options.Validate("options")
}

func (e *Engine) isGreeting(ctx context.Context, userID, messageID string) (bool, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) (bool, error) {
		m, err := tx.Chats.Message(messageID)
		return err == nil && m.Greeting, err
	})
}

// resetGreeting gives a greeting the texts of the card in effect. Edited texts become
// older revisions; greetings that the card no longer has stay as the last swipes. The
// name of the speaker does not change, because a restore could not bring it back.
func (e *Engine) resetGreeting(ctx context.Context, c *op.Call, messageID string) (*chat.Changed, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*chat.Changed, error) {
		conv, m, err := chat.LockForEdit(tx.Chats, messageID, 0)
		if err != nil {
			return nil, err
		}
		if err := chat.RestoreGreeting(tx.Chats, conv, m); err != nil {
			return nil, err
		}
		return &chat.Changed{Message: m}, chat.UpdateMessage(tx.Chats, c, conv, m)
	})
}
