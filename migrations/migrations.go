// Package migrations holds the database schema as numbered SQL files, one folder
// for each dialect. Both folders have the same numbers and make the same tables
// and columns; package store runs them and tests that they agree.
//
// A file that was released is never changed: a later change gets a new number.
package migrations

import "embed"

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Files returns the tree with the folders "sqlite" and "postgres".
func Files() embed.FS { return files }
