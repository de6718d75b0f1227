package store

import (
	"time"

	"nodest/character"
	"nodest/circle"
	"nodest/store/sqldb"
)

type circleStateRow struct {
	circle.State
	UserID string
}

type spendRow struct {
	circle.Spend
	UserID string
}

type planRow struct {
	circle.Plan
	UserID    string
	UpdatedAt time.Time
}

func (t circleTx) CircleState() (*circle.State, error) {
	row, err := sqldb.One[circleStateRow](t, "SELECT * FROM circle_states WHERE user_id = ?", t.userID)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return &circle.State{Settings: circle.DefaultSettings()}, nil
	}
	return &row.State, nil
}

// PutCircleState stores LookedAt and AsleepAt; it does not undo a change of the settings by
// another transaction.
func (t circleTx) PutCircleState(s *circle.State) error {
	return t.Insert("circle_states", &circleStateRow{*s, t.userID},
		"ON CONFLICT (user_id) DO UPDATE SET looked_at = EXCLUDED.looked_at, asleep_at = EXCLUDED.asleep_at")
}

// PutCircleSettings stores Settings and UpdatedAt.
func (t circleTx) PutCircleSettings(s *circle.State) error {
	return t.Insert("circle_states", &circleStateRow{*s, t.userID},
		"ON CONFLICT (user_id) DO UPDATE SET settings = EXCLUDED.settings, updated_at = EXCLUDED.updated_at")
}

// Members returns the characters that take part, with their settings: a character without
// any does not, nor one that is archived.
func (t circleTx) Members() ([]*character.Character, error) {
	all, err := sqldb.Map(t, func(c *character.Character) *character.Character { return c },
		`SELECT c.id, v.version, v.documents_version, c.created_at, v.created_at AS updated_at, v.name, v.dialect, v.is_cradle, v.tags, v.archived, v.settings
		FROM characters c JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id AND v.version = c.version
		WHERE c.user_id = ? AND c.deleted_at IS NULL AND v.settings IS NOT NULL ORDER BY c.id`, t.userID)
	if err != nil {
		return nil, err
	}
	members := []*character.Character{}
	for _, ch := range all {
		set, err := ch.ParseSettings()
		if err != nil {
			return nil, err
		}
		if set.Circle.Enabled && !ch.Archived {
			members = append(members, ch)
		}
	}
	return members, nil
}

// LockSpend returns what was spent on a day. The row is stored first, so that there is one
// to lock.
func (t circleTx) LockSpend(day string) (*circle.Spend, error) {
	err := t.Insert("circle_spends", &spendRow{circle.Spend{Day: day}, t.userID}, "ON CONFLICT DO NOTHING")
	if err != nil {
		return nil, err
	}
	return sqldb.Find(t, "day", (*spendRow).spend, "SELECT * FROM circle_spends WHERE user_id = ? AND day = ?"+t.ForUpdate(), t.userID, day)
}

func (r *spendRow) spend() *circle.Spend { return &r.Spend }

func (t circleTx) PutSpend(s *circle.Spend) error {
	return t.Insert("circle_spends", &spendRow{*s, t.userID},
		"ON CONFLICT (user_id, day) DO UPDATE SET calls = EXCLUDED.calls, tokens = EXCLUDED.tokens, left_out = EXCLUDED.left_out")
}

func (t circleTx) Spends(from, to string) ([]*circle.Spend, error) {
	return sqldb.Map(t, (*spendRow).spend, "SELECT * FROM circle_spends WHERE user_id = ? AND day >= ? AND day <= ? ORDER BY day", t.userID, from, to)
}

func (t circleTx) Plan(characterID, day string) (*circle.Plan, error) {
	row, err := sqldb.One[planRow](t.characters.with(characterID), "SELECT * FROM circle_plans WHERE user_id = ? AND character_id = ? AND day = ?", t.userID, characterID, day)
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Plan, nil
}

func (t circleTx) PutPlan(p *circle.Plan) error {
	return t.characters.with(p.CharacterID).Insert("circle_plans", &planRow{*p, t.userID, t.Now()},
		"ON CONFLICT (user_id, character_id, day) DO UPDATE SET items = EXCLUDED.items, updated_at = EXCLUDED.updated_at")
}
