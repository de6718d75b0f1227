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
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
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

func fold(s string) string { return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))) }

// plain is what a search must find, by looking at all messages.
func (c *manyChats) plain(in chat.SearchInput, words []string, all []*chat.Message) (found []string) {
	slices.SortFunc(all, func(a, b *chat.Message) int {
		if in.ConversationID != "" {
			return cmp.Compare(b.Seq, a.Seq)
		}
		return strings.Compare(b.ID, a.ID)
	})
	searched := map[string]bool{}
	for _, conv := range c.chats {
		searched[conv.ID] = (in.ConversationID == "" || in.ConversationID == conv.ID) && (in.CharacterID == "" || in.CharacterID == conv.CharacterID)
	}
	for _, m := range all {
		order := []int{m.SwipeIndex}
		for i := range m.Swipes {
			order = append(order, i)
		}
		for _, i := range order {
			c := m.Swipes[i]
			missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(fold(c.Text), fold(w)) })
			if !c.Deleted && !missing && searched[m.ConversationID] {
				found = append(found, c.ID)
				break
			}
		}
	}
	return found
}

var searchedWords = []string{"tea", "Teahouse", "ＴＥＡ", "green", "Straße", "coffee", "2026", "他喜欢喝绿茶", "绿茶", "咖啡", "🦊", "🦊🐻", "...", "rain", "rainbow", "コーヒー"}

// manyChats are conversations of three characters that change at random.
type manyChats struct {
	*env
	rng    *rand.Rand
	chats  []*chat.Conversation
	said   map[string][]string // messages of each conversation
	all    []string
	latest []string // words of the texts that were stored last
}

// someWord is a common word, or one that few ranges have.
func (c *manyChats) someWord() string {
	if c.rng.IntN(2) == 0 {
		return fmt.Sprintf("%03d", c.rng.IntN(1000))
	}
	return searchedWords[c.rng.IntN(len(searchedWords))]
}

func (c *manyChats) someText() string {
	var words []string
	for range 1 + c.rng.IntN(3) {
		words = append(words, c.someWord())
	}
	c.latest = append(c.latest, words...)
	return strings.Join(words, []string{" ", ", ", ""}[c.rng.IntN(3)])
}

// someQuery is a query of one or two words, or of a phrase, and the parts that a text must have.
func (c *manyChats) someQuery() (query string, parts []string) {
	first, second := c.someWord(), c.someWord()
	if c.rng.IntN(2) == 0 {
		first = c.latest[len(c.latest)-1-c.rng.IntN(min(len(c.latest), 20))]
	}
	switch c.rng.IntN(4) {
	case 0:
		return first + " " + second, []string{first, second}
	case 1:
		phrase := first + []string{" ", ", ", ""}[c.rng.IntN(3)] + second
		return `"` + phrase + `"`, []string{phrase}
	}
	return first, []string{first}
}

// grow stores messages at the end of a conversation, or on a new branch.
func (c *manyChats) grow(conversation string, n int, branch bool) {
	c.update(func(tx nodest.Tx) error {
		for i := range n {
			said := c.said[conversation]
			up := ""
			switch {
			case branch && i == 0 && len(said) > 0:
				up = said[c.rng.IntN(len(said))]
			case len(said) > 0:
				up = said[len(said)-1]
			}
			m, err := say(tx, conversation, up, c.someText())
			if err != nil {
				return err
			}
			c.said[conversation], c.all = append(said, m.ID), append(c.all, m.ID)
		}
		return nil
	})
}

func (c *manyChats) oneOf() *chat.Conversation { return c.chats[c.rng.IntN(len(c.chats))] }

// changeSomething changes a message, or adds some.
func (c *manyChats) changeSomething() {
	id := c.all[c.rng.IntN(len(c.all))]
	switch c.rng.IntN(7) {
	case 0:
		c.grow(c.oneOf().ID, c.rng.IntN(70), false)
	case 1:
		c.grow(c.oneOf().ID, c.rng.IntN(20), true)
	case 2:
		c.change(id, func(m *chat.Message) { m.Swipes[0].Text, m.Swipes[0].RevisionID = c.someText(), "" })
	case 3:
		c.change(id, func(m *chat.Message) {
			m.Swipes = append(m.Swipes, chat.Swipe{Text: c.someText()})
			m.SwipeIndex = c.rng.IntN(len(m.Swipes))
		})
	case 4:
		c.change(id, func(m *chat.Message) {
			if last := len(m.Swipes) - 1; last > 0 {
				m.Swipes[last].Deleted, m.SwipeIndex = true, 0
			}
		})
	case 5:
		c.change(id, deleteMessage)
	case 6:
		source := c.oneOf()
		said := c.said[source.ID]
		end := said[c.rng.IntN(len(said))]
		fork := &chat.Conversation{ID: op.NewID(), CharacterID: source.CharacterID}
		c.finishFork(fork, c.beginFork(fork, source.ID, end, 100), 100)
		c.chats = append(c.chats, fork)
		for _, m := range c.path(fork.ID, fork.HeadID) {
			c.said[fork.ID], c.all = append(c.said[fork.ID], m.ID), append(c.all, m.ID)
		}
	}
}

// The oracle looks at every message.
func TestStoredWordsChangeNoResultOfASearch(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		rng := rand.New(rand.NewPCG(3, 4))
		s := newSearcher(e)
		c := &manyChats{env: e, rng: rng, said: map[string][]string{}}
		for range 3 {
			conv := &chat.Conversation{ID: op.NewID(), CharacterID: e.character()}
			e.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(conv) })
			c.chats = append(c.chats, conv)
		}
		for i, n := range []int{500, 90, 300} {
			for n > 0 { // the chats take turns
				c.grow(c.chats[i].ID, min(n, 40), false)
				n -= 40
			}
		}
		if store.OnPostgres(e.db) { // as its autovacuum does; without statistics the test takes four times as long
			e.update(func(tx nodest.Tx) error { return store.Exec(tx, "ANALYZE messages, revisions, conversations") })
		}
		for round := range 8 {
			if round%3 == 1 {
				for _, conv := range c.chats {
					s.index(conv.ID)
				}
			}
			for range 6 {
				c.changeSomething()
			}
			var all []*chat.Message
			e.view(func(tx nodest.Tx) (err error) { all, err = tx.Chats.MessagesByID(c.all); return err })
			for range 6 {
				query, parts := c.someQuery()
				for _, in := range []chat.SearchInput{{}, {ConversationID: c.oneOf().ID}, {CharacterID: c.oneOf().CharacterID}} {
					in.Query, in.Limit = query, 10+rng.IntN(60)
					got, _ := s.hits(in)
					e.equal(fmt.Sprintf("round %d, %+v", round, in), got, c.plain(in, parts, all))
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newSearcher(e)
		all := e.loadTalk(e.character(), 300)
		jobs, err := store.Query[string](e.db, "SELECT subject FROM jobs WHERE kind = 'chat.words' AND state = 'queued'")
		e.equal("jobs", []any{jobs, err}, []any{[]string{all[0].ConversationID}, nil})
		s.index(all[0].ConversationID)
		e.equal("ranges", s.ranges(), 2)
	})
}
