-- What reading a conversation for facts has cost, and who has asked for it.

-- +goose Up
CREATE TABLE memory_readings (
  conversation_id TEXT NOT NULL PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  exchanges BIGINT NOT NULL, -- that were read without an order that is free
  calls BIGINT NOT NULL,     -- of a model for them, also for those that are not read yet
  orders BIGINT NOT NULL,    -- how often somebody has ordered it
  free BIGINT NOT NULL,      -- the last order whose calls are not counted; 0 = none
  served BIGINT NOT NULL     -- orders up to this one are done
);
