-- A job that has begun keeps what it works with; what is enqueued then follows it.

-- +goose Up
ALTER TABLE jobs ADD COLUMN next_at BIGINT NOT NULL DEFAULT 0; -- when the follower is due; 0 = there is none
ALTER TABLE jobs ADD COLUMN next_payload TEXT;
UPDATE jobs SET next_at = not_before, next_payload = payload, not_before = 0 WHERE state = 'running' AND not_before > 0;
