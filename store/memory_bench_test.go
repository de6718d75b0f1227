package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
)

// BenchmarkMemoryChanges loads a large memory, and then the change of one more text.
func BenchmarkMemoryChanges(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		const units = 8_000 // as many as are loaded whole
		c := newChat(b, postgres, 0)
		c.talkAndEmbed(b, units)
		since := &memory.Changes{}
		load := func(b *testing.B, want int) {
			err := c.db.View(context.Background(), c.user, func(tx nodest.Tx) error {
				changes, err := tx.Memory.MemoryChanges(c.character, since.Version, since.Base, 0)
				if err == nil && len(changes.Units) != want {
					b.Fatal(len(changes.Units))
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.Run("all", func(b *testing.B) {
			for b.Loop() {
				load(b, units)
			}
		})
		err := c.db.View(context.Background(), c.user, func(tx nodest.Tx) (err error) {
			since, err = tx.Memory.MemoryChanges(c.character, 0, 0, 0)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		c.talkAndEmbed(b, 1)
		b.Run("one", func(b *testing.B) {
			for b.Loop() {
				load(b, 1)
			}
		})
	})
}

// talkAndEmbed stores n long, distinct texts, each with a vector of 512 numbers.
func (c *benchChat) talkAndEmbed(b *testing.B, n int) {
	b.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for done := 0; done < n; done += 500 {
		err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
			for i := range min(500, n-done) {
				m := message(c.conv, c.last, fmt.Sprint("The tea number ", done+i, " of ", n, " is almost ready, and the rain has not stopped since noon. "+
					"Ruth says that she will go to the market as soon as it does, and asks whether anybody needs anything from there."))
				if err := tx.Chats.InsertMessage(m); err != nil {
					return err
				}
				c.last = m.ID
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for done := 0; done < n; done += 500 {
		err := c.db.Update(context.Background(), c.user, func(tx nodest.Tx) error {
			contents, err := tx.Memory.WithoutVector(c.character, "m", 0, 500)
			vectors := map[string][]float32{}
			for _, content := range contents {
				v := make([]float32, 512)
				for i := range v {
					v[i] = rnd.Float32()
				}
				vectors[content.IDs[0]] = v
			}
			if err != nil {
				return err
			}
			return tx.Memory.PutVectors(c.character, "m", vectors)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShown checks as many texts as a search finds. The cost should not depend on
// the length of the chat.
func BenchmarkShown(b *testing.B) {
	benchBoth(b, func(b *testing.B, postgres bool) {
		for _, n := range []int{1000, 100_000} {
			c := newChat(b, postgres, n)
			rows, err := store.Query[string](c.db, "SELECT revision_id FROM memory_texts WHERE conversation_id = ? AND seq % ? = 0", c.conv, n/400)
			if err != nil {
				b.Fatal(err)
			}
			var texts []memory.Evidence
			err = c.db.View(context.Background(), c.user, func(tx nodest.Tx) error {
				said, err := tx.Memory.SaidByID(c.character, rows[:400]...)
				for _, s := range said {
					texts = append(texts, s.Evidence)
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				for b.Loop() {
					err := c.db.View(context.Background(), c.user, func(tx nodest.Tx) error {
						shown, err := tx.Memory.Shown(&memory.Place{ConversationID: c.conv, HeadID: c.last}, texts)
						if err == nil && (len(shown) != 400 || !shown[399]) {
							b.Fatal(len(shown))
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
