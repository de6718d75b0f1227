package store

import (
	"context"
	"encoding/json"
	"maps"
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
	Entries []byte // deflated
}

// rowEvents is how many events a row has at most. An event with much data of its own is the
// last of its row, so that a page of rows can be bounded.
const (
	rowEvents = 100
	rowBytes  = 64 << 10
)

// logRows are the rows of new events. References, which have rows of their own, are not stored a
// second time: Events reads them.
func logRows(events []*stream.Event) []*logRow {
	var rows []*logRow
	short, size := make([]*stream.Event, 0, min(len(events), rowEvents)), 0
	for i, e := range events {
		if hasRows(e) {
			short = append(short, &stream.Event{
				Type: e.Type, ConversationID: e.ConversationID, MessageID: e.MessageID, GenerationID: e.GenerationID, By: e.By,
			})
		} else {
			short, size = append(short, e), size+len(e.Data)
		}
		if i == len(events)-1 || len(short) == rowEvents || size > rowBytes {
			first := events[i+1-len(short)]
			rows = append(rows, &logRow{first.UserID, first.Seq, first.At, logTexts.deflate(stream.Pack(short))})
			short, size = short[:0], 0
		}
	}
	return rows
}

// hasRows reports whether what an event carries is stored elsewhere and does not change. Messages
// and chats do: an event shows them as they were.
func hasRows(e *stream.Event) bool { return e.Type == "gen.references" }

// referencesID says which references an event carries.
func referencesID(e *stream.Event) string { return e.MessageID + " " + e.GenerationID }

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
				break // deflated, they were less
			}
			entries, err := logTexts.inflate(r.Entries)
			if err != nil {
				return nil, err
			}
			size += len(entries)
			for _, e := range stream.Unpack(userID, r.Seq, r.At, entries) {
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
	var ids []string
	for _, e := range events {
		if hasRows(e) {
			ids = append(ids, referencesID(e))
		}
	}
	data := map[string]any{}
	if len(ids) > 0 {
		var err error
		if data, err = t.referencesData(ids); err != nil {
			return nil, err
		}
	}
	size := 0
	texts := map[string]chat.TextRef{}
	for i, e := range events {
		if hasRows(e) {
			if err := fill(e, data[referencesID(e)]); err != nil {
				return nil, err
			}
		}
		size += len(e.Data)
		for _, name := range e.Refs() {
			ref, _ := chat.ParseTextRef(name)
			size += ref.Size
			texts[name] = ref
		}
		if size > sqldb.PageBytes && i > 0 {
			events = events[:i]
			break
		}
	}
	return events, t.fillTexts(events, texts)
}

// fillTexts gives events the texts that they refer to.
func (t *tx) fillTexts(events []*stream.Event, refs map[string]chat.TextRef) error {
	named := map[string][]string{} // by revision
	for name, ref := range refs {
		named[ref.RevisionID] = append(named[ref.RevisionID], name)
	}
	texts := make(map[string]string, len(refs))
	note := func(s *chat.Swipe) error {
		for _, name := range named[s.RevisionID] {
			if text, ok := refs[name].Of(s); ok {
				texts[name] = strings.Clone(text) // of a long one, only its beginning is kept
			}
		}
		return nil
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(named)), 500) {
		if err := sqldb.Each(t, note, "SELECT id AS revision_id, text, reasoning, blocks FROM revisions WHERE user_id = ? AND id IN (?)", t.userID, ids); err != nil {
			return err
		}
	}
	for _, e := range events {
		if !e.Fill(texts) {
			skip(e)
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
