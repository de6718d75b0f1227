package store

import (
	"context"
	"fmt"
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
func CheckCounters(ctx context.Context, o Options) (_ []Counter, err error) {
	defer func() { err = sqldb.ExplainSQLite(o.Dir, err) }()
	snap, err := openSnapshot(ctx, o.withDefaults())
	if err != nil {
		return nil, err
	}
	defer snap.close()
	if _, err := snap.version(ctx); err != nil {
		return nil, err
	}
	differ := map[Counter]int64{} // counted, by user and kind
	used, err := snap.perUser(ctx, "SELECT user_id, kind, used, 0 FROM quotas")
	if err != nil {
		return nil, err
	}
	for table, c := range countedTables {
		rows, err := snap.perUser(ctx, fmt.Sprintf("SELECT user_id, '%s', %s FROM %s GROUP BY user_id", c.kind, c.sums(), table))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if c.kind != "" {
				differ[Counter{UserID: r.userID, Kind: c.kind}] += r.items
			}
			differ[Counter{UserID: r.userID, Kind: countedBytes}] += r.bytes
		}
	}
	for _, r := range used {
		of := Counter{UserID: r.userID, Kind: r.kind}
		counted := differ[of]
		delete(differ, of)
		of.Used = r.items
		differ[of] = counted
	}
	names, err := snap.usernames(ctx)
	if err != nil {
		return nil, err
	}
	var wrong []Counter
	for c, counted := range differ {
		if c.Used != counted {
			c.Username, c.Counted = names[c.UserID], counted
			wrong = append(wrong, c)
		}
	}
	slices.SortFunc(wrong, func(a, b Counter) int { return strings.Compare(a.Username+" "+a.Kind, b.Username+" "+b.Kind) })
	return wrong, nil
}

// perUserRow is what a user has of a kind.
type perUserRow struct {
	userID, kind string
	items, bytes int64
}

func (s *snapshot) perUser(ctx context.Context, query string) (all []perUserRow, err error) {
	rows, err := s.tx.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("cannot count what users have: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to the end
	for rows.Next() {
		var r perUserRow
		if err := rows.Scan((*sqldb.Text)(&r.userID), (*sqldb.Text)(&r.kind), &r.items, &r.bytes); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func (s *snapshot) usernames(ctx context.Context) (map[string]string, error) {
	rows, err := s.perUser(ctx, "SELECT id, username, 0, 0 FROM users")
	names := map[string]string{}
	for _, r := range rows {
		names[r.userID] = r.kind
	}
	return names, err
}
