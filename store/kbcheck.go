package store

import (
	"context"
	"maps"

	"nodest/store/sqldb"
)

// Documents describe the documents of all users.
type Documents struct {
	Files     map[string]int64 // by state
	Deleted   int64            // files that are hidden and not removed yet
	Abandoned int64            // contents without a file; upkeep removes them after a day
	Orphans   map[string]int64 // rows that nothing needs any more, by table
}

// CountDocuments looks at the documents of a database, which a server may be using. Files that
// are being processed have no orphans. It reads all chunks: seconds for a million of them.
func CountDocuments(ctx context.Context, o Options) (*Documents, error) {
	return examine(ctx, o, func(s *session) (*Documents, error) {
		files, err := s.counts("SELECT state AS name, COUNT(*) AS n FROM files WHERE deleted_at IS NULL GROUP BY state")
		if err != nil {
			return nil, err
		}
		gone, err := s.counts(`SELECT 'deleted' AS name, COUNT(*) AS n FROM files WHERE deleted_at IS NOT NULL
			UNION ALL SELECT 'abandoned', COUNT(*) FROM file_parts p WHERE p.part = 0 AND NOT EXISTS (SELECT 1 FROM files f
				WHERE f.user_id = p.user_id AND f.content_id = p.content_id)`)
		if err != nil {
			return nil, err
		}
		lost, err := s.counts(orphans(s.IDText("f.id")))
		return &Documents{Files: files, Deleted: gone["deleted"], Abandoned: gone["abandoned"], Orphans: lost}, err
	})
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

// counts returns the numbers other than 0 that a query finds for names, those of one name together.
func (s *session) counts(query string, args ...any) (map[string]int64, error) {
	counts := map[string]int64{}
	err := sqldb.Each(s, func(r *struct {
		Name string
		N    int64
	},
	) error {
		counts[r.Name] += r.N
		return nil
	}, query, args...)
	maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
	return counts, err
}
