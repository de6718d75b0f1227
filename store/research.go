package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"nodest/internal/jobs"
	"nodest/store/sqldb"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// Research returns the store of research.Service.
func (db *DB) Research() research.Store { return part[research.Tx]{db, (*tx).forResearch} }

// forResearch returns t as package research has it.
func (t *tx) forResearch() research.Tx {
	return research.Tx{Tx: t, RunTx: t.research, Jobs: t.jobs, Chats: t.forChats(), Bases: t.knowledge, Log: t.forCognition()}
}

// researchTx stores runs of deep research.
type researchTx struct{ *tx }

type researchRow struct {
	research.Run `db:"-Steps"`
	UserID       string
	Result       sqldb.Zstd // agent.Result without its steps
}

func (r *researchRow) run() *research.Run {
	run := r.Run
	if r.Result != nil {
		run.Result = new(agent.Result)
		_ = json.Unmarshal(r.Result, run.Result) // written by researchRowOf
	}
	return &run
}

func (t researchTx) rowOf(r *research.Run) (row *researchRow, err error) {
	row = &researchRow{Run: *r, UserID: t.userID}
	if r.Result != nil {
		short := *r.Result
		short.Steps = nil
		if row.Result, err = json.Marshal(short); err != nil {
			err = fmt.Errorf("encode the result of a research: %w", err)
		}
	}
	return row, err
}

type researchStepRow struct {
	UserID, RunID string
	Member, N     int
	Step          sqldb.Zstd
}

func (r *researchStepRow) step() agent.Step {
	var step agent.Step
	_ = json.Unmarshal(r.Step, &step) // written by PutResearchSteps
	return step
}

type researchCallRow struct {
	UserID, RunID string
	CallKey       string
	Answer        sqldb.Zstd
	Reserved      agent.Cost
	Cost, Lost    *agent.Cost
	BegunAt       int64
	EndedAt       *int64
}

func (r *researchCallRow) call() *research.Call {
	c := &research.Call{Key: r.CallKey, Answer: json.RawMessage(r.Answer), Reserved: r.Reserved}
	if r.Cost != nil {
		c.Cost = *r.Cost
	}
	if r.Lost != nil {
		c.Lost = *r.Lost
	}
	return c
}

// liveChat is true of a run r but those of deleted conversations.
const liveChat = "(r.conversation_id IS NULL OR EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = r.user_id AND c.id = r.conversation_id AND c.deleted_at IS NULL))"

// liveRuns are the user's runs but those of deleted conversations.
const liveRuns = " FROM research_runs r WHERE r.user_id = ? AND " + liveChat

func (t researchTx) AddResearch(r *research.Run) error {
	if r.ConversationID != "" {
		if err := t.chats.owns(r.ConversationID); err != nil {
			return err
		}
	}
	row, err := t.rowOf(r)
	return t.Unless(err).Insert("research_runs", row)
}

func (t researchTx) Research(id string) (*research.Run, error) {
	lock := ""
	if t.Writable() == nil {
		lock = t.ForNoKeyUpdate()
	}
	return sqldb.Find(t, "research", (*researchRow).run, "SELECT r.*"+liveRuns+" AND r.id = ?"+lock, t.userID, id)
}

// with returns the session for statements about a run.
func (t researchTx) with(id string) *sqldb.Session {
	return t.Unless(t.Require("research", "SELECT 1"+liveRuns+" AND r.id = ?", t.userID, id))
}

func (t researchTx) ResearchSteps(runID string) ([]agent.Step, error) {
	return sqldb.Map(t.with(runID), (*researchStepRow).step, "SELECT step FROM research_steps WHERE user_id = ? AND run_id = ? ORDER BY n, member", t.userID, runID)
}

func (t researchTx) Researches(conversationID, cursor string, limit int) ([]*research.Run, string, error) {
	query, args := "SELECT r.id, r.conversation_id, r.message_id, r.state, r.plan, r.estimate, r.cost, r.failure, r.created_at, r.started_at, r.finished_at"+liveRuns, []any{t.userID}
	if conversationID != "" {
		query, args = query+" AND r.conversation_id = ?", append(args, conversationID)
	}
	return sqldb.Page(t, (*researchRow).run, "r.id", cursor, limit, query, args...)
}

func (t researchTx) ResearchOfMessage(messageID string) (*research.Run, error) {
	return sqldb.Find(t, "research", (*researchRow).run, "SELECT r.*"+liveRuns+" AND r.message_id = ?", t.userID, messageID)
}

func (t researchTx) OpenResearches(conversationID string) (int, error) {
	if t.Writable() == nil {
		if _, err := t.Has("SELECT 1 FROM users WHERE id = ?"+t.ForNoKeyUpdate(), t.userID); err != nil {
			return 0, err
		}
	}
	query, args := "SELECT COUNT(*)"+liveRuns+" AND r.state IN (?, ?)", []any{t.userID, research.Queued, research.Running}
	if conversationID != "" {
		query, args = query+" AND r.conversation_id = ?", append(args, conversationID)
	}
	return sqldb.Value[int](t, query, args...)
}

// continueResearches gives the open runs of all users a job that have none: theirs has failed or was removed.
func (db *DB) continueResearches(ctx context.Context) error {
	type open struct{ UserID, ID string }
	runs, err := reading(ctx, db, func(s *session) ([]open, error) {
		return sqldb.All[open](s, "SELECT r.user_id, r.id FROM research_runs r WHERE r.state IN ('queued', 'running') AND "+liveChat)
	})
	if err != nil {
		return err
	}
	var specs []jobs.Spec
	for _, r := range runs {
		specs = append(specs, jobs.Spec{Kind: research.JobRun, UserID: r.UserID, Subject: r.ID, Once: true})
	}
	for few := range slices.Chunk(specs, maintainBatch) {
		if err := db.Enqueue(ctx, few...); err != nil {
			return err
		}
	}
	return nil
}

func (t researchTx) PutResearch(r *research.Run) error {
	row, err := t.rowOf(r)
	return t.with(r.ID).Unless(err).UpdateOne("research", "research_runs", row, []string{"user_id", "id", "conversation_id", "head_id", "created_at"},
		"WHERE user_id = ? AND id = ?", t.userID, r.ID)
}

func (t researchTx) PurgeResearch(id string) error {
	if err := t.with(id).Ready(); err != nil {
		return err
	}
	return t.dropResearches(t.userID, id)
}

// dropResearches removes runs of a user, with what stored answers, the log of events and those of conversations say of
// them.
func (s *session) dropResearches(userID string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := s.dropFromLogs("user_id = ? AND object_id IN (?)", userID, ids); err != nil { // parts of its answer are sources RUN.n
		return err
	}
	for _, id := range ids {
		const of = "user_id = ? AND conversation_id = (SELECT conversation_id FROM research_runs WHERE user_id = ? AND id = ?)"
		err := cmp.Or(
			s.Run("DELETE FROM cognition_sources WHERE "+of+" AND (object_id = ? OR ordinal IN (SELECT ordinal FROM cognition_events WHERE "+of+" AND query_key = ?))",
				userID, userID, id, id, userID, userID, id, id),
			s.Run("DELETE FROM cognition_events WHERE "+of+" AND query_key = ?", userID, userID, id, id))
		if err != nil {
			return err
		}
	}
	return cmp.Or(s.Run("DELETE FROM research_runs WHERE user_id = ? AND id IN (?)", userID, ids), s.dropSaid(userID, "research", ids...))
}

// dropResearchesOn removes the runs of a user that may have words of a file.
func (s *session) dropResearchesOn(userID, fileID string) error {
	ids, err := sqldb.All[string](s, "SELECT run_id FROM research_files WHERE user_id = ? AND file_id = ?", userID, fileID)
	if err != nil {
		return err
	}
	return s.dropResearches(userID, ids...)
}

// researchesAtOnce is how many runs a transaction removes that removes messages.
const researchesAtOnce = 20

// dropResearchesOfMessages removes runs of a user that may have words of messages, researchesAtOnce at most, and
// returns how many.
func (s *session) dropResearchesOfMessages(userID string, messageIDs []string) (int64, error) {
	ids, err := sqldb.All[string](s, "SELECT DISTINCT run_id FROM research_messages WHERE user_id = ? AND message_id IN (?) LIMIT ?", userID, messageIDs, researchesAtOnce)
	if err != nil {
		return 0, err
	}
	return int64(len(ids)), s.dropResearches(userID, ids...)
}

func (t researchTx) PutResearchSteps(runID string, steps ...agent.Step) error {
	rows := make([]*researchStepRow, len(steps))
	for i, step := range steps {
		doc, err := json.Marshal(step)
		if err != nil {
			return fmt.Errorf("encode a step of a research: %w", err)
		}
		rows[i] = &researchStepRow{t.userID, runID, step.Member, step.N, doc}
	}
	s := t.with(runID)
	for _, row := range rows { // one step may be there twice
		if err := s.Insert("research_steps", row, "ON CONFLICT (user_id, run_id, member, n) DO UPDATE SET step = EXCLUDED.step"); err != nil {
			return err
		}
	}
	return s.Ready()
}

func (t researchTx) PutResearchFiles(runID string, fileIDs ...string) error {
	s := t.with(runID)
	for _, id := range fileIDs {
		if err := s.Require("file", "SELECT 1 FROM files WHERE id = ? AND deleted_at IS NULL"+t.ForShare(), id); err != nil {
			return err
		}
		if err := s.Run("INSERT INTO research_files (user_id, run_id, file_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", sqldb.ID(t.userID), sqldb.ID(runID), sqldb.ID(id)); err != nil {
			return err
		}
	}
	return s.Ready()
}

type researchMessageRow struct{ UserID, MessageID, RunID string }

func (t researchTx) PutResearchMessages(runID string, messageIDs ...string) error {
	s := t.with(runID)
	for _, id := range messageIDs {
		if err := s.Insert("research_messages", &researchMessageRow{t.userID, id, runID}, "ON CONFLICT DO NOTHING"); err != nil {
			return err
		}
	}
	return s.Ready()
}

func (t researchTx) ResearchCalls(runID string) ([]*research.Call, error) {
	return sqldb.Map(t.with(runID), (*researchCallRow).call, "SELECT * FROM research_calls WHERE user_id = ? AND run_id = ?", t.userID, runID)
}

func (t researchTx) PutResearchCall(runID string, c *research.Call) error {
	now := sqldb.Millis(t.Now())
	row := &researchCallRow{UserID: t.userID, RunID: runID, CallKey: c.Key, Answer: sqldb.Zstd(c.Answer), Reserved: c.Reserved, BegunAt: now}
	if c.Answer != nil {
		row.Cost, row.EndedAt = &c.Cost, &now
	}
	if c.Lost != (agent.Cost{}) {
		row.Lost = &c.Lost
	}
	return t.with(runID).Insert("research_calls", row, "ON CONFLICT (user_id, run_id, call_key) DO UPDATE SET answer = EXCLUDED.answer, reserved = EXCLUDED.reserved,"+
		" cost = EXCLUDED.cost, lost = EXCLUDED.lost, ended_at = EXCLUDED.ended_at, begun_at = CASE WHEN EXCLUDED.answer IS NULL THEN EXCLUDED.begun_at ELSE research_calls.begun_at END")
}

func (t researchTx) DropResearchCalls(runID string) error {
	return t.with(runID).Run("DELETE FROM research_calls WHERE user_id = ? AND run_id = ?", t.userID, runID)
}
