-- Conversations in full: where a message stands in the tree, which state follows
-- which, save points, forks, and the keys of apps.

-- +goose Up
-- chain numbers the unbranched runs of a tree: a first child goes on with its
-- parent's, another child begins one, named by its own seq. 0 is that of the copied
-- messages of a fork. A path is a beginning of one chain, then of another, …
ALTER TABLE messages ADD COLUMN depth BIGINT NOT NULL DEFAULT 1; -- messages from the root to it, itself included
ALTER TABLE messages ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
UPDATE messages SET depth = t.depth, chain = t.chain FROM (
  WITH RECURSIVE tree (id, depth, chain) AS (
    SELECT id, 1, seq FROM messages WHERE parent_id = ''
    UNION ALL
    SELECT m.id, tree.depth + 1, CASE WHEN EXISTS (SELECT 1 FROM messages s
      WHERE s.conversation_id = m.conversation_id AND s.parent_id = m.parent_id AND s.seq < m.seq)
      THEN m.seq ELSE tree.chain END
    FROM tree JOIN messages p ON p.id = tree.id
    JOIN messages m ON m.conversation_id = p.conversation_id AND m.parent_id = p.id
  ) SELECT id, depth, chain FROM tree) t
WHERE messages.id = t.id;
CREATE INDEX messages_chain ON messages (conversation_id, chain, depth);
CREATE INDEX messages_gone ON messages (conversation_id, chain, depth) WHERE deleted_at IS NOT NULL;
CREATE INDEX messages_user ON messages (user_id, id);

-- The wish for a rewrite that a text was written on.
ALTER TABLE revisions ADD COLUMN wish TEXT NOT NULL DEFAULT '';

-- previous is the version of the message's state before this one, 0 = none: that
-- one held from previous until version.
ALTER TABLE message_states ADD COLUMN previous BIGINT NOT NULL DEFAULT 0;
UPDATE message_states SET previous = COALESCE((SELECT MAX(o.version) FROM message_states o
  WHERE o.conversation_id = message_states.conversation_id AND o.message_id = message_states.message_id
  AND o.version < message_states.version), 0);
CREATE INDEX message_states_version ON message_states (conversation_id, version, previous, message_id);
-- States that were replaced late: few, because most messages change soon after
-- they were stored, and then no more.
CREATE INDEX message_states_late ON message_states (conversation_id, version, previous, message_id)
  WHERE previous > 0 AND version > previous + 8;

ALTER TABLE conversations ADD COLUMN pins TEXT;

ALTER TABLE conversation_states ADD COLUMN pins TEXT; -- kept with author_note and settings

-- Versions that went back to an older one.
CREATE TABLE rewinds (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  to_version BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  PRIMARY KEY (conversation_id, version)
);

CREATE TABLE saves (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  character_id TEXT NOT NULL,
  version BIGINT NOT NULL, -- of the conversation
  head_id TEXT NOT NULL,
  description TEXT NOT NULL,
  preview_text TEXT NOT NULL,
  message_count BIGINT NOT NULL,
  is_automatic BOOLEAN NOT NULL,
  thumbnail TEXT NOT NULL,
  pins TEXT,
  extra TEXT,
  imported_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX saves_list ON saves (conversation_id, created_at, id);

-- The resources that a save point needs; they are not purged.
CREATE TABLE save_resources (
  save_id TEXT NOT NULL REFERENCES saves (id) ON DELETE CASCADE,
  resource_id TEXT NOT NULL,
  PRIMARY KEY (save_id, resource_id)
);
CREATE INDEX save_resources_resource ON save_resources (resource_id);

-- What the user's app calls a conversation (NodeST interface).
CREATE TABLE app_chats (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  app_key TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, app_key)
);
CREATE INDEX app_chats_conversation ON app_chats (conversation_id);
