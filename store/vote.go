package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/internal/op"
	"nodest/internal/op/id"
	"nodest/store/sqldb"
	"nodest/websearch/weburl"
)

// voteTx stores evaluations of sources.
type voteTx struct{ *tx }

// voteSource names a source in columns.
type voteSource struct {
	Kind     feedback.Kind
	SourceID string // "" = a host
	Part     string
}

type voteRow struct {
	UserID, ID string
	voteSource
	CharacterID, ConversationID string // "" = none
	Status                      feedback.Status
	EvaluatedAt                 time.Time
}

func (t voteTx) PutVotes(all ...feedback.Evaluation) error {
	for i := range all {
		if err := t.put(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t voteTx) put(e *feedback.Evaluation) error {
	if !e.Status.Known() {
		return fault.New(fault.Invalid, "no evaluation has the status %q", e.Status)
	}
	if e.CharacterID != "" {
		if err := t.characters.owns(e.CharacterID); err != nil {
			return err
		}
	}
	if e.ConversationID != "" {
		if err := t.chats.owns(e.ConversationID); err != nil {
			return err
		}
	}
	source, err := t.reachable(e.Source)
	if err != nil || source == nil {
		return err
	}
	row := &voteRow{
		UserID: t.userID, ID: op.NewID(), voteSource: *source, CharacterID: e.CharacterID, ConversationID: e.ConversationID,
		Status: e.Status, EvaluatedAt: e.At,
	}
	t.fillTimes(&row.EvaluatedAt)
	if err := t.Insert("source_votes", row); err != nil {
		return err
	}
	of, args := source.where()
	args = append([]any{t.userID}, args...)
	return t.Run("DELETE FROM source_votes WHERE user_id = ? AND "+of+" AND id NOT IN (SELECT id FROM source_votes WHERE user_id = ? AND "+of+
		" ORDER BY evaluated_at DESC, id DESC LIMIT ?)", slices.Concat(args, args, []any{feedback.Kept})...)
}

// where is a condition on the rows of a source.
func (s *voteSource) where() (condition string, args []any) {
	if s.SourceID == "" {
		return "source_id IS NULL AND part = ?", []any{s.Part}
	}
	return "source_id = ? AND part = ?", []any{s.SourceID, s.Part}
}

// reachable finds a source by its name; nil = it is not there for the user.
func (t voteTx) reachable(name string) (*voteSource, error) {
	if strings.Contains(name, "://") {
		if host := weburl.Hostname(name); host != "" {
			return &voteSource{Kind: feedback.Host, Part: host}, nil
		}
		return nil, nil //nolint:nilnil // there is no such source
	}
	of, part, isChunk := strings.Cut(name, ".")
	if _, ok := id.Parse(of); !ok {
		return nil, nil //nolint:nilnil // likewise
	}
	if !isChunk {
		units, err := sqldb.All[string](t, "SELECT revision_id FROM memory_texts WHERE user_id = ? AND revision_id = ? AND NOT is_forgotten"+
			" UNION ALL SELECT id FROM memories WHERE user_id = ? AND id = ?", t.userID, of, t.userID, of)
		if err != nil || len(units) > 0 {
			return &voteSource{Kind: feedback.Memory, SourceID: of}, err
		}
	}
	if _, err := t.knowledge.File(of); err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return nil, err
	}
	return &voteSource{feedback.Chunk, of, part}, nil
}

func (t voteTx) Votes(characterID string, kind feedback.Kind, sources ...string) (map[string][]feedback.Vote, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	const votes = "SELECT source_id, part, status, evaluated_at, conversation_id FROM source_votes WHERE user_id = ?"
	where, args := " AND source_id IS NULL AND part IN (?)", []any{t.userID, sources}
	if kind != feedback.Host {
		var ids []string
		parts := []string{""}
		for _, s := range sources {
			of, part, _ := strings.Cut(s, ".")
			ids, parts = append(ids, of), append(parts, part)
		}
		where, args = " AND source_id IN (?) AND part IN (?)", []any{t.userID, unique(ids), unique(parts)}
	}
	if characterID != "" {
		where, args = where+" AND (character_id IS NULL OR character_id = ?)", append(args, characterID)
	}
	of, once := map[string][]feedback.Vote{}, tally{}
	err := sqldb.Each(t, func(r *voteRow) error {
		name := r.Part
		if r.SourceID != "" {
			name = strings.TrimSuffix(r.SourceID+"."+r.Part, ".")
		}
		if once.counts(r) {
			of[name] = append(of[name], feedback.Vote{Status: r.Status, At: r.EvaluatedAt})
		}
		return nil
	}, votes+where, args...)
	found := map[string][]feedback.Vote{}
	for _, s := range sources {
		all := of[s]
		if file, _, isChunk := strings.Cut(s, "."); isChunk && kind == feedback.Chunk {
			all = slices.Concat(all, of[file])
		}
		if len(all) > 0 {
			found[s] = all
		}
	}
	return found, err
}

// tally has how many votes of a time and a status each source has in each chat and, under the chat "*", how many of them count.
type tally map[string]int

// counts reports whether a vote is counted. A chat into which the log of another one was imported repeats its votes: they count
// once, and stay when one of the chats is deleted.
func (n tally) counts(r *voteRow) bool {
	vote := strings.Join([]string{r.SourceID, r.Part, string(r.Status), strconv.FormatInt(r.EvaluatedAt.UnixMilli(), 10)}, " ") + " "
	n[vote+r.ConversationID]++
	if n[vote+r.ConversationID] <= n[vote+"*"] {
		return false
	}
	n[vote+"*"]++
	return true
}

// unique sorts texts, and leaves out repeated ones.
func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Records reads the votes on units, and which of them were used, in one statement. A mark of use is a row without a status.
func (t *textTx) Records(characterID string, unitIDs ...string) (map[string]feedback.Record, error) {
	if len(unitIDs) == 0 {
		return nil, nil
	}
	of, once := map[string]feedback.Record{}, tally{}
	return of, sqldb.Each(t.Unless(t.characters.owns(characterID)), func(r *voteRow) error {
		record := of[r.SourceID]
		if r.Status == "" {
			record.Shown = true
		} else if once.counts(r) {
			record.Votes = append(record.Votes, feedback.Vote{Status: r.Status, At: r.EvaluatedAt})
		}
		of[r.SourceID] = record
		return nil
	}, `SELECT source_id, status, evaluated_at, conversation_id FROM source_votes WHERE user_id = ? AND source_id IN (?) AND (character_id IS NULL OR character_id = ?)
		UNION ALL SELECT revision_id, '', 0, NULL FROM memory_texts WHERE user_id = ? AND revision_id IN (?) AND is_used
		UNION ALL SELECT id, '', 0, NULL FROM memories WHERE user_id = ? AND id IN (?) AND last_used_at IS NOT NULL`,
		t.userID, unitIDs, characterID, t.userID, unitIDs, t.userID, unitIDs)
}
