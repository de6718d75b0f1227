package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/jobs"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
)

// old makes of a conversation what the migration to memories found.
func (e *env) old(conversation string) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		return errors.Join(
			store.Exec(tx, "DELETE FROM memory_texts WHERE conversation_id = ?", conversation),
			store.Exec(tx, "UPDATE conversations SET old_seq = message_seq WHERE id = ?", conversation))
	})
}

// hearOld does one step.
func (e *env) hearOld(conversation string, limit int) (n int, left bool) {
	e.Helper()
	e.update(func(tx nodest.Tx) (err error) {
		n, left, err = store.HearOld(tx, conversation, limit)
		return err
	})
	return n, left
}

// adopt does what the job does, and returns its progress; "" = there was none.
func adopt(e *env, db *store.DB) string {
	e.Helper()
	ctx := context.Background()
	if err := db.Adopt(ctx); err != nil {
		e.Fatal(err)
	}
	kind := db.Adoption()
	claimed, err := db.ClaimJobs(ctx, "p", time.Hour, []jobs.Want{{Kind: kind.Name, Free: 1, PerUser: 1}})
	if err != nil {
		e.Fatal(err)
	}
	if len(claimed) == 0 {
		return ""
	}
	if err := errors.Join(kind.Run(ctx, claimed[0]), db.EndJob(ctx, claimed[0], jobs.Outcome{State: jobs.Done})); err != nil {
		e.Fatal(err)
	}
	progress, err := store.Query[string](db, "SELECT CAST(progress AS TEXT) FROM jobs WHERE id = ?", claimed[0].ID)
	if err != nil || len(progress) != 1 {
		e.Fatal(progress, err)
	}
	return progress[0]
}

// read is a list of what was heard as it is when all was read.
func read(lines []string) []string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], "false") + "true"
		out[i] = strings.Replace(out[i], "truetrue", "true", 1)
	}
	return out
}

// TestAnOldDatabaseIsHeard migrates conversations of the schema before memories, and of
// the first one with them: a text that was forgotten there stays so, and vectors of
// another form go.
func TestAnOldDatabaseIsHeard(t *testing.T) {
	for version, units := range map[int64]int{3: 300, 4: 299} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { heardFrom(t, version, units) })
	}
}

func heardFrom(t *testing.T, version int64, units int) {
	conform(t, func(e *env) {
		o := e.another()
		raw := e.before(o, version)
		run := func(statement string, args ...any) {
			e.Helper()
			if _, err := raw.Exec(fmt.Sprintf(statement, args...)); err != nil {
				e.Fatal(err)
			}
		}
		run("INSERT INTO users VALUES ('u', 'Ada', 'ada', 'member', 0, 0, '', 1)")
		run("INSERT INTO characters VALUES ('r', 'u', 1, 1, 1, NULL)")
		for conversation, messages := range map[string]int{"c": 450, "empty": 0} {
			run(`INSERT INTO conversations (id, user_id, character_id, title, persona_id, head_id, settings, archived, version,
				message_seq, documents_version, created_at, updated_at) VALUES ('%s', 'u', 'r', '', '', '', '{}', FALSE, 1, %d, 1, 1, 1)`,
				conversation, messages)
			for seq := 1; seq <= messages; seq++ {
				run(`INSERT INTO messages (id, user_id, conversation_id, parent_id, client_msg_id, seq, role, name, author_id,
					is_greeting, is_hidden, swipe_index, rev, status, generation_id, created_at)
					VALUES ('m%d', 'u', 'c', '', '', %d, '%s', 'N', '', FALSE, FALSE, 0, 1, 'complete', '', 1)`,
					seq, seq, []string{"user", "assistant", "system"}[seq%3])
				run(`INSERT INTO revisions (id, user_id, message_id, swipe_id, rev, text, reasoning, model, finish, generation_id, created_at)
					VALUES ('r%d', 'u', 'm%d', 's', 1, 'text %d', '', '', '', '', 1)`, seq, seq, seq)
			}
		}
		if version == 4 {
			run(`INSERT INTO memory_texts (revision_id, user_id, character_id, conversation_id, message_id, seq, sitting, role, name, terms,
				hash, is_read, is_forgotten, change, said_at) VALUES ('r9', 'u', 'r', 'c', 'm9', 9, 1, 'user', '', '', '', TRUE, TRUE, 1, 1)`)
			run("INSERT INTO memory_vectors (user_id, character_id, hash, model, vector) VALUES ('u', 'r', 'h', 'm', '1234')")
		}
		if err := raw.Close(); err != nil {
			e.Fatal(err)
		}

		db, err := store.Open(context.Background(), o)
		if err != nil {
			e.Fatal(err)
		}
		defer db.Close()
		vectors, err := store.Query[string](db, "SELECT hash FROM memory_vectors")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("vectors", len(vectors), 0)
		e.equal("progress", adopt(e, db), `{"conversations":1,"messages":450}`)
		err = db.View(context.Background(), "u", func(tx nodest.Tx) error {
			said, err := tx.Said("c", memory.SaidFilter{Before: 450, Limit: 2})
			if err != nil {
				return err
			}
			e.equal("texts", []any{len(said), said[0].Text, said[1].Text, said[1].CharacterID, said[1].Sitting, said[1].Read},
				[]any{2, "text 447", "text 448", "r", 1, true})
			c, err := tx.MemoryChanges("r", 0)
			e.equal("units", len(c.Units), units)
			return err
		})
		if err != nil {
			e.Fatal(err)
		}
	})
}

func TestWhatWasSaidBeforeMemoriesIsHeard(t *testing.T) {
	conform(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		said := e.talk(conv, "", 7)
		e.clock.advance(5 * time.Hour)
		last := e.say(conv, said[6].ID, "later")
		e.change(said[2].ID, reswipe("another"))
		e.change(said[3].ID, erase)
		want := read(e.heardOf(conv))
		e.old(conv)
		e.equal("before", e.heardOf(conv), []string(nil))
		e.equal("progress", adopt(e, e.db), `{"conversations":1,"messages":8}`)
		e.equal("after", e.heardOf(conv), want)
		e.equal("again", adopt(e, e.db), "")
		e.equal("units", len(e.units(character)), len(want))
		e.view(func(tx nodest.Tx) error {
			open, _, err := tx.Jobs(jobs.Filter{Kind: memory.JobEmbed, Subject: character, Open: true}, "", 5)
			e.equal("jobs for vectors", []any{len(open), err}, []any{1, nil})
			return nil
		})
		e.say(conv, last.ID, "on")
		e.equal("what is said then", e.heardOf(conv)[len(want)], "9 2 user Ada on false")
	})
}

// TestWhileItIsHeardTheChatGoesOn hears an old conversation in small steps; a process
// that dies leaves it so. In between it is changed by random.
func TestWhileItIsHeardTheChatGoesOn(t *testing.T) {
	conform(t, func(e *env) {
		s := newTale(e)
		s.conv = e.chat(e.character())
		for range 40 {
			s.step()
		}
		e.old(s.conv)
		for left := true; left; {
			for range 2 {
				s.step()
			}
			_, left = e.hearOld(s.conv, 3)
		}
		s.step()
		var all, heard []string
		e.view(func(tx nodest.Tx) (err error) {
			for _, text := range s.evidence(tx) {
				all = append(all, text.RevisionID)
			}
			heard, err = store.QueryIn[string](tx, "SELECT revision_id FROM memory_texts WHERE conversation_id = ?", s.conv)
			return err
		})
		slices.Sort(all)
		slices.Sort(heard)
		e.equal("heard", heard, all)
		e.equal("what is left", adopt(e, e.db), "")
	})
}

func TestSittingsOfAnOldChatAreItsOwn(t *testing.T) {
	conform(t, func(e *env) {
		conv := e.chat(e.character())
		head, all := "", []*nodest.Message{}
		say := func(text string) {
			m := e.say(conv, head, text)
			head, all = m.ID, append(all, m)
			e.clock.advance(5 * time.Hour)
		}
		for _, text := range []string{"a", "b", "c"} {
			say(text)
		}
		e.old(conv)
		say("new")
		e.change(all[1].ID, edit("b again")) // left to the job
		say("newer")
		e.hearOld(conv, 2)
		e.change(all[0].ID, edit("a again"))
		say("newest")
		e.equal("the rest", adopt(e, e.db), `{"conversations":1,"messages":1}`)
		say("last")
		e.equal("sittings", e.heardOf(conv), []string{
			"1 1 user Ada a true", "1 1 user Ada a again false", "2 2 user Ada b true", "2 2 user Ada b again true", "3 3 user Ada c true",
			"4 4 user Ada new false", "5 5 user Ada newer false", "6 6 user Ada newest false", "7 7 user Ada last false"})
	})
}

func TestWhatWasPurgedIsNotHeardLater(t *testing.T) {
	conform(t, func(e *env) {
		character, gone := e.character(), e.character()
		conv, deleted := e.chat(character), e.chat(gone)
		for _, c := range []string{conv, deleted} {
			e.talk(c, "", 3)
			e.old(c)
		}
		e.update(func(tx nodest.Tx) error {
			_, _, err := tx.PurgeScope(character)
			return errors.Join(err, tx.DeleteCharacter(gone))
		})
		e.equal("progress", adopt(e, e.db), "")
		e.equal("units", len(e.units(character)), 0)
	})
}

func TestOldChatsOfAllUsersAreHeard(t *testing.T) {
	conform(t, func(e *env) {
		mine := e.chat(e.character())
		e.talk(mine, "", 2)
		e.old(mine)
		me := e.user
		e.user = newUser(e)
		theirs := e.chat(e.character())
		e.talk(theirs, "", 3)
		e.old(theirs)
		bare := e.conversation() // of no character
		e.talk(bare, "", 1)
		e.old(bare)
		e.equal("progress", adopt(e, e.db), `{"conversations":3,"messages":6}`)
		e.equal("theirs", len(e.heardOf(theirs)), 3)
		e.user = me
		e.equal("mine", len(e.heardOf(mine)), 2)
	})
}

func TestAProcessThatLostTheJobHearsNothing(t *testing.T) {
	conform(t, func(e *env) {
		ctx := context.Background()
		conv := e.chat(e.character())
		e.talk(conv, "", 2)
		e.old(conv)
		kind := e.db.Adoption()
		claim := func() *jobs.Job {
			claimed, err := e.db.ClaimJobs(ctx, "p", time.Minute, []jobs.Want{{Kind: kind.Name, Free: 1, PerUser: 1}})
			if err != nil || len(claimed) != 1 {
				e.Fatal(claimed, err)
			}
			return claimed[0]
		}
		if err := e.db.Adopt(ctx); err != nil {
			e.Fatal(err)
		}
		lost := claim()
		e.clock.advance(time.Hour)
		if err := e.db.RecoverJobs(ctx, map[string]int{kind.Name: kind.Attempts}, ""); err != nil {
			e.Fatal(err)
		}
		next := claim()
		e.equal("error", errors.Is(kind.Run(ctx, lost), jobs.ErrLost), true)
		e.equal("heard", e.heardOf(conv), []string(nil))
		e.equal("error of the next", kind.Run(ctx, next), error(nil))
		e.equal("heard by the next", len(e.heardOf(conv)), 2)
	})
}

// TestAPurgeMeetsTheJob purges a memory while old chats come into it: nothing of them
// is left, whoever was first.
func TestAPurgeMeetsTheJob(t *testing.T) {
	conform(t, func(e *env) {
		character := e.character()
		for range 6 {
			conv := e.chat(character)
			e.talk(conv, "", 30)
			e.old(conv)
		}
		var group sync.WaitGroup
		group.Go(func() {
			err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
				_, _, err := tx.PurgeScope(character)
				return err
			})
			if err != nil {
				e.Error(err)
			}
		})
		group.Go(func() { adopt(e, e.db) })
		group.Wait()
		e.equal("what the job has left", adopt(e, e.db), "")
		e.equal("units", len(e.units(character)), 0)
	})
}
