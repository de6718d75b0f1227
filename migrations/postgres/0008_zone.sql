-- The time zone that a device of the user reported last, as an IANA name.

-- +goose Up
ALTER TABLE users ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
