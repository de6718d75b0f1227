package store_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
)

// oddDocuments are JSON texts that a database might normalize.
var oddDocuments = []string{
	`null`, `true`, `-0`, `1e400`, `0.10`, `123456789012345678901234567890`, `""`, `{}`, `[]`,
	`{"b":1,"a":2,"b":3}`,
	" { \"z\" : [ 1 ,2 ] ,\n\t\"a\" :null } ",
	`{"nul":"\u0000","low":"\ud800","slash":"\/","html":"<b>&"}`,
	`{"quote":"it's ''","question":"? ?? $1 :x %s","path":"C:\\x","dollar":"$$"}`,
	`{"茶":"🫖 é é` + "\u2028" + `"}`,
	`"` + strings.Repeat("long ", 100_000) + `"`,
}

func TestDocumentsAreReturnedByteForByte(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for i, doc := range oddDocuments {
			name := doc[:min(len(doc), 40)]
			raw := []byte(doc)
			c := &character.Character{
				ID: id(), RoleCard: raw, WorldBook: raw, Preset: raw, AuthorNote: raw, RegexScripts: raw, Source: raw, Settings: raw,
			}
			r := &character.Resource{ID: id(), Kind: character.Preset, Document: raw}
			e.update(func(tx nodest.Tx) error {
				if err := tx.Characters.InsertCharacter(c); err != nil {
					return err
				}
				if err := tx.Characters.PutSettings(&character.UserSettings{CustomSetting: raw, Version: int64(i + 1)}); err != nil {
					return err
				}
				return tx.Characters.InsertResource(r)
			})
			e.view(func(tx nodest.Tx) error {
				got, err := tx.Characters.CharacterVersion(c.ID, c.Version)
				if err != nil {
					return err
				}
				for _, d := range [][]byte{got.RoleCard, got.WorldBook, got.Preset, got.AuthorNote, got.RegexScripts, got.Source, got.Settings} {
					if !bytes.Equal(d, raw) {
						e.Errorf("document %q came back as %.40q", name, d)
					}
				}
				list, _, err := tx.Characters.Characters(character.Filter{}, "", 1)
				if err != nil {
					return err
				}
				if len(list) != 1 || list[0].Source != nil || list[0].RoleCard != nil || list[0].Settings != nil {
					e.Errorf("a list of characters has documents: %+v", list)
				}
				res, err := tx.Characters.Resource(character.Preset, r.ID)
				if err != nil {
					return err
				}
				s, err := tx.Characters.Settings()
				if err != nil {
					return err
				}
				for _, d := range [][]byte{res.Document, s.CustomSetting} {
					if !bytes.Equal(d, raw) {
						e.Errorf("document %q came back as %.40q", name, d)
					}
				}
				return nil
			})
		}
	})
}

func TestVersionsStayReadable(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := &character.Character{
			ID: id(), Name: "Mei", Dialect: "sillytavern", IsCradle: true, RoleCard: []byte(`{"v":1}`), Source: []byte(`{"big":1}`),
		}
		r := &character.Resource{
			ID: id(), Kind: character.WorldBook, Name: "w", Dialect: "nodest", Document: []byte(`{"v":1}`), Characters: []string{c.ID},
		}
		e.update(func(tx nodest.Tx) error {
			if err := tx.Characters.InsertCharacter(c); err != nil {
				return err
			}
			return tx.Characters.InsertResource(r)
		})
		for version := int64(2); version <= 4; version++ {
			e.clock.advance(time.Minute)
			c.Version, c.RoleCard = version, fmt.Appendf(nil, `{"v":%d}`, version)
			r.Version, r.Document = version, c.RoleCard
			switch version {
			case 2:
				c.Archived = true
			case 3:
				c.Source = nil // keeps the stored source
			case 4:
				c.Source, r.Characters, r.BindAll = []byte(`{"big":4}`), []string{}, true
			}
			e.update(func(tx nodest.Tx) error {
				if err := tx.Characters.UpdateCharacter(c); err != nil {
					return err
				}
				return tx.Characters.UpdateResource(r)
			})
		}
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Characters.Character(c.ID)
			if err != nil {
				return err
			}
			e.equal("source of the newest character", got.Source == nil, true)
			got.Source = c.Source
			e.equal("newest character", got, c)
			res, err := tx.Characters.Resource(character.WorldBook, r.ID)
			e.equal("newest resource", res, r)
			if err != nil {
				return err
			}
			for version, source := range map[int64]string{1: `{"big":1}`, 2: `{"big":1}`, 3: `{"big":1}`, 4: `{"big":4}`} {
				old, err := tx.Characters.CharacterVersion(c.ID, version)
				if err != nil {
					return err
				}
				e.equal("card", string(old.RoleCard), fmt.Sprintf(`{"v":%d}`, version))
				e.equal("source", string(old.Source), source)
				e.equal("version", old.Version, version)
				e.equal("archived", old.Archived, version > 1)
				book, err := tx.Characters.ResourceVersion(character.WorldBook, r.ID, version)
				if err != nil {
					return err
				}
				e.equal("book", string(book.Document), fmt.Sprintf(`{"v":%d}`, version))
				e.equal("bound", len(book.Characters) == 1, version < 4)
			}
			return nil
		})
		sources, err := store.Query[int64](e.db, "SELECT version FROM character_versions WHERE source IS NOT NULL ORDER BY version")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("versions that hold the source", sources, []int64{1, 4})
		for _, version := range []int64{2, 4, 6} {
			c.Version, r.Version = version, version
			e.refused(fault.PreconditionFailed, func(tx nodest.Tx) error { return tx.Characters.UpdateCharacter(c) })
			e.refused(fault.PreconditionFailed, func(tx nodest.Tx) error { return tx.Characters.UpdateResource(r) })
		}
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Characters.CharacterVersion(c.ID, 5); return err })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Characters.Resource(character.Preset, r.ID); return err })
		// A save point may still refer to a version of a deleted resource.
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteResource(character.WorldBook, r.ID) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Characters.Resource(character.WorldBook, r.ID); return err })
		e.view(func(tx nodest.Tx) error {
			book, err := tx.Characters.ResourceVersion(character.WorldBook, r.ID, 2)
			if err == nil {
				e.equal("book of a deleted resource", string(book.Document), `{"v":2}`)
			}
			return err
		})
	})
}

func TestADeletedCharacterTakesItsConversations(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := &character.Character{ID: id(), Name: "Mei"}
		talk := &chat.Conversation{ID: id(), CharacterID: c.ID}
		other := e.conversation()
		e.update(func(tx nodest.Tx) error {
			if err := tx.Characters.InsertCharacter(c); err != nil {
				return err
			}
			if err := tx.Chats.InsertConversation(talk); err != nil {
				return err
			}
			return tx.Characters.DeleteCharacter(c.ID)
		})
		e.view(func(tx nodest.Tx) error {
			_, err := tx.Characters.Character(c.ID)
			e.code(fault.NotFound, err)
			_, err = tx.Chats.Conversation(talk.ID)
			e.code(fault.NotFound, err)
			_, err = tx.Chats.Conversation(other)
			return err
		})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(c.ID) })
	})
}

func TestAPictureIsReplaced(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		c := &character.Character{ID: id(), Name: "Mei"}
		e.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(c) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Characters.Avatar(c.ID); return err })
		for _, data := range [][]byte{bytes.Repeat([]byte{0, 0xff, '\''}, 400_000), {}, {1, 2}} {
			want := &character.Avatar{ContentType: "image/png", ETag: fmt.Sprint(len(data)), Data: data}
			e.update(func(tx nodest.Tx) error { return tx.Characters.PutAvatar(c.ID, want) })
			e.view(func(tx nodest.Tx) error {
				got, err := tx.Characters.Avatar(c.ID)
				if err != nil {
					return err
				}
				if !bytes.Equal(got.Data, data) || got.ETag != want.ETag || got.ContentType != want.ContentType {
					e.Errorf("a picture of %d bytes came back as one of %d", len(data), len(got.Data))
				}
				with, err := tx.Characters.Character(c.ID)
				e.equal("hasAvatar", with.HasAvatar, true)
				return err
			})
		}
	})
}

func TestResourcesAreBoundToOneOrToAll(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		mei, bo := id(), id()
		e.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(&character.Character{ID: mei}) })
		var r [5]*character.Resource
		for i, in := range []character.Resource{
			{Kind: character.WorldBook, Characters: []string{mei, bo, mei}},
			{Kind: character.WorldBook, BindAll: true},
			{Kind: character.Preset, Characters: []string{mei}},
			{Kind: character.WorldBook},
			{Kind: character.WorldBook, Characters: []string{bo}},
		} {
			in.ID = id()
			r[i] = &in
			e.update(func(tx nodest.Tx) error { return tx.Characters.InsertResource(r[i]) })
		}
		bound := func(kind character.ResourceKind, character string, want ...*character.Resource) {
			e.Helper()
			e.view(func(tx nodest.Tx) error {
				items, err := tx.Characters.BoundResources(kind, character)
				var got, ids []string
				for _, x := range items {
					got = append(got, x.ID)
				}
				for _, x := range want {
					ids = append(ids, x.ID)
				}
				e.equal("bound", got, ids)
				return err
			})
		}
		bound(character.WorldBook, mei, r[0], r[1])
		bound(character.WorldBook, bo, r[0], r[1], r[4])
		bound(character.WorldBook, id(), r[1])
		bound(character.Preset, mei, r[2])
		e.view(func(tx nodest.Tx) error {
			s, err := tx.Characters.Stamps(mei, r[3].ID, id(), r[0].ID)
			e.equal("stamps", s, &character.Stamps{Character: 1, Resources: []character.ResourceStamp{
				{Kind: character.WorldBook, ID: r[0].ID, Version: 1, Bound: true},
				{Kind: character.WorldBook, ID: r[1].ID, Version: 1, Bound: true},
				{Kind: character.Preset, ID: r[2].ID, Version: 1, Bound: true},
				{Kind: character.WorldBook, ID: r[3].ID, Version: 1},
				{Kind: character.WorldBook, ID: r[0].ID, Version: 1},
			}})
			return err
		})
		r[0].Version, r[0].Characters = 2, []string{bo}
		e.update(func(tx nodest.Tx) error {
			if err := tx.Characters.UpdateResource(r[0]); err != nil {
				return err
			}
			return tx.Characters.DeleteResource(character.WorldBook, r[1].ID)
		})
		bound(character.WorldBook, mei)
		bound(character.WorldBook, bo, r[0], r[4])
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return tx.Characters.DeleteResource(character.WorldBook, r[1].ID) })
	})
}

func TestTextsWithSpecialCharactersAreStored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		for _, s := range []string{"\x00", "a\x01b\x010", "\xff", "'", `\`, "\u2028", "🫖", "?", "$1", strings.Repeat("茶", 100_000)} {
			m := e.say(conversation, "", s)
			e.view(func(tx nodest.Tx) error {
				got, err := tx.Chats.Message(m.ID)
				if err != nil {
					return err
				}
				if got.Text() != strings.ToValidUTF8(s, "\uFFFD") {
					e.Errorf("%.20q came back as %.20q", s, got.Text())
				}
				return nil
			})
			// Any string that is not an id is an unknown id.
			err := e.db.View(context.Background(), e.user, func(tx nodest.Tx) error { _, err := tx.Chats.Message(s); return err })
			e.code(fault.NotFound, err)
		}
	})
}
