package store

import (
	"cmp"

	"nodest/circle"
	"nodest/internal/fault"
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

func (t circleTx) Relation(characterID, targetID string) (*circle.Relation, error) {
	query := "SELECT * FROM circle_relations WHERE user_id = ? AND character_id = ? AND target_id IS NOT DISTINCT FROM ?"
	if t.Writable() == nil {
		query += t.ForNoKeyUpdate()
	}
	row, err := sqldb.One[relationRow](t, query, t.userID, characterID, targetID)
	if err != nil {
		return nil, err
	}
	if row != nil { // the deletion of a character removes it
		return &row.Relation, nil
	}
	relation := &circle.Relation{CharacterID: characterID, TargetID: targetID, Type: "stranger"}
	return relation, cmp.Or(t.characters.owns(characterID), t.withMembers(targetID).Ready())
}

// PutRelation stores r. The transaction begins again if another one has stored a new
// relation meanwhile, which could not be locked.
func (t circleTx) PutRelation(r *circle.Relation) error {
	row := &relationRow{*r, t.userID}
	row.UpdatedAt = t.Now()
	if !r.UpdatedAt.IsZero() {
		n, err := t.Update("circle_relations", row, []string{"user_id", "character_id", "target_id"},
			"WHERE user_id = ? AND character_id = ? AND target_id IS NOT DISTINCT FROM ?", t.userID, r.CharacterID, r.TargetID)
		if err != nil || n > 0 {
			r.UpdatedAt = row.UpdatedAt
			return err
		}
	}
	n, err := t.withMembers(r.CharacterID, r.TargetID).InsertNew("circle_relations", row, "ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	if n == 0 {
		return t.Lose(fault.New(fault.Conflict, "the relationship was changed by another request"))
	}
	r.UpdatedAt = row.UpdatedAt
	return nil
}

func (t circleTx) Relations(characterID string) ([]*circle.Relation, error) {
	s, where, args := t.Session, "user_id = ?", []any{t.userID}
	if characterID != "" {
		s, where, args = t.characters.with(characterID), where+" AND character_id = ?", append(args, characterID)
	}
	return sqldb.Map(s, (*relationRow).relation, "SELECT * FROM circle_relations WHERE "+where+" ORDER BY character_id, target_id NULLS FIRST", args...)
}

func (t circleTx) PutItem(i *circle.Item) error {
	t.fillTimes(&i.CreatedAt)
	err := t.characters.with(i.CharacterID).Insert("circle_items", &itemRow{*i, t.userID})
	return t.Unless(err).Run("DELETE FROM circle_items WHERE user_id = ? AND id IN (SELECT id FROM circle_items"+
		" WHERE user_id = ? AND character_id = ? ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET ?)",
		t.userID, t.userID, i.CharacterID, circle.MaxBox)
}

func (t circleTx) Items(characterID string, unread bool) ([]*circle.Item, error) {
	where := "user_id = ? AND character_id = ?"
	if unread {
		where += " AND read_at IS NULL"
	}
	return sqldb.Map(t.characters.with(characterID), func(r *itemRow) *circle.Item { return &r.Item },
		"SELECT * FROM circle_items WHERE "+where+" ORDER BY created_at DESC, id DESC", t.userID, characterID)
}

// ForgetItems removes the items about a comment, or about a post with its comments. Replies
// to a comment quote it.
func (t circleTx) ForgetItems(postID, commentID string) error {
	if commentID == "" {
		return t.Run("DELETE FROM circle_items WHERE user_id = ? AND (context_id = ? OR context_id IN"+
			" (SELECT c.id FROM circle_comments c WHERE c.user_id = ? AND c.post_id = ?))", t.userID, postID, t.userID, postID)
	}
	return cmp.Or(
		t.Run("DELETE FROM circle_items WHERE user_id = ? AND context_id = ?", t.userID, commentID),
		t.Run("UPDATE circle_items SET context = '' WHERE user_id = ? AND type = 'reply' AND context_id IN"+
			" (SELECT c.id FROM circle_comments c WHERE c.user_id = ? AND c.post_id = ? AND c.reply_to_id = ?)", t.userID, t.userID, postID, commentID),
	)
}

func (t circleTx) ReadItems(characterID string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return t.characters.with(characterID).Run("UPDATE circle_items SET read_at = ? WHERE user_id = ? AND character_id = ? AND id IN (?) AND read_at IS NULL",
		t.Now(), t.userID, characterID, ids)
}

func (t circleTx) InsertAction(a *circle.Action) error {
	t.fillTimes(&a.CreatedAt)
	return t.withMembers(a.CharacterID, a.TargetID).Insert("circle_actions", &actionRow{*a, t.userID})
}

func (t circleTx) Action(id string) (*circle.Action, error) {
	return sqldb.Find(t, "action", (*actionRow).action, "SELECT * FROM circle_actions WHERE user_id = ? AND id = ?", t.userID, id)
}

// UpdateAction stores all of an action but whose it is.
func (t circleTx) UpdateAction(a *circle.Action) error {
	return t.UpdateOne("action", "circle_actions", &actionRow{*a, t.userID}, []string{"user_id", "id", "character_id", "target_id", "created_at"},
		"WHERE user_id = ? AND id = ?", t.userID, a.ID)
}

func (t circleTx) Actions(characterID, cursor string, limit int) ([]*circle.Action, string, error) {
	s, where, args := t.Session, "user_id = ?", []any{t.userID}
	if characterID != "" {
		s, where, args = t.characters.with(characterID), where+" AND character_id = ?", append(args, characterID)
	}
	return sqldb.Page(s, (*actionRow).action, "created_at", cursor, limit, "SELECT * FROM circle_actions WHERE "+where, args...)
}
