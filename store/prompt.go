package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"nodest/fault"
	"nodest/framework"
	"nodest/nodest"
	"nodest/store/sqldb"
)

// promptRow is a prompt with the hashes of its parts, in order. A conversation has each part
// once.
type promptRow struct {
	ID, UserID, ConversationID, GenerationID string
	Body                                     []byte // deflated
	Parts                                    []byte // 8 of each
	CreatedAt                                time.Time
}

type promptPartRow struct {
	UserID, ConversationID string
	Hash                   int64
	Data                   []byte    // deflated
	UsedAt                 time.Time // when a prompt last had it, to within partStep
}

// partStep is how much later than it says a part may have been used: not every prompt writes
// the time to all its parts.
const partStep = 24 * time.Hour

// partHash names a part within its conversation.
func partHash(part []byte) int64 {
	sum := sha256.Sum256(part)
	return int64(binary.LittleEndian.Uint64(sum[:])) //nolint:gosec // its bits
}

// hashes are those of the parts, in order.
func (r *promptRow) hashes() []any {
	list := make([]any, 0, len(r.Parts)/8)
	for hash := range slices.Chunk(r.Parts, 8) {
		list = append(list, int64(binary.LittleEndian.Uint64(hash))) //nolint:gosec // its bits
	}
	return list
}

// PutPrompt stores what was sent in a conversation of the user.
func (t *tx) PutPrompt(p *nodest.StoredPrompt) error {
	t.fillTimes(&p.CreatedAt)
	row := &promptRow{p.ID, t.userID, p.ConversationID, strings.TrimPrefix(p.GenerationID, p.ID), promptTexts.deflate(string(p.Body)), make([]byte, 0, 8*len(p.Parts)), p.CreatedAt}
	parts := make(map[int64][]byte, len(p.Parts))
	for _, part := range p.Parts {
		hash := partHash(part)
		row.Parts = binary.LittleEndian.AppendUint64(row.Parts, uint64(hash)) //nolint:gosec // its bits
		parts[hash] = part
	}
	if err := t.withConversation(p.ConversationID).Insert("prompts", row); err != nil || len(parts) == 0 {
		return err
	}
	hashes := row.hashes()
	known, err := sqldb.All[int64](t, "SELECT hash FROM prompt_parts WHERE user_id = ? AND conversation_id = ? AND used_at > ? AND hash IN ("+tuples(len(hashes), 1)+")",
		append([]any{t.userID, p.ConversationID, t.Now().Add(-partStep)}, hashes...)...)
	if err != nil {
		return err
	}
	for _, hash := range known {
		delete(parts, hash)
	}
	fresh := make([]*promptPartRow, 0, len(parts))
	for _, part := range p.Parts { // in an order of their own, not of the map
		hash := partHash(part)
		if data, ok := parts[hash]; ok {
			fresh = append(fresh, &promptPartRow{t.userID, p.ConversationID, hash, promptTexts.deflate(string(data)), t.Now()})
			delete(parts, hash)
		}
	}
	return t.Insert("prompt_parts", fresh, "ON CONFLICT (user_id, conversation_id, hash) DO UPDATE SET used_at = EXCLUDED.used_at")
}

// Prompt returns one.
func (t *tx) Prompt(id string) (*nodest.StoredPrompt, error) {
	row, err := sqldb.Get[promptRow](t, "prompt", "SELECT * FROM prompts WHERE user_id = ? AND id = ?", t.userID, id)
	if err != nil {
		return nil, err
	}
	return t.wholePrompt(row)
}

// LastPrompt returns the id of the newest prompt of a conversation, "" without one.
func (t *tx) LastPrompt(conversationID string) (id string, err error) {
	return sqldb.Value[string](t, "SELECT id FROM prompts WHERE user_id = ? AND conversation_id = ? ORDER BY id DESC LIMIT 1",
		t.userID, conversationID)
}

// wholePrompt reads the parts of a prompt.
func (t *tx) wholePrompt(row *promptRow) (*nodest.StoredPrompt, error) {
	body, err := promptTexts.inflate(row.Body)
	if err != nil {
		return nil, err
	}
	p := &nodest.StoredPrompt{ID: row.ID, ConversationID: row.ConversationID, GenerationID: cmp.Or(row.GenerationID, row.ID),
		Stored: framework.Stored{Body: []byte(body)}, CreatedAt: row.CreatedAt}
	if len(row.Parts) == 0 {
		return p, nil
	}
	hashes := row.hashes()
	parts := make(map[int64][]byte, len(hashes))
	err = sqldb.Each(t, func(part *promptPartRow) error {
		data, err := promptTexts.inflate(part.Data)
		parts[part.Hash] = []byte(data)
		return err
	}, "SELECT hash, data FROM prompt_parts WHERE user_id = ? AND conversation_id = ? AND hash IN ("+tuples(len(hashes), 1)+")",
		append([]any{t.userID, row.ConversationID}, hashes...)...)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		data, ok := parts[hash.(int64)]
		if !ok {
			return nil, fault.New(fault.NotFound, "no such prompt")
		}
		p.Parts = append(p.Parts, data)
	}
	return p, nil
}
