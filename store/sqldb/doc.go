// Package sqldb runs transactions on SQLite or PostgreSQL. It knows databases, and
// nothing of NodeST's tables.
//
// A Backend runs closures, each in a transaction of its own that they see as a
// Session. SQLite has one writing connection (group.go): closures that wait for it
// share a commit, each under its own savepoint. PostgreSQL (postgres.go) runs each
// closure in its own transaction, and again when it lost a race.
//
// Statements are written once for both, with ? for arguments (statement.go). Rows are
// structs (rows.go), and values have one form in columns on both (values.go): times
// are milliseconds, documents and texts are TEXT, and NUL is escaped.
package sqldb
