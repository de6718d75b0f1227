package store

import (
	"time"

	"nodest/chat"
	"nodest/store/sqldb"
)

// segment is a part of a chain, from behind the depth After to Depth: nothing branches off
// from a message of it but the one at Depth.
type segment struct {
	Chain, After, Depth int64
	UpChain             *int64 // nil = the chain begins with a root
	UpDepth             int64
	Gone                int64   // deleted messages in it
	FirstID, LastID     *string // that are not deleted; nil = all are
	FirstSeq, LastSeq   int64

	joined
}

// eachSegment cuts the chains of a conversation where others branch off. Its arguments are
// the user and the conversation, three times.
const eachSegment = walkChains + `,
	heads AS (
		SELECT chains.chain, up.chain AS up_chain, COALESCE(up.depth, 0) AS up_depth, (SELECT m.depth FROM messages m
			WHERE m.user_id = c.user_id AND m.conversation_id = c.id AND m.chain = chains.chain ORDER BY m.depth DESC LIMIT 1) AS depth
		FROM chains CROSS JOIN conversations c
		LEFT JOIN messages first ON first.user_id = c.user_id AND first.conversation_id = c.id AND first.seq = chains.chain
		LEFT JOIN messages up ON up.user_id = c.user_id AND up.id = first.parent_id
		WHERE c.user_id = ? AND c.id = ? AND ` + loadedChain + `
	),
	cuts AS (SELECT chain, depth FROM heads UNION SELECT up_chain, up_depth FROM heads WHERE up_chain IS NOT NULL),
	segments AS (
		SELECT heads.chain, COALESCE(LAG(cuts.depth) OVER (PARTITION BY cuts.chain ORDER BY cuts.depth), heads.up_depth) AS after,
			cuts.depth, heads.up_chain, heads.up_depth
		FROM cuts JOIN heads ON heads.chain = cuts.chain
	)
	SELECT s.chain, s.after, s.depth, s.up_chain, s.up_depth, first.id AS first_id, COALESCE(first.seq, 0) AS first_seq,
		last.id AS last_id, COALESCE(last.seq, 0) AS last_seq, (SELECT COUNT(*) FROM messages m WHERE m.user_id = c.user_id
			AND m.conversation_id = c.id AND m.chain = s.chain AND m.depth > s.after AND m.depth <= s.depth AND m.deleted_at IS NOT NULL) AS gone
	FROM segments s CROSS JOIN conversations c
	LEFT JOIN messages first ON first.user_id = c.user_id AND first.id = (SELECT m.id FROM messages m
		WHERE m.user_id = c.user_id AND m.conversation_id = c.id AND m.chain = s.chain AND m.depth > s.after AND m.depth <= s.depth
			AND m.deleted_at IS NULL ORDER BY m.depth LIMIT 1)
	LEFT JOIN messages last ON last.user_id = c.user_id AND last.id = (SELECT m.id FROM messages m
		WHERE m.user_id = c.user_id AND m.conversation_id = c.id AND m.chain = s.chain AND m.depth > s.after AND m.depth <= s.depth
			AND m.deleted_at IS NULL ORDER BY m.depth DESC LIMIT 1)
	WHERE c.user_id = ? AND c.id = ? ORDER BY s.chain, s.depth`

// mark is a save point, or the head of the conversation, and where it is in the tree.
type mark struct {
	ID    string  // id of the save point; "" = the head
	Chain *int64  // chain of the message that it names; nil = there is none
	AtID  *string // that message, or the next above it in its chain that is not deleted
	Depth int64   // depth of AtID
	Gone  int64   // deleted messages of the chain above AtID
}

// eachMark finds the head of a conversation and its newest save points. Its arguments are
// the user and the conversation, twice, and a number.
const eachMark = `SELECT mark.id, head.chain, at.id AS at_id, COALESCE(at.depth, 0) AS depth, (SELECT COUNT(*) FROM messages m
		WHERE m.user_id = at.user_id AND m.conversation_id = at.conversation_id AND m.chain = at.chain AND m.depth < at.depth
			AND m.deleted_at IS NOT NULL) AS gone
	FROM (
		SELECT user_id, NULL AS id, head_id, 0 AS created_at FROM conversations WHERE user_id = ? AND id = ?
		UNION ALL
		SELECT * FROM (SELECT user_id, id, head_id, created_at FROM saves WHERE user_id = ? AND conversation_id = ?
			ORDER BY created_at DESC, id DESC LIMIT ?) newest
	) mark
	LEFT JOIN messages head ON head.user_id = mark.user_id AND head.id = mark.head_id
	LEFT JOIN messages at ON at.user_id = head.user_id AND at.id = (SELECT m.id FROM messages m
		WHERE m.user_id = head.user_id AND m.conversation_id = head.conversation_id AND m.chain = head.chain AND m.depth <= head.depth
			AND m.deleted_at IS NULL ORDER BY m.depth DESC LIMIT 1)
	ORDER BY mark.created_at DESC, mark.id DESC`

// Tree looks at the ends of each part of a chain, and at no other message however long
// the branches are.
func (t *messageTx) Tree(conversationID string, limit int) (*chat.Tree, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, err
	}
	segments, err := sqldb.All[segment](t, eachSegment, t.userID, conversationID, t.userID, conversationID, t.userID, conversationID, t.userID, conversationID)
	if err != nil {
		return nil, err
	}
	marks, err := sqldb.All[mark](t, eachMark, t.userID, conversationID, t.userID, conversationID, limit)
	if err != nil {
		return nil, err
	}
	tree := newRunTree(segments).tree(marks, limit)
	return tree, t.fillPreviews(tree.Runs)
}

// fillPreviews completes the first and last messages of runs, which have ids.
func (t *messageTx) fillPreviews(runs []*chat.Run) error {
	if len(runs) == 0 {
		return nil
	}
	type row struct {
		ID, Role, Text string
		CreatedAt      time.Time
	}
	byID := make(map[string]*chat.Preview, 2*len(runs))
	ids := make([]string, 0, 2*len(runs))
	for _, r := range runs {
		ids = append(ids, r.First.ID, r.Last.ID)
	}
	note := func(r *row) error {
		m := chat.Message{ID: r.ID, Role: r.Role, Dates: chat.Dates{CreatedAt: r.CreatedAt}, Swipes: []chat.Swipe{{Text: r.Text}}}
		byID[r.ID] = m.Preview()
		return nil
	}
	// Twice the length of a preview, because a stored character can be two (see sqldb).
	err := sqldb.Each(t, note, `SELECT m.id, m.role, m.created_at, COALESCE(substr(r.text, 1, 400), '') AS text FROM messages m
		LEFT JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
		WHERE m.user_id = ? AND m.id IN (?)`, t.userID, ids)
	for _, r := range runs {
		r.First, r.Last = byID[r.First.ID], byID[r.Last.ID]
	}
	return err
}
