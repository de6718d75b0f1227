package store

import (
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
	var messages, revisions []string
	chats := map[string]map[int64]int64{} // depths of the shown paths' pieces, by chain
	for _, e := range texts {
		chats[e.ConversationID] = nil
		messages, revisions = append(messages, e.MessageID), append(revisions, e.RevisionID)
	}
	if err := t.paths(here, chats); err != nil {
		return nil, err
	}
	at, err := t.places(here, messages)
	if err != nil {
		return nil, err
	}
	forgotten, err := t.forgotten(revisions)
	if err != nil {
		return nil, err
	}
	for i, e := range texts {
		m := at[e.MessageID]
		shown[i] = m != nil && m.ConversationID == e.ConversationID && m.RevisionID == e.RevisionID &&
			m.Depth <= chats[e.ConversationID][m.Chain] && !forgotten[e.RevisionID]
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
		_, err := t.scan(t.raw("SELECT id, head_id FROM conversations WHERE id "+in+" AND user_id = ? AND deleted_at IS NULL",
			which, text(t.userID)), &rows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if here != nil && row.ID == here.ConversationID {
				row.HeadID = here.HeadID
			}
			if row.HeadID == "" {
				continue
			}
			if chats[row.ID], err = t.piecesOf(row.ID, row.HeadID); err != nil {
				return err
			}
		}
	}
	return nil
}

// piecesOf returns how deep the path that ends in a message goes in each chain.
func (t *tx) piecesOf(conversationID, headID string) (map[int64]int64, error) {
	if err := t.inConversation(conversationID, headID); err != nil {
		return nil, err
	}
	var rows []struct{ Chain, Depth int64 }
	_, err := t.scan(t.raw(pieces+"SELECT chain, depth FROM path", text(headID), text(conversationID)), &rows)
	depths := make(map[int64]int64, len(rows))
	for _, row := range rows {
		depths[row.Chain] = row.Depth
	}
	return depths, err
}

// messagePlace is where a message stands and which text it shows.
type messagePlace struct {
	ID             string
	ConversationID string
	Chain, Depth   int64
	RevisionID     string
}

// places returns messages that are not deleted, by their ids: those of here's
// conversation as they were at its version.
func (t *tx) places(here *memory.Place, ids []string) (map[string]*messagePlace, error) {
	slices.Sort(ids)
	found := make(map[string]*messagePlace, len(ids))
	read := func(rest string, args ...any) error {
		var rows []*messagePlace
		_, err := t.scan(t.raw("SELECT m.id, m.conversation_id, m.chain, m.depth, s.revision_id FROM messages m "+rest, args...), &rows)
		for _, row := range rows {
			found[row.ID] = row
		}
		return err
	}
	version, then := int64(0), "" // the conversation that is read as it was
	if here != nil && here.Version != 0 {
		version, then = here.Version, here.ConversationID
	}
	for part := range slices.Chunk(slices.Compact(ids), 500) {
		in, which := among(part)
		err := read("JOIN swipes s ON s.message_id = m.id AND s.position = m.swipe_index AND NOT s.is_deleted"+
			" WHERE m.id "+in+" AND m.user_id = ? AND m.conversation_id <> ? AND m.deleted_at IS NULL AND NOT m.is_hidden",
			which, text(t.userID), text(then))
		if err != nil {
			return nil, err
		}
		if then == "" {
			continue
		}
		err = read(`JOIN message_states s ON s.conversation_id = m.conversation_id AND s.message_id = m.id
				AND s.version = (SELECT MAX(o.version) FROM message_states o
					WHERE o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version <= ?)
			WHERE m.id `+in+` AND m.conversation_id || '' = ? AND m.user_id = ? AND NOT s.is_deleted AND NOT m.is_hidden`,
			version, which, text(then), text(t.userID))
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// forgotten returns those of the user's texts that were forgotten. The user is no part
// of the condition: SQLite would walk all texts of the user rather than look a few up.
func (t *tx) forgotten(revisions []string) (map[string]bool, error) {
	gone := map[string]bool{}
	for part := range slices.Chunk(revisions, 500) {
		in, which := among(part)
		var rows []struct{ RevisionID, UserID string }
		_, err := t.scan(t.raw("SELECT revision_id, user_id FROM memory_texts WHERE revision_id "+in+" AND is_forgotten", which), &rows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			gone[row.RevisionID] = row.UserID == t.userID
		}
	}
	return gone, nil
}
