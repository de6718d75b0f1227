package store

import (
	"context"
	"fmt"

	"nodest/store/sqldb"
)

// Documents describe the documents of all users.
type Documents struct {
	Files     map[string]int64 // by state
	Deleted   int64            // files that are hidden and not removed yet
	Abandoned int64            // contents without a file; upkeep removes them after a day
	Orphans   map[string]int64 // rows that nothing needs any more, by table; nil = none
}

// CountDocuments looks at the documents of a database, which a server may be using. Files that
// are being processed have no orphans. It reads all chunks: seconds for a million of them.
func CountDocuments(ctx context.Context, o Options) (_ *Documents, err error) {
	defer func() { err = sqldb.ExplainSQLite(o.Dir, err) }()
	snap, err := openSnapshot(ctx, o.withDefaults())
	if err != nil {
		return nil, err
	}
	defer snap.close()
	if _, err := snap.version(ctx); err != nil {
		return nil, err
	}
	d := &Documents{}
	if d.Files, err = snap.counts(ctx, "SELECT state, COUNT(*) FROM files WHERE deleted_at IS NULL GROUP BY state"); err != nil {
		return nil, err
	}
	for into, query := range map[*int64]string{
		&d.Deleted: "SELECT COUNT(*) FROM files WHERE deleted_at IS NOT NULL",
		&d.Abandoned: `SELECT COUNT(*) FROM file_parts p WHERE p.part = 0 AND NOT EXISTS (SELECT 1 FROM files f
			WHERE f.user_id = p.user_id AND f.content_id = p.content_id)`,
	} {
		if err := snap.tx.QueryRowContext(ctx, query).Scan(into); err != nil {
			return nil, fmt.Errorf("cannot count documents: %w", err)
		}
	}
	d.Orphans, err = snap.counts(ctx, orphans((&sqldb.Session{Postgres: snap.postgres}).IDText("f.id")))
	return d, err
}

// orphans is a query for the tables with rows that nothing needs, and how many these are: rows of
// other editions than the one that is searched, and vectors of no chunk, or of a model without a
// space where no job is to remove them. The subject of a job is an expression of the file f.
func orphans(subject string) string {
	query := `WITH resting AS (SELECT f.user_id, f.id, f.edition FROM files f WHERE f.deleted_at IS NULL AND f.state = 'ready'
		AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.user_id = f.user_id AND j.subject = ` + subject + ` AND j.state IN ('queued', 'running')))
	SELECT 'knowledge_vectors' AS name, COUNT(*) AS n FROM (SELECT v.user_id, v.file_id, v.hash FROM knowledge_vectors v
		JOIN resting f ON f.user_id = v.user_id AND f.id = v.file_id
		EXCEPT SELECT user_id, file_id, hash FROM knowledge_chunks) AS lost
	UNION ALL SELECT 'knowledge_vectors', COUNT(*) FROM knowledge_vectors v JOIN files f ON f.user_id = v.user_id AND f.id = v.file_id AND f.deleted_at IS NULL
		WHERE NOT EXISTS (SELECT 1 FROM knowledge_spaces s WHERE s.user_id = v.user_id AND s.model = v.model)
		AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.user_id = v.user_id AND j.kind = 'knowledge.reindex' AND j.state IN ('queued', 'running'))`
	for _, table := range indexTables {
		query += " UNION ALL SELECT '" + table.name + "', COUNT(*) FROM " + table.name +
			" x JOIN resting f ON f.user_id = x.user_id AND f.id = x.file_id WHERE x.edition <> f.edition"
	}
	return query
}

// counts returns the rows of a query for names and numbers other than 0, those of one name together;
// nil = there are none.
func (s *snapshot) counts(ctx context.Context, query string) (counts map[string]int64, err error) {
	rows, err := s.tx.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("cannot count documents: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to the end
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		if n > 0 {
			if counts == nil {
				counts = map[string]int64{}
			}
			counts[name] += n
		}
	}
	return counts, rows.Err()
}
