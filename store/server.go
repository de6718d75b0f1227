package store

import (
	"cmp"
	"context"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// ModelServers returns the servers that owners have added, by name.
func (db *DB) ModelServers(ctx context.Context) ([]*account.ModelServer, error) {
	return glancing(ctx, db, func(s *session) ([]*account.ModelServer, error) {
		return sqldb.Map(s, func(m *account.ModelServer) *account.ModelServer { return m },
			"SELECT name, base_url, model, sealed, updated_at FROM model_servers ORDER BY name")
	})
}

// PutModelServer stores after, which change may complete with what is stored now, nil = nothing. If change says
// that the server has moved, the users' keys for it are removed. Of two changes at once, the later one is stored whole.
func (db *DB) PutModelServer(ctx context.Context, after *account.ModelServer, change func(before *account.ModelServer) (moved bool, err error), notes ...*audit.Entry) error {
	return db.write(ctx, func(s *session) error {
		before, err := sqldb.One[account.ModelServer](s, "SELECT name, base_url, model, sealed, updated_at FROM model_servers WHERE name = ?", after.Name)
		if err != nil {
			return err
		}
		if before == nil {
			n, err := sqldb.Value[int64](s, "SELECT COUNT(*) FROM model_servers")
			if err = cmp.Or(err, fewServers(n)); err != nil {
				return err
			}
		}
		moved, err := change(before)
		if err != nil {
			return err
		}
		if moved {
			if err := s.dropKeysFor(after.Name); err != nil {
				return err
			}
		}
		return cmp.Or(s.Run(`INSERT INTO model_servers (name, base_url, model, sealed, updated_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET base_url = EXCLUDED.base_url, model = EXCLUDED.model, sealed = EXCLUDED.sealed, updated_at = EXCLUDED.updated_at`,
			after.Name, after.BaseURL, after.Model, after.Sealed, after.UpdatedAt), s.audit(notes...))
	})
}

func fewServers(n int64) error {
	if n < account.MaxServers {
		return nil
	}
	return fault.New(fault.QuotaExceeded, "there can be at most %d model servers", account.MaxServers).With("quota", "servers").With("limit", account.MaxServers)
}

// dropKeysFor removes the keys of all users for a server, which they gave for the host that it was at.
func (s *session) dropKeysFor(name string) error {
	return s.Run("DELETE FROM provider_keys WHERE provider = ?", name)
}

// DeleteModelServer removes a server with the users' keys for it; fault.NotFound if there is none.
func (db *DB) DeleteModelServer(ctx context.Context, name string, notes ...*audit.Entry) error {
	return db.write(ctx, func(s *session) error {
		return cmp.Or(s.ExecOne("server", "DELETE FROM model_servers WHERE name = ?", name), s.dropKeysFor(name), s.audit(notes...))
	})
}
