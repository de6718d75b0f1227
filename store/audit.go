package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// mostAudited is how many rows of the audit log one user may cause in a day, and everybody who is not signed
// in together. Further entries of a kind are counted in one row.
const mostAudited = 1000

// auditRow is a row of the audit log, which may stand for many entries.
type auditRow struct {
	ID                     string
	FoldKey                *string
	At, Since              time.Time
	Entries                int64
	Action                 audit.Action
	ActorID, SubjectID     string
	ActorName, SubjectName string
	Object, Detail         string
	Address, Agent         string
}

func (r *auditRow) record() *audit.Record {
	return &audit.Record{
		Entry: audit.Entry{Action: r.Action, ActorID: r.ActorID, SubjectID: r.SubjectID, Object: r.Object, Detail: r.Detail},
		ID:    r.ID, At: r.At, Since: r.Since, Count: r.Entries, ActorName: r.ActorName, SubjectName: r.SubjectName,
		Origin: audit.Origin{Address: r.Address, Agent: r.Agent},
	}
}

// Audit notes an entry in a transaction of its own, for what stores nothing else.
func (db *DB) Audit(ctx context.Context, e *audit.Entry) error {
	return db.write(ctx, func(s *session) error { return s.audit(e) })
}

// Audit notes what the acting user did: op.Tx.
func (t *tx) Audit(e audit.Entry) error {
	e.ActorID = t.userID
	return t.audit(&e)
}

// audit notes entries. Those of failed attempts within an hour, about one user from one address, are one row.
func (s *session) audit(entries ...*audit.Entry) error {
	for _, e := range entries {
		if e == nil || e.Action == "" {
			continue
		}
		if err := s.auditOne(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) auditOne(e *audit.Entry) error {
	origin := audit.From(s.Caller())
	row := &auditRow{
		ID: op.NewID(), At: s.Now(), Since: s.Now(), Entries: 1, Action: e.Action, ActorID: e.ActorID, SubjectID: e.SubjectID,
		Object: e.Object, Detail: e.Detail, Address: origin.Address, Agent: origin.Agent,
	}
	var err error
	if row.ActorName, err = s.nameOf(e.ActorID); err != nil {
		return err
	}
	if row.SubjectName, err = s.nameOf(e.SubjectID); err != nil {
		return err
	}
	today, err := s.auditedToday(e.ActorID)
	switch {
	case err != nil:
		return err
	case today >= mostAudited:
		row.SubjectID, row.SubjectName, row.Object, row.Detail, row.Address, row.Agent = "", "", "", "", "", ""
		row.FoldKey = new(fmt.Sprintf("%s %s %s", e.Action, s.Now().Format(time.DateOnly), e.ActorID))
	case e.Action == audit.SignInFailed || e.Action == audit.PasswordWrong:
		row.FoldKey = new(strings.Join([]string{string(e.Action), s.Now().Format("2006-01-02T15"), e.Detail, e.SubjectID, origin.Address}, " "))
	}
	return s.Insert("audit_log", row, "ON CONFLICT (fold_key) DO UPDATE SET entries = audit_log.entries + 1, at = EXCLUDED.at, agent = EXCLUDED.agent")
}

// auditedToday is how many rows a user has caused today, or everybody who is not signed in.
func (s *session) auditedToday(actorID string) (int64, error) {
	midnight := s.Now().Truncate(day)
	if actorID == "" {
		return sqldb.Value[int64](s, "SELECT COUNT(*) FROM audit_log WHERE actor_id IS NULL AND at >= ?", midnight)
	}
	return sqldb.Value[int64](s, "SELECT COUNT(*) FROM audit_log WHERE actor_id = ? AND at >= ?", actorID, midnight)
}

// nameOf is the name of a user; "" for one who does not exist.
func (s *session) nameOf(userID string) (string, error) {
	if userID == "" {
		return "", nil
	}
	u, err := s.oneUser("id = ?", userID)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// leaveAudit takes the name of a user, and where the user was, out of the audit log.
func (s *session) leaveAudit(userID string) error {
	return cmp.Or(
		s.Run("UPDATE audit_log SET actor_name = '', address = '', agent = '' WHERE actor_id = ?", userID),
		s.Run("UPDATE audit_log SET subject_name = '' WHERE subject_id = ?", userID),
	)
}

// AuditPage returns a page of the audit log, newest first.
func (db *DB) AuditPage(ctx context.Context, f audit.Filter, cursor string, limit int) (items []*audit.Record, next string, err error) {
	query, args := "SELECT * FROM audit_log WHERE 1 = 1", []any{}
	if f.UserID != "" {
		query, args = query+" AND (actor_id = ? OR subject_id = ?)", append(args, sqldb.ID(f.UserID), sqldb.ID(f.UserID))
	}
	if f.Action != "" {
		query, args = query+" AND action = ?", append(args, f.Action)
	}
	err = db.read(ctx, func(s *session) error {
		items, next, err = sqldb.Page(s, (*auditRow).record, "at", cursor, limit, query, args...)
		return err
	})
	return items, next, err
}
