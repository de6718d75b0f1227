-- A column that is called id, or ends in _id, holds UUIDv7, and NULL for none (store/sqldb/id.go).
-- Times are whole milliseconds since 1970 UTC, documents JSON texts as they came in: jsonb would
-- change them. Long JSON that only the program reads, and vectors, are zstd frames (package
-- codec). docs/disk.md shows how to read all this. A row that names a user is
-- readable by that user alone: the keys of such a table lead with the user, and its foreign
-- keys stay with the user. Its other indexes lead with the column that selects most:
-- PostgreSQL knows nothing of a table that was not analysed yet, and chooses well between
-- such indexes all the same.
-- Texts have the order of their bytes, as on SQLite, whatever the language of the database.
-- Tables that grow with each turn begin with their numbers, the long ones first, so that there are
-- no gaps before them; what counts within a chat or a memory has four bytes there. Their indexes that
-- grow at an end and seldom change elsewhere fill their pages, as those of SQLite do.

-- +goose Up

-- Users, and how they sign in.

CREATE TABLE users (
  id UUID NOT NULL PRIMARY KEY,
  username TEXT COLLATE "C" NOT NULL,
  username_key TEXT COLLATE "C" NOT NULL UNIQUE, -- without case
  role TEXT COLLATE "C" NOT NULL,
  tokens_per_day BIGINT NOT NULL,
  generations BIGINT NOT NULL,
  max_bytes BIGINT NOT NULL,
  password_hash TEXT COLLATE "C" NOT NULL,
  time_zone TEXT COLLATE "C" NOT NULL DEFAULT '', -- that a device reported last, as an IANA name
  created_at BIGINT NOT NULL
);

CREATE TABLE tokens (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  hash BYTEA NOT NULL UNIQUE,
  is_session BOOLEAN NOT NULL,
  parent_id UUID, -- the token that it was made with and ends with, which may be an owner's; NULL = none
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  expires_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX tokens_id ON tokens (id);
CREATE INDEX tokens_parent ON tokens (parent_id);

CREATE TABLE tickets (
  hash BYTEA NOT NULL PRIMARY KEY,
  purpose TEXT COLLATE "C" NOT NULL,
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  token_hash BYTEA, -- hash of the token that it was made with and ends with; NULL = none
  expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_user ON tickets (user_id);
CREATE INDEX tickets_expiry ON tickets (expires_at);

CREATE TABLE provider_keys (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, provider)
);

-- A user's settings, devices, and use of models.

CREATE TABLE settings (
  user_id UUID NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  document TEXT COLLATE "C" NOT NULL,
  custom_setting TEXT COLLATE "C",
  version BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- The variables that macros share in all chats of a user.
CREATE TABLE user_variables (
  user_id UUID NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  document TEXT COLLATE "C" NOT NULL -- JSON object
);

CREATE TABLE devices (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  device TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  read_marks TEXT COLLATE "C" NOT NULL, -- JSON object: conversation id to message id
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, device)
);

-- Counts of what a user has, by kind; too high where rows were removed since they were counted.
CREATE TABLE quotas (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT COLLATE "C" NOT NULL,
  used BIGINT NOT NULL,
  counted_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, kind)
);

CREATE TABLE usage_days (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  day TEXT COLLATE "C" NOT NULL, -- 2006-01-02, UTC
  provider TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  prompt_tokens BIGINT NOT NULL,
  completion_tokens BIGINT NOT NULL,
  cost_usd DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (user_id, day, provider, model)
);

-- Commands and events: what idempotent commands answered, and the event log.

CREATE TABLE call_keys (
  created_at BIGINT NOT NULL,
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  call_key TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  is_short BOOLEAN NOT NULL, -- the answer was long: the reply has only its ids
  reply BYTEA, -- JSON, as a zstd frame if it is long; NULL = what it named was purged
  PRIMARY KEY (user_id, call_key)
);
CREATE INDEX call_keys_age ON call_keys (created_at);

-- One row per user: the end of the user's event log.
CREATE TABLE streams (
  user_id UUID NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  epoch TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL
);

-- A row has the events of one transaction, or up to 100 of them: seq is that of the first.
-- Its entries are lines of JSON, as a zstd frame if they are long; texts of messages are references
-- to revisions.
CREATE TABLE events (
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  entries BYTEA NOT NULL,
  PRIMARY KEY (user_id, seq) WITH (fillfactor = 100)
);

-- Characters, and the resources that are bound to them: presets, world books, …

CREATE TABLE characters (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX characters_list ON characters (user_id, created_at, id);
CREATE INDEX characters_deleted ON characters (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX characters_gone ON characters (user_id, deleted_at, id) WHERE deleted_at IS NOT NULL;

CREATE TABLE character_versions (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  version BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  dialect TEXT COLLATE "C" NOT NULL,
  is_cradle BOOLEAN NOT NULL,
  role_card TEXT COLLATE "C",
  world_book TEXT COLLATE "C",
  preset TEXT COLLATE "C",
  author_note TEXT COLLATE "C",
  regex_scripts TEXT COLLATE "C",
  settings TEXT COLLATE "C",
  source TEXT COLLATE "C",
  documents_version BIGINT NOT NULL, -- newest version up to it that changed more than tags and archived
  tags TEXT COLLATE "C", -- JSON array
  archived BOOLEAN NOT NULL,
  source_version BIGINT NOT NULL, -- version whose row holds the source
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, version),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

CREATE TABLE avatars (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  content_type TEXT COLLATE "C" NOT NULL,
  etag TEXT COLLATE "C" NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (user_id, character_id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

CREATE TABLE resources (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  bind_all BOOLEAN NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX resources_list ON resources (user_id, kind, created_at, id);
CREATE INDEX resources_deleted ON resources (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX resources_gone ON resources (user_id, deleted_at, id) WHERE deleted_at IS NOT NULL;

CREATE TABLE resource_versions (
  user_id UUID NOT NULL,
  resource_id UUID NOT NULL,
  version BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  dialect TEXT COLLATE "C" NOT NULL,
  document TEXT COLLATE "C",
  bind_all BOOLEAN NOT NULL,
  character_ids TEXT COLLATE "C", -- JSON array
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, resource_id, version),
  FOREIGN KEY (user_id, resource_id) REFERENCES resources (user_id, id) ON DELETE CASCADE
);

-- Which characters the newest version of a resource is bound to.
CREATE TABLE resource_bindings (
  user_id UUID NOT NULL,
  resource_id UUID NOT NULL,
  character_id UUID NOT NULL,
  PRIMARY KEY (user_id, resource_id, character_id),
  FOREIGN KEY (user_id, resource_id) REFERENCES resources (user_id, id) ON DELETE CASCADE
);

-- Conversations, with every state that they had.

CREATE TABLE conversations (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  character_id UUID,
  title TEXT COLLATE "C" NOT NULL,
  persona_id UUID,
  head_id UUID,
  author_note TEXT COLLATE "C",
  settings TEXT COLLATE "C",
  archived BOOLEAN NOT NULL,
  tags TEXT COLLATE "C", -- JSON array
  extra TEXT COLLATE "C", -- header of an imported log
  pins TEXT COLLATE "C",
  summary_id UUID, -- the active one; NULL = none
  play_id UUID, -- the row of play_states in force; NULL = none
  version BIGINT NOT NULL,
  last_message TEXT COLLATE "C",
  message_seq BIGINT NOT NULL, -- newest seq given to a message
  documents_version BIGINT NOT NULL, -- version at which author_note, settings or pins changed last
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX conversations_list ON conversations (user_id, updated_at, id);
CREATE INDEX conversations_character ON conversations (user_id, character_id, updated_at, id);
CREATE INDEX conversations_deleted ON conversations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX conversations_gone ON conversations (user_id, deleted_at, id) WHERE deleted_at IS NOT NULL;

CREATE TABLE conversation_states (
  version INTEGER NOT NULL, -- the first one with this state
  documents_version INTEGER NOT NULL, -- version whose row holds author_note, settings and pins
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  head_id UUID,
  persona_id UUID,
  summary_id UUID,
  play_id UUID,
  author_note TEXT COLLATE "C",
  settings TEXT COLLATE "C",
  pins TEXT COLLATE "C",
  PRIMARY KEY (user_id, conversation_id, version) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

-- State of a branch of a conversation beside its texts: the variables of its macros, and the entries of world
-- books that are on or off for some messages. Rows do not change: a reply that changes something makes another.
CREATE TABLE play_states (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  document BYTEA NOT NULL, -- JSON, as a zstd frame if it is long
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX play_states_conversation ON play_states (conversation_id);

-- Versions that went back to an older one.
CREATE TABLE rewinds (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  version BIGINT NOT NULL,
  to_version BIGINT NOT NULL,
  PRIMARY KEY (user_id, conversation_id, version),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

CREATE TABLE saves (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  character_id UUID,
  version BIGINT NOT NULL, -- version of the conversation
  head_id UUID,
  description TEXT COLLATE "C" NOT NULL,
  preview_text TEXT COLLATE "C" NOT NULL,
  message_count BIGINT NOT NULL,
  is_automatic BOOLEAN NOT NULL,
  thumbnail TEXT COLLATE "C" NOT NULL,
  pins TEXT COLLATE "C",
  extra TEXT COLLATE "C",
  imported_at BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX saves_list ON saves (conversation_id, created_at, id);

-- The resources that a save point needs; they are not purged.
CREATE TABLE save_resources (
  user_id UUID NOT NULL,
  save_id UUID NOT NULL,
  resource_id UUID NOT NULL,
  PRIMARY KEY (user_id, save_id, resource_id),
  FOREIGN KEY (user_id, save_id) REFERENCES saves (user_id, id) ON DELETE CASCADE
);
CREATE INDEX save_resources_resource ON save_resources (resource_id);

-- Names by which the user's app knows conversations (NodeST interface).
CREATE TABLE app_chats (
  user_id UUID NOT NULL,
  app_key TEXT COLLATE "C" NOT NULL,
  conversation_id UUID NOT NULL,
  PRIMARY KEY (user_id, app_key),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX app_chats_conversation ON app_chats (conversation_id);

-- Names by which the user's app knows characters (NodeST interface).
CREATE TABLE app_characters (
  user_id UUID NOT NULL,
  app_key TEXT COLLATE "C" NOT NULL,
  character_id UUID NOT NULL,
  PRIMARY KEY (user_id, app_key),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX app_characters_character ON app_characters (character_id);

-- Messages with their texts. chain numbers the unbranched runs of a tree: a first
-- child goes on with its parent's, another child begins one, named by its own seq.
-- 0 is that of the copied messages of a fork. A path is a beginning of one chain,
-- then of another, …

CREATE TABLE messages (
  created_at BIGINT NOT NULL,
  seq INTEGER NOT NULL,
  depth INTEGER NOT NULL, -- messages from the root to it, itself included
  chain INTEGER NOT NULL,
  swipe_index INTEGER NOT NULL,
  rev INTEGER NOT NULL,
  since INTEGER NOT NULL, -- version of the conversation from which on it has its only state; 0 = see message_states
  edited_at BIGINT,
  deleted_at BIGINT,
  is_greeting BOOLEAN NOT NULL,
  is_hidden BOOLEAN NOT NULL, -- never in a prompt
  is_imported BOOLEAN NOT NULL, -- it has a row in message_lines
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  parent_id UUID, -- NULL = a root
  client_msg_key TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  author_key TEXT COLLATE "C" NOT NULL, -- the client's name of its author; '' = none
  status TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C",
  generation_id UUID,
  PRIMARY KEY (user_id, id) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX messages_seq ON messages (user_id, conversation_id, seq) WITH (fillfactor = 100);
CREATE UNIQUE INDEX messages_client ON messages (user_id, conversation_id, client_msg_key) WHERE client_msg_key <> '';
-- Children that do not go on with the chain of their parent, and roots.
CREATE INDEX messages_branch ON messages (conversation_id, parent_id, seq) WHERE chain = seq;
CREATE INDEX messages_chain ON messages (conversation_id, chain, depth) WITH (fillfactor = 100);
CREATE INDEX messages_gone ON messages (conversation_id, chain, depth) WHERE deleted_at IS NOT NULL;
CREATE INDEX messages_hidden ON messages (conversation_id, chain, depth) WHERE is_hidden AND deleted_at IS NULL;
CREATE INDEX messages_deleted ON messages (deleted_at) WHERE deleted_at IS NOT NULL;

-- The lines of imported logs as they came. They are not in messages, because a message is written again
-- whenever it changes.
CREATE TABLE message_lines (
  user_id UUID NOT NULL,
  message_id UUID NOT NULL,
  line TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, message_id),
  FOREIGN KEY (user_id, message_id) REFERENCES messages (user_id, id) ON DELETE CASCADE
);

-- Imports that take several transactions. What they store is hidden until the last one.
CREATE TABLE loads (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  chain BIGINT NOT NULL, -- that the messages make; 0 = all of the conversation
  touched_at BIGINT NOT NULL, -- 0 = it is being removed
  PRIMARY KEY (user_id, conversation_id, chain),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

-- The texts of messages, which do not change. A swipe is a place for texts at a message: its rows
-- differ in their texts, and one of them is shown.
CREATE TABLE revisions (
  rev INTEGER NOT NULL,
  position INTEGER NOT NULL, -- place of the swipe, from 0
  created_at BIGINT NOT NULL,
  swipe_at BIGINT, -- when the swipe was made; NULL = with this text
  is_shown BOOLEAN NOT NULL, -- the text of the swipe
  is_deleted BOOLEAN NOT NULL, -- the swipe
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  message_id UUID NOT NULL,
  swipe_id UUID NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  reasoning TEXT COLLATE "C" NOT NULL,
  blocks TEXT COLLATE "C",
  model TEXT COLLATE "C" NOT NULL,
  requested_model TEXT COLLATE "C" NOT NULL,
  finish TEXT COLLATE "C" NOT NULL,
  usage TEXT COLLATE "C",
  generation_id UUID,
  play_id UUID, -- the row of play_states after this text; NULL = that after the text before it
  wish TEXT COLLATE "C" NOT NULL, -- the instruction that a rewrite followed
  citations TEXT COLLATE "C", -- document with the sources that the text cites, and a report
  tools TEXT COLLATE "C", -- document: how tools were used for it
  PRIMARY KEY (user_id, id) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, message_id) REFERENCES messages (user_id, id) ON DELETE CASCADE
);
CREATE INDEX revisions_message ON revisions (user_id, message_id, position) WITH (fillfactor = 100);
CREATE INDEX revisions_play ON revisions (play_id) WHERE play_id IS NOT NULL;

-- The words of messages, for the search: those of all their texts, by ranges of seq.
CREATE TABLE message_words (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL, -- in the range
  oldest_id UUID NOT NULL, -- lowest id of the messages
  newest_id UUID NOT NULL, -- highest id of the messages
  words BYTEA NOT NULL, -- a zstd frame (chat/words.go)
  PRIMARY KEY (user_id, conversation_id, first_seq),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
ALTER TABLE message_words ALTER COLUMN words SET STORAGE EXTERNAL; -- it is compressed already

-- Which text each message showed at which version of its conversation: a row
-- holds from its version until the message's next row. A reply has the text that it
-- became from the version of its placeholder on. Most messages do not change after that: they
-- have no rows here, see messages.since.
CREATE TABLE message_states (
  version INTEGER NOT NULL, -- version of the conversation
  previous INTEGER NOT NULL, -- version of the message's state before this one; 0 = none
  rev INTEGER NOT NULL,
  is_deleted BOOLEAN NOT NULL,
  is_hidden BOOLEAN NOT NULL,
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  message_id UUID NOT NULL,
  revision_id UUID, -- text of the chosen swipe; NULL = none
  status TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, conversation_id, message_id, version),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
-- States that replaced another one.
CREATE INDEX message_states_version ON message_states (conversation_id, version, previous, message_id)
  WHERE previous > 0;

-- Replies that are or were generated, and the prompts that were sent for them.

CREATE TABLE generations (
  created_at BIGINT NOT NULL,
  lease_until BIGINT NOT NULL,
  started_at BIGINT,
  first_token_at BIGINT,
  ended_at BIGINT,
  is_open BOOLEAN NOT NULL, -- has not ended
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  message_id UUID,
  swipe_id UUID,
  kind TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  finish TEXT COLLATE "C" NOT NULL,
  options TEXT COLLATE "C" NOT NULL,
  instruction TEXT COLLATE "C" NOT NULL,
  device TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  requested_model TEXT COLLATE "C" NOT NULL,
  prompt_id UUID, -- NULL = its own, or none before it was started
  play_id UUID, -- that its text will have
  globals TEXT COLLATE "C", -- changes of the user's variables by its text; NULL = none, or it has made them
  text TEXT COLLATE "C" NOT NULL,
  reasoning TEXT COLLATE "C" NOT NULL,
  blocks TEXT COLLATE "C",
  base TEXT COLLATE "C" NOT NULL,
  usage TEXT COLLATE "C",
  error TEXT COLLATE "C",
  tools TEXT COLLATE "C", -- document: how tools were used
  timing TEXT COLLATE "C", -- when its steps were, in milliseconds since created_at
  lease_owner TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX generations_conversation ON generations (conversation_id);
CREATE INDEX generations_open ON generations (user_id, created_at, id) WHERE is_open;

-- The units of memory that the prompts of generations contain. A fork has copies of the rows whose texts it has.
-- A generation has a unit once: its rows are stored with its prompt, whose key holds that. The index names
-- no unit, so that it has each generation once, which is a fifth of the bytes of a primary key.
CREATE TABLE memory_uses (
  score INTEGER, -- the sum of the signals, in ten-thousandths; NULL = a copy in a fork
  rank INTEGER NOT NULL, -- from 1
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  generation_id UUID NOT NULL,
  unit_id UUID NOT NULL, -- a revision, or a version of a fact
  layer TEXT COLLATE "C" NOT NULL, -- e = exchange, f = fact, p = profile: a fact that was there anyway
  signals TEXT COLLATE "C", -- JSON array, likewise: words, near, around, session, answer, speaker, day, kind, length, vector, spelling, recency,
  -- importance, profile, feedback, exploration; zeros at the end can be missing; NULL = a copy, or the generation ended more than 90 days ago
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX memory_uses_key ON memory_uses (user_id, conversation_id, generation_id) WITH (fillfactor = 100);

CREATE TABLE prompts (
  created_at BIGINT NOT NULL,
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  generation_id UUID, -- NULL = the same id
  body BYTEA NOT NULL, -- JSON, as a zstd frame if it is long; it refers to the chat and to recalled texts (nodest/record)
  PRIMARY KEY (user_id, id) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX prompts_conversation ON prompts (conversation_id, id) WITH (fillfactor = 100);

-- Documents that prompts may have texts of. Their owner may be another user. A character stands for the documents of its memory.
CREATE TABLE prompt_files (
  user_id UUID NOT NULL,
  prompt_id UUID NOT NULL,
  file_id UUID NOT NULL,
  PRIMARY KEY (user_id, prompt_id, file_id),
  FOREIGN KEY (user_id, prompt_id) REFERENCES prompts (user_id, id) ON DELETE CASCADE
);
CREATE INDEX prompt_files_file ON prompt_files (file_id);

-- Summaries: overlays for messages of a branch, up to end_id.

CREATE TABLE summaries (
  generation INTEGER NOT NULL,
  made_version INTEGER NOT NULL, -- version of the conversation: the text is about the messages of then
  head_seq INTEGER NOT NULL, -- seq of the newest message when it was made
  view_length INTEGER NOT NULL, -- length of what was sent of the chat with it, in UTF-16 units
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  end_id UUID NOT NULL,
  PRIMARY KEY (user_id, id) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX summaries_generation ON summaries (user_id, conversation_id, generation) WITH (fillfactor = 100);

-- The text of a summary from a version of its conversation on.
CREATE TABLE summary_texts (
  version INTEGER NOT NULL,
  user_id UUID NOT NULL,
  summary_id UUID NOT NULL,
  document BYTEA NOT NULL, -- JSON, as a zstd frame if it is long
  PRIMARY KEY (user_id, summary_id, version) WITH (fillfactor = 100),
  FOREIGN KEY (user_id, summary_id) REFERENCES summaries (user_id, id) ON DELETE CASCADE
);

-- Memory: the texts of chats, and facts with their versions, each with its vector. A scope
-- is one user and one character.

-- The version of what a search index of a scope is made of.
CREATE TABLE memory_scopes (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  version BIGINT NOT NULL,
  whole_version BIGINT NOT NULL, -- an index that is older must be loaded whole
  embedded_model TEXT COLLATE "C" NOT NULL,
  embedded_change BIGINT NOT NULL, -- rows up to this change have a vector of embedded_model, or were refused
  models TEXT COLLATE "C", -- JSON array: who made the vectors of the scope; a row has the number of its model, from 1
  PRIMARY KEY (user_id, character_id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

-- One row for each revision; the text itself is in revisions, with its message.
CREATE TABLE memory_texts (
  said_at BIGINT NOT NULL,
  seq INTEGER NOT NULL,
  session INTEGER NOT NULL,
  first_change INTEGER NOT NULL,  -- version of the scope that added it
  change INTEGER NOT NULL,        -- version of the scope that changed it last; 0 = it is being copied
  model INTEGER NOT NULL, -- model of the vector; 0 = none
  is_read BOOLEAN NOT NULL,      -- by extraction
  is_forgotten BOOLEAN NOT NULL, -- by the user; name and hash are empty then
  is_buried BOOLEAN NOT NULL,    -- the user purged a fact that was taken from it
  is_used BOOLEAN NOT NULL DEFAULT FALSE, -- a prompt has had it
  user_id UUID NOT NULL,
  revision_id UUID NOT NULL,
  character_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  vector BYTEA, -- a scale and a signed byte for each number (decision 0012), as a zstd frame if that is shorter
  PRIMARY KEY (user_id, revision_id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE,
  FOREIGN KEY (user_id, revision_id) REFERENCES revisions (user_id, id) ON DELETE CASCADE
);
CREATE INDEX memory_texts_scope ON memory_texts (character_id, change);
CREATE INDEX memory_texts_chat ON memory_texts (conversation_id, seq);
CREATE INDEX memory_texts_unread ON memory_texts (conversation_id, seq) WHERE NOT is_read;

-- Every version of every fact.
CREATE TABLE memories (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  conversation_id UUID, -- NULL = none
  root_id UUID NOT NULL,
  version BIGINT NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  importance DOUBLE PRECISION NOT NULL,
  event_time BIGINT,
  evidence TEXT COLLATE "C", -- JSON array
  ended_by TEXT COLLATE "C", -- likewise: why a run retired it
  origin TEXT COLLATE "C" NOT NULL,
  source_id UUID, -- post or comment of the circle that it was made of; NULL = none
  is_pinned BOOLEAN NOT NULL,
  is_locked BOOLEAN NOT NULL,
  is_shareable BOOLEAN NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  superseded_by_id UUID,
  seen_count BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  last_used_at BIGINT,
  first_change BIGINT NOT NULL,
  change BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  model BIGINT NOT NULL, -- as in memory_texts
  vector BYTEA,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX memories_version ON memories (user_id, root_id, version);
CREATE UNIQUE INDEX memories_active ON memories (user_id, character_id, hash) WHERE status = 'active';
CREATE INDEX memories_scope ON memories (character_id, change);
CREATE INDEX memories_list ON memories (character_id, status, id);
CREATE INDEX memories_hash ON memories (character_id, hash);
CREATE INDEX memories_source ON memories (user_id, source_id) WHERE source_id IS NOT NULL;

-- Stored search indexes. A segment has the rows of a scope whose change was within its range
-- when it was built. The ranges of a scope do not overlap.
CREATE TABLE memory_segments (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  id UUID NOT NULL,
  from_change BIGINT NOT NULL, -- not in the range
  to_change BIGINT NOT NULL,   -- in it
  units BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

-- Parts of segments; those of a segment that is not listed above are unfinished.
CREATE TABLE memory_segment_parts (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  segment_id UUID NOT NULL,
  part BIGINT NOT NULL, -- from 0
  data BYTEA NOT NULL,
  PRIMARY KEY (user_id, character_id, segment_id, part),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
ALTER TABLE memory_segment_parts ALTER COLUMN data SET STORAGE EXTERNAL; -- it is dense already

-- Contents that the user purged; extraction does not bring them back.
CREATE TABLE memory_tombstones (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  evidence TEXT COLLATE "C",
  gist TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, hash),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

CREATE TABLE memory_tombstone_words (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  word TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, character_id, word, hash),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

CREATE TABLE memory_suggestions (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  memory_id UUID,
  event TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  evidence TEXT COLLATE "C",
  state TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX memory_suggestions_list ON memory_suggestions (character_id, state, id);

-- The cost of extraction from a conversation, and who has asked for it.
CREATE TABLE memory_readings (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  exchanges BIGINT NOT NULL, -- that were read automatically with a model
  calls BIGINT NOT NULL,     -- calls of the model for them, also for those that are not read yet
  ordered BIGINT NOT NULL,   -- unread texts up to this seq are to be read now; 0 = none
  PRIMARY KEY (user_id, conversation_id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

-- The documents of memories, which the user and dreams write. Path is the name.
CREATE TABLE memory_documents (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  path TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL, -- in force
  is_locked BOOLEAN NOT NULL,
  made BIGINT NOT NULL, -- lines so far: their ids count on
  PRIMARY KEY (user_id, character_id, path),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);

CREATE TABLE memory_document_versions (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  path TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  author TEXT COLLATE "C" NOT NULL,
  run_id UUID, -- NULL = the user wrote it
  size BIGINT NOT NULL, -- code points
  lines BYTEA NOT NULL, -- JSON array, as zstd if it is long
  at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, path, version),
  FOREIGN KEY (user_id, character_id, path) REFERENCES memory_documents (user_id, character_id, path) ON DELETE CASCADE
);
CREATE INDEX memory_document_versions_at ON memory_document_versions (at);

-- How far dreams have read a conversation.
CREATE TABLE dream_readings (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  reflected BIGINT NOT NULL, -- reflected_at_sequence
  PRIMARY KEY (user_id, conversation_id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

-- Dreams, and what each has done.
CREATE TABLE dream_runs (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  cause TEXT COLLATE "C" NOT NULL, -- user or night
  is_forced BOOLEAN NOT NULL,
  is_dry BOOLEAN NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  step TEXT COLLATE "C" NOT NULL,
  reflections BIGINT NOT NULL, -- that were made
  consumed BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  changes BYTEA, -- JSON array, as zstd if it is long
  failure TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  finished_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX dream_runs_list ON dream_runs (user_id, character_id, id);
CREATE INDEX dream_runs_age ON dream_runs (created_at);

-- Pages of the web that were read for a user.
CREATE TABLE web_pages (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  url TEXT COLLATE "C" NOT NULL, -- normalised
  final_url TEXT COLLATE "C" NOT NULL,
  canonical TEXT COLLATE "C" NOT NULL, -- normalised; '' = the page names none
  title TEXT COLLATE "C" NOT NULL,
  markdown TEXT COLLATE "C" NOT NULL,
  links TEXT COLLATE "C", -- JSON array
  images TEXT COLLATE "C", -- JSON array
  published BIGINT, -- NULL = unknown
  etag TEXT COLLATE "C" NOT NULL,
  last_modified TEXT COLLATE "C" NOT NULL,
  fetched_at BIGINT NOT NULL,
  fresh_until BIGINT NOT NULL, -- later it is asked for again
  PRIMARY KEY (user_id, url)
);
CREATE INDEX web_pages_age ON web_pages (fetched_at);

-- Hosts that could not be reached for a user.
CREATE TABLE web_hosts (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  host TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL, -- dns, refused or certificate
  until BIGINT NOT NULL,
  PRIMARY KEY (user_id, host)
);
CREATE INDEX web_hosts_age ON web_hosts (until);

-- Deep research. What a run has learned is in its result; how far one that is open has come, in
-- tables behind it.
CREATE TABLE research_runs (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  conversation_id UUID, -- that asks; NULL = none
  head_id UUID, -- its message that was shown last
  message_id UUID, -- its message with the answer; NULL = none
  state TEXT COLLATE "C" NOT NULL,
  plan TEXT COLLATE "C" NOT NULL, -- JSON object, with the question
  estimate TEXT COLLATE "C" NOT NULL, -- JSON object
  attempt BIGINT NOT NULL, -- attempt of the job at which something was recorded last
  cost TEXT COLLATE "C" NOT NULL, -- JSON object
  failure TEXT COLLATE "C", -- JSON object
  result BYTEA, -- JSON object without its steps, as zstd if it is long; NULL = none
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX research_runs_chat ON research_runs (user_id, conversation_id, id);
CREATE INDEX research_runs_message ON research_runs (user_id, message_id);
CREATE INDEX research_runs_open ON research_runs (user_id) WHERE state IN ('queued', 'running');
CREATE INDEX research_runs_age ON research_runs (created_at) WHERE state = 'planned';
CREATE TABLE research_steps (
  user_id UUID NOT NULL,
  run_id UUID NOT NULL,
  member BIGINT NOT NULL, -- member of the team; 0 = the run itself
  n BIGINT NOT NULL, -- from 1
  step BYTEA NOT NULL, -- JSON object, as zstd if it is long
  PRIMARY KEY (user_id, run_id, member, n),
  FOREIGN KEY (user_id, run_id) REFERENCES research_runs (user_id, id) ON DELETE CASCADE
);
-- The calls of a run that is open, so that none is made twice.
CREATE TABLE research_calls (
  user_id UUID NOT NULL,
  run_id UUID NOT NULL,
  call_key TEXT COLLATE "C" NOT NULL,
  answer BYTEA, -- JSON, as zstd if it is long; NULL = it was lost, or is being made
  reserved TEXT COLLATE "C" NOT NULL, -- JSON object: cost at most
  cost TEXT COLLATE "C", -- JSON object
  lost TEXT COLLATE "C", -- JSON object: cost at most of earlier calls of the key whose answers were lost
  begun_at BIGINT NOT NULL,
  ended_at BIGINT,
  PRIMARY KEY (user_id, run_id, call_key),
  FOREIGN KEY (user_id, run_id) REFERENCES research_runs (user_id, id) ON DELETE CASCADE
);
-- The files of which a run has read, perhaps those of another user: it goes with them.
CREATE TABLE research_files (
  user_id UUID NOT NULL,
  run_id UUID NOT NULL,
  file_id UUID NOT NULL,
  PRIMARY KEY (user_id, run_id, file_id),
  FOREIGN KEY (user_id, run_id) REFERENCES research_runs (user_id, id) ON DELETE CASCADE
);
CREATE INDEX research_files_file ON research_files (file_id);
-- The messages of which a run may have words, in its question or in what it was given of the chat: it goes with
-- the words of any of them.
CREATE TABLE research_messages (
  user_id UUID NOT NULL,
  message_id UUID NOT NULL,
  run_id UUID NOT NULL,
  PRIMARY KEY (user_id, message_id, run_id),
  FOREIGN KEY (user_id, run_id) REFERENCES research_runs (user_id, id) ON DELETE CASCADE
);
CREATE INDEX research_messages_run ON research_messages (user_id, run_id);

-- Images that users upload.
CREATE TABLE attachments (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  content_type TEXT COLLATE "C" NOT NULL,
  width BIGINT NOT NULL,
  height BIGINT NOT NULL,
  size BIGINT NOT NULL, -- bytes
  etag TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX attachments_age ON attachments (created_at);

-- The social circle. An author, target or sender is a character, or NULL for the user.

CREATE TABLE circle_posts (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  author_id UUID,
  author_name TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  text_key TEXT COLLATE "C" NOT NULL, -- equal for texts that say the same in the same words
  thoughts TEXT COLLATE "C" NOT NULL,
  emotion TEXT COLLATE "C", -- document
  evidence TEXT COLLATE "C", -- JSON array
  favorite BOOLEAN NOT NULL,
  rating BIGINT NOT NULL,
  comments BIGINT NOT NULL, -- that are not deleted
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX circle_posts_list ON circle_posts (user_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX circle_posts_author ON circle_posts (user_id, author_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX circle_posts_favorite ON circle_posts (user_id, created_at, id) WHERE favorite AND deleted_at IS NULL;
CREATE INDEX circle_posts_text ON circle_posts (user_id, text_key);
CREATE INDEX circle_posts_deleted ON circle_posts (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE circle_images (
  user_id UUID NOT NULL,
  post_id UUID NOT NULL,
  position BIGINT NOT NULL,
  attachment_id UUID NOT NULL,
  PRIMARY KEY (user_id, post_id, position),
  FOREIGN KEY (user_id, post_id) REFERENCES circle_posts (user_id, id) ON DELETE CASCADE,
  FOREIGN KEY (user_id, attachment_id) REFERENCES attachments (user_id, id) ON DELETE CASCADE
);
CREATE INDEX circle_images_attachment ON circle_images (attachment_id);

CREATE TABLE circle_comments (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  post_id UUID NOT NULL,
  author_id UUID,
  author_name TEXT COLLATE "C" NOT NULL,
  reply_to_id UUID, -- NULL = the post
  thread_id UUID,
  depth BIGINT NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  text_key TEXT COLLATE "C" NOT NULL, -- equal for texts that say the same in the same words
  thoughts TEXT COLLATE "C" NOT NULL,
  emotion TEXT COLLATE "C", -- document
  emoticon TEXT COLLATE "C" NOT NULL,
  evidence TEXT COLLATE "C", -- JSON array
  is_end BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, post_id) REFERENCES circle_posts (user_id, id) ON DELETE CASCADE
);
CREATE INDEX circle_comments_list ON circle_comments (post_id, created_at, id);
CREATE INDEX circle_comments_author ON circle_comments (author_id) WHERE author_id IS NOT NULL;
CREATE INDEX circle_comments_text ON circle_comments (user_id, text_key);
CREATE INDEX circle_comments_deleted ON circle_comments (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE circle_likes (
  user_id UUID NOT NULL,
  post_id UUID NOT NULL,
  author_id UUID,
  author_name TEXT COLLATE "C" NOT NULL,
  thoughts TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  FOREIGN KEY (user_id, post_id) REFERENCES circle_posts (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX circle_likes_one ON circle_likes (user_id, post_id, author_id) NULLS NOT DISTINCT;
CREATE INDEX circle_likes_author ON circle_likes (author_id) WHERE author_id IS NOT NULL;

-- Things that characters may do, or have done.
CREATE TABLE circle_turns (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  slot TEXT COLLATE "C" NOT NULL, -- '' = a reaction
  day TEXT COLLATE "C" NOT NULL, -- 2006-01-02 of the user; '' = a reaction
  post_id UUID,
  comment_id UUID,
  target_id UUID,
  reason TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  note TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C", -- document
  calls BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
-- One reaction to a post or a comment, and one post for a slot, over any number of
-- processes.
CREATE UNIQUE INDEX circle_turns_post ON circle_turns (user_id, post_id, comment_id, character_id) NULLS NOT DISTINCT WHERE post_id IS NOT NULL;
CREATE UNIQUE INDEX circle_turns_slot ON circle_turns (user_id, day, slot, character_id) WHERE slot <> '';
CREATE INDEX circle_turns_list ON circle_turns (user_id, created_at, id);
CREATE INDEX circle_turns_character ON circle_turns (character_id, created_at, id);
CREATE INDEX circle_turns_recent ON circle_turns (user_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX circle_turns_planned ON circle_turns (user_id, created_at, id) WHERE state = 'planned';
CREATE INDEX circle_turns_ended ON circle_turns (ended_at) WHERE ended_at IS NOT NULL;

-- Opinions that characters have of others.
CREATE TABLE circle_relations (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  target_id UUID,
  strength BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  kept BOOLEAN NOT NULL, -- the type does not follow the strength
  description TEXT COLLATE "C" NOT NULL,
  interactions BIGINT NOT NULL,
  action_at BIGINT,
  updated_at BIGINT NOT NULL,
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX circle_relations_one ON circle_relations (user_id, character_id, target_id) NULLS NOT DISTINCT;
CREATE INDEX circle_relations_target ON circle_relations (target_id) WHERE target_id IS NOT NULL;

-- Message boxes.
CREATE TABLE circle_items (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  sender_id UUID,
  sender_name TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  context_id UUID,
  context TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  read_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX circle_items_list ON circle_items (character_id, created_at, id);

CREATE TABLE circle_actions (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  character_id UUID NOT NULL,
  target_id UUID,
  type TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX circle_actions_list ON circle_actions (user_id, created_at, id);
CREATE INDEX circle_actions_character ON circle_actions (character_id, created_at, id);

-- One row per user: the circle as a whole.
CREATE TABLE circle_states (
  user_id UUID NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  settings TEXT COLLATE "C" NOT NULL,
  looked_at BIGINT NOT NULL, -- 0 = never
  asleep_at BIGINT,
  updated_at BIGINT NOT NULL
);

CREATE TABLE circle_spends (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  day TEXT COLLATE "C" NOT NULL, -- 2006-01-02 of the user
  calls BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  left_out BIGINT NOT NULL,
  PRIMARY KEY (user_id, day)
);

-- Plans of what a character means to tell on a day.
CREATE TABLE circle_plans (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  day TEXT COLLATE "C" NOT NULL, -- 2006-01-02 of the user
  items TEXT COLLATE "C", -- JSON array
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, day),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX circle_plans_age ON circle_plans (updated_at);

-- Files that users give to characters, and knowledge bases of them. The content of a file is
-- kept in parts under an id of its own: an upload is written in small transactions before its
-- file is there. A knowledge base may have files of other users, and others may read it: such
-- rows belong to the owner of the knowledge base or character, and name the other user without
-- a foreign key.

CREATE TABLE file_parts (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  content_id UUID NOT NULL,
  part BIGINT NOT NULL, -- from 0; each but the last one has 1 MiB
  created_at BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (user_id, content_id, part)
);
CREATE INDEX file_parts_age ON file_parts (created_at) WHERE part = 0;

CREATE TABLE files (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  content_id UUID NOT NULL, -- content in file_parts
  name TEXT COLLATE "C" NOT NULL,
  declared_type TEXT COLLATE "C" NOT NULL, -- by who uploaded it
  content_type TEXT COLLATE "C" NOT NULL, -- by its content; '' = not known yet
  size BIGINT NOT NULL, -- bytes
  sha256 TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  source_url TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C", -- document
  warnings TEXT COLLATE "C", -- JSON array
  progress TEXT COLLATE "C", -- document
  language TEXT COLLATE "C" NOT NULL,
  chars BIGINT NOT NULL, -- code points of the text
  chunks BIGINT NOT NULL,
  edition BIGINT NOT NULL, -- that is searched; 0 = none
  last_edition BIGINT NOT NULL, -- the newest number that was given
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE UNIQUE INDEX files_hash ON files (user_id, sha256) WHERE deleted_at IS NULL;
CREATE INDEX files_list ON files (user_id, created_at, id);
CREATE INDEX files_content ON files (content_id);
CREATE INDEX files_url ON files (source_url) WHERE source_url <> '';
CREATE INDEX files_deleted ON files (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE knowledge_bases (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  chunk_size BIGINT NOT NULL, -- 0 = as the server has it, with the overlap
  chunk_overlap BIGINT NOT NULL,
  context_lines BOOLEAN NOT NULL, -- a model says of each chunk what it is about
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX knowledge_bases_list ON knowledge_bases (user_id, created_at, id);
CREATE INDEX knowledge_bases_deleted ON knowledge_bases (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE knowledge_base_files (
  user_id UUID NOT NULL, -- owner of the knowledge base
  base_id UUID NOT NULL,
  file_user_id UUID NOT NULL, -- owner of the file
  file_id UUID NOT NULL,
  synced BOOLEAN NOT NULL, -- by nodest kb sync
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, base_id, file_user_id, file_id),
  FOREIGN KEY (user_id, base_id) REFERENCES knowledge_bases (user_id, id) ON DELETE CASCADE
);
CREATE INDEX knowledge_base_files_file ON knowledge_base_files (file_id);
CREATE INDEX knowledge_base_files_user ON knowledge_base_files (file_user_id, file_id);

CREATE TABLE knowledge_grants (
  user_id UUID NOT NULL, -- owner of the knowledge base
  base_id UUID NOT NULL,
  grantee_id UUID NOT NULL,
  role TEXT COLLATE "C" NOT NULL, -- read or write
  granted_by_id UUID NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, base_id, grantee_id),
  FOREIGN KEY (user_id, base_id) REFERENCES knowledge_bases (user_id, id) ON DELETE CASCADE
);
CREATE INDEX knowledge_grants_grantee ON knowledge_grants (grantee_id, base_id);

-- The knowledge of characters: files in full, and knowledge bases to search.
CREATE TABLE character_files (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  file_user_id UUID NOT NULL, -- owner of the file
  file_id UUID NOT NULL,
  enabled BOOLEAN NOT NULL,
  position BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, file_user_id, file_id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX character_files_file ON character_files (file_id);
CREATE INDEX character_files_user ON character_files (file_user_id);

CREATE TABLE character_bases (
  user_id UUID NOT NULL,
  character_id UUID NOT NULL,
  base_user_id UUID NOT NULL, -- owner of the knowledge base
  base_id UUID NOT NULL,
  enabled BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, character_id, base_user_id, base_id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE
);
CREATE INDEX character_bases_base ON character_bases (base_id);
CREATE INDEX character_bases_user ON character_bases (base_user_id);

-- Requests to search providers in a month, by key: some allow a number of them.
CREATE TABLE search_usage (
  key_hash TEXT COLLATE "C" NOT NULL,
  month TEXT COLLATE "C" NOT NULL, -- 2006-01, UTC
  requests BIGINT NOT NULL,
  PRIMARY KEY (key_hash, month)
);

-- These tables hold what is made of files in the background. An edition of a file is its text, the chunks of
-- it and their index; one of them is searched. Positions are code points of the text.

CREATE TABLE knowledge_documents (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  edition BIGINT NOT NULL, -- from 1; numbers are not used again
  sha256 TEXT COLLATE "C" NOT NULL, -- hash of the content that it was made of
  name TEXT COLLATE "C" NOT NULL, -- name of the file then: it is searched and embedded with the chunks
  size BIGINT NOT NULL, -- rules of the chunks
  overlap BIGINT NOT NULL,
  context_lines BOOLEAN NOT NULL, -- all are there that were wanted
  parser TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  title TEXT COLLATE "C" NOT NULL,
  language TEXT COLLATE "C" NOT NULL,
  chars BIGINT NOT NULL,
  outline TEXT COLLATE "C", -- JSON array
  pages TEXT COLLATE "C", -- JSON array
  chunks BIGINT NOT NULL, -- -1 = not cut yet
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, file_id, edition),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

-- The text of an edition in parts of equal length, so that a chunk costs one or two of them.
CREATE TABLE knowledge_texts (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  edition BIGINT NOT NULL,
  part BIGINT NOT NULL, -- from 0
  text TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, file_id, edition, part),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

CREATE TABLE knowledge_chunks (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  edition BIGINT NOT NULL,
  idx BIGINT NOT NULL, -- from 0
  start_at BIGINT NOT NULL,
  end_at BIGINT NOT NULL,
  heading TEXT COLLATE "C" NOT NULL,
  page BIGINT NOT NULL, -- 0 = none
  kind TEXT COLLATE "C" NOT NULL,
  context TEXT COLLATE "C" NOT NULL, -- subject of the chunk, as a model says; searched, never cited
  hash TEXT COLLATE "C" NOT NULL, -- hash of what is embedded
  PRIMARY KEY (user_id, file_id, edition, idx),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

-- The index of an edition for search by words (package knowledge/search).
CREATE TABLE knowledge_segments (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  edition BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (user_id, file_id, edition),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

-- Context lines by the chunk that they are about, so that none is written twice.
CREATE TABLE knowledge_contexts (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  hash TEXT COLLATE "C" NOT NULL, -- hash of name, heading and text of the chunk
  edition BIGINT NOT NULL, -- the newest one that has it
  line TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, file_id, hash),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

-- Vectors by what was embedded: equal chunks of any edition of a file share one.
CREATE TABLE knowledge_vectors (
  user_id UUID NOT NULL,
  file_id UUID NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  vector BYTEA, -- as in memory_texts; NULL = the model rejects the text
  PRIMARY KEY (user_id, file_id, model, hash),
  FOREIGN KEY (user_id, file_id) REFERENCES files (user_id, id) ON DELETE CASCADE
);

-- The embedding models of a user's files: the active one is searched, while another one may
-- be built that takes its place when it has all vectors.
CREATE TABLE knowledge_spaces (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  model TEXT COLLATE "C" NOT NULL,
  dim BIGINT NOT NULL, -- length of the vectors; 0 = not known yet
  state TEXT COLLATE "C" NOT NULL, -- active, building or stopped
  PRIMARY KEY (user_id, model)
);

-- Questions that a model answered from documents.
CREATE TABLE knowledge_queries (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  conversation_id UUID, -- NULL = none
  question TEXT COLLATE "C" NOT NULL,
  answer TEXT COLLATE "C" NOT NULL,
  sources TEXT COLLATE "C", -- document: files that the answer was made from, and its references
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX knowledge_queries_conversation ON knowledge_queries (conversation_id, user_id);
CREATE INDEX knowledge_queries_age ON knowledge_queries (created_at);

-- Evaluations of what prompts were given: the newest of each source (internal/feedback).
CREATE TABLE source_votes (
  user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  id UUID NOT NULL,
  kind TEXT COLLATE "C" NOT NULL, -- memory, chunk or host
  source_id UUID, -- a unit of memory, or a document of whichever user; NULL = a host
  part TEXT COLLATE "C" NOT NULL, -- edition and number of a document's chunk, '' = all of it; or the host
  character_id UUID, -- whose prompts it is about; NULL = those of all
  conversation_id UUID, -- NULL = none
  status TEXT COLLATE "C" NOT NULL,
  evaluated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, character_id) REFERENCES characters (user_id, id) ON DELETE CASCADE,
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX source_votes_source ON source_votes (source_id, user_id, part);
CREATE INDEX source_votes_character ON source_votes (character_id);
CREATE INDEX source_votes_conversation ON source_votes (conversation_id);

-- Background work of all subjects. Of one kind, owner and subject one job is open;
-- the next user's next job is found without looking at what others have enqueued.

CREATE TABLE jobs (
  attempt BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  next_at BIGINT NOT NULL, -- when the job that follows this one is due; 0 = there is none
  lease_until BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  id UUID NOT NULL PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL, -- area.verb
  user_id UUID REFERENCES users (id) ON DELETE CASCADE, -- NULL = the server's own
  subject TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C",
  state TEXT COLLATE "C" NOT NULL, -- queued, running, done, failed, cancelled
  progress TEXT COLLATE "C",
  next_payload TEXT COLLATE "C",
  lease_owner TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C" -- document with code and message
);
CREATE UNIQUE INDEX jobs_one_open ON jobs ((COALESCE(user_id, '00000000-0000-0000-0000-000000000000'::UUID)), kind, subject) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_next ON jobs (kind, not_before) WHERE state = 'queued';
CREATE INDEX jobs_turn ON jobs (kind, (COALESCE(user_id, '00000000-0000-0000-0000-000000000000'::UUID)), not_before, id) WHERE state = 'queued';
CREATE INDEX jobs_lease ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_ended ON jobs (updated_at) WHERE state IN ('done', 'failed', 'cancelled');
CREATE INDEX jobs_failed ON jobs (updated_at) WHERE state = 'failed';
CREATE INDEX jobs_list ON jobs (user_id, created_at, id);
CREATE INDEX jobs_subject ON jobs (subject, created_at, id);

-- The log of a conversation: what was looked up for it, whether that helped, what is kept of it, and reflections.
CREATE TABLE cognition_events (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  ordinal BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL, -- number of a query; an evaluation has that of its query; 0 = none
  query_key TEXT COLLATE "C" NOT NULL, -- '' = none
  extraction_key TEXT COLLATE "C" NOT NULL, -- '' = none
  range_start BIGINT NOT NULL, -- start of the range of a reflection; 0 = none
  range_end BIGINT NOT NULL,
  is_open BOOLEAN NOT NULL, -- a query without an evaluation, an extraction that is not committed, a reflection that is not consumed
  message_id UUID, -- that the event is about, and goes with; NULL = none
  generation_id UUID, -- its text is the response of a query; NULL = the body has the response
  hash BYTEA NOT NULL, -- equal for events that say the same
  happened_at BIGINT, -- NULL = it has no timestamp
  created_at BIGINT NOT NULL,
  body BYTEA NOT NULL, -- JSON, as a zstd frame if it is long
  PRIMARY KEY (user_id, conversation_id, ordinal),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE,
  FOREIGN KEY (user_id, message_id) REFERENCES messages (user_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX cognition_events_once ON cognition_events (user_id, conversation_id, hash);
CREATE INDEX cognition_events_type ON cognition_events (user_id, conversation_id, type, ordinal);
CREATE INDEX cognition_events_open ON cognition_events (user_id, conversation_id, type, happened_at) WHERE is_open;
CREATE INDEX cognition_events_extraction ON cognition_events (user_id, conversation_id, extraction_key) WHERE extraction_key <> '';
CREATE INDEX cognition_events_message ON cognition_events (user_id, message_id) WHERE message_id IS NOT NULL;

-- The facts, revisions and files that events have words of. A file may be another user's.
CREATE TABLE cognition_sources (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  ordinal BIGINT NOT NULL,
  object_id UUID NOT NULL,
  source TEXT COLLATE "C" NOT NULL, -- its id in the event; '' = the whole payload
  PRIMARY KEY (user_id, conversation_id, ordinal, object_id, source),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX cognition_sources_object ON cognition_sources (object_id);

-- How far the log of a conversation is, and the side branches that wait.
CREATE TABLE cognition_states (
  user_id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  ordinal BIGINT NOT NULL, -- ordinal of the newest event
  pending_eval BOOLEAN NOT NULL, -- pending_knowledge_eval: a goal has ended
  eval_trigger TEXT COLLATE "C" NOT NULL, -- knowledge_eval_trigger
  queue TEXT COLLATE "C", -- JSON array: side branches, the next one first
  reflected BIGINT NOT NULL, -- the seq up to which messages were read for what is worth keeping
  PRIMARY KEY (user_id, conversation_id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);

CREATE TABLE cognition_goals (
  user_id UUID NOT NULL,
  id UUID NOT NULL,
  conversation_id UUID NOT NULL,
  parent_id UUID,
  kind TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, id),
  FOREIGN KEY (user_id, conversation_id) REFERENCES conversations (user_id, id) ON DELETE CASCADE
);
CREATE INDEX cognition_goals_list ON cognition_goals (conversation_id, created_at, id);
