package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/cite"
	"nodest/nodest"
	"nodest/store/sqldb"
	"nodest/stream"
)

// logRow has events of a user that one transaction added, see stream.Pack.
type logRow struct {
	UserID  string
	Seq     int64 // of the first
	At      time.Time
	Entries string
}

// rowEvents is how many events a row has at most. An event with much data of its own is the
// last of its row, so that a page of rows can be bounded.
const (
	rowEvents = 100
	rowBytes  = 64 << 10
)

// logRows are the rows of new events. Objects that have rows of their own are not stored a
// second time: Events reads them.
func logRows(events []*stream.Event) []*logRow {
	var rows []*logRow
	short, size := make([]*stream.Event, 0, min(len(events), rowEvents)), 0
	for i, e := range events {
		if showing(e) != nil {
			short = append(short, &stream.Event{
				Type: e.Type, ConversationID: e.ConversationID, MessageID: e.MessageID, GenerationID: e.GenerationID, By: e.By,
			})
		} else {
			short, size = append(short, e), size+len(e.Data)
		}
		if i == len(events)-1 || len(short) == rowEvents || size > rowBytes {
			first := events[i+1-len(short)]
			rows = append(rows, &logRow{first.UserID, first.Seq, first.At, stream.Pack(short)})
			short, size = short[:0], 0
		}
	}
	return rows
}

// shown is a kind of object that events carry as it is when they are sent.
type shown struct {
	id   func(*stream.Event) string
	read func(t *tx, ids []string) (map[string]any, error) // what events carry, by id
}

var (
	shownMessage = &shown{func(e *stream.Event) string { return e.MessageID }, (*tx).messageData}
	shownChat    = &shown{func(e *stream.Event) string { return e.ConversationID }, (*tx).conversationData}
	shownSources = &shown{func(e *stream.Event) string { return e.MessageID + " " + e.GenerationID }, (*tx).referencesData}
)

// showing returns the kind of object that an event carries, nil if it is not one with rows.
func showing(e *stream.Event) *shown {
	switch e.Type {
	case "message.created", "message.updated":
		return shownMessage
	case "chat.created", "chat.updated":
		return shownChat
	case "gen.references":
		return shownSources
	}
	return nil
}

// messageData is what events of messages carry, also of deleted ones.
func (t *tx) messageData(ids []string) (map[string]any, error) {
	messages, err := sqldb.Map(t, (*messageRow).message, "SELECT * FROM messages WHERE user_id = ? AND id IN (?)", t.userID, ids)
	if err != nil {
		return nil, err
	}
	data := make(map[string]any, len(messages))
	if err := t.fillSwipes(messages); err != nil {
		return nil, err
	}
	for _, m := range messages {
		data[m.ID] = chat.MessageData(m)
	}
	return data, nil
}

// conversationData is what events of conversations carry, also of deleted ones.
func (t *tx) conversationData(ids []string) (map[string]any, error) {
	data := make(map[string]any, len(ids))
	return data, sqldb.Each(t, func(r *conversationRow) error {
		c := r.Conversation
		data[c.ID] = chat.ConversationData(&c)
		return nil
	}, "SELECT * FROM conversations WHERE user_id = ? AND id IN (?)", t.userID, ids)
}

// referencesData is what events of the references of replies carry: those of the text that the
// generation wrote. An id has the message and the generation.
func (t *tx) referencesData(ids []string) (map[string]any, error) {
	messages := make([]string, len(ids))
	for i, id := range ids {
		messages[i], _, _ = strings.Cut(id, " ")
	}
	data := make(map[string]any, len(ids))
	var cited []*cite.Reference
	err := sqldb.Each(t, func(r *revisionRow) error {
		id := r.MessageID + " " + r.GenerationID
		if data[id] == nil && slices.Contains(ids, id) {
			for i := range r.Citations.References {
				cited = append(cited, &r.Citations.References[i])
			}
			data[id] = nodest.ReferencesData{References: r.Citations.References, Report: r.Citations.Report}
		}
		return nil
	}, "SELECT message_id, generation_id, citations FROM revisions WHERE user_id = ? AND message_id IN (?) AND citations IS NOT NULL"+
		" ORDER BY created_at, id", t.userID, messages)
	if err != nil {
		return nil, err
	}
	return data, knowledgeTx{t}.markGone(cited)
}

// Events returns the user's events after a position, in order. The log has the ids of
// messages and conversations, and an event carries the object as it is now; later events
// tell of the changes that it shows already. What has been removed for good is a stream.Skip.
func (db *DB) Events(ctx context.Context, userID string, after int64, limit int) ([]*stream.Event, error) {
	return reading(ctx, db, func(s *session) ([]*stream.Event, error) {
		rows, err := sqldb.Part(s, func(r *logRow) logRow { return *r }, "SELECT * FROM events WHERE user_id = ? AND seq >="+
			" (SELECT COALESCE(MAX(seq), 0) FROM events WHERE user_id = ? AND seq <= ?) ORDER BY seq LIMIT ?", userID, userID, after+1, limit)
		if err != nil {
			return nil, err
		}
		var events []*stream.Event
		for _, r := range rows {
			for _, e := range stream.Unpack(userID, r.Seq, r.At, r.Entries) {
				if e.Seq > after && len(events) < limit {
					events = append(events, e)
				}
			}
		}
		return newTx(s, userID).show(events)
	})
}

// showAtOnce is of how many events the objects are read together.
const showAtOnce = 50

// show gives events the objects that they carry. It returns fewer events where those are
// larger than a page.
func (t *tx) show(events []*stream.Event) ([]*stream.Event, error) {
	size := 0
	for start := 0; start < len(events); start += showAtOnce {
		part := events[start:min(start+showAtOnce, len(events))]
		data := map[*shown]map[string]json.RawMessage{}
		for _, kind := range []*shown{shownMessage, shownChat, shownSources} {
			var err error
			if data[kind], err = t.readShown(kind, part); err != nil {
				return nil, err
			}
		}
		for i, e := range part {
			if kind := showing(e); kind != nil {
				if e.Data = data[kind][kind.id(e)]; e.Data == nil {
					e.Type, e.Data = stream.Skip, json.RawMessage("{}")
				}
			}
			if size += len(e.Data); size > sqldb.PageBytes && start+i > 0 {
				return events[:start+i], nil
			}
		}
	}
	return events, nil
}

// readShown returns the objects of a kind that events carry, by id.
func (t *tx) readShown(kind *shown, events []*stream.Event) (map[string]json.RawMessage, error) {
	var ids []string
	for _, e := range events {
		if showing(e) == kind {
			ids = append(ids, kind.id(e))
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	objects, err := kind.read(t, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	data := make(map[string]json.RawMessage, len(objects))
	for id, o := range objects {
		if data[id], err = json.Marshal(o); err != nil {
			return nil, err
		}
	}
	return data, nil
}
