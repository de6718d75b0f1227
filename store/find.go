package store

import (
	"cmp"
	"maps"
	"slices"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// chainEnd is a chain of a conversation, with its deepest message that is not
// deleted and with the message of another chain that it branches off from.
type chainEnd struct {
	Chain   int64
	ID      *string // the deepest message; nil = all are deleted
	Seq     int64
	Depth   int64
	UpChain *int64 // nil = it begins with a root
	UpDepth int64
}

// Tips looks at one message per chain, and at no other however long the branches
// are. The end of a chain is the end of a branch unless something that is not
// deleted hangs below it, at a message behind it that is.
func (t *messageTx) Tips(conversationID, cursor string, limit int) ([]*chat.Message, string, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, "", err
	}
	after, err := sqldb.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	chains, err := t.chains(conversationID)
	if err != nil {
		return nil, "", err
	}
	limit = sqldb.Length(limit)
	ends := slices.DeleteFunc(branchEnds(chains), func(c chainEnd) bool { return cursor != "" && c.Seq >= after.Number })
	slices.SortFunc(ends, func(a, b chainEnd) int { return cmp.Compare(b.Seq, a.Seq) })
	ends, next := sqldb.Cut(ends, limit, func(c chainEnd) sqldb.Place { return sqldb.Place{Number: c.Seq, ID: *c.ID} })
	if len(ends) == 0 {
		return []*chat.Message{}, "", nil
	}
	ids := make([]string, len(ends))
	for i, c := range ends {
		ids[i] = *c.ID
	}
	items, err := t.readMessages("WHERE m.user_id = ? AND m.id IN (?) ORDER BY m.seq DESC", t.userID, ids)
	return items, next, err
}

// walkChains begins a statement about the chains of a conversation, by their numbers:
// each is one search in the index from the one before (and not in that of a user's
// messages, which PostgreSQL may prefer). Its arguments are the user and the
// conversation, twice.
const walkChains = `WITH RECURSIVE chains (chain) AS (
		SELECT MIN(chain) FROM messages WHERE COALESCE(user_id, user_id) = ? AND conversation_id = ?
		UNION ALL
		SELECT (SELECT MIN(m.chain) FROM messages m WHERE COALESCE(m.user_id, m.user_id) = ? AND m.conversation_id = ? AND m.chain > chains.chain)
		FROM chains WHERE chains.chain IS NOT NULL
	)`

// loadedChain is a condition on chains of a conversation c.
const loadedChain = `chains.chain IS NOT NULL AND NOT EXISTS (SELECT 1 FROM loads l
	WHERE l.user_id = c.user_id AND l.conversation_id = c.id AND l.chain = chains.chain)`

// eachChain reads the chains of a conversation. Its arguments are the user and the
// conversation, three times.
const eachChain = walkChains + `
	SELECT chains.chain, tip.id, COALESCE(tip.seq, 0) AS seq, COALESCE(tip.depth, 0) AS depth,
		up.chain AS up_chain, COALESCE(up.depth, 0) AS up_depth
	FROM chains CROSS JOIN conversations c
	LEFT JOIN messages tip ON tip.user_id = c.user_id AND tip.id = (SELECT m.id FROM messages m
		WHERE m.user_id = c.user_id AND m.conversation_id = c.id AND m.chain = chains.chain AND m.deleted_at IS NULL
		ORDER BY m.depth DESC LIMIT 1)
	LEFT JOIN messages first ON first.user_id = c.user_id AND first.conversation_id = c.id AND first.seq = chains.chain
	LEFT JOIN messages up ON up.user_id = c.user_id AND up.id = first.parent_id
	WHERE c.user_id = ? AND c.id = ? AND ` + loadedChain + ` ORDER BY chains.chain`

func (t *messageTx) chains(conversationID string) ([]chainEnd, error) {
	return sqldb.All[chainEnd](t, eachChain, t.userID, conversationID, t.userID, conversationID, t.userID, conversationID)
}

// branchEnds picks the chains whose ends have nothing below. A chain has a larger
// number than the one that it branches off from, so one pass from the end will do.
func branchEnds(chains []chainEnd) (ends []chainEnd) {
	below := map[int64]int64{} // by chain: the deepest message of it with living branches
	for _, c := range slices.Backward(chains) {
		branch := below[c.Chain]
		if c.ID == nil && branch == 0 {
			continue
		}
		if c.ID != nil && branch < c.Depth {
			ends = append(ends, c)
		}
		if c.UpChain != nil {
			below[*c.UpChain] = max(below[*c.UpChain], c.UpDepth)
		}
	}
	return ends
}

// Leaf climbs from the end of each branch to the chain of the message.
func (t *messageTx) Leaf(conversationID, messageID string) (string, error) {
	at, err := t.placeIn(conversationID, messageID)
	if err != nil {
		return "", err
	}
	chains, err := t.chains(conversationID)
	if err != nil {
		return "", err
	}
	byChain := make(map[int64]chainEnd, len(chains))
	for _, c := range chains {
		byChain[c.Chain] = c
	}
	var leaf chainEnd
	for _, end := range branchEnds(chains) {
		c, depth := end, end.Depth
		for c.Chain > at.Chain && c.UpChain != nil {
			c, depth = byChain[*c.UpChain], c.UpDepth
		}
		if c.Chain == at.Chain && depth >= at.Depth && end.Seq > leaf.Seq {
			leaf = end
		}
	}
	if leaf.ID == nil {
		return "", fault.New(fault.NotFound, "no message %q", messageID)
	}
	return *leaf.ID, nil
}

// chainPlace is where a message is in the tree.
type chainPlace struct {
	ID, ConversationID string
	Chain, Depth       int64
}

// placeIn returns where a message of a conversation is in the tree.
func (t *messageTx) placeIn(conversationID, messageID string) (*chainPlace, error) {
	at, err := sqldb.One[chainPlace](t, "SELECT id, conversation_id, chain, depth FROM messages WHERE user_id = ? AND id = ?", t.userID, messageID)
	if err == nil && (at == nil || at.ConversationID != conversationID) {
		err = errNotInConversation()
	}
	return at, err
}

// above returns where the message is from which a chain branches off; nil = the chain begins
// with a root.
func (t *messageTx) above(conversationID string, chain int64) (*chainPlace, error) {
	return sqldb.One[chainPlace](t, `SELECT up.chain, up.depth FROM messages first CROSS JOIN messages up
		WHERE first.user_id = ? AND first.conversation_id = ? AND first.seq = ? AND up.user_id = first.user_id AND up.id = first.parent_id`,
		t.userID, conversationID, chain)
}

// OnPath compares places with the pieces of the path.
func (t *messageTx) OnPath(conversationID, headID string, ids []string) ([]string, error) {
	if is, err := t.isPath(conversationID, headID); err != nil || !is {
		return nil, err
	}
	return sqldb.All[string](t, pieces+`SELECT m.id FROM messages m CROSS JOIN path
		WHERE m.user_id = ? AND m.id IN (?) AND m.conversation_id = path.conversation_id AND m.chain = path.chain AND m.depth <= path.depth`,
		t.userID, headID, t.userID, ids)
}

// PathAfter reads the pieces of the path one after the other, from the message on, until
// it has enough.
func (t *messageTx) PathAfter(conversationID, headID, afterID string, limit int) ([]*chat.Message, bool, error) {
	p := &messagePage{items: []*chat.Message{}}
	err := t.pathAfter(p, conversationID, headID, afterID, limit, func(o pathPiece) error {
		return t.addToPage(p, conversationID, "WHERE COALESCE(m.user_id, m.user_id) = ? AND m.conversation_id = ? AND m.chain = ? AND m.depth > ? AND m.depth <= ?"+
			" AND m.deleted_at IS NULL ORDER BY m.depth LIMIT ?",
			t.userID, conversationID, o.chain, o.above, o.to, o.limit)
	})
	if err != nil {
		return nil, false, err
	}
	err = t.fillPage(p)
	return p.items, p.cut, err
}

// pathPiece is a part of a path that is read with one statement: at most limit messages of a
// chain, below a depth.
type pathPiece struct {
	chain, above, to int64
	limit            int
}

// pathAfter fills a page with pieces of a path, which read adds to it.
func (t *messageTx) pathAfter(p *messagePage, conversationID, headID, afterID string, limit int, read func(pathPiece) error) error {
	if err := t.inConversation(conversationID, headID); err != nil {
		return err
	}
	at := &chainPlace{Depth: -1}
	if afterID != "" {
		var err error
		if at, err = t.placeIn(conversationID, afterID); err != nil {
			return err
		}
	}
	depths, err := t.piecesOf(headID)
	if err != nil {
		return err
	}
	if at.Depth > depths[at.Chain] {
		return fault.New(fault.NotFound, "message %q is on another branch", afterID)
	}
	limit = sqldb.Length(limit)
	for _, chain := range slices.Sorted(maps.Keys(depths)) {
		if chain < at.Chain || len(p.items) > limit || p.cut {
			continue
		}
		if err := read(pathPiece{chain, at.Depth, depths[chain], limit + 1 - len(p.items)}); err != nil {
			return err
		}
	}
	p.cutTo(limit)
	return nil
}
