package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// benchChat is a database with one conversation of n consecutive messages.
type benchChat struct {
	db                          *store.DB
	user, character, conv, last string
}

func newChat(b *testing.B, postgres bool, n int) *benchChat {
	b.Helper()
	c := &benchChat{user: id(), character: id(), conv: id()}
	o := store.Options{}
	if postgres {
		o.URL = storetest.PostgresURL(b)
	}
	c.db = storetest.OpenWith(b, o)
	ctx := context.Background()
	if err := c.db.InsertUser(ctx, &account.User{ID: c.user, Username: c.user}); err != nil {
		b.Fatal(err)
	}
	err := c.db.Update(ctx, c.user, func(tx nodest.Tx) error {
		if err := tx.Characters.InsertCharacter(&character.Character{ID: c.character}); err != nil {
			return err
		}
		return tx.Chats.InsertConversation(&chat.Conversation{ID: c.conv, CharacterID: c.character})
	})
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		err := c.db.Update(ctx, c.user, func(tx nodest.Tx) error {
			for range min(1000, n-done) {
				m := message(c.conv, c.last, "The tea is almost ready, and the rain has not stopped since noon.")
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				c.last = m.ID
				done++
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if postgres {
		err := c.db.Update(ctx, c.user, func(tx nodest.Tx) error { return store.Exec(tx, "ANALYZE") })
		if err != nil {
			b.Fatal(err)
		}
	}
	return c
}

func benchBoth(b *testing.B, fn func(b *testing.B, postgres bool)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, false) })
	b.Run("postgres", func(b *testing.B) { fn(b, true) })
}

// BenchmarkAppend and BenchmarkPage should cost the same at both sizes.
func BenchmarkAppend(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{100, 100_000} {
			c := newChat(b, postgres, n)
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				for b.Loop() {
					err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
						m, err := say(tx, c.conv, c.last, "one more")
						if err == nil {
							c.last = m.ID
						}
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func BenchmarkPage(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{100, 100_000} {
			c := newChat(b, postgres, n)
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				for b.Loop() {
					err := c.db.View(context.Background(), c.user, func(tx nodest.Tx) error {
						items, more, err := tx.Chats.Path(c.conv, c.last, "", 50)
						if len(items) != 50 || !more {
							b.Fatal(len(items), more)
						}
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// BenchmarkStart opens a database with 100,000 messages.
func BenchmarkStart(b *testing.B) {
	dir := storetest.Dir(b)
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	user, conversation, last := storetest.User(b, db), id(), ""
	err = db.Update(context.Background(), user, func(tx nodest.Tx) error {
		if err := tx.Chats.InsertConversation(&chat.Conversation{ID: conversation}); err != nil {
			return err
		}
		for range 100_000 {
			m := message(conversation, last, "The tea is almost ready.")
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			last = m.ID
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		db, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
		if err != nil {
			b.Fatal(err)
		}
		err = db.View(context.Background(), user, func(tx nodest.Tx) error {
			_, _, err := tx.Chats.Path(conversation, last, "", 50)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClients stores messages from several clients at once; each is acknowledged
// after it is on disk.
func BenchmarkClients(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, clients := range []int{1, 32, 128} {
			o := store.Options{}
			if postgres {
				o.URL = storetest.PostgresURL(b)
			}
			db := storetest.OpenWith(b, o)
			conversations := make([][2]string, clients)
			for i := range conversations {
				conversations[i] = [2]string{storetest.User(b, db), id()}
				err := db.Update(context.Background(), conversations[i][0], func(tx nodest.Tx) error {
					return tx.Chats.InsertConversation(&chat.Conversation{ID: conversations[i][1]})
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprint(clients), func(b *testing.B) {
				var group sync.WaitGroup
				next := make(chan struct{})
				for _, c := range conversations {
					group.Go(func() {
						for range next {
							err := db.Update(context.Background(), c[0], func(tx nodest.Tx) error {
								_, err := say(tx, c[1], "", "hello")
								return err
							})
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				n, commits := 0, int64(0)
				if !postgres {
					commits = store.Commits(db)
				}
				for b.Loop() {
					next <- struct{}{}
					n++
				}
				close(next)
				group.Wait()
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
				if !postgres {
					b.ReportMetric(float64(n)/float64(store.Commits(db)-commits), "messages/commit")
				}
			})
		}
	})
}

// addHistory gives a chat the history of a written one: every second version
// has a message more, and one in a hundred is deleted.
// It returns the message in the middle.
func (c *benchChat) addHistory(b *testing.B) (middle string) {
	b.Helper()
	err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
		for _, statement := range []string{
			"UPDATE messages SET since = 2 * seq WHERE conversation_id = ?",
			`INSERT INTO conversation_states (conversation_id, version, user_id, head_id, persona_id, summary_id, documents_version)
				SELECT conversation_id, since, user_id, id, '', '', 1 FROM messages WHERE conversation_id = ?`,
			"UPDATE conversations SET version = 2 * message_seq + 1 WHERE id = ?",
			"UPDATE messages SET deleted_at = 1 WHERE conversation_id = ? AND seq % 100 = 0",
		} {
			if err := store.Exec(tx, statement, c.conv); err != nil {
				return err
			}
		}
		found, err := store.QueryIn[string](tx, "SELECT id FROM messages WHERE conversation_id = ? AND seq = (SELECT message_seq / 2 FROM conversations WHERE id = ?)", c.conv, c.conv)
		if err != nil {
			return err
		}
		middle = found[0]
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if store.OnPostgres(c.db) {
		err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error { return store.Exec(tx, "ANALYZE") })
		if err != nil {
			b.Fatal(err)
		}
	}
	return middle
}

// change makes one change of the conversation.
func (c *benchChat) change(change func(tx nodest.Tx, conv *chat.Conversation) error) error {
	return c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(c.conv)
		if err != nil {
			return err
		}
		if err := change(tx, conv); err != nil {
			return err
		}
		conv.Version++
		return tx.Chats.UpdateConversation(conv)
	})
}

// BenchmarkHistory saves, rewinds, counts and reads old pages of chats. The cost
// should not depend on their length.
func BenchmarkHistory(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{100, 10_000, 100_000} {
			c := newChat(b, postgres, n)
			middle := c.addHistory(b)
			view := func(b *testing.B, read func(tx nodest.Tx) error) {
				for b.Loop() {
					if err := c.db.View(context.Background(), c.user, read); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.Run(fmt.Sprint("count/", n), func(b *testing.B) {
				view(b, func(tx nodest.Tx) error {
					found, err := tx.Chats.Count(c.conv, c.last)
					if err == nil && found != n-n/100 {
						b.Fatal(found)
					}
					return err
				})
			})
			b.Run(fmt.Sprint("page/", n), func(b *testing.B) {
				view(b, func(tx nodest.Tx) error {
					items, _, err := tx.Chats.PathAt(c.conv, int64(n), middle, "", 50)
					if err == nil && len(items) != 50 {
						b.Fatal(len(items))
					}
					return err
				})
			})
			b.Run(fmt.Sprint("save/", n), func(b *testing.B) { c.benchmarkSave(b) })
			b.Run(fmt.Sprint("rewind/", n), func(b *testing.B) { c.benchmarkRewind(b, middle) })
			b.Run(fmt.Sprint("rewind-half/", n), func(b *testing.B) {
				for b.Loop() {
					err := c.change(func(tx nodest.Tx, conv *chat.Conversation) error {
						_, _, err := tx.Chats.Rewind(conv, int64(n), middle)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func (c *benchChat) benchmarkSave(b *testing.B) {
	for b.Loop() {
		err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
			conv, err := tx.Chats.LockConversation(c.conv)
			if err != nil {
				return err
			}
			n, err := tx.Chats.Count(c.conv, c.last)
			if err != nil {
				return err
			}
			return tx.Chats.InsertSave(&chat.Save{ID: id(), ConversationID: c.conv, Version: conv.Version, HeadID: c.last, MessageCount: n})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkRewind edits ten messages before the middle, then rewinds over the edit
// back and forth.
func (c *benchChat) benchmarkRewind(b *testing.B, middle string) {
	err := c.change(func(tx nodest.Tx, conv *chat.Conversation) error {
		items, _, err := tx.Chats.Path(c.conv, middle, "", 10)
		if err != nil {
			return err
		}
		for _, m := range items {
			m.Rev++
			m.Swipes[0].Rev, m.Swipes[0].Text = m.Swipes[0].Rev+1, "edited"
			if err := tx.Chats.UpdateMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := c.change(func(tx nodest.Tx, conv *chat.Conversation) error {
			changed, moved, err := tx.Chats.Rewind(conv, conv.Version-1, c.last)
			if err == nil && len(changed)+len(moved) != 10 {
				b.Fatal(len(changed), len(moved))
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork measures the database's cost of a fork made in one step.
func BenchmarkFork(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{5000, 10_000} {
			c := newChat(b, postgres, n)
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				for b.Loop() {
					if err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error { return c.fork(tx, n) }); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func (c *benchChat) fork(tx nodest.Tx, n int) error {
	conv, err := tx.Chats.LockConversation(c.conv)
	if err != nil {
		return err
	}
	fork := &chat.Conversation{ID: id(), CharacterID: c.character}
	fork.HeadID = tx.Chats.CopyOf(fork.ID, c.last)
	if err := tx.Chats.BeginLoad(fork); err != nil {
		return err
	}
	from := chat.ForkSource{ConversationID: c.conv, MessageID: c.last, Version: conv.Version}
	if _, _, err := tx.Chats.CopyPath(from, fork.ID, n); err != nil {
		return err
	}
	return tx.Chats.FinishLoad(fork, nil, nil)
}
