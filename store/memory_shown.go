package store

import (
	"database/sql"
	"encoding/json"
	"slices"

	"nodest/memory"
)

// Shown looks at the pieces that the paths are made of (see place) and at the
// messages of the texts: its cost does not grow with the length of the chats.
func (t *tx) Shown(here *memory.Place, texts []memory.Evidence) ([]bool, error) {
	shown := make([]bool, len(texts))
	if len(texts) == 0 {
		return shown, nil
	}
	messages := make([]string, len(texts))
	chats := map[string]map[int64]int64{} // depths of the shown paths' pieces, by chain
	for i, e := range texts {
		chats[e.ConversationID], messages[i] = nil, e.MessageID
	}
	if err := t.paths(here, chats); err != nil {
		return nil, err
	}
	at, err := t.places(here, messages)
	if err != nil {
		return nil, err
	}
	for i, e := range texts {
		m, ok := at[e.MessageID]
		shown[i] = ok && m.conversation == e.ConversationID && m.revision == e.RevisionID && m.depth <= chats[e.ConversationID][m.chain]
	}
	return shown, nil
}

// paths reads the paths that are shown, of those conversations of the user that are
// there.
func (t *tx) paths(here *memory.Place, chats map[string]map[int64]int64) error {
	ids := make([]string, 0, len(chats))
	for id := range chats {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for part := range slices.Chunk(ids, 500) {
		in, which := among(part)
		var rows []struct{ ID, HeadID string }
		_, err := t.scan(t.raw("SELECT id, head_id FROM conversations WHERE user_id = ? AND id "+in+" AND deleted_at IS NULL",
			text(t.userID), which), &rows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if here != nil && row.ID == here.ConversationID {
				if row.HeadID = here.HeadID; row.HeadID != "" {
					if err := t.inConversation(row.ID, row.HeadID); err != nil {
						return err
					}
				}
			}
			if row.HeadID == "" {
				continue
			}
			if chats[row.ID], err = t.piecesOf(row.HeadID); err != nil {
				return err
			}
		}
	}
	return nil
}

// piecesOf returns how deep the path that ends in a message goes in each chain.
func (t *tx) piecesOf(headID string) (map[int64]int64, error) {
	depths := map[int64]int64{}
	err := t.rows(pieces+"SELECT chain, depth FROM path", []any{text(t.userID), text(headID)}, func(rows *sql.Rows) error {
		var chain, depth int64
		err := rows.Scan(&chain, &depth)
		depths[chain] = depth
		return err
	})
	return depths, err
}

// messagePlace is where a message stands and which text it shows.
type messagePlace struct {
	conversation string
	chain, depth int64
	revision     string
}

// places returns messages that are not deleted and whose texts were not forgotten, by
// their ids: those of here's conversation as they were at its version.
func (t *tx) places(here *memory.Place, ids []string) (map[string]messagePlace, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found := make(map[string]messagePlace, len(ids))
	version, then := int64(0), "" // the conversation that is read as it was
	if here != nil && here.Version != 0 {
		version, then = here.Version, here.ConversationID
	}
	read := func(joined, where string, args ...any) error {
		return t.rows("SELECT m.id, m.conversation_id, m.chain, m.depth, s.revision_id FROM messages m "+joined+
			" LEFT JOIN memory_texts f ON f.user_id = m.user_id AND f.revision_id = s.revision_id AND f.is_forgotten"+
			" WHERE f.revision_id IS NULL AND NOT m.is_hidden AND "+where, args, func(rows *sql.Rows) error {
			var id string
			var m messagePlace
			err := rows.Scan(&id, &m.conversation, &m.chain, &m.depth, &m.revision)
			found[id] = m
			return err
		})
	}
	for part := range slices.Chunk(ids, 500) {
		in, which := t.anyOf(part)
		err := read("JOIN swipes s ON s.user_id = m.user_id AND s.message_id = m.id AND s.position = m.swipe_index AND NOT s.is_deleted",
			"m.user_id = ? AND m.id "+in+" AND m.conversation_id <> ? AND m.deleted_at IS NULL", text(t.userID), which, text(then))
		if err != nil {
			return nil, err
		}
		if then == "" {
			continue
		}
		err = read(`JOIN message_states s ON s.user_id = m.user_id AND s.conversation_id = m.conversation_id AND s.message_id = m.id
				AND s.version = (SELECT MAX(o.version) FROM message_states o
					WHERE o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version <= ?)`,
			"m.user_id = ? AND m.id "+in+" AND m.conversation_id = ? AND NOT s.is_deleted",
			version, text(t.userID), which, text(then))
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// anyOf is a condition and its argument like those of among. Where arguments are
// bound it is the same text for any number of ids, so that the statement is prepared
// once.
func (s *session) anyOf(ids []string) (condition string, arg any) {
	if s.binds == nil {
		return among(ids)
	}
	array, _ := json.Marshal(ids) // strings always can
	return "IN (SELECT value FROM json_each(?))", text(array)
}
