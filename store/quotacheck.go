package store

import (
	"context"
	"slices"
	"strings"

	"nodest/store/sqldb"
)

// Counter is a counter of a quota that differs from what is counted.
type Counter struct {
	UserID, Username string
	Kind             string
	Used, Counted    int64
}

// CheckCounters compares the counters of all users with what they have, in a database that a server
// may be using, and returns those that differ, by user and kind. Too high is normal after something
// was deleted; too low never is. It reads all messages: seconds for a million of them.
func CheckCounters(ctx context.Context, o Options) ([]Counter, error) {
	return examine(ctx, o, func(s *session) ([]Counter, error) {
		wrong, err := sqldb.All[Counter](s, "SELECT d.user_id, u.username, d.kind, CAST(SUM(d.used) AS BIGINT) AS used, CAST(SUM(d.n) AS BIGINT) AS counted"+
			" FROM (SELECT user_id, kind, n, 0 AS used FROM ("+counted("")+") AS c UNION ALL SELECT user_id, kind, 0, used FROM quotas) AS d"+
			" JOIN users u ON u.id = d.user_id GROUP BY d.user_id, u.username, d.kind HAVING SUM(d.used) <> SUM(d.n)")
		slices.SortFunc(wrong, func(a, b Counter) int { return strings.Compare(a.Username+" "+a.Kind, b.Username+" "+b.Kind) })
		return wrong, err
	})
}
