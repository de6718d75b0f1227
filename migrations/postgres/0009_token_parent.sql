-- The token that a session was made from; it ends with it.

-- +goose Up
ALTER TABLE tokens ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
