package store

import (
	"crypto/sha256"
	"encoding/base64"
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
	Body                                     []byte
	Parts                                    []string
	CreatedAt                                time.Time
}

type promptPartRow struct {
	UserID, ConversationID, Hash string
	Data                         []byte
	UsedAt                       time.Time // when a prompt last had it, to within partStep
}

// partStep is how much later than it says a part may have been used: not every prompt writes
// the time to all its parts.
const partStep = 24 * time.Hour

// partHash names a part within its conversation.
func partHash(part []byte) string {
	sum := sha256.Sum256(part)
	return base64.RawStdEncoding.EncodeToString(sum[:12])
}

// PutPrompt stores what was sent in a conversation of the user.
func (t *tx) PutPrompt(p *nodest.StoredPrompt) error {
	t.fillTimes(&p.CreatedAt)
	row := &promptRow{p.ID, t.userID, p.ConversationID, p.GenerationID, append([]byte{}, p.Body...), make([]string, len(p.Parts)), p.CreatedAt}
	parts := make(map[string][]byte, len(p.Parts))
	for i, part := range p.Parts {
		row.Parts[i] = partHash(part)
		parts[row.Parts[i]] = part
	}
	if err := t.withConversation(p.ConversationID).Insert("prompts", row); err != nil || len(parts) == 0 {
		return err
	}
	known, err := sqldb.All[string](t, "SELECT hash FROM prompt_parts WHERE user_id = ? AND conversation_id = ? AND hash IN (?) AND used_at > ?",
		t.userID, p.ConversationID, row.Parts, t.Now().Add(-partStep))
	if err != nil {
		return err
	}
	for _, hash := range known {
		delete(parts, hash)
	}
	fresh := make([]*promptPartRow, 0, len(parts))
	for _, hash := range row.Parts { // in an order of their own, not of the map
		if data, ok := parts[hash]; ok {
			fresh = append(fresh, &promptPartRow{t.userID, p.ConversationID, hash, data, t.Now()})
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

// LastPrompt returns the newest prompt of a conversation, nil without one.
func (t *tx) LastPrompt(conversationID string) (*nodest.StoredPrompt, error) {
	row, err := sqldb.One[promptRow](t.withConversation(conversationID), "SELECT * FROM prompts WHERE user_id = ? AND conversation_id = ?"+
		" ORDER BY created_at DESC, id DESC LIMIT 1", t.userID, conversationID)
	if err != nil || row == nil {
		return nil, err
	}
	return t.wholePrompt(row)
}

// wholePrompt reads the parts of a prompt.
func (t *tx) wholePrompt(row *promptRow) (*nodest.StoredPrompt, error) {
	p := &nodest.StoredPrompt{ID: row.ID, ConversationID: row.ConversationID, GenerationID: row.GenerationID,
		Stored: framework.Stored{Body: row.Body}, CreatedAt: row.CreatedAt}
	if len(row.Parts) == 0 {
		return p, nil
	}
	parts := make(map[string][]byte, len(row.Parts))
	err := sqldb.Each(t, func(part *promptPartRow) error {
		parts[part.Hash] = part.Data
		return nil
	}, "SELECT hash, data FROM prompt_parts WHERE user_id = ? AND conversation_id = ? AND hash IN (?)", t.userID, row.ConversationID, row.Parts)
	if err != nil {
		return nil, err
	}
	for _, hash := range row.Parts {
		data, ok := parts[hash]
		if !ok {
			return nil, fault.New(fault.NotFound, "no such prompt")
		}
		p.Parts = append(p.Parts, data)
	}
	return p, nil
}
