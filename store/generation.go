package store

import (
	"context"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// generationTx stores generations and the prompts that they sent.
type generationTx struct{ *tx }

type generationRow struct {
	chat.Generation `db:"By=device -Citations -InMessage"`
	IsOpen          bool
}

func (r *generationRow) generation() *chat.Generation {
	if r.PromptID == "" && r.StartedAt != nil {
		r.PromptID = r.ID
	}
	return &r.Generation
}

// newGenerationRow leaves out a text that is in a message, with its usage, and the id of the prompt that the generation
// began with, which is its own.
func newGenerationRow(g *chat.Generation) *generationRow {
	r := &generationRow{*g, !g.Ended()}
	if g.PromptID == g.ID {
		r.PromptID = ""
	}
	if g.Ended() && g.InMessage {
		r.Base, r.Text, r.Reasoning, r.Blocks, r.Usage = "", "", "", nil, nil
	}
	return r
}

func (t generationTx) InsertGeneration(g *chat.Generation) error {
	t.fillTimes(&g.CreatedAt)
	g.UserID = t.userID
	return t.chats.with(g.ConversationID).Insert("generations", newGenerationRow(g))
}

// Generation returns one, also of a conversation that was deleted. If it has ended, Text is the
// whole text that it left in its message, and Reasoning and Blocks are those of that.
func (t generationTx) Generation(id string) (*chat.Generation, error) {
	g, err := sqldb.Find(t, "generation", (*generationRow).generation, selectGenerations+"WHERE user_id = ? AND id = ?", t.userID, id)
	if err != nil || !g.Ended() || g.Text != "" || g.SwipeID == "" {
		return g, err
	}
	written, err := sqldb.One[chat.Swipe](t, "SELECT text, reasoning, blocks, usage FROM revisions WHERE user_id = ? AND message_id = ? AND swipe_id = ?"+
		" AND generation_id = ? ORDER BY rev LIMIT 1", t.userID, g.MessageID, g.SwipeID, g.ID)
	if err == nil && written != nil {
		g.Text, g.Reasoning, g.Blocks, g.Usage = written.Text, written.Reasoning, written.Blocks, written.Usage
	}
	return g, err
}

const selectGenerations = "SELECT * FROM generations "

func (s *session) readGenerations(rest string, args ...any) ([]*chat.Generation, error) {
	return sqldb.Map(s, (*generationRow).generation, selectGenerations+rest, args...)
}

// UpdateGeneration stores everything of g but where it belongs. A generation that has ended
// does not change: it is NotFound.
func (t generationTx) UpdateGeneration(g *chat.Generation) error {
	t.room.admitted = true
	return t.UpdateOne("generation", "generations", newGenerationRow(g), []string{"id", "user_id", "conversation_id", "created_at"},
		"WHERE user_id = ? AND id = ? AND is_open", t.userID, g.ID)
}

// oldGenerations removes those that ended long ago, and the signals of what was recalled for them. Their
// texts are in messages. One that another character than the chat's was asked for says who wrote the
// reply, so it stays.
func oldGenerations(s *session, life time.Duration) (removed int64, err error) {
	const mayGo = "CAST(c.options AS TEXT) NOT LIKE '%characterId%'"
	const signals = " FROM memory_uses u WHERE u.user_id = c.user_id AND u.conversation_id = c.conversation_id AND u.generation_id = c.id AND u.signals IS NOT NULL"
	end := s.Now().Add(-life)
	old, err := s.someMessages("SELECT c.user_id, c.id FROM users u JOIN generations c ON c.user_id = u.id AND c.id < ?"+
		" WHERE NOT c.is_open AND c.ended_at <= ? AND ("+mayGo+" OR EXISTS (SELECT 1"+signals+")) LIMIT ?", firstID(end), end, maintainBatch)
	for userID, ids := range old {
		const these = "FROM generations c WHERE c.user_id = ? AND c.id IN (?)"
		if err := s.each([]string{
			"DELETE FROM memory_uses WHERE (user_id, conversation_id, generation_id) IN (SELECT c.user_id, c.conversation_id, c.id " + these +
				" AND NOT EXISTS (SELECT 1 FROM revisions r WHERE r.user_id = c.user_id AND r.message_id = c.message_id AND r.generation_id = c.id))",
			"UPDATE memory_uses SET signals = NULL WHERE (user_id, conversation_id, generation_id) IN (SELECT c.user_id, c.conversation_id, c.id " + these + ")",
			"DELETE FROM generations AS c WHERE c.user_id = ? AND c.id IN (?) AND " + mayGo,
		}, userID, ids); err != nil {
			return 0, err
		}
		removed += int64(len(ids))
	}
	return removed, err
}

func (t generationTx) Running(conversationID string) ([]*chat.Generation, error) {
	if conversationID == "" {
		return t.readGenerations("WHERE user_id = ? AND is_open ORDER BY created_at, id", t.userID)
	}
	return t.readGenerations("WHERE user_id = ? AND is_open AND conversation_id = ? ORDER BY created_at, id",
		t.userID, conversationID)
}

// Checkpoint stores the text so far of a generation that g.LeaseOwner holds, and renews
// its lease.
func (db *DB) Checkpoint(ctx context.Context, g *chat.Generation, lease time.Duration) error {
	return db.write(ctx, func(s *session) error {
		n, err := s.Exec("UPDATE generations SET text = ?, reasoning = ?, blocks = ?, tools = ?, lease_until = ?"+
			" WHERE user_id = ? AND id = ? AND is_open AND lease_owner = ?",
			g.Text, g.Reasoning, g.Blocks, g.Tools, s.Now().Add(lease), g.UserID, g.ID, g.LeaseOwner)
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "the generation has ended or belongs to another process")
		}
		return err
	})
}

// Abandoned returns generations without a living writer, over all users.
func (db *DB) Abandoned(ctx context.Context, owner string, limit int) ([]*chat.Generation, error) {
	return glancing(ctx, db, func(s *session) ([]*chat.Generation, error) {
		clock, now := s.Clock()
		return s.readGenerations("WHERE is_open AND (lease_until < "+clock+" OR ? <> '' AND lease_owner <> ?) ORDER BY created_at, id LIMIT ?",
			append(now, owner, owner, limit)...)
	})
}
