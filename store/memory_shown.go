package store

import (
	"maps"
	"slices"

	"nodest/memory"
	"nodest/store/sqldb"
)

// Shown looks at the pieces that the paths are made of (see place) and at the
// messages of the texts: its cost does not grow with the length of the chats.
func (t *textTx) Shown(here *memory.Place, texts []memory.Evidence) ([]bool, error) {
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
		shown[i] = ok && m.ConversationID == e.ConversationID && m.RevisionID == e.RevisionID && m.Depth <= chats[e.ConversationID][m.Chain]
	}
	return shown, nil
}

// paths reads the paths that are shown, of those conversations of the user that are
// there.
func (t *textTx) paths(here *memory.Place, chats map[string]map[int64]int64) error {
	type shownHead struct{ ID, HeadID string }
	heads, err := sqldb.All[shownHead](t, "SELECT id, head_id FROM conversations WHERE user_id = ? AND id IN (?) AND deleted_at IS NULL",
		t.userID, slices.Sorted(maps.Keys(chats)))
	if err != nil {
		return err
	}
	for _, row := range heads {
		if here != nil && row.ID == here.ConversationID {
			if row.HeadID = here.HeadID; row.HeadID != "" {
				if err := t.messages.inConversation(row.ID, row.HeadID); err != nil {
					return err
				}
			}
		}
		if row.HeadID == "" {
			continue
		}
		if chats[row.ID], err = t.messages.piecesOf(row.HeadID); err != nil {
			return err
		}
	}
	return nil
}

// piecesOf returns how deep the path that ends in a message goes in each chain.
func (t *messageTx) piecesOf(headID string) (map[int64]int64, error) {
	depths := map[int64]int64{}
	note := func(p *struct{ Chain, Depth int64 }) error { depths[p.Chain] = p.Depth; return nil }
	return depths, sqldb.Each(t, note, pieces+"SELECT chain, depth FROM path", t.userID, headID)
}

// messagePlace is where a message stands and which text it shows.
type messagePlace struct {
	ID, ConversationID string
	Chain, Depth       int64
	RevisionID         string
}

const selectPlaces = "SELECT m.id, m.conversation_id, m.chain, m.depth, s.revision_id FROM messages m "

// shownRevisions are the texts s that messages m show.
const shownRevisions = "JOIN (SELECT user_id, message_id, position, id AS revision_id FROM revisions WHERE is_shown AND NOT is_deleted) s" +
	" ON s.user_id = m.user_id AND s.message_id = m.id AND s.position = m.swipe_index"

// places returns messages that are not deleted and whose texts were not forgotten, by
// their ids: those of here's conversation as they were at its version.
func (t *textTx) places(here *memory.Place, ids []string) (map[string]messagePlace, error) {
	const ofMessages = " LEFT JOIN memory_texts f ON f.user_id = m.user_id AND f.revision_id = s.revision_id AND f.is_forgotten" +
		" WHERE f.revision_id IS NULL AND m.user_id = ? AND m.id IN (?) AND "
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found := make(map[string]messagePlace, len(ids))
	note := func(m *messagePlace) error { found[m.ID] = *m; return nil }
	then, version := "", int64(0) // the conversation that is read as it was
	if here != nil && here.Version != 0 {
		then, version = here.ConversationID, here.Version
	}
	err := sqldb.Each(t, note, selectPlaces+shownRevisions+ofMessages+"(m.conversation_id <> ? OR m.since > 0 AND m.since <= ?) AND m.deleted_at IS NULL AND NOT m.is_hidden", t.userID, ids, then, version)
	if err != nil || then == "" {
		return found, err
	}
	err = sqldb.Each(t, note, selectPlaces+`JOIN message_states s ON s.user_id = m.user_id AND s.conversation_id = m.conversation_id AND s.message_id = m.id
			AND s.version = (SELECT MAX(o.version) FROM message_states o
				WHERE o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version <= ?)`+
		ofMessages+"m.conversation_id = ? AND NOT s.is_deleted AND NOT s.is_hidden", here.Version, t.userID, ids, then)
	return found, err
}
