package store

import (
	"cmp"
	"context"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/store/sqldb"
	"nodest/stream"
)

// tx is one user's data within one transaction: nodest.Tx.
type tx struct {
	*session
	db     *DB
	userID string

	// Written at the end, see finish.
	events  []*stream.Event
	usage   []nodest.UsageRow
	states  map[string]*messageStateRow // by message
	hidden  []hiddenPiece               // messages that were hidden or shown
	stored  map[string]chatNow          // conversations that were stored here
	texts   []*textRow                  // that were said
	scopes  map[string]*scopeNews       // of memories, by character
	unwordy map[string]time.Time        // conversations with messages to index, and when

	claims map[string]string // hashes of the calls that claimed keys here, by key

	near bool // pages leave out texts, see NearTexts

	stores   bool             // rows that take room
	added    map[string]int64 // by kind, see charge
	coming   int64            // messages that other transactions will store, see charge
	imports  bool             // it stores a part of an import
	admitted bool             // the quotas allowed this before
	found    *limitsRow       // by LockLimits; nil = it was not called

	jobs jobNews // for the runner, after the commit

	// locked are the rows of conversations that LockConversation read and that
	// nobody, this transaction included, has changed since.
	locked map[string]*storedConversation
	// owned are conversations that LockConversation has found, which stay until the transaction
	// ends or deletes them.
	owned map[string]bool
}

// turn is t as the engine has it.
func (t *tx) turn() nodest.Tx {
	return nodest.Tx{
		Tx: t, Jobs: t, Memory: t.memory(), Characters: t.characters(), Chats: t.chats(), UserTx: t, GenerationTx: t,
	}
}

// chats is t as package chat has it.
func (t *tx) chats() chat.Tx {
	return chat.Tx{
		Tx: t, Jobs: t, Memory: t.memory(), Characters: t.characters(), ConversationTx: t, MessageTx: t, HistoryTx: t,
		ForkTx: t, SaveTx: t, ArchiveTx: t, SummaryTx: t, RunningTx: t, WordTx: t,
	}
}

// app is t as package app has it.
func (t *tx) app() app.Tx {
	return app.Tx{Tx: t, Characters: t.characters(), Chats: t.chats(), KeyTx: t}
}

// characters is t as package character has it.
func (t *tx) characters() character.Tx {
	return character.Tx{Tx: t, SettingsTx: t, CharacterTx: t, ResourceTx: t, StampTx: t, Jobs: t}
}

// memory is t as the memory has it.
func (t *tx) memory() memory.Tx {
	return memory.Tx{Tx: t, Jobs: t, ScopeTx: t, TextTx: t, FactTx: t}
}

// part is the database with the transactions of one subject.
type part[T any] struct {
	db *DB
	of func(*tx) T
}

// Update runs fn in one transaction: op.Store.
func (p part[T]) Update(ctx context.Context, userID string, fn func(T) error) error {
	return p.db.update(ctx, userID, func(t *tx) error { return fn(p.of(t)) })
}

// View runs fn on a snapshot: op.Store.
func (p part[T]) View(ctx context.Context, userID string, fn func(T) error) error {
	return p.db.view(ctx, userID, func(t *tx) error { return fn(p.of(t)) })
}

func newTx(db *DB, s *session, userID string) *tx {
	t := &tx{
		session: s, db: db, userID: userID, states: map[string]*messageStateRow{}, stored: map[string]chatNow{},
		scopes: map[string]*scopeNews{}, locked: map[string]*storedConversation{}, owned: map[string]bool{},
	}
	s.Inserted = t.noteInserted
	return t
}

// UserID is the acting user.
func (t *tx) UserID() string { return t.userID }

// Emit adds events to the user's log at the commit.
func (t *tx) Emit(events ...*stream.Event) error {
	if err := t.Writable(); err != nil {
		return err
	}
	t.events = append(t.events, events...)
	return nil
}

// fillTimes gives times that are not set the time of the transaction, and cuts
// the others to what is stored.
func (t *tx) fillTimes(times ...*time.Time) {
	for _, p := range times {
		if p.IsZero() {
			*p = t.Now()
		}
		*p = sqldb.Moment(sqldb.Millis(*p))
	}
}

// finish writes what waits for the end: usage, the log of message states, what
// memories are made of, and the events, which it returns. The user's row in streams is
// the last lock that is taken (see the package comment), so what it serialises is only
// this user's commits.
func (t *tx) finish() ([]*stream.Event, error) {
	if err := t.unlock(); err != nil {
		return nil, err
	}
	if err := t.flushUsage(); err != nil {
		return nil, err
	}
	if err := t.flushHidden(); err != nil {
		return nil, err
	}
	if err := t.flushStates(); err != nil {
		return nil, err
	}
	if err := t.flushMemory(); err != nil {
		return nil, err
	}
	if err := t.flushWords(); err != nil {
		return nil, err
	}
	if len(t.events) == 0 {
		return nil, nil
	}
	n := int64(len(t.events))
	seq, found, err := t.Advance("streams", "seq", n, "user_id = ?", t.userID)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "no such user")
	}
	if err != nil {
		return nil, err
	}
	logged := make([]*stream.Event, n)
	for i, e := range t.events {
		logged[i] = &stream.Event{
			UserID: t.userID, Seq: seq - n + int64(i) + 1, Type: e.Type,
			ConversationID: e.ConversationID, MessageID: e.MessageID, GenerationID: e.GenerationID,
			By: cmp.Or(e.By, "server"), At: t.Now(), Data: e.Data, Kept: e.Kept,
		}
	}
	rows, err := logRows(logged)
	if err != nil {
		return nil, err
	}
	return logged, t.Insert("events", rows)
}
