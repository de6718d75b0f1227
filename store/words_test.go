package store_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"nodest/chat"
	"nodest/fault"
	"nodest/jobs"
	"nodest/nodest"
	"nodest/op"
	"nodest/store"
)

// searcher searches with few messages per call, and counts the texts that are read.
type searcher struct {
	*env
	*chat.Service
	read int
}

func newSearcher(e *env) *searcher {
	s := &searcher{env: e}
	s.Service = chat.New(countingStore{e.db.Chats(), s}, nil, chat.Options{SearchReach: 300, Log: slog.New(slog.DiscardHandler)})
	return s
}

type countingStore struct {
	op.Store[chat.Tx]
	s *searcher
}

func (c countingStore) View(ctx context.Context, userID string, fn func(chat.Tx) error) error {
	return c.Store.View(ctx, userID, func(tx chat.Tx) error {
		tx.WordTx = countingTx{tx.WordTx, c.s}
		return fn(tx)
	})
}

type countingTx struct {
	chat.WordTx
	s *searcher
}

func (c countingTx) RangeTexts(r chat.TextRange, fn func(*chat.ShownText)) error {
	return c.WordTx.RangeTexts(r, func(t *chat.ShownText) { c.s.read++; fn(t) })
}

// index runs the job of a conversation.
func (s *searcher) index(conversation string) {
	s.Helper()
	kinds := s.Kinds()
	at := slices.IndexFunc(kinds, func(k jobs.Kind) bool { return k.Name == chat.JobWords })
	if err := kinds[at].Run(s.Context(), &jobs.Job{UserID: s.user, Subject: conversation}); err != nil {
		s.Fatal(err)
	}
}

// hits returns the swipes that are found, and in how many calls.
func (s *searcher) hits(in chat.SearchInput) (found []string, calls int) {
	s.Helper()
	for {
		page, err := s.Search(s.Context(), s.user, in)
		if err != nil {
			s.Fatal(err)
		}
		calls++
		for _, h := range page.Items {
			found = append(found, h.SwipeID)
		}
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			return found, calls
		}
	}
}

// plain is what a search must find, by looking at all messages.
func (s *searcher) plain(in chat.SearchInput, words []string, messages []string) (found []string) {
	s.Helper()
	var all []*chat.Message
	s.view(func(tx nodest.Tx) (err error) { all, err = tx.Chats.MessagesByID(messages); return err })
	slices.SortFunc(all, func(a, b *chat.Message) int {
		if in.ConversationID != "" {
			return cmp.Compare(b.Seq, a.Seq)
		}
		return strings.Compare(b.ID, a.ID)
	})
	fold := func(s string) string { return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))) }
	for _, m := range all {
		order := []int{m.SwipeIndex}
		for i := range m.Swipes {
			order = append(order, i)
		}
		for _, i := range order {
			c := m.Swipes[i]
			missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(fold(c.Text), fold(w)) })
			if !c.Deleted && !missing && (in.ConversationID == "" || in.ConversationID == m.ConversationID) {
				found = append(found, c.ID)
				break
			}
		}
	}
	return found
}

var searchedWords = []string{"tea", "Teahouse", "ＴＥＡ", "green", "Straße", "coffee", "2026", "他喜欢喝绿茶", "绿茶", "咖啡", "🦊", "🦊🐻", "...", "rain", "rainbow", "コーヒー"}

func someText(rng *rand.Rand) string {
	var words []string
	for range 1 + rng.IntN(3) {
		words = append(words, searchedWords[rng.IntN(len(searchedWords))])
	}
	return strings.Join(words, []string{" ", ", ", ""}[rng.IntN(3)])
}

// The oracle looks at every message.
func TestStoredWordsChangeNoResultOfASearch(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		rng := rand.New(rand.NewPCG(3, 4))
		s := newSearcher(e)
		chats := []string{e.conversation(), e.conversation(), e.conversation()}
		last, all := map[string]string{}, []string{}
		grow := func(conversation string, n int) {
			e.update(func(tx nodest.Tx) error {
				for range n {
					m, err := say(tx, conversation, last[conversation], someText(rng))
					if err != nil {
						return err
					}
					last[conversation], all = m.ID, append(all, m.ID)
				}
				return nil
			})
		}
		for i, n := range []int{500, 90, 300} {
			for n > 0 { // the chats take turns
				grow(chats[i], min(n, 40))
				n -= 40
			}
		}
		for round := range 8 {
			if round%3 == 1 {
				for _, c := range chats {
					s.index(c)
				}
			}
			for range 4 {
				id := all[rng.IntN(len(all))]
				switch rng.IntN(4) {
				case 0:
					grow(chats[rng.IntN(3)], rng.IntN(70))
				case 1:
					e.change(id, func(m *chat.Message) { m.Swipes[0].Text, m.Swipes[0].RevisionID = someText(rng), "" })
				case 2:
					e.change(id, func(m *chat.Message) {
						m.Swipes = append(m.Swipes, chat.Swipe{Text: someText(rng)})
						m.SwipeIndex = rng.IntN(len(m.Swipes))
					})
				case 3:
					e.change(id, deleteMessage)
				}
			}
			for range 6 {
				words := []string{searchedWords[rng.IntN(len(searchedWords))], searchedWords[rng.IntN(len(searchedWords))]}[:1+rng.IntN(2)]
				for _, conversation := range []string{"", chats[rng.IntN(3)]} {
					in := chat.SearchInput{Query: strings.Join(words, " "), ConversationID: conversation, Limit: 1 + rng.IntN(60)}
					got, _ := s.hits(in)
					e.equal(fmt.Sprintf("round %d, %+v", round, in), got, s.plain(in, words, all))
				}
			}
		}
	})
}

// longChat is a chat of n messages of which one has a rare word.
func (s *searcher) longChat(n, rare int) (conversation string, messages []string) {
	s.Helper()
	conversation = s.conversation()
	s.update(func(tx nodest.Tx) error {
		up := ""
		for i := range n {
			text := fmt.Sprint("The rain has not stopped ", i)
			if i == rare {
				text = "Zanzibar"
			}
			m, err := say(tx, conversation, up, text)
			if err != nil {
				return err
			}
			up, messages = m.ID, append(messages, m.ID)
		}
		return nil
	})
	return conversation, messages
}

func (s *searcher) ranges() int64 { s.Helper(); return s.userRows("message_words") }

func TestARareWordIsFoundWithoutReadingOtherMessages(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		conversation, _ := s.longChat(2000, 100)
		s.index(conversation)
		for _, in := range []chat.SearchInput{{Query: "zanzibar"}, {Query: "zanzibar", ConversationID: conversation}} {
			s.read = 0
			found, calls := s.hits(in)
			e.equal("found, calls", []int{len(found), calls}, []int{1, 1})
			if s.read > 2*chat.WordRange {
				e.Errorf("%d texts were read", s.read)
			}
		}
		s.read = 0
		if found, calls := s.hits(chat.SearchInput{Query: "rain", ConversationID: conversation, Limit: 200}); len(found) != 1999 {
			e.Errorf("%d found in %d calls", len(found), calls)
		}
	})
}

func TestRemovedTextsLeaveTheStoredWords(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		conversation, messages := s.longChat(600, 300)
		s.index(conversation)
		e.equal("ranges", s.ranges(), 3)
		e.change(messages[10], func(m *chat.Message) { m.Swipes[0].Text, m.Swipes[0].RevisionID = "Kinshasa", "" })
		e.equal("ranges after an edit", s.ranges(), 2)
		due, err := store.Query[string](e.db, "SELECT state FROM jobs WHERE kind = 'chat.words' AND state = 'queued'")
		e.equal("jobs", []any{due, err}, []any{[]string{"queued"}, nil})
		s.index(conversation)
		e.change(messages[300], deleteMessage)
		e.clock.advance(31 * day)
		e.maintain()
		e.equal("ranges after a removal", s.ranges(), 2)
		s.index(conversation)
		e.equal("ranges at the end", s.ranges(), 3)
		for _, word := range []string{"kinshasa", "zanzibar"} {
			found, _ := s.hits(chat.SearchInput{Query: word})
			e.equal(word, len(found) > 0, word == "kinshasa")
		}
	})
}

func TestWordsOfTextsThatHaveChangedAreNotStored(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		conversation, messages := s.longChat(300, 0)
		var due []chat.TextRange
		var revisions []string
		e.view(func(tx nodest.Tx) (err error) {
			if due, err = tx.Chats.WordsDue(conversation); err != nil {
				return err
			}
			return tx.Chats.RangeRevisions(due[0], func(id, _ string) error { revisions = append(revisions, id); return nil })
		})
		slices.Sort(revisions)
		put := func(tx nodest.Tx) error { return tx.Chats.PutWords(due[0], revisions, []byte("junk")) }
		at := int(due[0].Last) - 1
		e.change(messages[at], func(m *chat.Message) { m.Swipes[0].Text, m.Swipes[0].RevisionID = "Kinshasa", "" })
		e.refused(fault.Conflict, put)
		e.equal("ranges", s.ranges(), 0)
	})
}

func TestDamagedWordsAreStoredAgain(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		conversation, _ := s.longChat(300, 0)
		s.index(conversation)
		e.update(func(tx nodest.Tx) error { return store.Exec(tx, "UPDATE message_words SET words = ?", []byte("junk")) })
		found, _ := s.hits(chat.SearchInput{Query: "zanzibar"})
		e.equal("found", len(found), 1)
		e.equal("ranges", s.ranges(), 0)
		s.index(conversation)
		e.equal("ranges, built again", s.ranges(), 2)
	})
}

// An import and a fork store messages in another way than a chat that grows.
func TestLoadedMessagesAreIndexed(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		all := e.loadTalk(e.character(), 300)
		jobs, err := store.Query[string](e.db, "SELECT subject FROM jobs WHERE kind = 'chat.words' AND state = 'queued'")
		e.equal("jobs", []any{jobs, err}, []any{[]string{all[0].ConversationID}, nil})
		s.index(all[0].ConversationID)
		e.equal("ranges", s.ranges(), 2)
	})
}
