package store_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/jobs"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

// fact returns an active fact with the given evidence.
func fact(text string, evidence ...memory.Evidence) *memory.Memory {
	m := &memory.Memory{
		ID: id(), Version: 1, Text: text, Subject: lang.AboutUser, Kind: lang.KindPreference, Importance: 0.5,
		Evidence: evidence, Origin: memory.ByRule, Standing: memory.Standing{Status: memory.Active}, Sightings: memory.Sightings{SeenCount: 1, LastSeenAt: start},
	}
	m.RootID = m.ID
	return m
}

// evidenceOf refers to the chosen text of a message.
func evidenceOf(m *chat.Message) memory.Evidence {
	return memory.Evidence{ConversationID: m.ConversationID, MessageID: m.ID, RevisionID: m.Chosen().RevisionID, Seq: m.Seq}
}

func (e *env) learn(character string, m *memory.Memory) *memory.Memory {
	e.Helper()
	e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, m) })
	return m
}

func TestFactsKeepTheirVersions(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		m := e.say(e.chat(character), "", "I drink tea")
		when := start.Add(-day)
		first := fact("User drinks tea\x00", evidenceOf(m))
		first.EventTime, first.ConversationID, first.LastUsedAt = &when, m.ConversationID, &when
		e.learn(character, first)
		second := fact("User drinks coffee", evidenceOf(m), evidenceOf(m))
		second.RootID, second.Version, second.Pinned, second.Locked = first.ID, 2, true, true
		first.Status, first.SupersededBy, first.EndedBy = memory.Superseded, second.ID, []memory.Evidence{evidenceOf(m)}
		e.clock.advance(time.Minute)
		e.update(func(tx nodest.Tx) error {
			first.Text = "a version's text never changes"
			if err := tx.Memory.UpdateFact(character, first); err != nil {
				return err
			}
			return tx.Memory.InsertFacts(character, second)
		})
		first.Text, first.ContentHash = "User drinks tea\x00", lang.ContentHash("User drinks tea\x00")
		e.view(func(tx nodest.Tx) error {
			versions, err := tx.Memory.FactVersions(character, first.ID, first.ID)
			e.equal("versions", versions, []memory.Memory{*first, *second})
			one, err2 := tx.Memory.Fact(character, second.ID)
			e.equal("fact", []any{*one, err, err2}, []any{*second, nil, nil})
			return nil
		})
		e.code(fault.NotFound, e.db.View(context.Background(), e.user, func(tx nodest.Tx) error {
			_, err := tx.Memory.Fact(e.character(), first.ID)
			return err
		}))

		units := e.units(character)
		slices.SortFunc(units, func(a, b recall.Unit) int { return cmp.Compare(a.Text, b.Text) })
		e.equal("units", len(units), 3)
		u := units[2] // the older version is still used on branches where the newer one does not apply
		e.equal("unit", []any{u.ID, u.Layer, u.Root, u.Conversation, u.Text, u.Hash, u.Terms, u.At, u.Importance, u.Pinned, u.Sources},
			[]any{first.ID, recall.Fact, first.ID, m.ConversationID, first.Text, first.ContentHash, index.Join(first.Text), when, 0.5,
				false, memory.SourcesOf(first.Evidence)})
		e.equal("sources, each once", units[1].Sources, []recall.Source{{m.Chosen().RevisionID}})
		e.equal("of the newer", []any{units[1].Pinned, units[1].At}, []any{true, start})
	})
}

func TestNoTwoActiveFactsHaveTheSameText(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a, b := e.character(), e.character()
		first, again := fact("User drinks tea"), fact("user drinks TEA.")
		e.update(func(tx nodest.Tx) error {
			if err := tx.Memory.InsertFacts(a, first); err != nil {
				return err
			}
			e.code(fault.Conflict, tx.Memory.InsertFacts(a, again))
			first.Status = memory.Retired // the transaction goes on
			if err := tx.Memory.UpdateFact(a, first); err != nil {
				return err
			}
			if err := tx.Memory.InsertFacts(a, again); err != nil {
				return err
			}
			first.Status = memory.Active
			e.code(fault.Conflict, tx.Memory.UpdateFact(a, first))
			return tx.Memory.InsertFacts(b, fact("User drinks tea"))
		})
	})
}

func TestFactsAreListed(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		for i := range 9 {
			m := fact(fmt.Sprint("fact ", i))
			m.Kind = []lang.Kind{lang.KindPreference, lang.KindPromise, lang.KindProfile}[i%3]
			m.Subject = []lang.Subject{lang.AboutUser, lang.AboutWorld}[i%2]
			m.Status = []memory.Status{memory.Active, memory.Active, memory.Active, memory.Retired}[i%4]
			m.Pinned, m.ConversationID = i > 5, []string{"", named("c")}[i/8]
			e.learn(character, m)
		}
		list := func(f memory.Filter, limit int) (texts []string) {
			e.view(func(tx nodest.Tx) error {
				for cursor := ""; ; {
					items, next, err := tx.Memory.Facts(character, f, cursor, limit)
					for _, m := range items {
						texts = append(texts, strings.TrimPrefix(m.Text, "fact "))
					}
					if cursor = next; next == "" {
						return err
					}
				}
			})
			return texts
		}
		yes := true
		for _, tt := range []struct {
			name   string
			filter memory.Filter
			want   string
		}{
			{"the active ones", memory.Filter{}, "8 6 5 4 2 1 0"},
			{"all", memory.Filter{Status: memory.AnyStatus}, "8 7 6 5 4 3 2 1 0"},
			{"retired", memory.Filter{Status: memory.Retired}, "7 3"},
			{"of a kind", memory.Filter{Kind: lang.KindPromise}, "4 1"},
			{"about the world", memory.Filter{Subject: lang.AboutWorld}, "5 1"},
			{"pinned", memory.Filter{Pinned: &yes}, "8 6"},
			{"of a conversation", memory.Filter{ConversationID: named("c")}, "8"},
			{"with these words", memory.Filter{ContentHash: lang.ContentHash("FACT 4")}, "4"},
			{"none", memory.Filter{Status: memory.Superseded}, ""},
		} {
			for _, limit := range []int{0, 1, 2, 7} {
				e.equal(tt.name, strings.Join(list(tt.filter, limit), " "), tt.want)
			}
		}
		e.refused(fault.Invalid, func(tx nodest.Tx) error { _, _, err := tx.Memory.Facts(character, memory.Filter{}, "?", 1); return err })
	})
}

// randomMemory is a character with random memory changes, and the state of an index
// that is updated with the differences only.
type randomMemory struct {
	*env
	rnd       *rand.Rand
	character string
	chats     []string
	messages  map[string][]*chat.Message // by conversation
	facts     []*memory.Memory
	learned   int            // facts ever
	loaded    memory.Changes // the last
	applied   map[string]string
	everSeen  map[string]bool // ids of all units that ever existed
}

// describeUnit returns everything that an index stores of a unit.
func describeUnit(u recall.Unit) string {
	slices.SortFunc(u.Vectors, func(a, b index.Kept) int { return strings.Compare(a.Model, b.Model) })
	return fmt.Sprintf("%+v", u)
}

func (s *randomMemory) catchUp() {
	s.Helper()
	var version int64
	s.view(func(tx nodest.Tx) (err error) { version, err = tx.Memory.MemoryVersion(s.character); return err })
	c := s.changes(s.character, &s.loaded)
	s.equal("version", c.Version, version)
	if c.Version < s.loaded.Version {
		s.Errorf("version %d comes after %d", c.Version, s.loaded.Version)
	}
	s.loaded = *c
	if c.Whole {
		clear(s.applied)
	}
	for _, u := range c.Units {
		s.applied[u.ID], s.everSeen[u.ID] = describeUnit(u), true
	}
	for _, id := range c.Gone {
		delete(s.applied, id)
	}
	whole := map[string]string{}
	for _, u := range s.units(s.character) {
		whole[u.ID] = describeUnit(u)
	}
	if !maps.Equal(whole, s.applied) {
		s.Fatalf("the differences give\n%v\nand a full load gives\n%v", s.applied, whole)
	}
}

func TestMemoryChangesLeadToTheCurrentState(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		s := &randomMemory{env: e, rnd: random(e.T), character: e.character(), messages: map[string][]*chat.Message{}, applied: map[string]string{}, everSeen: map[string]bool{}}
		s.catchUp()
		s.equal("version before anything was said", s.loaded.Version, 0)
		for range atLeast(120, 1000) {
			for range 1 + s.rnd.IntN(3) {
				s.clock.advance(time.Hour)
				s.change()
			}
			s.catchUp()
		}
		if len(s.everSeen) < 60 || len(s.applied) == len(s.everSeen) {
			t.Errorf("%d units ever, %d now: too few changes", len(s.everSeen), len(s.applied))
		}
	})
}

func (s *randomMemory) anyChat() string {
	if len(s.chats) == 0 || s.rnd.IntN(8) == 0 {
		s.chats = append(s.chats, s.chat(s.character))
	}
	return s.chats[s.rnd.IntN(len(s.chats))]
}

// change makes one random change, or none.
func (s *randomMemory) change() {
	chat := s.anyChat()
	said := s.messages[chat]
	switch s.rnd.IntN(16) {
	case 0, 1, 2, 3, 4:
		parent := ""
		if len(said) > 0 {
			parent = said[s.rnd.IntN(len(said))].ID
		}
		s.messages[chat] = append(said, s.say(chat, parent, fmt.Sprint("said ", s.rnd.IntN(40))))
	case 5:
		if len(said) > 0 {
			s.env.change(said[s.rnd.IntN(len(said))].ID, edit(fmt.Sprint("edited ", s.rnd.IntN(40))))
		}
	case 6, 7:
		s.learned++
		m := fact(fmt.Sprint("fact ", s.learned)) // two that say the same are a conflict
		if len(said) > 0 {
			m.Evidence = []memory.Evidence{evidenceOf(said[0])}
		}
		s.facts = append(s.facts, s.learn(s.character, m))
	case 8, 9:
		if len(s.facts) > 0 {
			m := s.facts[s.rnd.IntN(len(s.facts))]
			m.Status, m.EndedBy = []memory.Status{memory.Active, memory.Superseded, memory.Retired}[s.rnd.IntN(3)], nil
			if s.rnd.IntN(2) == 0 {
				m.EndedBy = []memory.Evidence{{ConversationID: chat}}
			}
			m.Pinned = !m.Pinned
			s.update(func(tx nodest.Tx) error { return tx.Memory.UpdateFact(s.character, m) })
		}
	case 10, 11, 12:
		s.update(func(tx nodest.Tx) error {
			model := []string{"a", "b"}[s.rnd.IntN(2)]
			contents, err := tx.Memory.WithoutVector(s.character, model, 0, 1+s.rnd.IntN(9))
			vectors := map[string][]float32{"nothing": {1}}
			for _, c := range contents {
				v := []float32{s.rnd.Float32(), s.rnd.Float32()}
				for _, id := range c.IDs {
					vectors[id] = v
				}
			}
			if err != nil {
				return err
			}
			return tx.Memory.PutVectors(s.character, model, vectors)
		})
	case 13:
		if len(said) > 0 {
			s.update(func(tx nodest.Tx) error {
				return tx.Memory.ForgetTexts(s.character, said[s.rnd.IntN(len(said))].Swipes[0].RevisionID)
			})
		}
	case 14:
		if i := s.rnd.IntN(len(s.facts) + 1); i < len(s.facts) {
			s.update(func(tx nodest.Tx) error { return tx.Memory.PurgeFacts(s.character, s.facts[i].ID) })
			s.facts = slices.Delete(s.facts, i, i+1)
		}
	case 15:
		s.changeMuch(chat)
	}
}

// changeMuch makes a change that affects many rows.
func (s *randomMemory) changeMuch(conv string) {
	switch s.rnd.IntN(6) {
	case 0:
		s.facts = nil
		s.update(func(tx nodest.Tx) error { return tx.Memory.PurgeScope(s.character) })
	case 1:
		s.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conv) })
		s.chats = slices.DeleteFunc(s.chats, func(id string) bool { return id == conv })
	case 2:
		t := &randomHistory{env: s.env, conv: conv}
		if len(s.messages[conv]) > 0 {
			copied, _ := t.reload()
			s.chats = append(s.chats, copied)
		}
	case 3:
		if all := s.messages[conv]; len(all) > 0 {
			f := &chat.Conversation{ID: id(), CharacterID: s.character}
			s.forkTo(f, conv, all[len(all)-1].ID)
		}
	case 4:
		s.clock.advance(31 * day)
		s.maintain()
		s.facts = slices.DeleteFunc(s.facts, func(m *memory.Memory) bool { // those of removed texts are gone
			n := s.queryInts("SELECT COUNT(*) FROM memories WHERE user_id = ? AND id = ?", s.user, m.ID)
			return n[0] == 0
		})
	}
}

func TestAForkHasTheVectorsOfItsTexts(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		source := e.chat(character)
		m := e.say(source, "", "I drink tea")
		e.embed(character)
		e.forkTo(&chat.Conversation{ID: id(), CharacterID: character, Settings: []byte(`{}`)}, source, m.ID)
		units := e.units(character)
		e.equal("texts", len(units), 2)
		for _, u := range units {
			e.equal("vectors", u.Vectors, []index.Kept{{Model: "m", Packed: index.Pack([]float32{1})}})
		}
	})
}

func TestEqualTextsAreEmbeddedTogether(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		m := e.say(e.chat(character), "", "I drink tea")
		e.say(e.chat(character), "", "i drink TEA!")
		gone := e.learn(character, fact("i drink tea"))
		without := func(model string, limit int) (contents []memory.Content) {
			e.view(func(tx nodest.Tx) (err error) {
				contents, err = tx.Memory.WithoutVector(character, model, 0, limit)
				return err
			})
			return contents
		}
		e.equal("contents", len(without("a", 9)), 1)
		ids := without("a", 9)[0].IDs
		put := func(model string, v ...float32) {
			e.update(func(tx nodest.Tx) error {
				vectors := map[string][]float32{"never said": {1}}
				for _, id := range ids {
					vectors[id] = v
				}
				return tx.Memory.PutVectors(character, model, vectors)
			})
		}
		put("a", 0.5, -1e-9)
		e.equal("contents without a vector", len(without("a", 9)), 0)
		for _, u := range e.units(character) {
			e.equal("vectors", u.Vectors, []index.Kept{{Model: "a", Packed: index.Pack([]float32{1, 0})}})
		}
		e.view(func(tx nodest.Tx) error {
			units, err := tx.Memory.MemoryUnits(character, ids...)
			for _, u := range units {
				e.equal("vectors of units that are read", u.Vectors, []index.Kept{{Model: "a", Packed: index.Pack([]float32{1, 0})}})
			}
			e.equal("units that are read", len(units), 3)
			return err
		})
		e.equal("contents for another model", len(without("b", 9)), 1)
		put("b", 1)
		for _, u := range e.units(character) {
			e.equal("vectors", u.Vectors, []index.Kept{{Model: "b", Packed: index.Pack([]float32{1})}})
		}
		e.equal("vectors that are kept", e.vectors(), int64(3))
		e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeFacts(character, gone.ID) })
		e.equal("vectors of the texts", e.vectors(), int64(2))
		e.update(func(tx nodest.Tx) error {
			return tx.Memory.ForgetTexts(character, m.Swipes[0].RevisionID)
		})
		e.equal("vectors of what was not forgotten", e.vectors(), int64(1))
		e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeScope(character) })
		e.equal("vectors in the end", e.vectors(), int64(0))
		e.say(e.chat(character), "", "one")
		e.say(e.chat(character), "", "two")
		e.equal("contents, at most as many as wanted", len(without("a", 1)), 1)
	})
}

// userRows counts the user's rows in a table.
func (e *env) userRows(table string) int64 {
	e.Helper()
	n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM "+table+" WHERE user_id = ?", e.user)
	if err != nil {
		e.Fatal(err)
	}
	return n[0]
}

func TestMemoryJobsAreListedAndEndWithTheirChat(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a, b := e.character(), e.character()
		chat, other := e.chat(a), e.chat(b)
		for _, s := range []jobs.Spec{
			{Kind: memory.JobEmbed, Subject: a}, {Kind: memory.JobExtract, Subject: chat}, {Kind: "test.other", Subject: chat},
			{Kind: memory.JobEmbed, Subject: b}, {Kind: memory.JobExtract, Subject: other},
		} {
			e.clock.advance(time.Second)
			e.update(func(tx nodest.Tx) error { return tx.Jobs.Enqueue(s) })
		}
		list := func(character string) (lines []string) {
			e.view(func(tx nodest.Tx) error {
				for cursor := ""; ; {
					items, next, err := tx.Memory.MemoryJobs(character, cursor, 1)
					for _, j := range items {
						lines = append(lines, fmt.Sprint(j.Kind, " ", j.State))
					}
					if cursor = next; next == "" {
						return err
					}
				}
			})
			return lines
		}
		e.equal("jobs", list(a), []string{"memory.extract queued", "memory.embed queued"})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(chat) })
		e.equal("jobs of a deleted conversation", list(a), []string{"memory.extract cancelled", "memory.embed queued"})
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(b) })
		open, err := store.Query[string](e.db, "SELECT kind FROM jobs WHERE user_id = ? AND state = 'queued' ORDER BY kind", e.user)
		e.equal("open jobs", []any{open, err}, []any{[]string{"memory.embed", "test.other"}, nil})
	})
}
