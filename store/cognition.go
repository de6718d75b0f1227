package store

import (
	"cmp"
	"slices"
	"time"

	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// Cognition returns the store of cognition.Service.
func (db *DB) Cognition() cognition.Store { return part[cognition.Tx]{db, (*tx).forCognition} }

// forCognition returns t as package cognition has it.
func (t *tx) forCognition() cognition.Tx {
	return cognition.Tx{Tx: t, LogTx: t.cognition, GoalTx: t.cognition, StateTx: t.cognition}
}

// Side returns the store of side.Service.
func (db *DB) Side() side.Store { return part[side.Tx]{db, (*tx).forSide} }

// forSide returns t as package side has it.
func (t *tx) forSide() side.Tx {
	return side.Tx{Tx: t, Jobs: t.jobs, Log: t.forCognition(), Chats: t.forChats(), Memory: t.forMemory()}
}

// cognitionTx stores the logs of conversations.
type cognitionTx struct{ *tx }

type cognitionRow struct {
	UserID, ConversationID  string
	Ordinal                 int64
	Type                    string
	Sequence                int64
	QueryKey, ExtractionKey string
	RangeStart, RangeEnd    int64
	IsOpen                  bool
	MessageID, GenerationID string
	Hash                    []byte
	HappenedAt              *time.Time
	CreatedAt               time.Time
	Body                    sqldb.Zstd
}

type cognitionSourceRow struct {
	UserID, ConversationID string
	Ordinal                int64
	ObjectID, Source       string
}

func (r *cognitionRow) event() *cognition.Event {
	e := &cognition.Event{
		ConversationID: r.ConversationID, Ordinal: r.Ordinal, Type: r.Type, Body: []byte(r.Body), MessageID: r.MessageID, GenerationID: r.GenerationID,
	}
	if r.HappenedAt != nil {
		e.Timestamp = *r.HappenedAt
	}
	return e
}

func (t cognitionTx) AppendEvents(conversationID string, events ...*cognition.Event) error {
	log, err := t.lockLog(conversationID)
	if err != nil {
		return err
	}
	last := log.Ordinal
	for _, e := range events {
		e.ConversationID, e.Ordinal = conversationID, 0
		e.Stamp(t.Now())
		row := t.rowOf(e, last+1)
		n, err := t.InsertNew("cognition_events", row, "ON CONFLICT (user_id, conversation_id, hash) DO NOTHING")
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		last++
		e.Ordinal = last
		if err := cmp.Or(t.noteSources(e), t.close(e, row), t.vote(e, log.CharacterID)); err != nil {
			return err
		}
	}
	if last == log.Ordinal {
		return nil
	}
	return t.Run("UPDATE cognition_states SET ordinal = ? WHERE user_id = ? AND conversation_id = ?", last, t.userID, conversationID)
}

// logEnd is the end of a log, the ordinal of its newest event.
type logEnd struct {
	Ordinal     int64
	CharacterID string
}

// lockLog locks a conversation with its log.
func (t cognitionTx) lockLog(conversationID string) (end logEnd, err error) {
	if t.chats.locked[conversationID] == nil {
		if _, err := t.chats.LockConversation(conversationID); err != nil {
			return end, err
		}
	}
	none := &cognitionStateRow{UserID: t.userID, ConversationID: conversationID}
	if _, err := t.InsertNew("cognition_states", none, "ON CONFLICT (user_id, conversation_id) DO NOTHING"); err != nil {
		return end, err
	}
	return sqldb.Value[logEnd](t, "SELECT s.ordinal, c.character_id FROM cognition_states s JOIN conversations c ON c.user_id = s.user_id AND c.id = s.conversation_id"+
		" WHERE s.user_id = ? AND s.conversation_id = ?", t.userID, conversationID)
}

type cognitionStateRow struct {
	UserID, ConversationID string
	Ordinal                int64
	PendingEval            bool
	EvalTrigger            string
	Queue                  []string
	Reflected              int64
}

func (t cognitionTx) rowOf(e *cognition.Event, ordinal int64) *cognitionRow {
	p := cognition.PlaceOf(e)
	row := &cognitionRow{
		UserID: t.userID, ConversationID: e.ConversationID, Ordinal: ordinal, Type: e.Type, Sequence: p.Sequence, QueryKey: p.QueryID,
		ExtractionKey: p.ExtractionID, RangeStart: p.From, RangeEnd: p.To, MessageID: e.MessageID, GenerationID: e.GenerationID,
		Hash: e.Identity(), CreatedAt: t.Now(), Body: sqldb.Zstd(e.Body),
	}
	switch e.Type {
	case cognition.TypeQuery:
		row.IsOpen = p.Sequence > 0 || p.QueryID != ""
	case cognition.TypePending:
		row.IsOpen = p.ExtractionID != ""
	case cognition.TypeReflection:
		var r cognition.Reflection
		row.IsOpen = p.To > 0 && cognition.Read(e, &r) == nil && r.ConsumedAt == ""
	}
	if !e.Timestamp.IsZero() {
		at := sqldb.Moment(sqldb.Millis(e.Timestamp))
		row.HappenedAt = &at
	}
	return row
}

func (t cognitionTx) noteSources(e *cognition.Event) error {
	var rows []cognitionSourceRow
	for _, s := range e.Origins() {
		rows = append(rows, cognitionSourceRow{t.userID, e.ConversationID, e.Ordinal, s.ObjectID, s.Source})
	}
	return t.Insert("cognition_sources", rows, "ON CONFLICT DO NOTHING")
}

// noteMemory notes that an extraction has the words of the memory that it became.
func (t cognitionTx) noteMemory(r *cognitionRow, knowledgeID string) error {
	if !op.HasIDForm(knowledgeID) {
		return nil
	}
	rows, err := sqldb.Map(t, func(e *cognitionRow) cognitionSourceRow {
		return cognitionSourceRow{t.userID, r.ConversationID, e.Ordinal, knowledgeID, ""}
	}, "SELECT ordinal FROM cognition_events WHERE user_id = ? AND conversation_id = ? AND extraction_key = ? AND extraction_key <> ''",
		t.userID, r.ConversationID, r.ExtractionKey)
	if err != nil {
		return err
	}
	return t.Insert("cognition_sources", rows, "ON CONFLICT DO NOTHING")
}

// noteReview notes that an edit may have words of the texts that its extraction was made of.
func (t cognitionTx) noteReview(r *cognitionRow) error {
	return t.Run("INSERT INTO cognition_sources (user_id, conversation_id, ordinal, object_id, source)"+
		" SELECT DISTINCT s.user_id, s.conversation_id, CAST(? AS BIGINT), s.object_id, s.source FROM cognition_events e"+
		" JOIN cognition_sources s ON s.user_id = e.user_id AND s.conversation_id = e.conversation_id AND s.ordinal = e.ordinal"+
		" WHERE e.user_id = ? AND e.conversation_id = ? AND e.extraction_key = ? AND e.extraction_key <> '' ON CONFLICT DO NOTHING",
		r.Ordinal, t.userID, r.ConversationID, r.ExtractionKey)
}

// close ends the wait of what an event answers. Two that have both an id of the query are matched by it, others by the sequence.
func (t cognitionTx) close(e *cognition.Event, r *cognitionRow) error {
	const waits = "UPDATE cognition_events SET is_open = FALSE WHERE user_id = ? AND conversation_id = ? AND is_open AND type = ?"
	switch r.Type {
	case cognition.TypeEvaluation:
		return t.Run(waits+" AND (query_key = ? AND query_key <> '' OR (query_key = '' OR ? = '') AND sequence = ?)",
			t.userID, r.ConversationID, cognition.TypeQuery, r.QueryKey, r.QueryKey, r.Sequence)
	case cognition.TypeReviewed:
		return t.noteReview(r)
	case cognition.TypeCommitted:
		return cmp.Or(t.noteMemory(r, cognition.PlaceOf(e).KnowledgeID),
			t.Run(waits+" AND extraction_key = ?", t.userID, r.ConversationID, cognition.TypePending, r.ExtractionKey))
	}
	return nil
}

// vote has an evaluation count where its source is ranked.
func (t cognitionTx) vote(e *cognition.Event, characterID string) error {
	var v cognition.Evaluation
	status := feedback.Status("")
	if e.Type == cognition.TypeEvaluation && cognition.Read(e, &v) == nil {
		status = feedback.Status(v.Result.Status)
	}
	if !status.Known() {
		return nil
	}
	at := e.Timestamp
	if at.After(t.Now()) {
		at = t.Now()
	}
	return t.votes.PutVotes(feedback.Evaluation{
		Source: v.KnowledgeID, CharacterID: characterID, ConversationID: e.ConversationID, Vote: feedback.Vote{Status: status, At: at},
	})
}

func (t cognitionTx) NewestSequence(conversationID string) (int64, error) {
	return sqldb.Value[int64](t.chats.with(conversationID), "SELECT message_seq FROM conversations WHERE user_id = ? AND id = ?", t.userID, conversationID)
}

func (t cognitionTx) Events(conversationID string, after int64, limit int, types ...string) ([]*cognition.Event, error) {
	where, args := "", []any{t.userID, conversationID, after}
	if len(types) > 0 {
		where, args = " AND type IN (?)", append(args, types)
	}
	return t.readEvents(conversationID, "ordinal > ?"+where+" ORDER BY ordinal LIMIT ?", append(args, limit)...)
}

func (t cognitionTx) OpenEvents(conversationID, kind string, after int64, limit int) ([]*cognition.Event, error) {
	return t.readEvents(conversationID, "is_open AND type = ? AND ordinal > ? ORDER BY ordinal LIMIT ?", t.userID, conversationID, kind, after, limit)
}

func (t cognitionTx) OpenQueries(conversationID string, since time.Time, limit int) ([]*cognition.Event, error) {
	return t.readEvents(conversationID, "is_open AND type = ? AND happened_at >= ? ORDER BY happened_at, ordinal LIMIT ?",
		t.userID, conversationID, cognition.TypeQuery, since, limit)
}

func (t cognitionTx) ExtractionEvents(conversationID string, extractionIDs ...string) ([]*cognition.Event, error) {
	return t.readEvents(conversationID, "extraction_key IN (?) AND extraction_key <> '' ORDER BY ordinal", t.userID, conversationID, extractionIDs)
}

func (t cognitionTx) ExtractionSources(conversationID, extractionID string) ([]cognition.Message, error) {
	return sqldb.All[cognition.Message](t.chats.with(conversationID), "SELECT DISTINCT m.seq AS sequence, m.id AS message_id, r.id AS revision_id FROM cognition_events e"+
		" JOIN cognition_sources s ON s.user_id = e.user_id AND s.conversation_id = e.conversation_id AND s.ordinal = e.ordinal"+
		" JOIN revisions r ON r.user_id = s.user_id AND r.id = s.object_id"+
		" JOIN messages m ON m.user_id = r.user_id AND m.id = r.message_id AND m.conversation_id = s.conversation_id"+
		" WHERE e.user_id = ? AND e.conversation_id = ? AND e.extraction_key = ? AND e.type = ? ORDER BY 1, 2, 3",
		t.userID, conversationID, extractionID, cognition.TypePending)
}

func (t cognitionTx) SideState(conversationID string) (cognition.State, error) {
	row, err := sqldb.One[cognitionStateRow](t.chats.with(conversationID), "SELECT * FROM cognition_states WHERE user_id = ? AND conversation_id = ?", t.userID, conversationID)
	if row == nil {
		return cognition.State{}, err
	}
	return cognition.State{PendingEval: row.PendingEval, EvalTrigger: row.EvalTrigger, Queue: row.Queue, Reflected: row.Reflected}, err
}

func (t cognitionTx) LockSideState(conversationID string) (cognition.State, error) {
	if _, err := t.lockLog(conversationID); err != nil {
		return cognition.State{}, err
	}
	return t.SideState(conversationID)
}

func (t cognitionTx) PutSideState(conversationID string, s cognition.State) error {
	row := &cognitionStateRow{UserID: t.userID, ConversationID: conversationID, PendingEval: s.PendingEval, EvalTrigger: s.EvalTrigger, Queue: s.Queue, Reflected: s.Reflected}
	return t.chats.with(conversationID).Insert("cognition_states", row, "ON CONFLICT (user_id, conversation_id) DO UPDATE SET"+
		" pending_eval = EXCLUDED.pending_eval, eval_trigger = EXCLUDED.eval_trigger, queue = EXCLUDED.queue, reflected = EXCLUDED.reflected")
}

// readEvents returns events of a conversation, queries with their responses.
func (t cognitionTx) readEvents(conversationID, where string, args ...any) ([]*cognition.Event, error) {
	events, err := sqldb.Map(t.chats.with(conversationID), (*cognitionRow).event,
		"SELECT * FROM cognition_events WHERE user_id = ? AND conversation_id = ? AND "+where, args...)
	if err != nil {
		return nil, err
	}
	return events, t.respond(events)
}

// respond puts the texts of generations into the queries that they answer: a text is stored once.
func (t cognitionTx) respond(events []*cognition.Event) error {
	byGeneration := map[string][]*cognition.Event{}
	var messages []string
	for _, e := range events {
		if e.GenerationID != "" && e.MessageID != "" {
			byGeneration[e.GenerationID] = append(byGeneration[e.GenerationID], e)
			messages = append(messages, e.MessageID)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	slices.Sort(messages)
	return sqldb.Each(t, func(r *struct{ GenerationID, Text string }) error {
		for _, e := range byGeneration[r.GenerationID] {
			e.Respond(r.Text)
		}
		return nil
	}, "SELECT generation_id, text FROM revisions WHERE user_id = ? AND message_id IN (?) AND generation_id IS NOT NULL ORDER BY created_at, rev",
		t.userID, slices.Compact(messages))
}

// dropFromLogs takes the words of facts, revisions or files that a condition selects out of the logs.
func (s *session) dropFromLogs(where string, args ...any) error {
	type place struct {
		UserID, ConversationID string
		Ordinal                int64
	}
	words := map[place][]string{}
	var order []place
	err := sqldb.Each(s, func(r *cognitionSourceRow) error {
		at := place{r.UserID, r.ConversationID, r.Ordinal}
		if words[at] == nil {
			order = append(order, at)
		}
		words[at] = append(words[at], r.Source)
		return nil
	}, "SELECT user_id, conversation_id, ordinal, source FROM cognition_sources WHERE "+where+" ORDER BY user_id, conversation_id, ordinal", args...)
	if err != nil {
		return err
	}
	for _, at := range order {
		row, err := sqldb.One[cognitionRow](s, "SELECT * FROM cognition_events WHERE user_id = ? AND conversation_id = ? AND ordinal = ?",
			at.UserID, at.ConversationID, at.Ordinal)
		if err != nil {
			return err
		}
		if row == nil { // it went with its message
			continue
		}
		e := row.event()
		e.Forget(words[at]...)
		err = s.Run("UPDATE cognition_events SET body = ? WHERE user_id = ? AND conversation_id = ? AND ordinal = ?",
			sqldb.Zstd(e.Body), at.UserID, at.ConversationID, at.Ordinal)
		if err != nil {
			return err
		}
	}
	return nil
}

type goalRow struct {
	cognition.Goal
	UserID string
}

func (r *goalRow) goal() *cognition.Goal { return &r.Goal }

func (t cognitionTx) InsertGoal(g *cognition.Goal) error {
	t.fillTimes(&g.CreatedAt, &g.UpdatedAt)
	g.Version = max(g.Version, 1)
	return t.chats.with(g.ConversationID).Insert("cognition_goals", &goalRow{*g, t.userID})
}

func (t cognitionTx) Goal(id string) (*cognition.Goal, error) {
	return sqldb.Find(t, "goal", (*goalRow).goal, "SELECT g.* FROM cognition_goals g JOIN conversations c ON c.user_id = g.user_id AND c.id = g.conversation_id"+
		" WHERE g.user_id = ? AND g.id = ? AND c.deleted_at IS NULL", t.userID, id)
}

func (t cognitionTx) UpdateGoal(g *cognition.Goal) error {
	g.UpdatedAt = t.Now()
	n, err := t.Exec("UPDATE cognition_goals SET description = ?, status = ?, version = ?, updated_at = ? WHERE user_id = ? AND id = ? AND version = ?",
		g.Description, g.Status, g.Version, g.UpdatedAt, t.userID, g.ID, g.Version-1)
	if err == nil && n == 0 {
		if _, err = t.Goal(g.ID); err == nil {
			err = fault.New(fault.PreconditionFailed, "the goal was changed by another request")
		}
	}
	return err
}

func (t cognitionTx) Goals(conversationID, status, cursor string, limit int) ([]*cognition.Goal, string, error) {
	query, args := "SELECT * FROM cognition_goals WHERE user_id = ? AND conversation_id = ?", []any{t.userID, conversationID}
	if status != "" {
		query, args = query+" AND status = ?", append(args, status)
	}
	return sqldb.Page(t.chats.with(conversationID), (*goalRow).goal, "created_at", cursor, limit, query, args...)
}
