package store

import (
	"encoding/json"

	"nodest/chat"
	"nodest/store/sqldb"
)

// playTx stores what branches of conversations have beside their texts.
type playTx struct{ *tx }

type playRow struct {
	UserID, ID, ConversationID string
	Document                   sqldb.Zstd
}

func (r *playRow) play() (*chat.Play, error) {
	p := &chat.Play{}
	if err := json.Unmarshal(r.Document, p); err != nil {
		return nil, err
	}
	p.ID, p.ConversationID = r.ID, r.ConversationID
	return p, nil
}

func (t playTx) InsertPlay(p *chat.Play) error {
	bare := *p
	bare.ID = ""
	document, err := json.Marshal(&bare)
	if err != nil {
		return err
	}
	_, err = t.InsertNew("play_states", &playRow{t.userID, p.ID, p.ConversationID, document}, "ON CONFLICT (user_id, id) DO NOTHING")
	return err
}

func (t playTx) Play(id string) (*chat.Play, error) {
	row, err := sqldb.Get[playRow](t, "state of a chat", "SELECT * FROM play_states WHERE user_id = ? AND id = ?", t.userID, id)
	if err != nil {
		return nil, err
	}
	return row.play()
}

func (t playTx) Plays(conversationID, after string, limit int) ([]*chat.Play, error) {
	where, args := "", []any{t.userID, conversationID}
	if after != "" {
		where, args = " AND id > ?", append(args, after)
	}
	plays := []*chat.Play{}
	return plays, sqldb.Each(t.chats.with(conversationID), func(r *playRow) error {
		p, err := r.play()
		plays = append(plays, p)
		return err
	}, "SELECT * FROM play_states WHERE user_id = ? AND conversation_id = ?"+where+" ORDER BY id LIMIT ?", append(args, sqldb.Length(limit))...)
}

// PlayAt looks at the pieces of the path from its end upwards. A conversation without any Play is not
// walked.
func (t playTx) PlayAt(conversationID, messageID string) (string, error) {
	has, err := t.Has("SELECT 1 FROM play_states WHERE user_id = ? AND conversation_id = ? LIMIT 1", t.userID, conversationID)
	if err != nil || !has {
		return "", err
	}
	_, id, err := t.lastShown(conversationID, messageID, "AND r.play_id IS NOT NULL")
	return id, err
}

func (t playTx) KeepPlay(conversationID, messageID, id string) error {
	revision, _, err := t.lastShown(conversationID, messageID, "")
	if err != nil || revision == "" {
		return err
	}
	return t.Run("UPDATE revisions SET play_id = ? WHERE user_id = ? AND id = ?", sqldb.ID(id), t.userID, revision)
}

// playsOf returns the Plays of the texts whose column, id or message_id, has one of the values; for message_id,
// those of the messages' generations too.
func (s *session) playsOf(userID, column string, values []string) ([]string, error) {
	of := "SELECT play_id FROM revisions WHERE user_id = ? AND " + column + " IN (?) AND play_id IS NOT NULL"
	args := []any{userID, values}
	if column == "message_id" {
		of += " UNION SELECT play_id FROM generations WHERE user_id = ? AND message_id IN (?) AND play_id IS NOT NULL"
		args = append(args, userID, values)
	}
	return sqldb.All[string](s, of, args...)
}

// dropPlays removes those of the Plays that no text names and that are in force in no conversation.
func (s *session) dropPlays(userID string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.Run(`DELETE FROM play_states WHERE user_id = ? AND id IN (?)
		AND NOT EXISTS (SELECT 1 FROM revisions r WHERE r.play_id = play_states.id AND r.user_id = play_states.user_id)
		AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = play_states.user_id AND c.id = play_states.conversation_id AND c.play_id = play_states.id)`,
		userID, ids)
}

// lastShown is the last text on a branch that is shown and meets a condition, and its Play; "" = there is
// none.
func (t playTx) lastShown(conversationID, messageID, condition string) (revisionID, playID string, err error) {
	if messageID == "" {
		return "", "", nil
	}
	at, err := t.messages.placeIn(conversationID, messageID)
	for ; err == nil && at != nil; at, err = t.messages.above(conversationID, at.Chain) {
		found, err := sqldb.One[struct{ ID, PlayID string }](t, `SELECT r.id, r.play_id FROM messages m
			JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
			WHERE COALESCE(m.user_id, m.user_id) = ? AND m.conversation_id = ? AND m.chain = ? AND m.depth <= ? AND m.deleted_at IS NULL `+condition+
			" ORDER BY m.depth DESC LIMIT 1", t.userID, conversationID, at.Chain, at.Depth)
		if err != nil {
			return "", "", err
		}
		if found != nil {
			return found.ID, found.PlayID, nil
		}
	}
	return "", "", err
}
