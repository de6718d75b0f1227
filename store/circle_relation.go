package store

import (
	"nodest/circle"
	"nodest/store/sqldb"
)

type relationRow struct {
	circle.Relation
	UserID string
}

func (r *relationRow) relation() *circle.Relation { return &r.Relation }

type itemRow struct {
	circle.Item
	UserID string
}

type actionRow struct {
	circle.Action
	UserID string
}

func (r *actionRow) action() *circle.Action { return &r.Action }

// Relation returns what a character thinks of another member. In a transaction that
// writes, nobody else changes it until the end: that is why the character is locked, whose
// row is there even if they have not met.
func (t circleTx) Relation(characterID, targetID string) (*circle.Relation, error) {
	lock := ""
	if t.Writable() == nil {
		lock = t.ForNoKeyUpdate()
	}
	s := t.Unless(t.owns(characterID, lock))
	if targetID != circle.Me {
		s = s.Unless(t.ownsCharacter(targetID))
	}
	row, err := sqldb.One[relationRow](s, "SELECT * FROM circle_relations WHERE user_id = ? AND character_id = ? AND target_id = ?",
		t.userID, characterID, targetID)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return &circle.Relation{CharacterID: characterID, TargetID: targetID, Type: "stranger"}, nil
	}
	return &row.Relation, nil
}

// PutRelation stores r and replaces what is stored.
func (t circleTx) PutRelation(r *circle.Relation) error {
	r.UpdatedAt = t.Now()
	return t.withMembers(r.CharacterID, r.TargetID).Insert("circle_relations", &relationRow{*r, t.userID}, `ON CONFLICT (user_id, character_id, target_id) DO UPDATE SET
		strength = EXCLUDED.strength, type = EXCLUDED.type, kept = EXCLUDED.kept, description = EXCLUDED.description,
		interactions = EXCLUDED.interactions, action_at = EXCLUDED.action_at, updated_at = EXCLUDED.updated_at`)
}

// Relations returns those of a character, or all, in the order of their ids.
func (t circleTx) Relations(characterID string) ([]*circle.Relation, error) {
	s, where, args := t.Session, "user_id = ?", []any{t.userID}
	if characterID != "" {
		s, where, args = t.withCharacter(characterID), where+" AND character_id = ?", append(args, characterID)
	}
	return sqldb.Map(s, (*relationRow).relation, "SELECT * FROM circle_relations WHERE "+where+" ORDER BY character_id, target_id", args...)
}

// PutItem adds an item to a message box and removes the oldest ones above circle.MaxBox.
func (t circleTx) PutItem(i *circle.Item) error {
	t.fillTimes(&i.CreatedAt)
	if err := t.withCharacter(i.CharacterID).Insert("circle_items", &itemRow{*i, t.userID}); err != nil {
		return err
	}
	return t.Run("DELETE FROM circle_items WHERE user_id = ? AND id IN (SELECT id FROM circle_items"+
		" WHERE user_id = ? AND character_id = ? ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET ?)",
		t.userID, t.userID, i.CharacterID, circle.MaxBox)
}

// Items returns a message box, newest first.
func (t circleTx) Items(characterID string, unread bool) ([]*circle.Item, error) {
	where := "user_id = ? AND character_id = ?"
	if unread {
		where += " AND read_at IS NULL"
	}
	return sqldb.Map(t.withCharacter(characterID), func(r *itemRow) *circle.Item { return &r.Item },
		"SELECT * FROM circle_items WHERE "+where+" ORDER BY created_at DESC, id DESC", t.userID, characterID)
}

// ReadItems marks items of a message box as read; those that are gone are left out.
func (t circleTx) ReadItems(characterID string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return t.withCharacter(characterID).Run("UPDATE circle_items SET read_at = ? WHERE user_id = ? AND character_id = ? AND id IN (?) AND read_at IS NULL",
		t.Now(), t.userID, characterID, ids)
}

// InsertAction stores a new action.
func (t circleTx) InsertAction(a *circle.Action) error {
	t.fillTimes(&a.CreatedAt)
	return t.withMembers(a.CharacterID, a.TargetID).Insert("circle_actions", &actionRow{*a, t.userID})
}

// Action returns an action.
func (t circleTx) Action(id string) (*circle.Action, error) {
	return sqldb.Find(t, "action", (*actionRow).action, "SELECT * FROM circle_actions WHERE user_id = ? AND id = ?", t.userID, id)
}

// UpdateAction stores all of an action but whose it is.
func (t circleTx) UpdateAction(a *circle.Action) error {
	return t.UpdateOne("action", "circle_actions", &actionRow{*a, t.userID}, []string{"user_id", "id", "character_id", "target_id", "created_at"},
		"WHERE user_id = ? AND id = ?", t.userID, a.ID)
}

// Actions lists newest first those that a character has offered, or all.
func (t circleTx) Actions(characterID, cursor string, limit int) ([]*circle.Action, string, error) {
	s, where, args := t.Session, "user_id = ?", []any{t.userID}
	if characterID != "" {
		s, where, args = t.withCharacter(characterID), where+" AND character_id = ?", append(args, characterID)
	}
	return sqldb.Page(s, (*actionRow).action, "created_at", cursor, limit, "SELECT * FROM circle_actions WHERE "+where, args...)
}
