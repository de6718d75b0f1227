package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
)

func TestASavePointComesBackAsItWas(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation, imported := e.conversation(), start.Add(-time.Hour)
		book, persona := id(), id()
		want := &chat.Save{
			ID: id(), ConversationID: conversation, CharacterID: id(), Version: 1, HeadID: named("h"), Description: "before the 茶 \x00",
			PreviewText: "it's", MessageCount: 12, Automatic: true, Thumbnail: "data:image/png;base64,AA==",
			Extra: []byte(`{"z":1, "a":2}`), ImportedAt: &imported, CreatedAt: start.Add(-time.Minute),
			Pins: &character.Pins{Character: 3, Resources: []character.ResourceStamp{
				{Kind: character.WorldBook, ID: book, Version: 2, Bound: true},
				{Kind: character.Persona, ID: persona, Version: 1},
				{Kind: character.WorldBook, ID: book, Version: 2},
			}, Settings: &character.UserSettings{UserName: "Ada", CustomSetting: []byte(`{"x":1}`)}},
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertSave(want) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Chats.Save(want.ID)
			if err != nil {
				return err
			}
			e.equal("settings", *got.Pins.Settings, *want.Pins.Settings)
			e.equal("resources", got.Pins.Resources, want.Pins.Resources)
			e.equal("imported at", *got.ImportedAt, imported)
			kept := *want
			got.Pins, kept.Pins, got.ImportedAt, kept.ImportedAt = nil, nil, nil, nil
			e.equal("save", *got, kept)
			return nil
		})
		resources := func() []string {
			e.Helper()
			ids, err := store.Query[string](e.db, "SELECT resource_id FROM save_resources WHERE save_id = ? ORDER BY 1", want.ID)
			if err != nil {
				e.Fatal(err)
			}
			return ids
		}
		needed := []string{book, persona}
		slices.Sort(needed)
		e.equal("stored resources", resources(), needed)

		e.refused(fault.Conflict, func(tx nodest.Tx) error { return tx.Chats.InsertSave(want) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.InsertSave(&chat.Save{ID: id(), ConversationID: id()}) })
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteSave(want.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.DeleteSave(want.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Save(want.ID); return err })
		e.equal("stored resources", len(resources()), 0)
	})
}

func TestSavePointsGoWithTheirConversation(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := &chat.Save{ID: id(), ConversationID: e.conversation(), Version: 1}
		e.update(func(tx nodest.Tx) error { return tx.Chats.InsertSave(s) })
		e.equal("created at", s.CreatedAt, start)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(s.ConversationID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.Save(s.ID); return err })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.DeleteSave(s.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			_, _, err := tx.Chats.Saves(s.ConversationID, true, "", 5)
			return err
		})
		s.ID = id()
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Chats.InsertSave(s) })
	})
}

func TestSavePointsAreListedByPages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation, other := e.conversation(), e.conversation()
		var all, manual []string
		e.update(func(tx nodest.Tx) error {
			all, manual = nil, nil
			for i := range 11 {
				s := &chat.Save{
					ID: id(), ConversationID: conversation, Automatic: i%3 == 0, CreatedAt: start.Add(time.Duration(i/4) * time.Second),
				}
				if err := tx.Chats.InsertSave(s); err != nil {
					return err
				}
				all = append([]string{s.ID}, all...)
				if !s.Automatic {
					manual = append([]string{s.ID}, manual...)
				}
			}
			return tx.Chats.InsertSave(&chat.Save{ID: id(), ConversationID: other})
		})
		for _, size := range []int{1, 4, 50} {
			for automatic, want := range map[bool][]string{true: all, false: manual} {
				got := pages(e, size, func(tx nodest.Tx, cursor string) (ids []string, next string, err error) {
					items, next, err := tx.Chats.Saves(conversation, automatic, cursor, size)
					for _, s := range items {
						ids = append(ids, s.ID)
					}
					return ids, next, err
				})
				e.equal(fmt.Sprint("by ", size, ", automatic ones too: ", automatic), got, want)
			}
		}
		e.refused(fault.Invalid, func(tx nodest.Tx) error {
			_, _, err := tx.Chats.Saves(conversation, true, "!", 5)
			return err
		})
	})
}
