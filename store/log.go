package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store/sqldb"
)

// logRow has events of a user that one transaction added, see stream.Pack.
type logRow struct {
	UserID  string
	Seq     int64 // seq of the first event
	At      time.Time
	Entries sqldb.Zstd
}

// rowEvents is how many events a row has at most. An event with much data of its own is the
// last of its row, so that a page of rows can be bounded.
const (
	rowEvents = 100
	rowBytes  = 64 << 10
)

// logRows are the rows of new events. References, and what was recalled, have rows of their own and are
// not stored a second time: Events reads them. uses has the units that were found for generations.
func logRows(events []*stream.Event, uses map[string][]string) (rows []*logRow, err error) {
	short, size := make([]*stream.Event, 0, min(len(events), rowEvents)), 0
	for i, e := range events {
		if hasRows(e) {
			e = withData(e, nil, nil)
		} else if uses[e.GenerationID] != nil && e.Type == "gen.context" {
			if e, err = contextWithout(e, uses[e.GenerationID]); err != nil {
				return nil, err
			}
		}
		short, size = append(short, e), size+len(e.Data)
		if i == len(events)-1 || len(short) == rowEvents || size > rowBytes {
			first := events[i+1-len(short)]
			entries, err := stream.Pack(short)
			if err != nil {
				return nil, err
			}
			rows = append(rows, &logRow{first.UserID, first.Seq, first.At, entries})
			short, size = short[:0], 0
		}
	}
	return rows, nil
}

// withData is the entry of an event with other data.
func withData(e *stream.Event, data, logged json.RawMessage) *stream.Event {
	return &stream.Event{
		Type: e.Type, ConversationID: e.ConversationID, MessageID: e.MessageID, GenerationID: e.GenerationID, By: e.By, Data: data, Logged: logged,
	}
}

// contextWithout is an event of the context of a generation without the units that were found for it, if it
// names just these.
func contextWithout(e *stream.Event, found []string) (*stream.Event, error) {
	var c nodest.ContextData
	if err := json.Unmarshal(e.Data, &c); err != nil || !slices.Equal(c.Memories, found) {
		return e, err
	}
	c.Memories = nil
	logged, err := json.Marshal(c)
	return withData(e, nil, logged), err
}

// showContexts gives events of contexts the units that were found for their generations.
func (t *tx) showContexts(events []*stream.Event) error {
	contexts := map[string]*nodest.ContextData{}
	var chats, generations []string
	for _, e := range events {
		if e.Type == "gen.context" && e.Logged != nil {
			c := new(nodest.ContextData)
			if err := json.Unmarshal(e.Logged, c); err != nil {
				return err
			}
			c.Memories, contexts[e.GenerationID] = []string{}, c
			chats, generations = append(chats, e.ConversationID), append(generations, e.GenerationID)
		}
	}
	if len(generations) == 0 {
		return nil
	}
	slices.Sort(chats)
	err := sqldb.Each(t, func(r *useRow) error {
		if r.Layer != inProfile {
			c := contexts[r.GenerationID]
			c.Memories = append(c.Memories, r.UnitID)
		}
		return nil
	}, selectRecalled, t.userID, slices.Compact(chats), generations)
	for _, e := range events {
		if c := contexts[e.GenerationID]; err == nil && c != nil && e.Type == "gen.context" {
			e.Logged = nil
			err = fill(e, c)
		}
	}
	return err
}

// hasRows reports whether what an event carries is stored elsewhere and does not change. Messages
// and chats do: an event shows them as they were.
func hasRows(e *stream.Event) bool { return e.Type == "gen.references" }

// Events returns the user's events after a position, in order. Those of which a text or the
// references have been removed for good are a stream.Skip.
func (db *DB) Events(ctx context.Context, userID string, after int64, limit int) ([]*stream.Event, error) {
	return reading(ctx, db, func(s *session) ([]*stream.Event, error) {
		rows, err := sqldb.Part(s, func(r *logRow) logRow { return *r }, "SELECT * FROM events WHERE user_id = ? AND seq >="+
			" (SELECT COALESCE(MAX(seq), 0) FROM events WHERE user_id = ? AND seq <= ?) ORDER BY seq LIMIT ?", userID, userID, after+1, limit)
		if err != nil {
			return nil, err
		}
		var events []*stream.Event
		size := 0
		for _, r := range rows {
			if size > sqldb.PageBytes && len(events) > 0 {
				break // compressed, they were less
			}
			some, err := stream.Unpack(userID, r.Seq, r.At, r.Entries)
			if err != nil {
				return nil, err
			}
			size += len(r.Entries)
			for _, e := range some {
				if e.Seq > after && len(events) < limit {
					events = append(events, e)
				}
			}
		}
		return newTx(db, s, userID).show(events)
	})
}

// show gives events what is not stored with them. It returns fewer events where those are larger
// than a page.
func (t *tx) show(events []*stream.Event) ([]*stream.Event, error) {
	if err := errors.Join(t.showReferences(events), t.showContexts(events)); err != nil {
		return nil, err
	}
	size, logged := 0, make([]*chat.Logged, len(events))
	for i, e := range events {
		size += len(e.Data)
		if e.Logged != nil {
			var err error
			if logged[i], err = chat.ParseLogged(e.Logged); err != nil {
				return nil, err
			}
			size += logged[i].Size
		}
		if size > sqldb.PageBytes && i > 0 {
			events = events[:i]
			break
		}
	}
	return events, t.showLogged(events, logged)
}

// showReferences gives events of references those of the text that their generation wrote.
func (t *tx) showReferences(events []*stream.Event) error {
	about := map[[2]string][]*stream.Event{} // by message and generation
	var messages []string
	for _, e := range events {
		if hasRows(e) {
			place := [2]string{e.MessageID, e.GenerationID}
			messages, about[place] = append(messages, e.MessageID), append(about[place], e)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	data := map[[2]string]*cite.Citations{}
	var cited []*cite.Reference
	err := sqldb.Each(t, func(r *revisionRow) error {
		if place := [2]string{r.MessageID, r.GenerationID}; data[place] == nil && about[place] != nil {
			data[place], cited = r.Citations, appendCited(cited, r.Citations)
		}
		return nil
	}, "SELECT message_id, generation_id, citations FROM revisions WHERE user_id = ? AND message_id IN (?) AND citations IS NOT NULL"+
		" ORDER BY created_at, id", t.userID, messages)
	err = cmp.Or(err, t.knowledge.markGone(cited))
	for place, events := range about {
		var shown any // nil = the text is gone
		if c := data[place]; c != nil {
			shown = nodest.ReferencesData{References: c.References, Report: c.Report}
		}
		for _, e := range events {
			err = cmp.Or(err, fill(e, shown))
		}
	}
	return err
}

// showLogged gives events the messages and conversations of which the log has kept a part; nil = it has
// all of an event.
func (t *tx) showLogged(events []*stream.Event, logged []*chat.Logged) error {
	var messageIDs, revisions, last []string
	for i, e := range events {
		switch l := logged[i]; {
		case l == nil:
		case l.Conversation != nil:
			last = append(last, l.LastRevision())
		default:
			messageIDs, revisions = append(messageIDs, e.MessageID), append(revisions, l.Revisions...)
		}
	}
	messages := make(map[string]*chat.Message, len(messageIDs))
	written, beginnings := make(map[string]*chat.Swipe, len(revisions)), make(map[string]*chat.Swipe, len(last))
	texts, err := t.messages.textsOf(revisions)
	for id, s := range texts {
		written[id] = &s.Swipe
	}
	err = errors.Join(err,
		eachOf(t, messageIDs, func(r *messageRow) { m := r.Message; messages[m.ID] = &m },
			"SELECT id, conversation_id, parent_id, client_msg_key, seq, role, name, author_key, is_greeting, created_at FROM messages WHERE user_id = ? AND id IN (?)"),
		eachOf(t, last, func(r *chat.Swipe) { s := *r; beginnings[s.RevisionID] = &s },
			"SELECT id AS revision_id, substr(text, 1, 1000) AS text FROM revisions WHERE user_id = ? AND id IN (?)"))
	if err != nil {
		return err
	}
	for i, e := range events {
		if l := logged[i]; l == nil {
			continue
		} else if l.Conversation != nil {
			err = fill(e, l.Data(nil, beginnings))
		} else {
			err = fill(e, l.Data(messages[e.MessageID], written))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropSaid removes what stored answers and the log say of things of a user that are purged: of a "conversation",
// "character", "resource" or "file". In the log, a skip takes the place of an event about one; of the event which
// says that it was deleted the ids are left, for devices that were away. It reads the user's log row by row, as
// dropReplies reads the answers, so it is called once for many.
func (s *session) dropSaid(userID, kind string, ids ...string) error {
	purged := setOf(ids)
	var rows []logRow
	err := cmp.Or(s.dropReplies(userID, ids...), sqldb.Each(s, func(r *logRow) error {
		if namesOne(r.Entries, purged) {
			rows = append(rows, *r)
		}
		return nil
	}, "SELECT * FROM events WHERE user_id = ? ORDER BY seq", userID))
	for i := range rows {
		err = cmp.Or(err, s.dropEvents(&rows[i], kind, purged))
	}
	return err
}

// dropEvents is dropSaid for a row of the log.
func (s *session) dropEvents(r *logRow, kind string, purged map[string]bool) error {
	events, err := stream.Unpack(r.UserID, r.Seq, r.At, r.Entries)
	for _, e := range events {
		switch {
		case err != nil || !purged[e.ConversationID] && !(strings.HasPrefix(e.Type, kind+".") && namesOne(e.Data, purged)):
		case e.Type != deletedEvents[kind]:
			e.Logged = nil
			skip(e)
		case e.Data != nil:
			e.Data, err = op.OnlyIDs(e.Data)
		}
	}
	if err != nil {
		return err
	}
	entries, err := stream.Pack(events)
	return s.Unless(err).Run("UPDATE events SET entries = ? WHERE user_id = ? AND seq = ?", sqldb.Zstd(entries), r.UserID, r.Seq)
}

// deletedEvents are the types of the events which say that something was deleted.
var deletedEvents = map[string]string{
	"conversation": "chat.deleted", "character": "character.deleted", "resource": "resource.deleted", "file": "file.deleted",
}

// eachOf calls fn with the rows that a query finds for the user and for some of the ids at a time.
func eachOf[T any](t *tx, ids []string, fn func(*T), query string) error {
	slices.Sort(ids)
	for some := range slices.Chunk(slices.Compact(ids), 500) {
		if err := sqldb.Each(t, func(row *T) error { fn(row); return nil }, query, t.userID, some); err != nil {
			return err
		}
	}
	return nil
}

// fill gives an event its data; nil = it is gone.
func fill(e *stream.Event, data any) (err error) {
	if data == nil {
		skip(e)
		return nil
	}
	e.Data, err = json.Marshal(data)
	return err
}

func skip(e *stream.Event) { e.Type, e.Data = stream.Skip, json.RawMessage("{}") }
