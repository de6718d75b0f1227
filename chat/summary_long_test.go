package chat_test

import (
	"context"
	"testing"

	"nodest/chat"
	"nodest/internal/summary"
	"nodest/nodest/nodesttest"
)

// Transactions that read much at once hold up the cleaning of the log, and what they read is in
// memory.
func TestALongChatIsReadForItsSummaryInParts(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, `{"memory":{"enabled":false}}`)
	s.InsertExchanges(1500)
	path := s.Path()
	db := &readCounter{Store: s.DB.Chats()}
	chats := chat.New(db, s.Characters, chat.Options{})
	for name, tt := range map[string]struct {
		ask      chat.SummaryRange
		from, to int
	}{
		"what is due": {from: 3, to: len(path) - 4},
		"a range":     {ask: chat.SummaryRange{From: path[20].ID, To: path[2600].ID}, from: 20, to: 2600},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := chats.Summarise(t.Context(), s.Call(), s.Conversation.ID, tt.ask)
			s.Must(err)
			var digest string
			for _, l := range chat.LinesOf(path[tt.from : tt.to+1]) {
				digest = summary.ExtendDigest(digest, []summary.ChatLine{l})
			}
			if r := made.Range; r.Start != tt.from || r.End != tt.to || r.StartID != path[tt.from].ID || r.EndID != path[tt.to].ID ||
				made.Count != tt.to-tt.from+1 || made.Digest != digest {
				t.Errorf("the summary is of %+v, %d messages, digest %s", r, made.Count, made.Digest)
			}
		})
	}
	if db.most == 0 || db.most > 512 {
		t.Errorf("one transaction read %d of %d messages", db.most, len(path))
	}
}

// readCounter counts how many messages of a branch one transaction reads at most.
type readCounter struct {
	chat.Store
	most int
}

func (c *readCounter) View(ctx context.Context, userID string, fn func(chat.Tx) error) error {
	return c.Store.View(ctx, userID, func(tx chat.Tx) error {
		read := 0
		tx.MessageTx = countedPath{tx.MessageTx, &read}
		err := fn(tx)
		c.most = max(c.most, read)
		return err
	})
}

type countedPath struct {
	chat.MessageTx
	read *int
}

func (p countedPath) Path(conversationID, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	items, more, err := p.MessageTx.Path(conversationID, headID, beforeID, limit)
	*p.read += len(items)
	return items, more, err
}

func (p countedPath) PathAfter(conversationID, headID, afterID string, limit int) ([]*chat.Message, bool, error) {
	items, more, err := p.MessageTx.PathAfter(conversationID, headID, afterID, limit)
	*p.read += len(items)
	return items, more, err
}
