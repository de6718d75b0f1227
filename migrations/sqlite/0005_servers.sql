-- +goose Up

-- OpenAI-compatible servers that an owner has added, for all users.
CREATE TABLE model_servers (
  name TEXT NOT NULL PRIMARY KEY,
  base_url TEXT NOT NULL,
  model TEXT NOT NULL, -- '' = one of the server's own list
  sealed BLOB, -- its key, encrypted; NULL = it needs none, or each user's own
  updated_at BIGINT NOT NULL
);
