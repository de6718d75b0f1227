package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
)

func TestAConversationComesBackAsItWas(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		want := &chat.Conversation{
			ID: id(), CharacterID: id(), Title: "it's ?\x00 茶", PersonaID: id(), HeadID: id(),
			AuthorNote: []byte(`{"b":1,  "a":[2]}`), Settings: []byte(`{"temperature":1.50}`), Archived: true, Tags: []string{"slow burn", "茶"},
			Extra: []byte(`[1]`), Version: 1, CreatedAt: start.Add(-time.Hour), UpdatedAt: start,
			LastMessage: &chat.Preview{ID: "m", Role: "user", Text: "t\x00", CreatedAt: start},
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertConversation(want) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Chats.Conversation(want.ID)
			if err != nil {
				return err
			}
			e.equal("last message", *got.LastMessage, *want.LastMessage)
			got.LastMessage, want.LastMessage = nil, nil
			e.equal("conversation", got, want)
			return nil
		})
		e.clock.advance(time.Minute)
		want.Version, want.Title, want.Archived, want.AuthorNote = 2, "new", false, nil
		e.update(func(tx nodest.Tx) error { return tx.Chats.UpdateConversation(want) })
		e.equal("updatedAt", want.UpdatedAt, start.Add(time.Minute))
		e.refused(fault.Conflict, func(tx nodest.Tx) error { return tx.Chats.UpdateConversation(want) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Chats.Conversation(want.ID)
			e.equal("conversation", got, want)
			return err
		})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(want.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(want.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.LockConversation(want.ID); return err })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.InsertMessage(message(want.ID, "", "x")) })
		want.Version = 3
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.UpdateConversation(want) })
	})
}

// pages reads a list to its end, in pages of the given size.
func pages(e *env, size int, list func(tx nodest.Tx, cursor string) (ids []string, next string, err error)) []string {
	e.Helper()
	var all []string
	cursor := ""
	for range 100 {
		var next string
		e.view(func(tx nodest.Tx) error {
			ids, n, err := list(tx, cursor)
			if len(ids) > size || n != "" && len(ids) != size {
				e.Fatalf("a page of %d has %d", size, len(ids))
			}
			all, next = append(all, ids...), n
			return err
		})
		if next == "" {
			return all
		}
		cursor = next
	}
	e.Fatal("the list does not end")
	return nil
}

func TestListsAreStableUnderEqualTimes(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		tea, other := id(), id()
		var want, ofTea, characters, books []string
		for i := range 23 {
			if i%5 == 0 {
				e.clock.advance(time.Millisecond)
			}
			c := &chat.Conversation{ID: id(), CharacterID: []string{tea, other}[i%2], Archived: i%7 == 3}
			ch := &character.Character{ID: id(), Name: "n"}
			r := &character.Resource{ID: id(), Kind: character.WorldBook, Name: "w"}
			e.update(func(tx nodest.Tx) error {
				if err := tx.Chats.InsertConversation(c); err != nil {
					return err
				}
				if err := tx.Characters.InsertCharacter(ch); err != nil {
					return err
				}
				return tx.Characters.InsertResource(r)
			})
			want = append(want, c.ID)
			if i%2 == 0 && i%7 != 3 {
				ofTea = append(ofTea, c.ID)
			}
			characters, books = append(characters, ch.ID), append(books, r.ID)
		}
		for _, ids := range [][]string{want, ofTea, characters, books} {
			slices.Reverse(ids)
		}
		no := false
		for _, size := range []int{1, 4, 5, 23, 50} {
			conversations := func(f chat.ConversationFilter) []string {
				return pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
					items, next, err := tx.Chats.Conversations(f, cursor, size)
					for _, c := range items {
						ids = append(ids, c.ID)
					}
					return ids, next, err
				})
			}
			e.equal(fmt.Sprint("conversations by ", size), conversations(chat.ConversationFilter{}), want)
			e.equal(fmt.Sprint("of one character by ", size),
				conversations(chat.ConversationFilter{CharacterID: tea, Archived: &no}), ofTea)
			e.equal(fmt.Sprint("characters by ", size),
				pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
					items, next, err := tx.Characters.Characters(character.Filter{}, cursor, size)
					for _, c := range items {
						ids = append(ids, c.ID)
					}
					return ids, next, err
				}), characters)
			e.equal(fmt.Sprint("world books by ", size),
				pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
					items, next, err := tx.Characters.Resources(character.WorldBook, cursor, size)
					for _, r := range items {
						ids = append(ids, r.ID)
					}
					return ids, next, err
				}), books)
		}
		for _, cursor := range []string{"x", "!", "MTIz", "eDp5"} {
			e.refused(fault.Invalid, func(tx nodest.Tx) error {
				_, _, err := tx.Chats.Conversations(chat.ConversationFilter{}, cursor, 5)
				return err
			})
		}
	})
}

// A filtered list has pages like any other, whatever lies between its items.
func TestListsAreFilteredAndOrdered(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		var all []string // the numbers of what was stored, newest first
		for i := range 40 {
			e.clock.advance(time.Millisecond)
			name, tags := fmt.Sprintf("STRASSE %d", i), []string{"Odd", "ﬀ"}
			if i%2 == 0 {
				name, tags = fmt.Sprintf("Straße %d", i), nil
			}
			e.update(func(tx nodest.Tx) error {
				if err := tx.Characters.InsertCharacter(&character.Character{ID: numbered(i), Name: name, Tags: tags, Archived: i%3 == 0}); err != nil {
					return err
				}
				return tx.Chats.InsertConversation(&chat.Conversation{ID: numbered(i), Title: name, Tags: tags, Archived: i%3 == 0})
			})
			all = append(all, numbered(i))
		}
		slices.Reverse(all)
		changed := slices.Concat([]string{numbered(7)}, all[:32], all[33:])
		e.clock.advance(time.Second)
		e.update(func(tx nodest.Tx) error {
			c, err := tx.Characters.Character(numbered(7))
			if err != nil {
				return err
			}
			c.Version++
			return tx.Characters.UpdateCharacter(c)
		})
		e.nextVersion(numbered(7), func(nodest.Tx, *chat.Conversation) error { return nil })
		only := func(list []string, keep func(i int) bool) (kept []string) {
			for _, id := range list {
				if i, err := strconv.Atoi(id[34:]); err == nil && keep(i) {
					kept = append(kept, id)
				}
			}
			return kept
		}
		odd := func(i int) bool { return i%2 == 1 }
		for _, try := range []struct {
			l    op.Listing
			keep func(int) bool
		}{
			{op.Listing{}, func(int) bool { return true }},
			{op.Listing{Tag: " ODD"}, odd}, {op.Listing{Tag: "FF"}, odd}, {op.Listing{Tag: "od"}, func(int) bool { return false }},
			{op.Listing{Query: "strasse"}, func(int) bool { return true }},
			{op.Listing{Query: " E 1"}, func(i int) bool { return i == 1 || i/10 == 1 }},
			{op.Listing{Query: "E 1", Tag: "odd"}, func(i int) bool { return odd(i) && (i == 1 || i/10 == 1) }},
			{op.Listing{Query: "%"}, func(int) bool { return false }},
		} {
			for _, size := range []int{1, 3, 20, 50} {
				characters := func(f character.Filter) []string {
					return pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
						items, next, err := tx.Characters.Characters(f, cursor, size)
						for _, c := range items {
							ids = append(ids, c.ID)
						}
						return ids, next, err
					})
				}
				no := false
				conversations := func(l op.Listing) []string {
					return pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
						items, next, err := tx.Chats.Conversations(chat.ConversationFilter{Listing: l, Archived: &no}, cursor, size)
						for _, c := range items {
							ids = append(ids, c.ID)
						}
						return ids, next, err
					})
				}
				open := func(i int) bool { return i%3 != 0 && try.keep(i) }
				what := fmt.Sprintf("%+v by %d", try.l, size)
				e.equal("characters "+what, characters(character.Filter{Listing: try.l}), only(all, try.keep))
				e.equal("characters that are not archived "+what, characters(character.Filter{Archived: &no, Listing: try.l}), only(all, open))
				e.equal("conversations "+what, conversations(try.l), only(changed, open))
				byUpdate, byCreation := try.l, try.l
				byUpdate.Sort, byCreation.Sort = op.SortUpdated, op.SortCreated
				e.equal("changed characters "+what, characters(character.Filter{Listing: byUpdate}), only(changed, try.keep))
				e.equal("new conversations "+what, conversations(byCreation), only(all, open))
			}
		}
	})
}

func TestPinsAreKeptWithEachVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		pins := []*character.Pins{
			nil, {Character: 2, Settings: &character.UserSettings{UserName: "Ada", Version: 4}, Over: &character.Over{Character: 5, Settings: 6}},
			{Character: 2, Settings: &character.UserSettings{UserName: "Ada", Version: 4}, Over: &character.Over{Character: 5, Settings: 6}}, nil,
		}
		for _, p := range pins[1:] {
			e.nextVersion(conversation, func(_ nodest.Tx, c *chat.Conversation) error {
				c.Pins = p
				return nil
			})
		}
		shown := func(p *character.Pins) string {
			if p == nil {
				return "none"
			}
			return fmt.Sprintf("%d %+v %+v", p.Character, *p.Settings, *p.Over)
		}
		e.view(func(tx nodest.Tx) error {
			for i, want := range pins {
				c, err := tx.Chats.StateAt(conversation, int64(i)+1)
				if err != nil {
					return err
				}
				e.equal(fmt.Sprint("pins of version ", i+1), shown(c.Pins), shown(want))
			}
			return nil
		})
		states, err := store.Query[int64](e.db, "SELECT documents_version FROM conversation_states WHERE conversation_id = ? ORDER BY version", conversation)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("versions that hold the documents", states, []int64{1, 2, 4})
	})
}

// A version that leaves the head, the persona, the summary and the documents as they were
// costs no row, and is there all the same.
func TestAVersionWithTheSameStateCostsNoRow(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.nextVersion(conversation, func(nodest.Tx, *chat.Conversation) error { return nil })
		e.nextVersion(conversation, func(_ nodest.Tx, c *chat.Conversation) error {
			c.PersonaID = named("ada")
			return nil
		})
		e.nextVersion(conversation, func(nodest.Tx, *chat.Conversation) error { return nil })
		e.equal("rows", e.queryInts("SELECT version FROM conversation_states ORDER BY version"), []int64{1, 3})
		for version, persona := range []string{"none", "", "", named("ada"), named("ada"), "none"} {
			got := "none"
			e.view(func(tx nodest.Tx) error {
				c, err := tx.Chats.StateAt(conversation, int64(version))
				if err == nil {
					e.equal("version", c.Version, int64(version))
					got = c.PersonaID
				} else if !fault.Is(err, fault.NotFound) {
					e.Error(err)
				}
				return nil
			})
			e.equal(fmt.Sprint("persona at version ", version), got, persona)
			err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				c, err := tx.Chats.LockConversation(conversation)
				if err == nil {
					_, _, err = tx.Chats.Rewind(c, int64(version), "")
				}
				if err == nil {
					err = errors.New("left as it was")
				}
				return err
			})
			e.equal(fmt.Sprint("no rewind to version ", version), fault.Is(err, fault.NotFound), persona == "none")
		}
	})
}
