-- +goose Up

-- Who signed in or tried to, and who changed accounts, rights, keys and limits. The ids of users have no
-- foreign key: a row stays when its user is gone.
CREATE TABLE audit_log (
  id UUID NOT NULL PRIMARY KEY,
  fold_key TEXT COLLATE "C" UNIQUE, -- entries with the same one are one row; NULL = stands for itself
  at BIGINT NOT NULL, -- of the last entry
  since BIGINT NOT NULL, -- of the first
  entries BIGINT NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  actor_id UUID, -- NULL = nobody who is signed in
  actor_name TEXT COLLATE "C" NOT NULL,
  subject_id UUID,
  subject_name TEXT COLLATE "C" NOT NULL,
  object TEXT COLLATE "C" NOT NULL,
  detail TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_actor ON audit_log (actor_id, at, id);
