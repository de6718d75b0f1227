package archive

import (
	"context"

	"nodest/chat"
	"nodest/internal/op"
)

const (
	pieceMessages = 250   // per transaction, which makes all other writers wait on SQLite
	pieceRows     = 600   // about how many texts and states they may have together
	rowBytes      = 2_048 // bytes of text that count as another row
	dropMessages  = 500   // removed per transaction
)

// Pieces are the messages of an import. Many take several transactions, and are hidden until
// the last one.
type Pieces struct {
	all  int           // messages
	rows func(int) int // texts and states of a message, by its index; long texts count as several
	// put stores messages from one index to another, and returns what they belong to.
	put    func(tx chat.Tx, from, to int) (chat.Load, error)
	stored int       // messages
	hidden chat.Load // the load that the messages belong to
}

// Branch returns new messages, each the child of the one before, that become a branch of a
// conversation.
func Branch(conversationID string, messages []*chat.Message) *Pieces {
	parent := ""
	for _, m := range messages {
		m.ConversationID, m.ParentID = conversationID, parent
		parent = m.ID
	}
	return &Pieces{
		all:  len(messages),
		rows: func(i int) int { return rowsOf(messages[i].Swipes) },
		put: func(tx chat.Tx, from, to int) (chat.Load, error) {
			if err := tx.InsertMessage(messages[from:to]...); err != nil || to == 0 {
				return chat.Load{}, err
			}
			return chat.Load{ConversationID: conversationID, Branch: messages[0].Seq}, nil
		},
	}
}

// Conversation returns new messages, at least one, each the child of the one before, that become
// conv. begin runs in the transaction of the first piece, before it, and may still change the first
// message.
func Conversation(conv *chat.Conversation, messages []*chat.Message, begin func(chat.Tx) error) *Pieces {
	last := messages[len(messages)-1]
	conv.HeadID, conv.LastMessage = last.ID, last.Preview()
	return &Pieces{
		all:  len(messages),
		rows: func(i int) int { return rowsOf(messages[i].Swipes) },
		put: func(tx chat.Tx, from, to int) (chat.Load, error) {
			if from == 0 {
				if err := begin(tx); err != nil {
					return chat.Load{}, err
				}
				if err := tx.BeginLoad(conv); err != nil {
					return chat.Load{}, err
				}
			}
			piece := make([]*chat.DumpedMessage, 0, to-from)
			for i, m := range messages[from:to] {
				if m.Seq = int64(from + i + 1); m.Seq > 1 {
					m.ParentID = messages[m.Seq-2].ID
				}
				piece = append(piece, dumped(m, conv.Version))
			}
			return chat.Load{ConversationID: conv.ID}, tx.Load(conv.ID, piece)
		},
	}
}

// conversation returns the messages of a, which become a conversation.
func (a *contents) conversation() *Pieces {
	return &Pieces{
		all: len(a.Messages),
		rows: func(i int) int {
			rows := len(a.Messages[i].States)
			for _, t := range a.Messages[i].Texts {
				rows += rowsOfText(&t.Swipe)
			}
			return rows
		},
		put: func(tx chat.Tx, from, to int) (chat.Load, error) {
			if from == 0 {
				conv := a.Conversation.Conversation
				if err := tx.BeginLoad(&conv); err != nil {
					return chat.Load{}, err
				}
			}
			id := a.Conversation.ID
			return chat.Load{ConversationID: id}, tx.Load(id, a.Messages[from:to])
		},
	}
}

// rowsOf is how many rows a message with these swipes counts as.
func rowsOf(swipes []chat.Swipe) int {
	rows := 1
	for i := range swipes {
		rows += rowsOfText(&swipes[i])
	}
	return rows
}

func rowsOfText(s *chat.Swipe) int { return 1 + (len(s.Text)+len(s.Reasoning))/rowBytes }

// next returns the index of the first message after the next piece.
func (p *Pieces) next() int {
	to := p.stored
	for rows := 0; to < p.all && to-p.stored < pieceMessages && rows < pieceRows; to++ {
		rows += p.rows(to)
	}
	return to
}

// Import stores all pieces but the last, and runs last, which stores that with Finish in its
// transaction, under the key of c. If it fails, or an earlier call with that key has
// stored the same, what it stored is removed; if the process dies, maintenance removes it.
func Import[T any](ctx context.Context, svc *Service, c *op.Call, p *Pieces, last func() (*T, error)) (*T, error) {
	var answer *T
	err := p.store(ctx, svc.store, c.UserID)
	if err == nil {
		answer, err = last()
	}
	if err != nil || c.Replayed {
		p.drop(context.WithoutCancel(ctx), svc.store, c.UserID)
	}
	return answer, err
}

func (p *Pieces) store(ctx context.Context, store chat.Store, userID string) error {
	for to := p.next(); to < p.all; to = p.next() {
		var l chat.Load
		err := store.Update(ctx, userID, func(tx chat.Tx) (err error) {
			if l, err = p.putNext(tx, to); err != nil || p.stored > 0 {
				return err
			}
			return tx.OpenLoad(l, p.all-to)
		})
		if err != nil {
			return err
		}
		p.stored, p.hidden = to, l
	}
	return nil
}

func (p *Pieces) putNext(tx chat.Tx, to int) (chat.Load, error) {
	if p.stored > 0 {
		if err := tx.TouchLoad(p.hidden); err != nil {
			return chat.Load{}, err
		}
	}
	return p.put(tx, p.stored, to)
}

// Finish stores the last piece and shows all of them. It may run again in another transaction.
func (p *Pieces) Finish(tx chat.Tx) error {
	if _, err := p.putNext(tx, p.all); err != nil || p.stored == 0 {
		return err
	}
	return tx.CloseLoad(p.hidden)
}

// drop removes what is hidden. What is left after a failure is removed by maintenance.
func (p *Pieces) drop(ctx context.Context, store chat.Store, userID string) {
	for left := p.stored > 0; left; {
		err := store.Update(ctx, userID, func(tx chat.Tx) (err error) {
			left, err = tx.DropLoad(p.hidden, dropMessages)
			return err
		})
		if err != nil {
			return
		}
	}
}
