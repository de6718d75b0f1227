package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// pragmas returns the settings of the connection that tx uses.
func pragmas(tx nodest.Tx) (string, error) {
	mode, err := store.QueryIn[string](tx, "PRAGMA journal_mode")
	if err != nil {
		return "", err
	}
	all := "journal_mode=" + mode[0] + " "
	for _, name := range []string{"synchronous", "foreign_keys", "busy_timeout", "query_only", "cache_size"} {
		v, err := store.QueryIn[int64](tx, "PRAGMA "+name)
		if err != nil {
			return "", err
		}
		all += fmt.Sprint(name, "=", v[0], " ")
	}
	return all, nil
}

// The writing connection and every reading connection have the required settings.
func TestEveryConnectionHasItsPragmas(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user := storetest.User(t, db)
	err := db.Update(context.Background(), user, func(tx nodest.Tx) error {
		got, err := pragmas(tx)
		if want := "journal_mode=wal synchronous=2 foreign_keys=1 busy_timeout=10000 query_only=0 cache_size=-16000 "; got != want {
			t.Errorf("writing: %s\nwant %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var nested func(depth int) error
	nested = func(depth int) error {
		return db.View(context.Background(), fmt.Sprint("user ", depth), func(tx nodest.Tx) error { // one user has half of them
			got, err := pragmas(tx)
			if want := "journal_mode=wal synchronous=2 foreign_keys=1 busy_timeout=10000 query_only=1 cache_size=-4000 "; got != want {
				t.Errorf("reading, connection %d: %s\nwant %s", depth, got, want)
			}
			if err != nil || depth == 5 {
				return err
			}
			return nested(depth + 1)
		})
	}
	if err := nested(1); err != nil {
		t.Fatal(err)
	}
}

// None of the most frequent queries reads a whole table.
func TestFrequentQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	for _, query := range []string{
		"SELECT * FROM call_keys WHERE user_id = 'u' AND call_key = 5 AND created_at > 1",
		"SELECT * FROM conversations WHERE user_id = 'u' AND deleted_at IS NULL AND (updated_at, id) < (1, 'x') ORDER BY updated_at DESC, id DESC LIMIT 51",
		"SELECT * FROM conversations WHERE user_id = 'u' AND character_id = 'c' AND deleted_at IS NULL ORDER BY updated_at DESC, id DESC LIMIT 51",
		"SELECT m.* FROM messages m " + strings.ReplaceAll(fmt.Sprintf(store.ChildrenOf, "= ?"), "?", "'c'"),
		"SELECT " + store.HasChild + " FROM messages p WHERE p.user_id = 'u' AND p.id = 'p'",
		"SELECT * FROM messages m WHERE m.user_id = 'u' AND m.conversation_id = 'c' AND m.client_msg_key = 'x' AND m.client_msg_key <> ''",
		"SELECT * FROM revisions WHERE user_id = 'u' AND message_id IN ('a', 'b') AND is_shown",
		"SELECT * FROM events WHERE user_id = 'u' AND seq >= (SELECT COALESCE(MAX(seq), 0) FROM events WHERE user_id = 'u' AND seq <= 5) ORDER BY seq LIMIT 5",
		"SELECT * FROM generations WHERE user_id = 'u' AND is_open ORDER BY created_at, id",
		"SELECT * FROM generations WHERE is_open AND lease_until < 5 ORDER BY created_at, id LIMIT 5",
		"SELECT * FROM prompts WHERE user_id = 'u' AND conversation_id = 'c' ORDER BY id DESC LIMIT 1",
		"SELECT * FROM tokens WHERE hash = x'00'",
		"SELECT * FROM tokens WHERE id = 't'",
		"SELECT * FROM tokens WHERE parent_id = 't'",
		"SELECT * FROM users WHERE username_key = 'u'",
		"SELECT p.id FROM messages p WHERE p.deleted_at <= 5 AND NOT " + store.HasChild + " LIMIT 5",
		`WITH RECURSIVE path (id, parent_id, step) AS (SELECT id, parent_id, 0 FROM messages WHERE user_id = 'u' AND id = 'x'
			UNION ALL SELECT up.id, up.parent_id, path.step + 1 FROM path CROSS JOIN messages up WHERE up.user_id = 'u' AND up.id = path.parent_id AND path.step < 50)
			SELECT m.* FROM messages m JOIN (SELECT * FROM path) walk ON walk.id = m.id WHERE m.user_id = 'u'`,
	} {
		plan, err := store.Plan(db, query)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan) == 0 {
			t.Errorf("no plan of %s", query)
		}
		for _, line := range plan {
			if !allowed(line) {
				t.Errorf("%s\n%s", query, line)
			}
		}
	}
}

// allowed reports whether a line of a query plan searches, or scans only something
// small: the rows of a walk, a partial index, or values of the statement.
func allowed(line string) bool {
	var what string
	if n, _ := fmt.Sscanf(line, "SCAN %s", &what); n == 0 || strings.HasSuffix(line, "CONSTANT ROWS") || strings.HasSuffix(line, "VALUES CLAUSE") {
		return true
	}
	return what == "path" || what == "walk" || what == "(subquery-3)" || strings.HasSuffix(line, "INDEX generations_open")
}

// A line and its reply take few bytes in the file, beside their texts and what is made of them in the
// background.
func TestALineAndItsReplyTakeFewBytes(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	e := &env{T: t, db: db, user: storetest.User(t, db)}
	conversation, head := e.conversation(), ""
	talk := func(turns int) {
		for range turns {
			line := message(conversation, head, "")
			reply := message(conversation, line.ID, "")
			reply.Swipes, reply.Status = nil, chat.StatusPending
			e.nextVersion(conversation, func(tx nodest.Tx, c *chat.Conversation) error {
				c.HeadID = reply.ID
				return tx.Chats.InsertMessage(line, reply)
			})
			e.nextVersion(conversation, func(tx nodest.Tx, _ *chat.Conversation) error {
				reply.Rev, reply.Status = 2, chat.StatusComplete
				reply.Swipes = []chat.Swipe{{Model: "m", Finish: "stop", Usage: &llm.Usage{PromptTokens: 100, CompletionTokens: 50}, GenerationID: id()}}
				return tx.Chats.UpdateMessage(reply)
			})
			head = reply.ID
		}
	}
	bytes := func() int64 {
		n, err := store.Query[int64](db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
		if err != nil {
			t.Fatal(err)
		}
		return n[0]
	}
	talk(100)
	before := bytes()
	talk(500)
	if n := (bytes() - before) / 500; n > 1150 {
		t.Errorf("a turn takes %d bytes", n)
	}
}
