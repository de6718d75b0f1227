package store

import (
	"cmp"
	"context"
	"time"

	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store/sqldb"
)

// tx is what all subjects share of one user's transaction: op.Tx. It has the subjects, so that each says
// whose rows it reads or writes: t.chats.Conversation(id).
type tx struct {
	*session
	db     *DB
	userID string
	*subjects

	events []*stream.Event   // in the user's log; finish writes them
	claims map[string]string // hashes of the calls that claimed keys here, by key
	room   room
}

// subjects are the rows of one transaction, one struct for each subject.
type subjects struct {
	app         appTx
	archive     archiveTx
	attachments attachmentTx
	characters  characterTx
	chats       *chatTx
	circle      circleTx
	cognition   cognitionTx
	dreams      dreamTx
	facts       factTx
	generations generationTx
	history     historyTx
	index       indexTx
	jobs        *jobTx
	knowledge   knowledgeTx
	memory      *memoryTx
	messages    *messageTx
	plays       playTx
	research    researchTx
	summaries   summaryTx
	tavern      tavernTx
	texts       *textTx
	votes       voteTx
	users       *userTx
	web         webTx
	words       *wordTx
}

func newTx(db *DB, s *session, userID string) *tx {
	t := &tx{session: s, db: db, userID: userID}
	t.subjects = &subjects{
		app: appTx{t}, archive: archiveTx{t}, attachments: attachmentTx{t}, characters: characterTx{t}, circle: circleTx{t}, cognition: cognitionTx{t}, dreams: dreamTx{t}, facts: factTx{t},
		generations: generationTx{t}, history: historyTx{t}, index: indexTx{t}, knowledge: knowledgeTx{t}, plays: playTx{t}, research: researchTx{t}, summaries: summaryTx{t}, tavern: tavernTx{t}, votes: voteTx{t}, web: webTx{t},
		chats:    &chatTx{tx: t, stored: map[string]chatNow{}, locked: map[string]*storedConversation{}, owned: map[string]bool{}},
		jobs:     &jobTx{tx: t},
		memory:   &memoryTx{tx: t, scopes: map[string]*scopeNews{}},
		messages: &messageTx{tx: t, states: map[string]*messageStateRow{}},
		texts:    &textTx{tx: t},
		users:    &userTx{tx: t},
		words:    &wordTx{tx: t, due: map[string]time.Time{}},
	}
	s.Inserted = t.noteInserted
	return t
}

// forTurns returns t as package nodest has it.
func (t *tx) forTurns() nodest.Tx {
	return nodest.Tx{
		Tx: t, Jobs: t.jobs, Memory: t.forMemory(), Characters: t.forCharacters(), Chats: t.forChats(), Cognition: t.forCognition(), UserTx: t.users, GenerationTx: t.generations,
	}
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

// valueOf is what p points to, zero if it is nil: for what sqldb.Get returns.
func valueOf[T any](p *T, err error) (value T, _ error) {
	if p != nil {
		value = *p
	}
	return value, err
}

// finish writes what waits for the end: usage, the log of message states, what
// memories are made of, and the events, which it returns. The user's row in streams is
// the last lock that is taken (see the package comment), so what it serialises is only
// this user's commits.
func (t *tx) finish() ([]*stream.Event, error) {
	for _, flush := range []func() error{
		t.chats.unlock, t.users.flushUsage, t.messages.flushHidden, t.messages.flushStates, t.memory.flushMemory, t.words.flushWords,
	} {
		if err := flush(); err != nil {
			return nil, err
		}
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
			By: cmp.Or(e.By, "server"), At: t.Now(), Data: e.Data, Logged: e.Logged,
		}
	}
	rows, err := logRows(logged, t.texts.found)
	if err != nil {
		return nil, err
	}
	return logged, t.Insert("events", rows)
}
