package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// tips reads the tips of all branches, in pages.
func (e *env) tips(conversation string, size int) []string {
	e.Helper()
	return pages(e, size, func(tx nodest.Tx, cursor string) ([]string, string, error) {
		items, next, err := tx.Chats.Tips(conversation, cursor, size)
		return texts(items), next, err
	})
}

func TestBranchesAreListedByTheirTips(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conversation := e.conversation()
		e.equal("tips of an empty conversation", len(e.tips(conversation, 5)), 0)
		up := map[string]string{}
		byText := map[string]string{"": ""}
		for _, line := range strings.Fields("a: b:a c:b d:c B:a c2:b c3:b e:c3 C:B root: f:root") {
			name, parent, _ := strings.Cut(line, ":")
			byText[name], up[name] = e.say(conversation, byText[parent], name).ID, parent
		}
		for _, step := range []struct {
			what string
			do   func(m *chat.Message)
			to   string
			want string
		}{
			{"nothing", undeleteMessage, "a", "f C e c2 d"},
			{"a deleted tip: the branch ends before it", deleteMessage, "d", "f C e c2 c"},
			{"a branch without visible messages has no tip", deleteMessage, "c2", "f C e c"},
			{"a branch continues below a deleted message", deleteMessage, "c3", "f C e c"},
			{"a branch that is part of another has no tip", deleteMessage, "c", "f C e"},
			{"even if the other continues below a deleted message", deleteMessage, "b", "f C e"},
			{"the tip of that branch is deleted", deleteMessage, "e", "f C"},
			{"both branches below a deleted message are deleted", deleteMessage, "C", "f B"},
			{"then the message before it is a tip", deleteMessage, "B", "f a"},
			{"a message is restored", undeleteMessage, "c2", "f c2"},
		} {
			e.change(byText[step.to], step.do)
			want := strings.Fields(step.want)
			for _, size := range []int{1, 2, 50} {
				e.equal(step.what, e.tips(conversation, size), want)
			}
		}
		e.refused(fault.Invalid, func(tx nodest.Tx) error { _, _, err := tx.Chats.Tips(conversation, "x", 5); return err })
	})
}

// Tips of random trees are the visible messages with no visible message below; the leaf
// of a message is the newest of those in and below it.
func TestTipsOfRandomTrees(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := newRandomHistory(e)
		for range atLeast(6, 60) {
			for range 20 {
				s.step()
			}
			var all []*chat.Message
			for _, m := range e.dump(s.conv) {
				all = append(all, m.Message)
			}
			leaves := map[string]*chat.Message{} // the newest tip in and below each message
			var want []string
			for _, m := range slices.Backward(all) {
				if m.DeletedAt == nil && leaves[m.ID] == nil {
					want = append(want, m.Text())
					leaves[m.ID] = m
				}
				if tip, other := leaves[m.ID], leaves[m.ParentID]; other == nil || tip != nil && tip.Seq > other.Seq {
					leaves[m.ParentID] = tip
				}
			}
			e.equal("tips", e.tips(s.conv, 1000), want)
			e.view(func(tx nodest.Tx) error {
				for _, m := range all {
					if m.DeletedAt != nil {
						continue
					}
					leaf, err := tx.Chats.Leaf(s.conv, m.ID)
					if err != nil {
						return err
					}
					e.equal("leaf of "+m.Text(), leaf, leaves[m.ID].ID)
				}
				return nil
			})
		}
	})
}

func TestSearchLooksAtTheTextsOfLivingChats(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		tea, coffee := id(), id()
		var ofTea, first, second, gone string
		e.update(func(tx nodest.Tx) error {
			for _, c := range []string{tea, coffee} {
				if err := tx.Characters.InsertCharacter(&character.Character{ID: c, Name: "n"}); err != nil {
					return err
				}
			}
			ofTea, first, second, gone = id(), id(), id(), id()
			for c, character := range map[string]string{ofTea: tea, first: coffee, second: coffee, gone: coffee} {
				if err := tx.Chats.InsertConversation(&chat.Conversation{ID: c, CharacterID: character}); err != nil {
					return err
				}
			}
			return nil
		})
		var want []string
		of := map[string][]string{}
		for i := range 30 {
			c := []string{ofTea, first, second, gone}[i%4]
			m := e.say(c, "", fmt.Sprint(i))
			if i%7 == 3 {
				e.change(m.ID, deleteMessage)
				continue
			}
			if c != gone {
				want = append(want, m.Text())
			}
			of[c] = append(of[c], m.Text())
		}
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(gone) })
		ofCoffee := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(of[ofTea], s) })
		for _, try := range []struct {
			filter chat.TextFilter
			want   []string
		}{
			{chat.TextFilter{}, want},
			{chat.TextFilter{CharacterID: coffee}, ofCoffee},
			{chat.TextFilter{CharacterID: tea}, of[ofTea]},
			{chat.TextFilter{ConversationID: first}, of[first]},
			{chat.TextFilter{ConversationID: first, CharacterID: coffee}, of[first]},
			{chat.TextFilter{ConversationID: first, CharacterID: tea}, nil},
		} {
			got := e.searchable(try.filter)
			e.equal(fmt.Sprintf("texts of %+v", try.filter), slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(try.want)))
		}
		for _, f := range []chat.TextFilter{{ConversationID: gone}, {ConversationID: id()}, {CharacterID: id()}} {
			e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := tx.Chats.TextRanges(f); return err })
		}
	})
}

// searchable returns the texts that a search looks at, in no order.
func (e *env) searchable(f chat.TextFilter) (found []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		ranges, err := tx.Chats.TextRanges(f)
		for _, r := range ranges {
			if err == nil {
				err = tx.Chats.RangeTexts(r, func(t *chat.ShownText) { found = append(found, t.Text) })
			}
		}
		return err
	})
	return found
}

func TestAnAppFindsItsConversation(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		first, second := e.conversation(), e.conversation()
		chat := func(key string) (conversation string) {
			e.Helper()
			e.view(func(tx nodest.Tx) (err error) { conversation, err = appKeys(tx).AppChat(key); return err })
			return conversation
		}
		none := func(tx nodest.Tx) error { _, err := appKeys(tx).AppChat("key\x00"); return err }
		e.refused(fault.NotFound, none)
		e.update(func(tx nodest.Tx) error { return appKeys(tx).PutAppChat("key\x00", first) })
		e.update(func(tx nodest.Tx) error { return appKeys(tx).PutAppChat("other", first) })
		e.equal("conversation", chat("key\x00"), first)
		e.update(func(tx nodest.Tx) error { return appKeys(tx).PutAppChat("key\x00", second) })
		e.equal("conversation", chat("key\x00"), second)
		e.equal("conversation of the other key", chat("other"), first)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(second) })
		e.refused(fault.NotFound, none)
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return appKeys(tx).PutAppChat("key\x00", second) })
	})
}

func TestAnAppFindsItsCharacter(t *testing.T) {
	onBothDatabases(t, func(e *env) {
		first, second := id(), id()
		e.update(func(tx nodest.Tx) error {
			return errors.Join(
				tx.Characters.InsertCharacter(&character.Character{ID: first, Name: "first"}),
				tx.Characters.InsertCharacter(&character.Character{ID: second, Name: "second"}),
				appKeys(tx).PutAppCharacter("角色\x00", first), appKeys(tx).PutAppCharacter("other", first))
		})
		found := func(key string) (character string) {
			e.Helper()
			e.view(func(tx nodest.Tx) (err error) { character, err = appKeys(tx).AppCharacter(key); return err })
			return character
		}
		e.equal("character", found("角色\x00"), first)
		e.update(func(tx nodest.Tx) error { return appKeys(tx).PutAppCharacter("角色\x00", second) })
		e.equal("character", found("角色\x00"), second)
		e.equal("character of the other key", found("other"), first)
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := appKeys(tx).AppCharacter(first); return err })
		e.update(func(tx nodest.Tx) (err error) { // an app that names the character anew each time
			for i := range 200 {
				err = errors.Join(err, appKeys(tx).PutAppCharacter(fmt.Sprint("key ", i), first))
			}
			return err
		})
		e.equal("keys of a character", e.queryInts("SELECT COUNT(*) FROM app_characters WHERE user_id = ? AND character_id = ?", e.user, first)[0], int64(100))
		e.equal("characters of its first and last key", []string{found("other"), found("key 98")}, []string{first, first})
		e.update(func(tx nodest.Tx) error { return tx.Characters.HideCharacter(second, true) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { _, err := appKeys(tx).AppCharacter("角色\x00"); return err })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return appKeys(tx).PutAppCharacter("角色\x00", second) })
	})
}

// No query that lists messages reads or sorts more rows than one page.
func TestMessageQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	const alive = " AND m.deleted_at IS NULL AND EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = m.user_id AND c.id = m.conversation_id AND c.deleted_at IS NULL)"
	numbered := func(query string) string { return strings.ReplaceAll(query, "?", "5") }
	db := storetest.Open(t)
	for query, small := range map[string]string{
		numbered(store.RangesOf) + "= 'c' ORDER BY conversation_id, first_seq":                                                                           "",
		"WITH gaps (conversation_id, first_seq, last_seq) AS (VALUES ('c', 1, 5), ('d', 1, 5))" + numbered(fmt.Sprintf(store.RangesOfGaps, "hex(m.id)")): "g",
		numbered(store.WordsOf) + "VALUES ('c', 1), ('d', 5))":                                                                                           "",
		numbered(store.TextsOfRange):                      "",
		"SELECT r.id " + numbered(store.RevisionsOfRange): "",
		"SELECT m.* FROM messages m WHERE m.user_id = 'u' AND m.conversation_id = 'c'" + alive + " ORDER BY m.seq DESC LIMIT 5":                                                                       "",
		"SELECT m.* FROM messages m WHERE m.user_id = 'u' AND m.conversation_id = 'c' AND m.seq < 5" + alive + " ORDER BY m.seq DESC LIMIT 5":                                                         "",
		"SELECT m.* FROM messages m WHERE m.user_id = 'u' AND m.conversation_id = 'c' AND m.seq > 5 ORDER BY m.seq LIMIT 5":                                                                           "",
		"SELECT m.id FROM messages m " + strings.ReplaceAll(store.UpChain, "?", "5"):                                                                                                                  "",
		"SELECT id FROM messages WHERE user_id = 'u' AND conversation_id = 'c' AND chain = 0 ORDER BY depth LIMIT 1":                                                                                  "",
		"SELECT COALESCE(MAX(version), 0) FROM message_states WHERE user_id = 'u' AND conversation_id = 'c'":                                                                                          "",
		"SELECT COALESCE(MAX(seq), 0) FROM messages WHERE user_id = 'u' AND conversation_id = 'c'":                                                                                                    "",
		"SELECT m.id FROM messages m WHERE " + strings.ReplaceAll(store.OldMessage, "?", "5") + " AND EXISTS (SELECT 1 FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id) LIMIT 5": "",
		strings.ReplaceAll(store.EachChain, "?", "'c'"):                                                                                                                                               "chains",
	} {
		plan, err := store.Plan(db, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if !allowed(line) && (small == "" || !strings.HasPrefix(line, "SCAN "+small)) || strings.Contains(line, "TEMP B-TREE FOR ORDER BY") && small == "" {
				t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
				break
			}
		}
	}
}
