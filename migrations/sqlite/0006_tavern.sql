-- +goose Up

-- Imports of folders of SillyTavern, and their reports.
CREATE TABLE tavern_imports (
  user_id BLOB(16) NOT NULL CHECK (length(user_id) = 16 AND user_id > x'') REFERENCES users (id) ON DELETE CASCADE,
  id BLOB(16) NOT NULL CHECK (length(id) = 16 AND id > x''),
  filename TEXT NOT NULL,
  dry_run BOOLEAN NOT NULL,
  make_characters BOOLEAN NOT NULL,
  state TEXT NOT NULL,
  error TEXT, -- JSON; NULL = it has not failed
  found BIGINT NOT NULL, -- files
  done BIGINT NOT NULL, -- of these, those in tavern_reports
  counts TEXT NOT NULL, -- JSON: outcomes by kind
  size BIGINT NOT NULL, -- bytes of the archive
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX tavern_imports_age ON tavern_imports (created_at);

-- The archive of an import that has not ended.
CREATE TABLE tavern_parts (
  user_id BLOB(16) NOT NULL CHECK (length(user_id) = 16 AND user_id > x'') REFERENCES users (id) ON DELETE CASCADE,
  import_id BLOB(16) NOT NULL CHECK (length(import_id) = 16 AND import_id > x''),
  part BIGINT NOT NULL, -- from 0; each but the last one has 1 MiB
  created_at BIGINT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (user_id, import_id, part)
);
CREATE INDEX tavern_parts_age ON tavern_parts (created_at) WHERE part = 0;

-- Each file of an import: what became of it.
CREATE TABLE tavern_reports (
  user_id BLOB(16) NOT NULL CHECK (length(user_id) = 16 AND user_id > x''),
  import_id BLOB(16) NOT NULL CHECK (length(import_id) = 16 AND import_id > x''),
  seq BIGINT NOT NULL, -- from 0, in the order in which they were read
  path TEXT NOT NULL,
  kind TEXT NOT NULL,
  size BIGINT NOT NULL, -- bytes, unpacked
  outcome TEXT NOT NULL,
  object_kind TEXT NOT NULL,
  object_id BLOB(16) CHECK (length(object_id) = 16 AND object_id > x''), -- NULL = none
  reason TEXT NOT NULL, -- why it was not taken
  notes TEXT, -- JSON array: what of it has no effect
  PRIMARY KEY (user_id, import_id, seq),
  FOREIGN KEY (user_id, import_id) REFERENCES tavern_imports (user_id, id) ON DELETE CASCADE
);

-- Which object a file became, so that importing it again adds nothing.
CREATE TABLE tavern_files (
  user_id BLOB(16) NOT NULL CHECK (length(user_id) = 16 AND user_id > x'') REFERENCES users (id) ON DELETE CASCADE,
  id BLOB(16) NOT NULL CHECK (length(id) = 16 AND id > x''),
  file_key TEXT NOT NULL, -- kind, digest, and what else tells it from others
  kind TEXT NOT NULL,
  path TEXT NOT NULL, -- in the folder
  digest TEXT NOT NULL, -- SHA-256 of its content, in hexadecimal
  size BIGINT NOT NULL,
  object_kind TEXT NOT NULL,
  object_id BLOB(16) CHECK (length(object_id) = 16 AND object_id > x''), -- NULL = it is kept as a file alone
  times BIGINT NOT NULL, -- how often it became an object
  version BIGINT NOT NULL, -- of the object, when the import was done with it; 0 = it has none
  parts BIGINT NOT NULL, -- of its content, in tavern_contents; 0 = it is not kept
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  UNIQUE (user_id, file_key)
);
CREATE INDEX tavern_files_path ON tavern_files (user_id, kind, path);
CREATE INDEX tavern_files_object ON tavern_files (user_id, object_id);

-- The content of files that are kept byte for byte.
CREATE TABLE tavern_contents (
  user_id BLOB(16) NOT NULL CHECK (length(user_id) = 16 AND user_id > x''),
  file_id BLOB(16) NOT NULL CHECK (length(file_id) = 16 AND file_id > x''),
  part BIGINT NOT NULL, -- from 0; each but the last one has 1 MiB
  data BLOB NOT NULL,
  PRIMARY KEY (user_id, file_id, part),
  FOREIGN KEY (user_id, file_id) REFERENCES tavern_files (user_id, id) ON DELETE CASCADE
);

-- The planner is to believe this, as at the end of the first migration.
INSERT INTO sqlite_stat1 (tbl, idx, stat)
WITH key_columns AS (
  SELECT t.name AS tbl, i.name AS idx, c.seqno,
    CASE WHEN i.partial THEN 17 ELSE 24 END AS all_bits,
    SUM(CASE WHEN c.name = 'user_id' THEN 4 WHEN c.name = 'kind' THEN 1 ELSE 21 END) OVER (PARTITION BY i.name ORDER BY c.seqno) AS bits,
    i."unique" AND c.seqno = MAX(c.seqno) OVER (PARTITION BY i.name) AS is_one
  FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_info(i.name) c
  WHERE t.type = 'table' AND t.name IN ('tavern_imports', 'tavern_parts', 'tavern_reports', 'tavern_files', 'tavern_contents')
    AND EXISTS (SELECT 1 FROM pragma_index_info(i.name) f WHERE f.seqno = 0 AND f.name = 'user_id')
  ORDER BY i.name, c.seqno
)
SELECT tbl, idx, (1 << all_bits) || ' ' || GROUP_CONCAT(1 << CASE WHEN is_one THEN 0 ELSE MAX(all_bits - bits, 0) END, ' ')
FROM key_columns GROUP BY tbl, idx;
ANALYZE sqlite_schema; -- loads it
