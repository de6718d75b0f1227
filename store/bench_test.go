package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"nodest/account"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// chat is a database with one conversation of n messages in a line.
type chat struct {
	db               *store.DB
	user, conv, last string
}

func newChat(b *testing.B, postgres bool, n int) *chat {
	b.Helper()
	c := &chat{user: id(), conv: id()}
	o := store.Options{}
	if postgres {
		o.URL = storetest.PostgresURL(b)
	}
	c.db = storetest.OpenWith(b, o)
	ctx := context.Background()
	if err := c.db.InsertUser(ctx, &account.User{ID: c.user, Username: c.user}); err != nil {
		b.Fatal(err)
	}
	err := c.db.Update(ctx, c.user, func(tx nodest.Tx) error { return tx.InsertConversation(&nodest.Conversation{ID: c.conv}) })
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		err := c.db.Update(ctx, c.user, func(tx nodest.Tx) error {
			for range min(1000, n-done) {
				m := message(c.conv, c.last, "The tea is almost ready, and the rain has not stopped since noon.")
				if err := tx.InsertMessage(m); err != nil {
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

func each(b *testing.B, fn func(b *testing.B, postgres bool)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, false) })
	b.Run("postgres", func(b *testing.B) { fn(b, true) })
}

// BenchmarkAppend and BenchmarkPage should cost the same at both sizes.
func BenchmarkAppend(b *testing.B) {
	each(b, func(b *testing.B, postgres bool) {
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
	each(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{100, 100_000} {
			c := newChat(b, postgres, n)
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				for b.Loop() {
					err := c.db.View(context.Background(), c.user, func(tx nodest.Tx) error {
						items, more, err := tx.Path(c.conv, c.last, "", 50)
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
		if err := tx.InsertConversation(&nodest.Conversation{ID: conversation}); err != nil {
			return err
		}
		for range 100_000 {
			m := message(conversation, last, "The tea is almost ready.")
			if err := tx.InsertMessage(m); err != nil {
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
			_, _, err := tx.Path(conversation, last, "", 50)
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

// BenchmarkClients stores messages from several clients at once, each acknowledged
// on its own after it is on the disk.
func BenchmarkClients(b *testing.B) {
	each(b, func(b *testing.B, postgres bool) {
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
					return tx.InsertConversation(&nodest.Conversation{ID: conversations[i][1]})
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
