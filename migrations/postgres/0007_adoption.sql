-- Conversations that are older than memories come into them, and vectors are packed.

-- +goose Up

-- Messages up to old_seq may have been said before there were memories; those up to
-- heard_seq are in them. Where the user had memories removed nothing is heard anew.
ALTER TABLE conversations ADD COLUMN old_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN heard_seq BIGINT NOT NULL DEFAULT 0;
UPDATE conversations SET old_seq = message_seq WHERE NOT EXISTS (SELECT 1 FROM memory_scopes o
  WHERE o.user_id = conversations.user_id AND o.character_id = conversations.character_id AND o.whole_version > 1);
CREATE INDEX conversations_unheard ON conversations (id) WHERE heard_seq < old_seq;

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
