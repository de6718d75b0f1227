-- +goose Up

-- What a user's requests to models may cost in a month; 0 = the server's default.
ALTER TABLE users ADD COLUMN monthly_usd DOUBLE PRECISION NOT NULL DEFAULT 0;

-- The limit, with its month, of which the user was warned last.
ALTER TABLE users ADD COLUMN usd_warned TEXT NOT NULL DEFAULT '';
