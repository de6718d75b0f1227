package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
)

// A conversation that is older than memories has texts that nobody heard: those of
// messages up to its old_seq. The job Adoption hears them, from the first on, and
// heard_seq says how far it is; a fork has both from what it was made of. Until then
// what changes between the two is left to the job, and what is said after them is
// heard as in any other conversation.

const (
	adopt         = "memory.adopt"
	adoptMessages = 200 // of one transaction
	adoptChats    = 200 // that are looked up at once
)

// adopted is the progress of the job.
type adopted struct {
	Conversations int `json:"conversations"`
	Messages      int `json:"messages"`
}

// Adopt enqueues the job Adoption where there is something for it. It is to be called
// at the start and every hour or so.
func (db *DB) Adopt(ctx context.Context) error {
	chats, err := db.unheard(ctx, "", 1)
	if err != nil || len(chats) == 0 {
		return err
	}
	return db.Enqueue(ctx, jobs.Spec{Kind: adopt, Subject: "all", Once: true})
}

// Adoption is the kind of the job that brings conversations from before there were
// memories into them, the newest first. Their texts can be recalled then; they count
// as read, so that no model is asked about them.
func (db *DB) Adoption() jobs.Kind {
	return jobs.Kind{Name: adopt, AtOnce: 1, Attempts: maintainAttempts, Timeout: 6 * time.Hour, Run: db.adoptAll}
}

// chatRef names a conversation of anybody.
type chatRef struct{ ID, UserID string }

// unheard returns conversations with texts that nobody heard, newest first, after one.
func (db *DB) unheard(ctx context.Context, after string, limit int) (chats []chatRef, err error) {
	where, args := "", []any{}
	if after != "" {
		where, args = " AND id < ?", append(args, text(after))
	}
	err = db.backend.read(ctx, func(s *session) error {
		_, err := s.scan(s.raw("SELECT id, user_id FROM conversations WHERE heard_seq < old_seq AND deleted_at IS NULL"+
			where+" ORDER BY id DESC LIMIT ?", append(args, limit)...), &chats)
		return err
	})
	return chats, err
}

// adoptAll does not stop at a conversation that fails.
func (db *DB) adoptAll(ctx context.Context, j *jobs.Job) error {
	var done adopted
	var failed []error
	for after := ""; ; {
		chats, err := db.unheard(ctx, after, adoptChats)
		if err != nil || len(chats) == 0 {
			return errors.Join(append(failed, err)...)
		}
		for _, c := range chats {
			err := db.adoptChat(ctx, j, c, &done)
			switch {
			case errors.Is(err, jobs.ErrLost) || ctx.Err() != nil:
				return err
			case err != nil:
				failed = append(failed, fmt.Errorf("adopt conversation %s: %w", c.ID, err))
			}
			after = c.ID
		}
	}
}

func (db *DB) adoptChat(ctx context.Context, j *jobs.Job, c chatRef, done *adopted) error {
	for left := true; left; {
		now := *done
		err := db.update(ctx, c.UserID, func(t *tx) (err error) {
			now = *done
			var n int
			if n, left, err = t.hearOld(c.ID, adoptMessages); err != nil {
				return err
			}
			if now.Messages += n; !left {
				now.Conversations++
			}
			doc, err := json.Marshal(now)
			if err != nil {
				return err
			}
			return t.noteJob(j, "", doc)
		})
		if fault.Is(err, fault.NotFound) { // deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		*done = now
	}
	return nil
}

// hearOld hears the texts of the next messages that nobody heard, at most limit, and
// returns how many messages those were; left says that there are more.
func (t *tx) hearOld(conversationID string, limit int) (n int, left bool, err error) {
	c, err := t.findConversation(conversationID, t.forUpdate())
	if err != nil || c.HeardSeq >= c.OldSeq {
		return 0, false, err
	}
	var messages []*messageRow
	_, err = t.scan(t.raw("SELECT * FROM messages WHERE conversation_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
		text(conversationID), c.HeardSeq, c.OldSeq, limit), &messages)
	if err != nil {
		return 0, false, err
	}
	heard := c.OldSeq
	if n = len(messages); n == limit {
		heard = messages[n-1].Seq
	}
	if err := t.hearRows(messages); err != nil {
		return 0, false, err
	}
	_, err = t.exec(t.raw("UPDATE conversations SET heard_seq = ? WHERE id = ?", heard, text(conversationID)))
	if err == nil && len(t.texts) > 0 {
		err = t.wantVectors(string(c.CharacterID))
	}
	return n, heard < c.OldSeq, err
}

// wantVectors enqueues the embedding of a scope, where there still is its character.
func (t *tx) wantVectors(characterID string) error {
	err := t.ownsCharacter(characterID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.Enqueue(jobs.Spec{Kind: memory.JobEmbed, Subject: characterID, Once: true})
}

// hearRows hears the texts of messages that are not known yet. Nobody is going to
// read them.
func (t *tx) hearRows(messages []*messageRow) error {
	if len(messages) == 0 {
		return nil
	}
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	in, which := among(ids)
	var revisions []*revisionRow
	_, err := t.scan(t.raw("SELECT r.id, r.message_id, r.text FROM revisions r WHERE r.message_id "+in+
		" AND NOT EXISTS (SELECT 1 FROM memory_texts k WHERE k.revision_id = r.id) ORDER BY r.id", which), &revisions)
	if err != nil {
		return err
	}
	of := map[string][]*revisionRow{}
	for _, r := range revisions {
		of[r.MessageID] = append(of[r.MessageID], r)
	}
	for _, row := range messages {
		m, err := row.message()
		if err != nil {
			return err
		}
		t.hear(m, of[row.ID])
	}
	for _, row := range t.texts {
		row.IsRead = true
	}
	return nil
}
