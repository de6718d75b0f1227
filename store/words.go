package store

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/store/sqldb"
)

// wordTx stores the words of messages, by which they are searched.
type wordTx struct {
	*tx
	due map[string]time.Time // conversations with messages to index, and when
}

// wordRow is the words of a range of messages.
type wordRow struct {
	UserID, ConversationID string
	FirstSeq, LastSeq      int64
	OldestID, NewestID     string
	Words                  []byte
}

// rangeRow is a range without its words.
type rangeRow struct {
	chat.TextRange `db:"First=first_seq Last=last_seq -Indexed"`
}

// chatLength is a conversation with the seq of its newest message.
type chatLength struct {
	ID         string
	MessageSeq int64
}

// livingChats selects conversations c that a search looks at.
const livingChats = "conversations c WHERE c.user_id = ? AND c.deleted_at IS NULL"

func (t *wordTx) TextRanges(f chat.TextFilter) ([]chat.TextRange, error) {
	s, where, args := t.Session, "", []any{t.userID}
	if f.ConversationID != "" {
		s = t.chats.with(f.ConversationID)
		where, args = where+" AND c.id = ?", append(args, f.ConversationID)
	}
	if f.CharacterID != "" {
		s = s.Unless(t.characters.owns(f.CharacterID))
		where, args = where+" AND c.character_id = ?", append(args, f.CharacterID)
	}
	chats, err := sqldb.All[chatLength](s, "SELECT c.id, c.message_seq FROM "+livingChats+where, args...)
	if err != nil {
		return nil, err
	}
	indexed, err := t.indexedRanges("IN (SELECT c.id FROM "+livingChats+where+")", args...)
	if err != nil {
		return nil, err
	}
	loose, err := t.looseRanges(gapsOf(chats, indexed))
	return append(indexed, loose...), err
}

const rangesOf = "SELECT conversation_id, first_seq, last_seq, oldest_id, newest_id FROM message_words WHERE user_id = ? AND conversation_id "

// indexedRanges returns the ranges with words of the conversations that a condition on their ids
// selects, by conversation and seq.
func (t *wordTx) indexedRanges(which string, args ...any) ([]chat.TextRange, error) {
	indexed := func(r *rangeRow) chat.TextRange {
		r.Indexed = true
		return r.TextRange
	}
	return sqldb.Map(t, indexed, rangesOf+which+" ORDER BY conversation_id, first_seq", append([]any{t.userID}, args...)...)
}

// gapsOf returns the seqs of conversations that are not in ranges, which are in order.
func gapsOf(chats []chatLength, indexed []chat.TextRange) (gaps []chat.TextRange) {
	of := map[string][]chat.TextRange{}
	for i, from := 0, 0; i < len(indexed); i++ {
		if id := indexed[i].ConversationID; i+1 == len(indexed) || indexed[i+1].ConversationID != id {
			of[id], from = indexed[from:i+1], i+1
		}
	}
	for _, c := range chats {
		next := int64(1)
		for _, r := range of[c.ID] {
			if r.First > next {
				gaps = append(gaps, chat.TextRange{ConversationID: c.ID, First: next, Last: r.First - 1})
			}
			next = r.Last + 1
		}
		if next <= c.MessageSeq {
			gaps = append(gaps, chat.TextRange{ConversationID: c.ID, First: next, Last: c.MessageSeq})
		}
	}
	return gaps
}

// gapsAtOnce is how many gaps one statement looks at.
const gapsAtOnce = 200

// rangesOfGaps is given an expression for the text of a message's id: PostgreSQL has no MIN of UUIDs.
const rangesOfGaps = `
	SELECT g.conversation_id, MIN(m.seq) AS first_seq, MAX(m.seq) AS last_seq, MIN(%[1]s) AS oldest_id, MAX(%[1]s) AS newest_id
	FROM gaps g CROSS JOIN messages m
	WHERE m.user_id = ? AND m.conversation_id = g.conversation_id AND m.seq >= g.first_seq AND m.seq <= g.last_seq
	GROUP BY g.conversation_id, m.seq / ?`

// looseRanges cuts gaps into ranges of at most chat.WordRange seqs, and leaves out those without
// messages.
func (t *wordTx) looseRanges(gaps []chat.TextRange) (ranges []chat.TextRange, err error) {
	for some := range slices.Chunk(gaps, gapsAtOnce) {
		var args []any
		for _, g := range some {
			args = append(args, sqldb.ID(g.ConversationID), g.First, g.Last)
		}
		found, err := sqldb.Map(t, func(r *rangeRow) chat.TextRange { return r.TextRange },
			"WITH gaps (conversation_id, first_seq, last_seq) AS ("+values(3, len(args))+")"+fmt.Sprintf(rangesOfGaps, t.IDText("m.id")), append(args, t.userID, chat.WordRange)...)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, found...)
	}
	return ranges, nil
}

const wordsOf = `SELECT w.conversation_id, w.first_seq, w.words FROM message_words w JOIN conversations c ON c.user_id = w.user_id AND c.id = w.conversation_id
	WHERE c.deleted_at IS NULL AND w.user_id = ? AND (w.conversation_id, w.first_seq) IN (`

func (t *wordTx) RangeWords(ranges ...chat.TextRange) ([][]byte, error) {
	type key struct {
		conversationID string
		first          int64
	}
	of := make(map[key][]byte, len(ranges))
	args := []any{t.userID}
	for _, r := range ranges {
		args = append(args, sqldb.ID(r.ConversationID), r.First)
	}
	if len(ranges) == 0 {
		return nil, nil
	}
	err := sqldb.Each(t, func(r *wordRow) error { of[key{r.ConversationID, r.FirstSeq}] = r.Words; return nil },
		wordsOf+values(2, len(args)-1)+")", args...)
	words := make([][]byte, len(ranges))
	for i, r := range ranges {
		words[i] = of[key{r.ConversationID, r.First}]
	}
	return words, err
}

// ofRange is a condition on messages m.
const ofRange = "m.user_id = ? AND m.conversation_id = ? AND m.seq >= ? AND m.seq <= ?"

func (t *wordTx) rangeArgs(r chat.TextRange) []any {
	return []any{t.userID, r.ConversationID, r.First, r.Last}
}

type shownRow struct {
	chat.ShownText `db:"Chosen=is_chosen"`
}

const textsOfRange = `SELECT m.id AS message_id, m.seq, r.swipe_id, r.position, r.position = m.swipe_index AS is_chosen, r.text
	FROM messages m CROSS JOIN revisions r
	WHERE ` + ofRange + ` AND m.deleted_at IS NULL AND ` + inLivingChat + `
		AND r.user_id = m.user_id AND r.message_id = m.id AND r.is_shown AND NOT r.is_deleted`

func (t *wordTx) RangeTexts(r chat.TextRange, fn func(*chat.ShownText)) error {
	return sqldb.Each(t, func(r *shownRow) error { fn(&r.ShownText); return nil },
		textsOfRange, t.rangeArgs(r)...)
}

func (t *wordTx) MessagesByID(ids []string) ([]*chat.Message, error) {
	return t.messages.readMessages("WHERE m.user_id = ? AND m.id IN (?) AND m.deleted_at IS NULL AND "+inLivingChat, t.userID, ids)
}

// WordsDue returns ranges that begin where a range begins, however much of them is indexed.
func (t *wordTx) WordsDue(conversationID string) ([]chat.TextRange, error) {
	s := t.chats.with(conversationID)
	loading, err := s.Has("SELECT 1 FROM loads WHERE user_id = ? AND conversation_id = ?", t.userID, conversationID)
	if err != nil || loading {
		return nil, err
	}
	newest, err := sqldb.Value[int64](t, "SELECT message_seq FROM conversations WHERE user_id = ? AND id = ?", t.userID, conversationID)
	if err != nil {
		return nil, err
	}
	indexed, err := t.indexedRanges("= ?", conversationID)
	if err != nil {
		return nil, err
	}
	to := chat.IndexedTo(newest)
	due, err := t.looseRanges(gapsOf([]chatLength{{conversationID, to}}, indexed))
	for i := range due {
		r := &due[i]
		r.First = firstOf(r.First)
		r.Last = min(r.First+chat.WordRange-1, to)
	}
	slices.SortFunc(due, func(a, b chat.TextRange) int { return int(b.First - a.First) })
	return due, err
}

// firstOf returns the first seq of the range that has a seq.
func firstOf(seq int64) int64 { return seq / chat.WordRange * chat.WordRange }

type revisionText struct{ ID, Text string }

const revisionsOfRange = "FROM messages m CROSS JOIN revisions r WHERE " + ofRange + " AND r.user_id = m.user_id AND r.message_id = m.id"

func (t *wordTx) RangeRevisions(r chat.TextRange, fn func(id, text string) error) error {
	return sqldb.Each(t.chats.with(r.ConversationID), func(r *revisionText) error { return fn(r.ID, r.Text) },
		"SELECT r.id, r.text "+revisionsOfRange, t.rangeArgs(r)...)
}

// PutWords locks the messages first, as those who change or remove them do, and reads their texts with
// another statement then. Whoever waits for it removes what is stored here.
func (t *wordTx) PutWords(r chat.TextRange, revisionIDs []string, words []byte) error {
	if _, err := t.chats.LockConversation(r.ConversationID); err != nil {
		return err
	}
	ids, err := sqldb.All[string](t, "SELECT m.id FROM messages m WHERE "+ofRange+t.ForUpdate(), t.rangeArgs(r)...)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fault.New(fault.Conflict, "the messages of this range are gone")
	}
	revisions, err := sqldb.All[string](t, "SELECT r.id "+revisionsOfRange, t.rangeArgs(r)...)
	if err != nil {
		return err
	}
	if slices.Sort(revisions); !slices.Equal(revisions, revisionIDs) {
		return fault.New(fault.Conflict, "the messages of this range have changed")
	}
	row := &wordRow{t.userID, r.ConversationID, r.First, r.Last, slices.Min(ids), slices.Max(ids), words}
	return t.Insert("message_words", row, "ON CONFLICT (user_id, conversation_id, first_seq) DO UPDATE SET last_seq = EXCLUDED.last_seq,"+
		" oldest_id = EXCLUDED.oldest_id, newest_id = EXCLUDED.newest_id, words = EXCLUDED.words")
}

const dropWords = "DELETE FROM message_words WHERE user_id = ? AND conversation_id = ? AND first_seq = ?"

func (t *wordTx) DropWords(ranges ...chat.TextRange) error {
	for _, r := range ranges {
		if err := t.chats.owns(r.ConversationID); err != nil {
			return err
		}
		if err := t.Run(dropWords, t.userID, r.ConversationID, r.First); err != nil {
			return err
		}
		t.indexWords(r.ConversationID, time.Time{})
	}
	return nil
}

// seqPlace is where a message is in its conversation.
type seqPlace struct {
	ConversationID string
	Seq            int64
}

// seqsOf returns where messages are.
func (s *session) seqsOf(userID string, messageIDs []string) ([]seqPlace, error) {
	return sqldb.All[seqPlace](s, "SELECT conversation_id, seq FROM messages WHERE user_id = ? AND id IN (?)", userID, messageIDs)
}

// dropWordsAt removes the words of ranges with texts that were removed for good: before, so that
// whoever was storing them has ended.
func (s *session) dropWordsAt(userID string, places []seqPlace) error {
	ranges := map[seqPlace]bool{}
	for _, p := range places {
		ranges[seqPlace{p.ConversationID, firstOf(p.Seq)}] = true
	}
	for r := range ranges {
		if err := s.Run(dropWords, userID, r.ConversationID, r.Seq); err != nil {
			return err
		}
	}
	return nil
}

// wordPause is how long the words of a range that has changed are not stored again: more of it may
// change.
const wordPause = time.Minute

// noteRevisions removes the words of the range of a message that has new texts. The newest
// messages have none, which most changes are about.
func (t *wordTx) noteRevisions(m *chat.Message, n int) error {
	stored := t.chats.locked[m.ConversationID]
	if n == 0 || stored != nil && m.Seq > chat.IndexedTo(stored.seq) {
		return nil
	}
	dropped, err := t.Exec(dropWords+" AND last_seq >= ?", t.userID, m.ConversationID, firstOf(m.Seq), m.Seq)
	if dropped > 0 {
		t.indexWords(m.ConversationID, t.Now().Add(wordPause))
	}
	return err
}

// noteGrowth enqueues the job for messages that are to be indexed now.
func (t *wordTx) noteGrowth(conversationID string, before, newest int64) {
	if chat.IndexedTo(newest) > chat.IndexedTo(before) {
		t.indexWords(conversationID, time.Time{})
	}
}

// indexWords enqueues the job of a conversation at the end.
func (t *wordTx) indexWords(conversationID string, notBefore time.Time) {
	if at, ok := t.due[conversationID]; !ok || notBefore.Before(at) {
		t.due[conversationID] = notBefore
	}
}

func (t *wordTx) flushWords() error {
	for _, id := range slices.Sorted(maps.Keys(t.due)) {
		if err := t.jobs.Enqueue(jobs.Spec{Kind: chat.JobWords, Subject: id, NotBefore: t.due[id]}); err != nil {
			return err
		}
	}
	return nil
}
