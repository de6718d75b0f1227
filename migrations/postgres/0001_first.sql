-- Ids are UUIDv7 strings, times whole milliseconds since 1970 UTC, documents the
-- text that came in. A row that names a user is readable by that user alone.

-- +goose Up
CREATE TABLE users (
  id TEXT NOT NULL PRIMARY KEY,
  username TEXT NOT NULL,
  username_key TEXT NOT NULL UNIQUE, -- without case
  role TEXT NOT NULL,
  tokens_per_day BIGINT NOT NULL,
  generations BIGINT NOT NULL,
  password_hash TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE tokens (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  hash BYTEA NOT NULL UNIQUE,
  is_session BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  expires_at BIGINT
);
CREATE INDEX tokens_user ON tokens (user_id);

CREATE TABLE tickets (
  hash BYTEA NOT NULL PRIMARY KEY,
  purpose TEXT NOT NULL,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_user ON tickets (user_id);
CREATE INDEX tickets_expiry ON tickets (expires_at);

CREATE TABLE provider_keys (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, provider)
);

CREATE TABLE settings (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  document TEXT NOT NULL,
  custom_setting TEXT,
  version BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE devices (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  device_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  read_marks TEXT NOT NULL, -- JSON object: conversation id to message id
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, device_id)
);

CREATE TABLE usage_days (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  day TEXT NOT NULL, -- 2006-01-02, UTC
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  cost_usd DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (user_id, day, provider, model)
);

-- What idempotent commands answered.
CREATE TABLE call_keys (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  call_key TEXT NOT NULL,
  hash TEXT NOT NULL,
  reply TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, call_key)
);
CREATE INDEX call_keys_age ON call_keys (created_at);

-- One row per user: the end of the user's event log.
CREATE TABLE streams (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  epoch TEXT NOT NULL,
  seq BIGINT NOT NULL
);

CREATE TABLE events (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  type TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  generation_id TEXT NOT NULL,
  device TEXT NOT NULL,
  at BIGINT NOT NULL,
  data TEXT,
  PRIMARY KEY (user_id, seq)
);

CREATE TABLE characters (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT
);
CREATE INDEX characters_list ON characters (user_id, created_at, id);
CREATE INDEX characters_deleted ON characters (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE character_versions (
  character_id TEXT NOT NULL REFERENCES characters (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  dialect TEXT NOT NULL,
  is_cradle BOOLEAN NOT NULL,
  role_card TEXT,
  world_book TEXT,
  preset TEXT,
  author_note TEXT,
  regex_scripts TEXT,
  settings TEXT,
  source TEXT,
  source_version BIGINT NOT NULL, -- version whose row holds the source
  created_at BIGINT NOT NULL,
  PRIMARY KEY (character_id, version)
);

CREATE TABLE avatars (
  character_id TEXT NOT NULL PRIMARY KEY REFERENCES characters (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL,
  content_type TEXT NOT NULL,
  etag TEXT NOT NULL,
  data BYTEA NOT NULL
);

CREATE TABLE resources (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  bind_all BOOLEAN NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT
);
CREATE INDEX resources_list ON resources (user_id, kind, created_at, id);
CREATE INDEX resources_deleted ON resources (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE resource_versions (
  resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  dialect TEXT NOT NULL,
  document TEXT,
  bind_all BOOLEAN NOT NULL,
  character_ids TEXT NOT NULL, -- JSON array
  created_at BIGINT NOT NULL,
  PRIMARY KEY (resource_id, version)
);

-- Which characters the newest version of a resource is bound to.
CREATE TABLE resource_bindings (
  resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
  character_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  PRIMARY KEY (resource_id, character_id)
);
CREATE INDEX resource_bindings_character ON resource_bindings (user_id, character_id);

CREATE TABLE conversations (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  character_id TEXT NOT NULL,
  title TEXT NOT NULL,
  persona_id TEXT NOT NULL,
  head_id TEXT NOT NULL,
  author_note TEXT,
  settings TEXT,
  archived BOOLEAN NOT NULL,
  extra TEXT, -- header of an imported log
  version BIGINT NOT NULL,
  last_message TEXT,
  message_seq BIGINT NOT NULL, -- newest seq given to a message
  documents_version BIGINT NOT NULL, -- version at which author_note or settings changed last
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT
);
CREATE INDEX conversations_list ON conversations (user_id, updated_at, id);
CREATE INDEX conversations_character ON conversations (user_id, character_id, updated_at, id);
CREATE INDEX conversations_deleted ON conversations (deleted_at) WHERE deleted_at IS NOT NULL;

-- Every state a conversation had.
CREATE TABLE conversation_states (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  head_id TEXT NOT NULL,
  persona_id TEXT NOT NULL,
  author_note TEXT,
  settings TEXT,
  documents_version BIGINT NOT NULL, -- version whose row holds author_note and settings
  created_at BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, version)
);

CREATE TABLE messages (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  parent_id TEXT NOT NULL, -- '' = a root
  client_msg_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  author_id TEXT NOT NULL,
  is_greeting BOOLEAN NOT NULL,
  is_hidden BOOLEAN NOT NULL, -- never in a prompt
  swipe_index BIGINT NOT NULL,
  rev BIGINT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  generation_id TEXT NOT NULL,
  extra TEXT, -- line of an imported log
  created_at BIGINT NOT NULL,
  edited_at BIGINT,
  deleted_at BIGINT
);
CREATE UNIQUE INDEX messages_seq ON messages (conversation_id, seq);
CREATE UNIQUE INDEX messages_client ON messages (conversation_id, client_msg_id) WHERE client_msg_id <> '';
CREATE INDEX messages_parent ON messages (conversation_id, parent_id, seq);
CREATE INDEX messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL;

-- The places for texts at a message, each with its newest revision.
CREATE TABLE swipes (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  position BIGINT NOT NULL, -- from 0
  rev BIGINT NOT NULL,
  revision_id TEXT NOT NULL,
  is_deleted BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (message_id, id)
);

-- Immutable texts.
CREATE TABLE revisions (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  swipe_id TEXT NOT NULL,
  rev BIGINT NOT NULL,
  text TEXT NOT NULL,
  reasoning TEXT NOT NULL,
  blocks TEXT,
  model TEXT NOT NULL,
  finish TEXT NOT NULL,
  usage TEXT,
  generation_id TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX revisions_message ON revisions (message_id, swipe_id, rev);

-- Which text each message showed at which version of its conversation: a row
-- holds from its version until the message's next row.
CREATE TABLE message_states (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  version BIGINT NOT NULL, -- of the conversation
  user_id TEXT NOT NULL,
  rev BIGINT NOT NULL,
  revision_id TEXT NOT NULL, -- of the chosen swipe; '' = none
  status TEXT NOT NULL,
  is_deleted BOOLEAN NOT NULL,
  PRIMARY KEY (conversation_id, message_id, version)
);

CREATE TABLE generations (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  swipe_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  is_open BOOLEAN NOT NULL, -- has not ended
  finish TEXT NOT NULL,
  options TEXT NOT NULL,
  instruction TEXT NOT NULL,
  device TEXT NOT NULL,
  model TEXT NOT NULL,
  prompt_id TEXT NOT NULL,
  text TEXT NOT NULL,
  reasoning TEXT NOT NULL,
  blocks TEXT,
  base TEXT NOT NULL,
  usage TEXT,
  error TEXT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  first_token_at BIGINT,
  ended_at BIGINT,
  lease_owner TEXT NOT NULL,
  lease_until BIGINT NOT NULL
);
CREATE INDEX generations_conversation ON generations (conversation_id);
CREATE INDEX generations_open ON generations (user_id, created_at, id) WHERE is_open;
CREATE INDEX generations_lease ON generations (lease_until) WHERE is_open;

CREATE TABLE prompts (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  generation_id TEXT NOT NULL,
  body BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX prompts_conversation ON prompts (conversation_id, created_at, id);

-- Work in the background, of all subjects.
CREATE TABLE jobs (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL, -- area.verb
  user_id TEXT REFERENCES users (id) ON DELETE CASCADE, -- NULL = the server's own
  subject TEXT NOT NULL,
  payload TEXT,
  state TEXT NOT NULL, -- queued, running, done, failed, cancelled
  progress TEXT,
  attempt BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until BIGINT NOT NULL,
  error TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX jobs_one_open ON jobs (kind, subject) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_queue ON jobs (state, not_before);
CREATE INDEX jobs_user ON jobs (user_id);
