-- +goose Up

-- Who signed in or tried to, and who changed accounts, rights, keys and limits. The ids of users have no
-- foreign key: a row stays when its user is gone.
CREATE TABLE audit_log (
  id BLOB(16) NOT NULL CHECK (length(id) = 16 AND id > x'') PRIMARY KEY,
  fold_key TEXT UNIQUE, -- entries with the same one are one row; NULL = stands for itself
  at BIGINT NOT NULL, -- of the last entry
  since BIGINT NOT NULL, -- of the first
  entries BIGINT NOT NULL,
  action TEXT NOT NULL,
  actor_id BLOB(16) CHECK (length(actor_id) = 16 AND actor_id > x''), -- NULL = nobody who is signed in
  actor_name TEXT NOT NULL,
  subject_id BLOB(16) CHECK (length(subject_id) = 16 AND subject_id > x''),
  subject_name TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  address TEXT NOT NULL,
  agent TEXT NOT NULL
);
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_actor ON audit_log (actor_id, at, id);
