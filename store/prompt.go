package store

import (
	"cmp"
	"strings"
	"time"

	"nodest/nodest"
	"nodest/store/sqldb"
)

// promptRow is a prompt that was sent.
type promptRow struct {
	ID, UserID, ConversationID string
	GenerationID               string // "" = its own id
	Body                       sqldb.Zstd
	CreatedAt                  time.Time
}

// promptFileRow says that a prompt may have texts of a document, whoever owns it, or of the documents of a
// memory: then the id is that of the character.
type promptFileRow struct{ UserID, PromptID, FileID string }

func (t generationTx) PutPrompt(p *nodest.StoredPrompt) error {
	t.fillTimes(&p.CreatedAt)
	row := &promptRow{p.ID, t.userID, p.ConversationID, strings.TrimPrefix(p.GenerationID, p.ID), p.Body, p.CreatedAt}
	if err := t.chats.with(p.ConversationID).Insert("prompts", row); err != nil {
		return err
	}
	files := make([]*promptFileRow, len(p.FileIDs))
	for i, id := range p.FileIDs {
		files[i] = &promptFileRow{t.userID, p.ID, id}
	}
	return t.Insert("prompt_files", files)
}

func (t generationTx) Prompt(id string) (*nodest.StoredPrompt, error) {
	row, err := sqldb.Get[promptRow](t, "prompt", "SELECT * FROM prompts WHERE user_id = ? AND id = ?", t.userID, id)
	if err != nil {
		return nil, err
	}
	files, err := sqldb.All[string](t, "SELECT file_id FROM prompt_files WHERE user_id = ? AND prompt_id = ? ORDER BY file_id", t.userID, id)
	return &nodest.StoredPrompt{
		ID: row.ID, ConversationID: row.ConversationID, GenerationID: cmp.Or(row.GenerationID, row.ID),
		Body: row.Body, FileIDs: files, CreatedAt: row.CreatedAt,
	}, err
}

func (t generationTx) LastPrompt(conversationID string) (id string, err error) {
	return sqldb.Value[string](t, "SELECT id FROM prompts WHERE user_id = ? AND conversation_id = ? ORDER BY id DESC LIMIT 1",
		t.userID, conversationID)
}

// Prompts go with the messages, memories and documents that they have words of.

// dropPromptsOfMessages removes the prompts that may have texts of messages: those that were sent before
// the message was deleted.
func (s *session) dropPromptsOfMessages(userID string, messageIDs []string) error {
	return s.Run(`DELETE FROM prompts WHERE user_id = ? AND id IN (SELECT p.id FROM messages m JOIN prompts p
			ON p.user_id = m.user_id AND p.conversation_id = m.conversation_id AND p.created_at <= COALESCE(m.deleted_at, p.created_at)
		WHERE m.user_id = ? AND m.id IN (?))`, userID, userID, messageIDs)
}

// dropRecordsOfUnits removes the prompts that contain memories which a condition selects, and the votes on
// these, and their words from the logs. It looks at what was recalled for each prompt of the user, which are
// those of a week: an index of the units would cost every turn more.
func (s *session) dropRecordsOfUnits(userID, units string, args ...any) error {
	if err := s.dropFromLogs("user_id = ? AND object_id IN ("+units+")", append([]any{userID}, args...)...); err != nil {
		return err
	}
	return s.each([]string{
		"DELETE FROM prompts WHERE user_id = ? AND EXISTS (SELECT 1 FROM memory_uses u WHERE u.user_id = prompts.user_id" +
			" AND u.conversation_id = prompts.conversation_id AND u.generation_id = COALESCE(prompts.generation_id, prompts.id)" +
			" AND COALESCE(u.unit_id, u.unit_id) IN (" + units + "))",
		"DELETE FROM source_votes WHERE user_id = ? AND source_id IN (" + units + ")",
	}, append([]any{userID}, args...)...)
}

// dropRecordsOfFile removes the prompts that may have texts of a document, its words from the logs, and the votes on it, of whichever users.
func (s *session) dropRecordsOfFile(fileID string) error {
	if err := s.dropFromLogs("object_id = ?", fileID); err != nil {
		return err
	}
	return s.each([]string{
		"DELETE FROM prompts WHERE (user_id, id) IN (SELECT f.user_id, f.prompt_id FROM prompt_files f WHERE f.file_id = ?)",
		"DELETE FROM source_votes WHERE source_id = ?",
	}, fileID)
}
