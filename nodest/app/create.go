package app

import (
	"context"
	"encoding/json"
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/framework"
	"nodest/internal/op"
)

// newcomer is a character with a new conversation under the app's key. The greeting comes first,
// unless the history has one: then the answer has the text of the card and the id of that greeting.
type newcomer struct {
	key      string               // the conversation's key
	own      string               // key of the character; "" = it has one
	ch       *character.Character // new, too, unless it only begins another conversation
	conv     *chat.Conversation
	user     string          // the user's name
	greeting *chat.Message   // the card's greeting
	messages []*chat.Message // with the greeting, unless the history has one
}

// storedAtOnce is how many messages of a history are stored in the transaction that creates the
// character.
const storedAtOnce = 250

func (svc *Service) create(ctx context.Context, c *op.Call, in Request, docs *documents, prepared *character.Checked) (*Answer, error) {
	if len(docs.history) > storedAtOnce {
		return svc.createInPieces(ctx, c, in, docs, prepared)
	}
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Answer, error) {
		n, err := newNewcomer(in, docs, prepared)
		if err != nil {
			return nil, err
		}
		if err := character.Insert(tx.Characters, c, n.ch); err != nil {
			return nil, err
		}
		if err := n.insert(tx, c, docs.history); err != nil {
			return nil, err
		}
		return n.answer(), nil
	})
}

// createInPieces is create with a long history. It hides the character and the conversation until
// the last transaction. The texts count as read, like those of other imports: facts are extracted
// from them when the user asks for it.
func (svc *Service) createInPieces(ctx context.Context, c *op.Call, in Request, docs *documents, prepared *character.Checked) (*Answer, error) {
	if done, known, err := op.Earlier[*Answer](ctx, svc.store, c); known || err != nil {
		return done, err
	}
	n, err := newNewcomer(in, docs, prepared)
	if err != nil {
		return nil, err
	}
	n.ch.ID, n.ch.Version = op.NewID(), 1
	if err := svc.store.View(ctx, c.UserID, func(tx Tx) error { return n.prepare(tx, docs.history) }); err != nil {
		return nil, err
	}
	pieces := archive.Conversation(n.conv, n.messages, n.hide)
	return archive.Import(ctx, svc.archives, c, pieces, func() (*Answer, error) {
		return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Answer, error) {
			if err := pieces.Finish(tx.Chats); err != nil {
				return nil, err
			}
			if err := tx.Chats.FinishLoad(n.conv, nil, nil); err != nil {
				return nil, err
			}
			if err := character.Show(tx.Characters, c, n.ch); err != nil {
				return nil, err
			}
			if err := tx.Emit(chat.ConversationEvent(c.UserID, "chat.created", c.By(), n.conv)); err != nil {
				return nil, err
			}
			return n.answer(), n.putKeys(tx)
		})
	})
}

func newNewcomer(in Request, docs *documents, prepared *character.Checked) (*newcomer, error) {
	n := &newcomer{key: in.ConversationID, own: in.CharacterID, ch: &character.Character{Source: docs.kept()}}
	if n.own == "" || op.HasIDForm(n.own) {
		n.own = in.ConversationID
	}
	prepared.Apply(n.ch)
	_, err := n.ch.SetUserName(in.CustomUserName)
	return n, err
}

// prepare makes the conversation and its messages. The greeting has only its id.
func (n *newcomer) prepare(tx Tx, history []archive.Entry) (err error) {
	n.conv = &chat.Conversation{
		ID: op.NewID(), CharacterID: n.ch.ID, Title: op.Truncate(n.ch.Name, chat.MaxTitle), Settings: json.RawMessage("{}"),
		Version: 1, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
	}
	if n.user, err = character.UserName(tx.Characters, n.ch, ""); err != nil {
		return err
	}
	n.messages = archive.Messages(history, n.ch.Name, n.user, tx.Now())
	if own := slices.IndexFunc(n.messages, func(m *chat.Message) bool { return m.Greeting }); own >= 0 {
		n.greeting = &chat.Message{ID: n.messages[own].ID}
	} else {
		n.greeting = &chat.Message{ID: op.NewID()}
		n.messages = slices.Insert(n.messages, 0, n.greeting)
	}
	return nil
}

// greet makes the greeting, which needs the stored character.
func (n *newcomer) greet(tx chat.Tx) error {
	m, err := chat.NewGreeting(tx, n.ch, n.conv.ID, framework.Persona{Name: n.user})
	if err != nil {
		return err
	}
	m.ID = n.greeting.ID
	*n.greeting = *m
	return nil
}

func (n *newcomer) hide(tx chat.Tx) error {
	if err := tx.Characters.InsertCharacter(n.ch); err != nil {
		return err
	}
	if err := n.greet(tx); err != nil {
		return err
	}
	return tx.Characters.HideCharacter(n.ch.ID, true)
}

func (n *newcomer) insert(tx Tx, c *op.Call, history []archive.Entry) error {
	if err := n.prepare(tx, history); err != nil {
		return err
	}
	if err := n.greet(tx.Chats); err != nil {
		return err
	}
	if err := chat.InsertConversation(tx.Chats, c, n.conv, n.messages...); err != nil {
		return err
	}
	return n.putKeys(tx)
}

// putKeys stores the app's keys of the conversation and of a new character.
func (n *newcomer) putKeys(tx Tx) error {
	if n.own != "" {
		if err := tx.PutAppCharacter(n.own, n.ch.ID); err != nil {
			return err
		}
	}
	return tx.PutAppChat(n.key, n.conv.ID)
}

func (n *newcomer) answer() *Answer {
	return &Answer{Response: n.greeting.Text(), ConversationID: n.conv.ID, CharacterID: n.ch.ID, MessageID: n.greeting.ID}
}
