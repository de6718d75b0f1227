-- Vectors are packed.

-- +goose Up

-- Those of before were numbers of four bytes; they are made anew. A scope's lie
-- together: they are read at once.
DROP TABLE memory_vectors;
CREATE TABLE memory_vectors (
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  model TEXT NOT NULL,
  vector BYTEA NOT NULL, -- a signed byte for each number (index.Packed)
  PRIMARY KEY (user_id, character_id, hash, model)
);
