package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/store/sqldb"
)

// DueForDreams returns scopes with at least so many new messages: dream.Store.
func (d dreamStore) DueForDreams(ctx context.Context, least int, after memory.Scope, limit int) ([]memory.Scope, error) {
	return reading(ctx, d.db, func(s *session) ([]memory.Scope, error) {
		return sqldb.All[memory.Scope](s, `SELECT c.user_id, c.character_id FROM conversations c
			JOIN characters h ON h.user_id = c.user_id AND h.id = c.character_id AND h.deleted_at IS NULL
			LEFT JOIN dream_readings r ON r.user_id = c.user_id AND r.conversation_id = c.id
			WHERE c.deleted_at IS NULL AND (c.user_id, c.character_id) > (?, ?) AND c.message_seq > COALESCE(r.reflected, 0)
			GROUP BY c.user_id, c.character_id HAVING SUM(c.message_seq - COALESCE(r.reflected, 0)) >= ?
			ORDER BY c.user_id, c.character_id LIMIT ?`, sqldb.After(after.UserID), sqldb.After(after.CharacterID), least, sqldb.Length(limit))
	})
}

const tracesOf = ` FROM conversations c LEFT JOIN dream_readings r ON r.user_id = c.user_id AND r.conversation_id = c.id
	WHERE c.user_id = ? AND c.character_id = ? AND c.deleted_at IS NULL`

func (t dreamTx) TracesBehind(characterID string, limit int) ([]dream.Trace, error) {
	return sqldb.All[dream.Trace](t.characters.with(characterID), "SELECT c.id AS conversation_id, COALESCE(r.reflected, 0) AS reflected, c.message_seq AS newest"+tracesOf+
		" AND c.message_seq > COALESCE(r.reflected, 0) ORDER BY c.id LIMIT ?", t.userID, characterID, limit)
}

func (t dreamTx) UnreadBefore(characterID string, at time.Time) (int64, error) {
	return sqldb.Value[int64](t.characters.with(characterID), `SELECT COUNT(*) FROM conversations c
		LEFT JOIN dream_readings r ON r.user_id = c.user_id AND r.conversation_id = c.id
		JOIN messages m ON m.user_id = c.user_id AND m.conversation_id = c.id AND m.seq > COALESCE(r.reflected, 0) AND m.deleted_at IS NULL AND NOT m.is_greeting
		WHERE c.user_id = ? AND c.character_id = ? AND c.deleted_at IS NULL AND c.message_seq > COALESCE(r.reflected, 0) AND m.created_at < ?`,
		t.userID, characterID, at)
}

func (t dreamTx) EventsToReflect(conversationID string, limit int, types ...string) ([]*cognition.Event, error) {
	events, err := t.cognition.readEvents(conversationID, `type IN (?) AND ordinal > (SELECT COALESCE(MAX(ordinal), 0) FROM cognition_events
		WHERE user_id = ? AND conversation_id = ? AND type = ?) ORDER BY ordinal DESC LIMIT ?`,
		t.userID, conversationID, types, t.userID, conversationID, cognition.TypeReflection, limit)
	slices.Reverse(events)
	return events, err
}

func (t dreamTx) LastSaidTo(characterID string) (time.Time, error) {
	at, err := sqldb.Value[int64](t.characters.with(characterID), "SELECT COALESCE(MAX(t.said_at), 0) FROM memory_texts t WHERE t.user_id = ? AND t.character_id = ?", t.userID, characterID)
	return sqldb.Moment(at), err
}

func (t dreamTx) SetReflected(conversationID string, from, to int64) error {
	s := t.chats.with(conversationID)
	if err := s.Run("INSERT INTO dream_readings (user_id, conversation_id, reflected) VALUES (?, ?, 0) ON CONFLICT DO NOTHING", sqldb.ID(t.userID), sqldb.ID(conversationID)); err != nil {
		return err
	}
	n, err := s.Exec("UPDATE dream_readings SET reflected = ? WHERE user_id = ? AND conversation_id = ? AND reflected = ?", to, t.userID, conversationID, from)
	if err == nil && n == 0 {
		err = fault.New(fault.PreconditionFailed, "another run has read these messages")
	}
	return err
}

func (t dreamTx) OpenReflections(characterID string, limit int) ([]*cognition.Event, error) {
	return sqldb.Map(t.characters.with(characterID), (*cognitionRow).event, `SELECT e.* FROM cognition_events e
		JOIN conversations c ON c.user_id = e.user_id AND c.id = e.conversation_id AND c.deleted_at IS NULL
		WHERE e.user_id = ? AND c.character_id = ? AND e.is_open AND e.type = ? ORDER BY e.created_at, e.conversation_id, e.ordinal LIMIT ?`,
		t.userID, characterID, cognition.TypeReflection, limit)
}

func (t dreamTx) ConsumeReflections(events ...*cognition.Event) error {
	for _, e := range events {
		if err := t.chats.owns(e.ConversationID); err != nil {
			return err
		}
		row, err := sqldb.One[cognitionRow](t, "SELECT * FROM cognition_events WHERE user_id = ? AND conversation_id = ? AND ordinal = ? AND is_open AND type = ?"+t.ForUpdate(),
			t.userID, e.ConversationID, e.Ordinal, cognition.TypeReflection)
		if err != nil {
			return err
		}
		if row == nil {
			return fault.New(fault.PreconditionFailed, "another run has used a reflection")
		}
		stored := row.event() // a purge may have changed it
		stored.Consume(t.Now())
		err = t.Run("UPDATE cognition_events SET is_open = FALSE, body = ? WHERE user_id = ? AND conversation_id = ? AND ordinal = ?",
			sqldb.Zstd(stored.Body), t.userID, e.ConversationID, e.Ordinal)
		if err != nil {
			return err
		}
	}
	return nil
}

type dreamRunRow struct {
	dream.Run `db:"Forced=is_forced DryRun=is_dry -Changes"`
	UserID    string
	Changes   sqldb.Zstd
}

func (r *dreamRunRow) run() *dream.Run {
	run := r.Run
	_ = json.Unmarshal(r.Changes, &run.Changes) // written by PutDreamRun
	return &run
}

func (t dreamTx) AddDreamRun(run *dream.Run) error {
	t.fillTimes(&run.CreatedAt)
	row, err := t.runRow(run)
	return cmp.Or(err, t.characters.with(run.CharacterID).Unless(err).Insert("dream_runs", row))
}

func (t dreamTx) PutDreamRun(run *dream.Run) error {
	row, err := t.runRow(run)
	return cmp.Or(err, t.characters.with(run.CharacterID).Unless(err).UpdateOne("run", "dream_runs", row, []string{"user_id", "id", "character_id", "created_at"},
		"WHERE "+ofScope+" AND id = ?", t.userID, run.CharacterID, run.ID))
}

// endDreams ends the open runs of a character that is deleted: their jobs are cancelled.
func (t dreamTx) endDreams(characterID string) error {
	return t.Run("UPDATE dream_runs SET state = ?, failure = ?, finished_at = ? WHERE "+ofScope+" AND finished_at IS NULL",
		dream.Failed, "the character was deleted", t.Now(), t.userID, characterID)
}

func (t dreamTx) runRow(run *dream.Run) (row *dreamRunRow, err error) {
	row = &dreamRunRow{Run: *run, UserID: t.userID}
	if len(run.Changes) > 0 {
		row.Changes, err = json.Marshal(run.Changes)
	}
	return row, err
}

const selectDreamRuns = "SELECT * FROM dream_runs WHERE " + ofScope

func (t dreamTx) DreamRun(characterID, id string) (*dream.Run, error) {
	return sqldb.Find(t.characters.with(characterID), "run", (*dreamRunRow).run, selectDreamRuns+" AND id = ?", t.userID, characterID, id)
}

func (t dreamTx) DreamRuns(characterID, cursor string, limit int) ([]*dream.Run, string, error) {
	return sqldb.Page(t.characters.with(characterID), (*dreamRunRow).run, "id", cursor, limit, selectDreamRuns, t.userID, characterID)
}

func (t dreamTx) DreamsSince(characterID string, since time.Time) (calls, tokens int, err error) {
	type spent struct{ Calls, Tokens int }
	s, err := sqldb.Value[spent](t.characters.with(characterID), "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) AS calls, CAST(COALESCE(SUM(tokens), 0) AS BIGINT) AS tokens FROM dream_runs WHERE "+ofScope+" AND created_at >= ?",
		t.userID, characterID, since)
	return s.Calls, s.Tokens, err
}

// dropChanges takes the lines that go out of the reports of runs.
func (s *session) dropChanges(scope memory.Scope, goes func(dream.Line) bool) error {
	var changed []*dream.Run
	err := sqldb.Each(s, func(r *dreamRunRow) error {
		run := r.run()
		n := len(run.Changes)
		run.Changes = slices.DeleteFunc(run.Changes, func(c dream.Change) bool {
			return goes(dream.Line{Text: c.After, Evidence: c.Evidence}) || goes(dream.Line{Text: c.Before})
		})
		if len(run.Changes) < n {
			changed = append(changed, run)
		}
		return nil
	}, selectDreamRuns+" AND changes IS NOT NULL", scope.UserID, scope.CharacterID)
	for _, run := range changed {
		doc, failed := json.Marshal(run.Changes)
		err = cmp.Or(err, failed, s.Run("UPDATE dream_runs SET changes = ? WHERE user_id = ? AND id = ?", sqldb.Zstd(doc), scope.UserID, run.ID))
	}
	return err
}
