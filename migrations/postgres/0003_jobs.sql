-- The queue of jobs: of one kind, owner and subject one is open, and the next
-- user's next job is found without looking at what others have enqueued.

-- +goose Up
UPDATE jobs SET error = NULL; -- was a text, is now a document with code and message
DROP INDEX jobs_one_open;
DROP INDEX jobs_queue;
DROP INDEX jobs_user;
CREATE UNIQUE INDEX jobs_one_open ON jobs (kind, (COALESCE(user_id, '')), subject) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_next ON jobs (kind, not_before) WHERE state = 'queued';
CREATE INDEX jobs_turn ON jobs (kind, (COALESCE(user_id, '')), not_before, id) WHERE state = 'queued';
CREATE INDEX jobs_lease ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_ended ON jobs (updated_at) WHERE state IN ('done', 'failed', 'cancelled');
CREATE INDEX jobs_list ON jobs (user_id, created_at, id);
CREATE INDEX jobs_subject ON jobs (subject, created_at, id);
