package circle

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// NewSchema makes a schema in the PostgreSQL at a URL; drop removes it.
func NewSchema(ctx context.Context, database string) (schemaURL string, drop func() error, err error) {
	u, err := url.Parse(database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", nil, fault.InvalidField("database", "value", "must be the postgres://… URL of a PostgreSQL")
	}
	name := "bench_" + strings.ReplaceAll(op.NewID(), "-", "")
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	run := func(ctx context.Context, statement string) error {
		db, err := sql.Open("pgx", database)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	drop = func() error { return run(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE") }
	return u.String(), drop, run(ctx, "CREATE SCHEMA "+name)
}
