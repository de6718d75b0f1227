// Package store is the database: it implements the Store interfaces of the packages
// that own the subjects (account, app, attachment, character, chat, circle, jobs, memory,
// nodest, stream, websearch) on SQLite, and on PostgreSQL where a URL says so. Open is
// the entry.
//
// What it promises, on both:
//
//   - A change that was acknowledged survives kill -9 and power loss.
//   - A change and the events that tell of it are committed together; the events
//     of one user are numbered without holes, in the order of the commits.
//   - A row of another user does not exist: every statement names the acting
//     user, except for sign-in, migrations and maintenance.
//   - What came in as a document goes out byte for byte.
//
// Several processes may share one PostgreSQL, whose clock decides about leases and whatever
// else expires. A process holds a lock in its name while it lives; see ExpireLost.
//
// Package sqldb runs the transactions. Each subject has its files here: its rows, its
// statements, and a struct with its methods, which embeds tx: what all subjects of a transaction share.
// The interface that declares a method says what it does; a comment here, how, or what else.
//
// # Lock order on PostgreSQL
//
// A transaction locks rows in this order, so that no two can wait for each other:
// its idempotency key; characters and resources; conversations (LockConversation, by id where there
// are several, but a fork before what it is copied from); messages, swipes and
// generations of these; what the circle has spent on a day (LockSpend), then its turns,
// posts and relationships; the user's own row, when a generation gets its place
// (LockLimits) or an image is stored; a device; jobs, the one that is finished before
// those that are enqueued; then, when the closure has ended, the usage meters in the
// order of their keys; the scopes of memories, in the order of the characters; and last
// the user's row in streams, from which the events get their numbers. Nothing is locked
// after it, and no row belongs to two users, so users never wait for each other. Where
// a closure departs from the order, PostgreSQL ends one of the two and Update runs it
// again.
package store
