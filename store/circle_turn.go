package store

import (
	"nodest/circle"
	"nodest/circle/rules"
	"nodest/store/sqldb"
)

type turnRow struct {
	circle.Turn
	UserID string
}

func (r *turnRow) turn() *circle.Turn { return &r.Turn }

// InsertTurn stores t unless there is such a turn. The unique indexes decide, so it holds
// for several processes.
func (t circleTx) InsertTurn(turn *circle.Turn) (added bool, err error) {
	t.fillTimes(&turn.CreatedAt)
	n, err := t.characters.with(turn.CharacterID).InsertNew("circle_turns", &turnRow{*turn, t.userID}, "ON CONFLICT DO NOTHING")
	return n > 0, err
}

func (t circleTx) Turn(id string) (*circle.Turn, error) {
	return sqldb.Find(t, "turn", (*turnRow).turn, "SELECT * FROM circle_turns WHERE user_id = ? AND id = ?", t.userID, id)
}

func (t circleTx) UpdateTurn(turn *circle.Turn) error {
	return t.ExecOne("turn", "UPDATE circle_turns SET post_id = ?, reason = ?, state = ?, note = ?, error = ?, calls = ?, tokens = ?, due_at = ?, ended_at = ?"+
		" WHERE user_id = ? AND id = ?", turn.PostID, turn.Reason, turn.State, turn.Note, turn.Error, turn.Calls, turn.Tokens, turn.DueAt, turn.EndedAt, t.userID, turn.ID)
}

func (t circleTx) Turns(f circle.TurnFilter, cursor string, limit int) ([]*circle.Turn, string, error) {
	where, args, by := "user_id = ?", []any{t.userID}, "created_at"
	add := func(condition string, arg ...any) { where, args = where+" AND "+condition, append(args, arg...) }
	if f.CharacterID != "" {
		add("character_id = ?", f.CharacterID)
	}
	if f.PostID != "" {
		add("post_id = ?", f.PostID) // as in the index
	}
	switch f.State {
	case "":
	case circle.TurnPlanned:
		add("state = 'planned'") // as in the index
	default:
		add("state = ?", f.State)
	}
	if f.Reactions {
		add("slot = ''")
	}
	if f.Slots {
		add("slot <> ''")
	}
	if f.Day != "" {
		add("slot <> '' AND day = ?", f.Day) // as in the index
	}
	if !f.Since.IsZero() {
		add("ended_at >= ?", f.Since)
		by = "ended_at"
	}
	return sqldb.Page(t, (*turnRow).turn, by, cursor, limit, "SELECT * FROM circle_turns WHERE "+where, args...)
}

func (t circleTx) CancelTurns(postID, commentID string) error {
	query := "UPDATE circle_turns SET state = ?, note = ?, ended_at = ? WHERE user_id = ? AND post_id = ? AND state = ?"
	args := []any{circle.TurnLeftOut, rules.NoteGone, t.Now(), t.userID, postID, circle.TurnPlanned}
	if commentID != "" {
		query, args = query+" AND comment_id = ?", append(args, commentID)
	}
	return t.Run(query, args...)
}
