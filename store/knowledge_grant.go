package store

import (
	"time"

	"nodest/knowledge"
	"nodest/store/sqldb"
)

type grantRow struct {
	UserID    string
	BaseID    string
	GranteeID string
	Role      string
	GrantedBy string `db:"granted_by_id"`
	CreatedAt time.Time
}

func (t knowledgeTx) Grants(b *knowledge.Base) ([]knowledge.Grant, error) {
	return sqldb.All[knowledge.Grant](t, `SELECT g.grantee_id AS user_id, u.username, g.role, g.granted_by_id AS granted_by, g.created_at
		FROM knowledge_grants g JOIN users u ON u.id = g.grantee_id
		JOIN knowledge_bases b ON b.user_id = g.user_id AND b.id = g.base_id AND b.deleted_at IS NULL
		WHERE g.user_id = ? AND g.base_id = ? AND (g.user_id = ? OR g.grantee_id = ?) ORDER BY g.created_at, g.grantee_id`,
		b.OwnerID, b.ID, t.userID, t.userID)
}

// PutGrant stores a grant of an own knowledge base, or its other role.
func (t knowledgeTx) PutGrant(b *knowledge.Base, g *knowledge.Grant) error {
	own := t.Require("knowledge base", "SELECT 1 FROM knowledge_bases WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, b.ID)
	t.fillTimes(&g.CreatedAt)
	return t.Unless(own).Insert("knowledge_grants", &grantRow{t.userID, b.ID, g.UserID, g.Role, g.GrantedBy, g.CreatedAt},
		"ON CONFLICT (user_id, base_id, grantee_id) DO UPDATE SET role = EXCLUDED.role, granted_by_id = EXCLUDED.granted_by_id")
}

func (t knowledgeTx) DropGrant(b *knowledge.Base, granteeID string) error {
	err := t.ExecOne("grant", "DELETE FROM knowledge_grants WHERE user_id = ? AND base_id = ? AND grantee_id = ? AND (user_id = ? OR grantee_id = ?)",
		b.OwnerID, b.ID, granteeID, t.userID, t.userID)
	if err != nil {
		return err
	}
	return t.Run("DELETE FROM knowledge_base_files WHERE user_id = ? AND base_id = ? AND file_user_id = ? AND (user_id = ? OR file_user_id = ?)",
		b.OwnerID, b.ID, granteeID, t.userID, t.userID)
}

func (t knowledgeTx) Grantee(idOrName string) (id, username string, err error) {
	u, err := sqldb.Get[struct{ ID, Username string }](t, "user", "SELECT id, username FROM users WHERE id = ? OR username_key = ? ORDER BY id = ? DESC LIMIT 1",
		idOrName, usernameKey(idOrName), idOrName)
	if err != nil {
		return "", "", err
	}
	return u.ID, u.Username, nil
}
