-- Memory: what was said, facts with their versions, vectors, and summaries.

-- +goose Up
-- The version of what a search index of a scope is made of.
CREATE TABLE memory_scopes (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  whole_version BIGINT NOT NULL, -- an index that is older must be loaded whole
  PRIMARY KEY (user_id, character_id)
);

-- A text that was said, by its revision; the text itself is in revisions.
CREATE TABLE memory_texts (
  revision_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  sitting BIGINT NOT NULL,
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  terms TEXT NOT NULL,
  hash TEXT NOT NULL,
  is_read BOOLEAN NOT NULL,      -- by extraction
  is_forgotten BOOLEAN NOT NULL, -- by the user's wish; terms and hash are empty then
  change BIGINT NOT NULL,        -- version of the scope that changed it last
  said_at BIGINT NOT NULL
);
CREATE INDEX memory_texts_scope ON memory_texts (user_id, character_id, change);
CREATE INDEX memory_texts_chat ON memory_texts (conversation_id, seq);
CREATE INDEX memory_texts_unread ON memory_texts (conversation_id, seq) WHERE NOT is_read;
CREATE INDEX memory_texts_hash ON memory_texts (user_id, character_id, hash);
CREATE INDEX memory_texts_message ON memory_texts (message_id);

-- Every version of every fact.
CREATE TABLE memories (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL, -- '' = none
  root_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  text TEXT NOT NULL,
  terms TEXT NOT NULL,
  hash TEXT NOT NULL,
  subject TEXT NOT NULL,
  kind TEXT NOT NULL,
  importance DOUBLE PRECISION NOT NULL,
  event_time BIGINT,
  evidence TEXT, -- JSON array
  ended_by TEXT, -- likewise: why a run retired it
  origin TEXT NOT NULL,
  is_pinned BOOLEAN NOT NULL,
  is_locked BOOLEAN NOT NULL,
  status TEXT NOT NULL,
  superseded_by TEXT NOT NULL,
  seen_count BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  last_used_at BIGINT,
  change BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX memories_version ON memories (root_id, version);
CREATE UNIQUE INDEX memories_active ON memories (user_id, character_id, hash) WHERE status = 'active';
CREATE INDEX memories_scope ON memories (user_id, character_id, change);
CREATE INDEX memories_list ON memories (user_id, character_id, status, id);
CREATE INDEX memories_hash ON memories (user_id, character_id, hash);

-- Vectors by content, so that equal texts are embedded once.
CREATE TABLE memory_vectors (
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  model TEXT NOT NULL,
  vector BYTEA NOT NULL, -- float32, little endian
  PRIMARY KEY (user_id, character_id, hash, model)
);

CREATE TABLE memory_tombstones (
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  evidence TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, hash)
);

CREATE TABLE memory_suggestions (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  memory_id TEXT NOT NULL,
  event TEXT NOT NULL,
  text TEXT NOT NULL,
  reason TEXT NOT NULL,
  evidence TEXT,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX memory_suggestions_list ON memory_suggestions (user_id, character_id, state, id);

-- Why a unit was sent with a text.
CREATE TABLE memory_uses (
  revision_id TEXT NOT NULL,
  rank BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  unit_id TEXT NOT NULL,
  layer TEXT NOT NULL,
  score DOUBLE PRECISION NOT NULL,
  signals TEXT,
  PRIMARY KEY (revision_id, rank)
);
CREATE INDEX memory_uses_message ON memory_uses (message_id);
CREATE INDEX memory_uses_unit ON memory_uses (user_id, unit_id);
ALTER TABLE revisions ADD COLUMN memory_ids TEXT; -- JSON array: units that were sent for it

-- Summaries: overlays for the messages from start_seq on to end_id on its branch.
CREATE TABLE summaries (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  generation BIGINT NOT NULL,
  start_seq BIGINT NOT NULL,
  end_id TEXT NOT NULL,
  made_version BIGINT NOT NULL, -- of the conversation: the text is about the messages of then
  head_seq BIGINT NOT NULL, -- of the newest message when it was made
  view_length BIGINT NOT NULL, -- of what was sent of the chat with it, in UTF-16 units
  created_at BIGINT NOT NULL,
  deleted_at BIGINT
);
CREATE UNIQUE INDEX summaries_generation ON summaries (conversation_id, generation);

-- What a summary says from a version of its conversation on.
CREATE TABLE summary_texts (
  summary_id TEXT NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  document TEXT NOT NULL, -- SummaryData
  PRIMARY KEY (summary_id, version)
);
ALTER TABLE conversations ADD COLUMN summary_id TEXT NOT NULL DEFAULT '';
ALTER TABLE conversation_states ADD COLUMN summary_id TEXT NOT NULL DEFAULT '';
