-- +goose Up

-- OpenAI-compatible servers that an owner has added, for all users.
CREATE TABLE model_servers (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  base_url TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL, -- '' = one of the server's own list
  sealed BYTEA, -- its key, encrypted; NULL = it needs none, or each user's own
  updated_at BIGINT NOT NULL
);
