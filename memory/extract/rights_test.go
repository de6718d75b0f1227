package extract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/store/storetest"
)

// create stores a memory written by the user.
func (c *chatter) create(d memory.Draft) (m *memory.Memory) {
	c.Helper()
	c.update(func(tx nodest.Tx) (err error) {
		m, err = storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "phone"}, c.character, d)
		return err
	})
	return m
}

func (c *chatter) patch(id string, p memory.Patch) (m *memory.Memory) {
	c.Helper()
	c.update(func(tx nodest.Tx) (err error) {
		m, err = storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "phone"}, c.character, id, p)
		return err
	})
	return m
}

func ptr[T any](v T) *T { return &v }

func TestTheUserCanWriteAMemory(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.create(memory.Draft{Text: "  I am allergic to nuts "})
		c.equal("defaults", []any{m.Text, m.Subject, m.Kind, m.Importance, m.Origin, m.Status, m.Version, m.RootID == m.ID, m.SeenCount, m.Pinned, m.Locked},
			[]any{"I am allergic to nuts", lang.AboutUser, lang.KindOther, 0.5, memory.ByUser, memory.Active, 1, true, 1, false, false})
		again := c.create(memory.Draft{Text: "I am ALLERGIC to nuts!"})
		c.equal("the same words", []any{again.ID == m.ID, again.SeenCount, again.Text}, []any{true, 2, "I am allergic to nuts"})
		c.equal("counting", c.counting(), []string{"I am allergic to nuts"})
		c.equal("events", c.events.take(), []string{"memory.written added by phone", "memory.written updated by phone"})
	})
}

func TestInvalidMemoriesOfTheUserAreRefused(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	m := c.create(memory.Draft{Text: "I like tea"})
	year0 := time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		draft memory.Draft
		patch memory.Patch
		field string
	}{
		"no text":        {memory.Draft{}, memory.Patch{Text: ptr("")}, "text"},
		"blanks":         {memory.Draft{Text: " \n\t"}, memory.Patch{Text: ptr(" ")}, "text"},
		"a megabyte":     {memory.Draft{Text: strings.Repeat("x", 1<<20)}, memory.Patch{Text: ptr(strings.Repeat("茶", 1<<18))}, "text"},
		"2,001 letters":  {memory.Draft{Text: strings.Repeat("茶", 2001)}, memory.Patch{Text: ptr(strings.Repeat("茶", 2001))}, "text"},
		"not text":       {memory.Draft{Text: "a\x00b"}, memory.Patch{Text: ptr("a\xffb")}, "text"},
		"a subject":      {memory.Draft{Text: "x", Subject: "nobody"}, memory.Patch{Subject: ptr(lang.Subject("nobody"))}, "subject"},
		"a kind":         {memory.Draft{Text: "x", Kind: "secret"}, memory.Patch{Kind: ptr(lang.Kind(""))}, "kind"},
		"importance":     {memory.Draft{Text: "x", Importance: ptr(1.1)}, memory.Patch{Importance: ptr(-0.1)}, "importance"},
		"a time too old": {memory.Draft{Text: "x", EventTime: &year0}, memory.Patch{EventTime: &year0}, "eventTime"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, do := range []func(tx nodest.Tx) error{
				func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "phone"}, c.character, tt.draft)
					return err
				},
				func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "phone"}, c.character, m.ID, tt.patch)
					return err
				},
			} {
				err := c.refused(fault.Invalid, do)
				if f := fault.Public(err).Fields; len(f) != 1 || f[0].Field != tt.field {
					t.Errorf("fields %v, want %s alone", f, tt.field)
				}
				if len(err.Error()) > 300 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}
		})
	}
	c.equal("known", c.known(), []string{"I like tea"})
	longest := c.create(memory.Draft{Text: strings.Repeat("茶", 2000)})
	c.equal("2,000 letters", len([]rune(longest.Text)), 2000)
}

func TestAnEditMakesAVersion(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		first := c.has("User lives in Paris", lang.KindProfile, nil)
		second := c.patch(first.ID, memory.Patch{Text: ptr("User lives in Lyon"), Importance: ptr(0.9)})
		c.equal("second", []any{second.Version, second.RootID == first.ID, second.Origin, second.Locked, second.Importance, second.Status, second.Kind},
			[]any{2, true, memory.ByUser, true, 0.9, memory.Active, lang.KindProfile})
		c.equal("where it comes from", second.Evidence, first.Evidence)
		third := c.patch(first.ID, memory.Patch{Pinned: ptr(true), Kind: ptr(lang.KindOther)}) // by an older version's id
		c.equal("without a text there is no version", []any{third.ID == second.ID, third.Pinned, third.Kind}, []any{true, true, lang.KindOther})
		var history []memory.Memory
		c.view(func(tx nodest.Tx) (err error) {
			history, err = storetest.Memory(tx.Memory).History(context.Background(), "", c.character, second.ID)
			return err
		})
		lines := []string{}
		for _, m := range history {
			lines = append(lines, fmt.Sprintf("%s %s pinned=%v next=%v", m.Text, m.Status, m.Pinned, m.SupersededBy == second.ID))
		}
		c.equal("history", lines, []string{"User lives in Paris superseded pinned=true next=true", "User lives in Lyon active pinned=true next=false"})
		other := c.create(memory.Draft{Text: "User lives in Rome"})
		err := c.refused(fault.Conflict, func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "phone"}, c.character, second.ID, memory.Patch{Text: ptr("User lives in ROME.")})
			return err
		})
		c.equal("details", fault.Public(err).Details["current"], other.ID)
		c.equal("known", c.known(), []string{"User lives in Lyon", "User lives in Rome"})
	})
}

func TestRetireAndRestore(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.has("User lives in Paris", lang.KindProfile, nil)
		for range 2 {
			c.update(func(tx nodest.Tx) error {
				err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, m.ID, false)
				return err
			})
			c.equal("retired", c.counting(), []string{})
		}
		c.refused(fault.Conflict, func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "phone"}, c.character, m.ID, memory.Patch{Text: ptr("User lives in Lyon")})
			return err
		})
		restore := func(id string) (m *memory.Memory) {
			c.update(func(tx nodest.Tx) (err error) {
				m, err = storetest.Memory(tx.Memory).Restore(context.Background(), &op.Call{Device: "phone"}, c.character, id)
				return err
			})
			return m
		}
		restore(m.ID)
		restore(m.ID)
		c.equal("restored", c.counting(), []string{"User lives in Paris"})
		c.equal("events", c.events.take(), []string{"memory.written retired by phone", "memory.written restored by phone"})
		c.patch(m.ID, memory.Patch{Text: ptr("User lives in Lyon")})
		back := restore(m.ID)
		c.equal("an older version comes back", c.counting(), []string{"User lives in Paris"})
		c.equal("as a version of its own", []any{back.Version, back.Locked, len(c.all(memory.Filter{Status: memory.AnyStatus}))}, []any{3, true, 3})
		c.update(func(tx nodest.Tx) error {
			err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, m.ID, false)
			return err
		})
		other := c.create(memory.Draft{Text: "User lives in Paris"})
		err := c.refused(fault.Conflict, func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Restore(context.Background(), &op.Call{Device: "phone"}, c.character, back.ID)
			return err
		})
		c.equal("details", fault.Public(err).Details["current"], other.ID)
	})
}

func TestPurgeLeavesNothingButTombstones(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.has("User lives in Paris", lang.KindProfile, nil)
		c.patch(m.ID, memory.Patch{Text: ptr("User lives in Lyon")})
		other := c.create(memory.Draft{Text: "User has a cat"})
		said := c.say(lang.RoleUser, "My secret is safe.")
		c.events.take()
		c.update(func(tx nodest.Tx) error {
			if err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, m.ID, true); err != nil {
				return err
			}
			return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, said.Chosen().RevisionID, true)
		})
		c.equal("what is left", c.versions(), []string{"User has a cat v1 active"})
		c.equal("events", c.events.take(), []string{"memory.written purged by phone", "memory.written purged by phone"})
		c.view(func(tx nodest.Tx) error {
			tombstones, err := tx.Memory.Tombstones(c.character)
			if err != nil {
				return err
			}
			var hashes []string
			for _, s := range tombstones {
				hashes = append(hashes, s.ContentHash)
				c.equal("evidence", s.Evidence, m.Evidence)
			}
			want := []string{lang.ContentHash("User lives in Paris"), lang.ContentHash("User lives in Lyon"), lang.ContentHash("I told you: User lives in Paris")}
			slices.Sort(hashes)
			slices.Sort(want)
			c.equal("tombstones", hashes, want)
			texts, err := tx.Memory.SaidByID(c.character, said.Chosen().RevisionID)
			c.equal("the forgotten text", len(texts), 0)
			return err
		})
		for _, id := range []string{m.ID, said.Chosen().RevisionID, newUUID(), ""} {
			c.refused(fault.NotFound, func(tx nodest.Tx) error {
				return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, id, true)
			})
		}
		c.update(func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Forget(context.Background(), &op.Call{Device: "phone"}, c.character, memory.ForgetInput{IDs: []string{other.ID, other.ID}})
			return err
		})
		c.equal("after all", c.versions(), []string{})
		c.readNow()
		c.equal("prompts", len(c.model.prompts), 0)
	})
}

func TestTheUserDecidesSuggestions(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.has("User loves coffee", lang.KindPreference, func(m *memory.Memory) { m.Pinned = true })
		said := c.say(lang.RoleUser, "I love black coffee.")
		suggest := func(event memory.Event, text string) string {
			s := &memory.Suggested{ID: newUUID(), State: memory.SuggestionOpen, Suggestion: memory.Suggestion{
				MemoryID: m.ID, Event: event, Text: text, Reason: "r", Evidence: []memory.Evidence{c.evidence(said)},
			}}
			c.update(func(tx nodest.Tx) error { return tx.Memory.InsertSuggestion(c.character, s) })
			return s.ID
		}
		decide := func(id, decision string) error {
			return c.db.Update(t.Context(), c.user, func(tx nodest.Tx) error {
				_, err := storetest.Memory(tx.Memory).Decide(context.Background(), &op.Call{Device: "phone"}, c.character, id, decision)
				return err
			})
		}
		update, gone, never := suggest(memory.EventUpdate, "User loves black coffee"), suggest(memory.EventDelete, ""), suggest(memory.EventUpdate, "User loves rum")
		for _, step := range []struct {
			id, decision string
			code         fault.Code
			want         []string
		}{
			{never, "perhaps", fault.Invalid, []string{"User loves coffee"}},
			{newUUID(), "accept", fault.NotFound, []string{"User loves coffee"}},
			{never, "reject", "", []string{"User loves coffee"}},
			{never, "reject", "", []string{"User loves coffee"}},
			{never, "accept", fault.Conflict, []string{"User loves coffee"}},
			{update, "accept", "", []string{"User loves black coffee"}},
			{update, "accept", "", []string{"User loves black coffee"}},
			{gone, "accept", "", []string{}},
		} {
			if err := decide(step.id, step.decision); step.code == "" && err != nil || step.code != "" && !fault.Is(err, step.code) {
				t.Errorf("%s: %v, want %q", step.decision, err, step.code)
			}
			c.equal("known", c.known(), step.want)
		}
		v2 := c.the("User loves black coffee")
		c.equal("as by the user", []any{v2.Version, v2.Origin, v2.Locked, v2.Pinned, v2.Evidence[0].RevisionID}, []any{2, memory.ByUser, true, true, said.Chosen().RevisionID})

		// A fact that the user wrote has no message as evidence, and does not get one.
		c.update(func(tx nodest.Tx) error {
			own, err := storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "phone"}, c.character, memory.Draft{Text: "User drinks tea"})
			m = own
			return err
		})
		if err := decide(suggest(memory.EventUpdate, "User drinks green tea"), "accept"); err != nil {
			t.Error(err)
		}
		c.equal("evidence", len(c.the("User drinks green tea").Evidence), 0)
	})
}

// export returns the exported file of the scope.
func (c *chatter) export() []byte {
	c.Helper()
	var b bytes.Buffer
	c.view(func(tx nodest.Tx) error {
		b.Reset()
		return storetest.Memory(tx.Memory).Export(context.Background(), "", c.character, &b)
	})
	return b.Bytes()
}

// imports imports a file into a user's character.
func (c *chatter) imports(user, character string, file []byte) (done *memory.Imported) {
	c.Helper()
	c.as(user, func(tx nodest.Tx) (err error) {
		done, err = storetest.Memory(tx.Memory).Import(context.Background(), &op.Call{Device: "phone"}, character, bytes.NewReader(file))
		return err
	})
	return done
}

func counts(i *memory.Imported) string {
	return fmt.Sprintf("%d created, %d skipped", i.Created, i.Skipped)
}

func TestAnExportCanBeImported(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.has("User lives in Paris", lang.KindProfile, func(m *memory.Memory) { m.EventTime = &sometime })
		c.patch(m.ID, memory.Patch{Text: ptr("User lives in Lyon"), Pinned: ptr(true), Importance: ptr(0.9)})
		gone := c.create(memory.Draft{Text: "用户喜欢 <b>茶</b> & \"酒\"\n第二行"})
		c.update(func(tx nodest.Tx) error {
			err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, gone.ID, false)
			return err
		})
		for i := range 300 {
			c.create(memory.Draft{Text: fmt.Sprintf("User knows the number %d", i)})
		}
		file := c.export()
		var header map[string]any
		first, _, _ := bytes.Cut(file, []byte("\n"))
		if err := json.Unmarshal(first, &header); err != nil {
			t.Fatal(err)
		}
		c.equal("header", []any{header["type"], header["format"], header["version"], header["characterId"]}, []any{"header", "memory-export", 1, c.character})
		c.equal("into where it came from", counts(c.imports(c.user, c.character, file)), "0 created, 303 skipped")

		character, _ := c.meet(c.user) // another character of the same user
		c.equal("elsewhere", counts(c.imports(c.user, character, file)), "303 created, 0 skipped")
		c.equal("again", counts(c.imports(c.user, character, file)), "0 created, 303 skipped")
		was := c.versions()
		old := c.all(memory.Filter{Status: memory.AnyStatus})
		c.character = character
		slices.Sort(was)
		is := c.versions()
		slices.Sort(is)
		c.equal("what came", is, was)
		for _, m := range c.all(memory.Filter{Status: memory.AnyStatus}) {
			if slices.ContainsFunc(old, func(o memory.Memory) bool { return o.ID == m.ID || o.RootID == m.RootID }) {
				t.Fatalf("%q has the id of another scope", m.Text)
			}
		}
		lyon := c.the("User lives in Lyon")
		c.equal("lyon", []any{lyon.Version, lyon.Pinned, lyon.Locked, lyon.Importance, lyon.Origin, len(lyon.Evidence), lyon.ConversationID},
			[]any{2, true, true, 0.9, memory.ByUser, 0, ""})
		c.equal("it counts without its texts", slices.Contains(c.counting(), "User lives in Lyon"), true)
		c.equal("the older one names the newer", c.the("User lives in Paris").SupersededBy, lyon.ID)
	})
}

// An import does not restore purged memories; it restores memories that were lost
// otherwise, with their texts.
func TestAnImportRestoresLostButNotPurgedMemories(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.has("User lives in Paris", lang.KindProfile, nil)
	cat := c.has("User has a cat", lang.KindProfile, nil)
	file := c.export()
	c.update(func(tx nodest.Tx) error {
		if err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, cat.ID, true); err != nil {
			return err
		}
		return tx.Memory.PurgeFacts(c.character, c.the("User lives in Paris").ID)
	})
	c.equal("import", counts(c.imports(c.user, c.character, file)), "1 created, 1 skipped")
	c.equal("known", c.counting(), []string{"User lives in Paris"})
	c.equal("its texts", len(c.the("User lives in Paris").Evidence), 1)
}

// A file with the largest possible count is imported, and the memory can still be seen
// again.
func TestAnImportCannotOverflowACount(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	c.imports(c.user, c.character, []byte(`{"text":"User has a dog","seenCount":9223372036854775807}`))
	c.create(memory.Draft{Text: "User has a dog"})
	c.equal("seen", c.the("User has a dog").SeenCount, 1_000_001)
}

func TestInvalidLinesAreReportedByNumber(t *testing.T) {
	t.Parallel()
	lines := []string{
		"\ufeff" + `{"type":"header","format":"memory-export","version":1}`,
		`{"text":"User likes tea"}`,
		``,
		`{"text":`,
		`{"text":"User likes rum","importance":7}`,
		`{"type":"memory","text":42}`,
		`{"type":"memory"}`,
		`["text"]`,
		`{"text":"` + strings.Repeat("x", 1<<20) + `"}`,
		`{"text":"` + strings.Repeat("茶", 2001) + `"}`,
		`{"text":"a","eventTime":"yesterday"}`,
		`{"text":"a","kind":"secret"}`,
		`{"text":"a","status":"deleted"}`,
		`{"text":"a","evidence":[{"conversationId":"c"}]}`,
		"{\"text\":\"\xff\"}",
		`{"type":"settings","memory":{}}`,
		`{"type":"suggestion","id":"x","text":"y"}`,
		`{"text":"User was born in May","eventTime":"1990-05-04","kind":"event","pinned":true}` + "\r",
		`{"text":"user likes TEA."}`,
		`{"text":"a","updatedAt":5}`,
		`{"text":"a","createdAt":"0000-01-01T00:00:00Z"}`,
		`{"text":"the last line has no end"}`,
	}
	c := newChatter(t, "sqlite")
	done := c.imports(c.user, c.character, []byte(strings.Join(lines, "\n")))
	var told []string
	for _, f := range done.Failed {
		told = append(told, fmt.Sprintf("%d %s %s", f.Line, f.Code, f.Field))
		if f.Detail == "" || len(f.Detail) > 200 {
			t.Errorf("line %d: detail %q", f.Line, f.Detail)
		}
	}
	want := []string{
		"4 syntax ", "5 range importance", "6 type text", "7 required text", "8 syntax ", "9 range ", "10 range text", "11 type eventTime",
		"12 value kind", "13 value status", "14 required evidence[0].messageId", "15 syntax ", "20 type updatedAt", "21 type createdAt",
	}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told\n%q, want\n%q", told, want)
	}
	leftOut := []memory.FailedLine{
		{Line: 16, Code: "not_imported", Detail: `lines of type "settings" are not imported`},
		{Line: 17, Code: "not_imported", Detail: `lines of type "suggestion" are not imported`},
	}
	if fmt.Sprint(done.LeftOut) != fmt.Sprint(leftOut) {
		t.Errorf("left out\n%v, want\n%v", done.LeftOut, leftOut)
	}
	c.equal("import", counts(done), "3 created, 1 skipped")
	c.equal("known", len(c.known()), 3)
	may := c.the("User was born in May")
	c.equal("a plain line", []any{may.Origin, may.Pinned, may.Kind, may.EventTime.Format(time.DateOnly)}, []any{memory.ByImport, true, lang.KindEvent, "1990-05-04"})

	// A file imported twice adds nothing the second time, even if its facts were retired.
	c.update(func(tx nodest.Tx) error {
		return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, may.ID, false)
	})
	done = c.imports(c.user, c.character, []byte(strings.Join(lines, "\n")))
	c.equal("import again", counts(done), "0 created, 4 skipped")
}

func TestInvalidFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		code fault.Code
	}{
		"a newer format": {`{"type":"header","format":"memory-export","version":2}`, fault.NewerVersion},
		"another format": {`{"type":"header","format":"chat","version":1}`, fault.InvalidImport},
		"too large":      {strings.Repeat(strings.Repeat(" ", 1<<16)+"\n", 520), fault.TooLarge},
		"too many lines": {strings.Repeat("\n", 50_001), fault.TooLarge},
		"not of ours":    {strings.Repeat("hello\n", 1002), fault.InvalidImport},
	} {
		t.Run(name, func(t *testing.T) {
			r := &countingReader{Reader: strings.NewReader(tt.file)}
			if _, err := storetest.Memory(memory.Tx{}).Import(t.Context(), &op.Call{}, "", r); !fault.Is(err, tt.code) {
				t.Errorf("%v, want %s", err, tt.code)
			}
			if r.n > 32<<20+1<<17 {
				t.Errorf("%d bytes were read", r.n)
			}
		})
	}
}

// countingReader counts the bytes read.
type countingReader struct {
	*strings.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// Another user's memories, texts and suggestions are not found by any call.
func TestAnotherUsersMemoryIsNotFound(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		m := c.has("User lives in Paris", lang.KindProfile, nil)
		said := c.say(lang.RoleUser, "My secret.")
		s := &memory.Suggested{ID: newUUID(), State: memory.SuggestionOpen, Suggestion: memory.Suggestion{MemoryID: m.ID, Event: memory.EventDelete}}
		c.update(func(tx nodest.Tx) error { return tx.Memory.InsertSuggestion(c.character, s) })
		file := c.export()
		owner, hers := c.user, c.character
		before := c.versions()

		stranger := newChatterOn(c)
		for _, character := range []string{hers, stranger.character} {
			for name, do := range map[string]func(tx nodest.Tx) error{
				"edit": func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "x"}, character, m.ID, memory.Patch{Pinned: ptr(true)})
					return err
				},
				"retire": func(tx nodest.Tx) error {
					err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "x"}, character, m.ID, false)
					return err
				},
				"restore": func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).Restore(context.Background(), &op.Call{Device: "x"}, character, m.ID)
					return err
				},
				"history": func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).History(context.Background(), "", character, m.ID)
					return err
				},
				"purge": func(tx nodest.Tx) error {
					return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "x"}, character, m.ID, true)
				},
				"forget": func(tx nodest.Tx) error {
					return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "x"}, character, said.Chosen().RevisionID, true)
				},
				"decide": func(tx nodest.Tx) error {
					_, err := storetest.Memory(tx.Memory).Decide(context.Background(), &op.Call{Device: "x"}, character, s.ID, "accept")
					return err
				},
			} {
				if err := c.db.Update(t.Context(), stranger.user, do); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s: %v, want not found", name, err)
				}
			}
		}
		for name, do := range map[string]func(tx nodest.Tx) error{
			"create": func(tx nodest.Tx) error {
				_, err := storetest.Memory(tx.Memory).Create(context.Background(), &op.Call{Device: "x"}, hers, memory.Draft{Text: "x"})
				return err
			},
			"export": func(tx nodest.Tx) error {
				return storetest.Memory(tx.Memory).Export(context.Background(), "", hers, &bytes.Buffer{})
			},
			"import": func(tx nodest.Tx) error {
				_, err := storetest.Memory(tx.Memory).Import(context.Background(), &op.Call{Device: "x"}, hers, strings.NewReader(`{"text":"x"}`))
				return err
			},
			"purge all": func(tx nodest.Tx) error {
				_, err := storetest.Memory(tx.Memory).Forget(context.Background(), &op.Call{}, hers, memory.ForgetInput{IDs: []string{m.ID}})
				return err
			},
		} {
			if err := c.db.Update(t.Context(), stranger.user, do); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, want not found", name, err)
			}
		}
		// Another user's ids in an imported file create own memories and reveal nothing.
		c.equal("import", counts(c.imports(stranger.user, stranger.character, file)), "1 created, 0 skipped")
		stranger.refused(fault.NotFound, func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Forget(context.Background(), &op.Call{}, stranger.character, memory.ForgetInput{IDs: []string{m.ID, said.Chosen().RevisionID}})
			return err
		})
		his := &jobsOf{c: c, user: stranger.user}
		his.extract(c.chat)
		c.user, c.character = owner, hers
		c.equal("her memory", c.versions(), before)
		c.equal("her text is not read", c.unread(), 1)
	})
}

// newChatterOn returns another user with a character on the same database.
func newChatterOn(c *chatter) *chatter {
	c.Helper()
	other := *c
	other.user = storetest.User(c, c.db)
	other.character, other.chat = c.meet(other.user)
	return &other
}

// jobsOf runs jobs as a user.
type jobsOf struct {
	c    *chatter
	user string
}

// extract requests the extraction of a chat.
func (j *jobsOf) extract(chat string) {
	j.c.Helper()
	err := j.c.db.Update(context.Background(), j.user, func(tx nodest.Tx) error { return memory.ExtractNow(tx.Memory, chat) })
	if !fault.Is(err, fault.NotFound) {
		j.c.Errorf("extract now: %v, want not found", err)
	}
	j.c.as(j.user, func(tx nodest.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Kind: memory.JobExtract, Subject: chat}) })
	for job := j.c.claim(); job != nil; job = j.c.claim() {
		if job.UserID != j.user {
			continue
		}
		if err := j.c.run(j.c.service, job); err != nil {
			j.c.Fatal(err)
		}
	}
}
