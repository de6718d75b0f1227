// Package migrations holds the database schema as numbered SQL files, one folder per
// database. Both folders have the same numbers and create the same tables and columns;
// package store runs the files and tests that they agree.
//
// A released file is never changed: a later change gets a new number.
package migrations

import "embed"

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Files returns the tree with the folders "sqlite" and "postgres".
func Files() embed.FS { return files }
