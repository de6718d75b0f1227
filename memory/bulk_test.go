package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// failingMemoryStore fails every transaction after the first few.
type failingMemoryStore struct {
	memory.Store
	left int
}

func (f *failingMemoryStore) Update(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	if f.left--; f.left < 0 {
		return fault.New(fault.Internal, "the disk is gone")
	}
	return f.Store.Update(ctx, userID, fn)
}

// memoryFailingAfter is a memory service whose store fails after some transactions.
func memoryFailingAfter(s *nodesttest.Fixture, transactions int) *memory.Service {
	return memory.New(&failingMemoryStore{s.DB.Memory(), transactions}, memory.Options{Log: nodesttest.DiscardLog})
}

// listFacts lists the facts of one of ann's characters, oldest first, with their
// unusual properties.
func listFacts(s *nodesttest.Fixture, characterID string) (all []string) {
	s.T.Helper()
	for cursor := ""; ; {
		page, err := s.Memory.List(s.T.Context(), nodesttest.Ann, characterID, memory.Filter{Status: memory.AnyStatus}, cursor, 200)
		s.Must(err)
		for _, m := range page.Items {
			line := m.Text
			if m.Status != memory.Active {
				line += " " + string(m.Status)
			}
			if m.Pinned {
				line += " pinned"
			}
			if m.Locked {
				line += " locked"
			}
			all = append(all, line)
		}
		if cursor = page.NextCursor; cursor == "" {
			slices.Reverse(all)
			return all
		}
	}
}

// Repeating an import that failed halfway completes it: nothing is lost, and nothing
// is stored twice.
func TestARetryCompletesAFailedImport(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	var file strings.Builder
	for i := range 700 {
		switch {
		case i == 500:
			file.WriteString("broken\n")
		case i%2 == 0: // with and without an id
			fmt.Fprintf(&file, `{"text":"Clara knows the number %d"}`+"\n", i)
		default:
			fmt.Fprintf(&file, `{"id":"line-%d","text":"Clara knows the number %d","status":"retired"}`+"\n", i, i)
		}
	}
	file.WriteString(`{"text":"Clara sails","status":"retired"}` + "\n")
	call := s.Call()
	imports := func(m *memory.Service) (*memory.Imported, error) {
		return m.Import(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash}, alice.ID, strings.NewReader(file.String()))
	}
	if done, err := imports(memoryFailingAfter(s, 2)); err == nil {
		t.Fatalf("a store that fails has imported %+v", done)
	}
	if n := len(listFacts(s, alice.ID)); n != 500 {
		t.Fatalf("%d facts were stored before the failure, want two pieces of 250", n)
	}
	for range 2 { // the second one is answered from the stored result of the key
		done, err := imports(s.Memory)
		s.Must(err)
		if done.Created != 200 || done.Skipped != 500 || len(done.Failed) != 1 || done.Failed[0].Line != 501 {
			t.Errorf("the same request again: %+v", done)
		}
		if all := listFacts(s, alice.ID); len(all) != 700 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 700 {
			t.Errorf("%d facts, want 700 different ones", len(all))
		}
	}
	done, err := s.Memory.Import(t.Context(), s.Call(), alice.ID, strings.NewReader(file.String()))
	s.Must(err)
	if done.Created != 0 || done.Skipped != 700 {
		t.Errorf("another request: %+v", done)
	}
	call.Hash = "other"
	_, err = imports(s.Memory)
	nodesttest.WantError(t, err, fault.KeyReused, "")
}

// A file without memories changes nothing, and its idempotency key can be used again.
func TestAFileWithoutMemoriesIsRefused(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	call := s.Call()
	imports := func(file string) (*memory.Imported, error) {
		return s.Memory.Import(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash}, alice.ID, strings.NewReader(file))
	}
	_, err := imports("name,text\nClara,sails\n")
	nodesttest.WantError(t, err, fault.InvalidImport, "")
	if all := listFacts(s, alice.ID); len(all) != 0 {
		t.Errorf("stored: %v", all)
	}
	done, err := imports(`{"text":"Clara sails"}`)
	s.Must(err)
	if done.Created != 1 {
		t.Errorf("a good file: %+v", done)
	}
}

// bulk runs a bulk action for ann.
func bulk(s *nodesttest.Fixture, characterID string, in memory.Bulk) *memory.BulkDone {
	s.T.Helper()
	done, err := s.Memory.Bulk(s.T.Context(), s.Call(), characterID, in)
	s.Must(err)
	return done
}

func TestBulkActionsByFilter(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, tt := range map[string]struct {
		action memory.Action
		filter memory.Selection
		counts string // matched, changed, conflicts
		want   []string
	}{
		"no match": {
			memory.BulkPurge, memory.Selection{Query: new("whale")}, "0 0 0",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries pinned", "克拉拉喜欢茶", "Clara sings retired", "Clara sings"},
		},
		"everything active is retired": {
			memory.BulkRetire, memory.Selection{All: true}, "4 4 0",
			[]string{"Clara sails superseded", "Clara sails often retired", "Clara likes ferries retired pinned", "克拉拉喜欢茶 retired", "Clara sings retired", "Clara sings retired"},
		},
		"by words in any form": {
			memory.BulkRetire, memory.Selection{Query: new("SAILING Clara")}, "1 1 0",
			[]string{"Clara sails superseded", "Clara sails often retired", "Clara likes ferries pinned", "克拉拉喜欢茶", "Clara sings retired", "Clara sings"},
		},
		"by Chinese words": {
			memory.BulkPin, memory.Selection{Query: new("喜欢茶")}, "1 1 0",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries pinned", "克拉拉喜欢茶 pinned", "Clara sings retired", "Clara sings"},
		},
		"by kind": {
			memory.BulkLock, memory.Selection{Kind: new(lang.KindPreference)}, "1 1 0",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries pinned locked", "克拉拉喜欢茶", "Clara sings retired", "Clara sings"},
		},
		"unchanged memories are not counted": {
			memory.BulkPin, memory.Selection{Query: new("Clara")}, "3 2 0",
			[]string{"Clara sails superseded pinned", "Clara sails often pinned", "Clara likes ferries pinned", "克拉拉喜欢茶", "Clara sings retired", "Clara sings pinned"},
		},
		"those that are pinned": {
			memory.BulkUnpin, memory.Selection{Pinned: &yes}, "1 1 0",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries", "克拉拉喜欢茶", "Clara sings retired", "Clara sings"},
		},
		"all but pinned memories are purged with their versions": {
			memory.BulkPurge, memory.Selection{Pinned: &no}, "3 3 0",
			[]string{"Clara likes ferries pinned", "Clara sings retired"},
		},
		"all retired memories are purged": {
			memory.BulkPurge, memory.Selection{All: true, Status: memory.Retired}, "1 1 0",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries pinned", "克拉拉喜欢茶", "Clara sings"},
		},
		"everything is purged": {memory.BulkPurge, memory.Selection{All: true, Status: memory.AnyStatus}, "5 5 0", nil},
		"a duplicate cannot be restored": {
			memory.BulkRestore, memory.Selection{All: true}, "1 0 1",
			[]string{"Clara sails superseded", "Clara sails often", "Clara likes ferries pinned", "克拉拉喜欢茶", "Clara sings retired", "Clara sings"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewWithMemory(t)
			alice := s.Character(nodesttest.PlainAlice)
			sails := s.AddFact(alice.ID, "Clara sails")
			text, kind := "Clara sails often", lang.KindPreference
			_, err := s.Memory.Edit(t.Context(), s.Call(), alice.ID, sails.ID, memory.Patch{Text: &text, Locked: &no})
			s.Must(err)
			_, err = s.Memory.Edit(t.Context(), s.Call(), alice.ID, s.AddFact(alice.ID, "Clara likes ferries").ID, memory.Patch{Kind: &kind, Pinned: &yes})
			s.Must(err)
			s.AddFact(alice.ID, "克拉拉喜欢茶")
			s.Must(s.Memory.Delete(t.Context(), s.Call(), alice.ID, s.AddFact(alice.ID, "Clara sings").ID, false))
			s.AddFact(alice.ID, "Clara sings")
			before := listFacts(s, alice.ID)
			in := memory.Bulk{Action: tt.action, Filter: tt.filter, DryRun: true}
			preview := bulk(s, alice.ID, in)
			if after := listFacts(s, alice.ID); !slices.Equal(after, before) {
				t.Errorf("a dry run has changed\n%q to\n%q", before, after)
			}
			in.DryRun = false
			done := bulk(s, alice.ID, in)
			for _, got := range []*memory.BulkDone{preview, done} {
				if counts := fmt.Sprint(got.Matched, got.Changed, len(got.Conflicts)); counts != tt.counts || got.Changed != len(got.IDs) || got.Truncated {
					t.Errorf("dry run %t: %+v, want %s", got.DryRun, got, tt.counts)
				}
			}
			if !slices.Equal(preview.IDs, done.IDs) {
				t.Errorf("the dry run names %v, %v was changed", preview.IDs, done.IDs)
			}
			if after := listFacts(s, alice.ID); !slices.Equal(after, tt.want) {
				t.Errorf("facts =\n%q, want\n%q", after, tt.want)
			}
			if again := bulk(s, alice.ID, in); again.Changed != 0 {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

func TestBulkActionsByID(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice, other := s.Character(nodesttest.PlainAlice), s.Character(nodesttest.PlainAlice)
	sails := s.AddFact(alice.ID, "Clara sails")
	text := "Clara sails often"
	_, err := s.Memory.Edit(t.Context(), s.Call(), alice.ID, sails.ID, memory.Patch{Text: &text})
	s.Must(err)
	sings := s.AddFact(alice.ID, "Clara sings")
	foreign := s.AddFact(other.ID, "Clara swims")
	// The id of an older version names the memory, and memories of any status can be named.
	in := memory.Bulk{Action: memory.BulkRetire, Filter: memory.Selection{IDs: []string{sails.ID, sings.ID, sings.ID}}}
	if done := bulk(s, alice.ID, in); done.Matched != 2 || done.Changed != 2 {
		t.Errorf("retire: %+v", done)
	}
	in.Action = memory.BulkRestore
	if done := bulk(s, alice.ID, in); done.Matched != 2 || done.Changed != 2 {
		t.Errorf("restore: %+v", done)
	}
	if all := listFacts(s, alice.ID); !slices.Equal(all, []string{"Clara sails superseded", "Clara sails often locked", "Clara sings"}) {
		t.Errorf("facts = %q", all)
	}
	in.Action, in.Filter.IDs = memory.BulkPurge, []string{sings.ID, foreign.ID}
	_, err = s.Memory.Bulk(t.Context(), s.Call(), alice.ID, in)
	nodesttest.WantError(t, err, fault.NotFound, "")
	if len(listFacts(s, alice.ID)) != 3 || len(listFacts(s, other.ID)) != 1 {
		t.Error("something was purged although one of them is not there")
	}
}

// A memory whose older version is retired on one branch and whose newer version is
// active on another counts once, with the status of its newest version.
func TestABulkActionCountsAMemoryWithARetiredVersionOnce(t *testing.T) {
	t.Parallel()
	oldest, newest := op.NewID(), op.NewID()
	for name, tt := range map[string]struct {
		action memory.Action
		filter memory.Selection
		counts string // matched, changed
		want   []string
	}{
		"of any status":                {memory.BulkPin, memory.Selection{All: true, Status: memory.AnyStatus}, "1 1", []string{"Clara sails retired pinned", "Clara rows pinned"}},
		"by its ids":                   {memory.BulkRetire, memory.Selection{IDs: []string{oldest, newest}}, "1 1", []string{"Clara sails retired", "Clara rows retired"}},
		"it does not count as retired": {memory.BulkPurge, memory.Selection{All: true, Status: memory.Retired}, "0 0", []string{"Clara sails retired", "Clara rows"}},
		"it cannot be restored":        {memory.BulkRestore, memory.Selection{All: true}, "0 0", []string{"Clara sails retired", "Clara rows"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := nodesttest.NewWithMemory(t)
			alice := s.Character(nodesttest.PlainAlice)
			for i, text := range []string{"Clara sails", "Clara rows"} {
				m := &memory.Memory{
					ID: []string{oldest, newest}[i], RootID: oldest, Version: i + 1, Text: text, Subject: lang.AboutCharacter, Kind: lang.KindOther,
					Origin: memory.ByModel, Standing: memory.Standing{Status: []memory.Status{memory.Retired, memory.Active}[i]}, Sightings: memory.Sightings{SeenCount: 1, LastSeenAt: time.UnixMilli(1)},
				}
				s.Must(s.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error { return tx.Memory.InsertFacts(alice.ID, m) }))
			}
			in := memory.Bulk{Action: tt.action, Filter: tt.filter, DryRun: true}
			preview := bulk(s, alice.ID, in)
			in.DryRun = false
			done := bulk(s, alice.ID, in)
			for _, got := range []*memory.BulkDone{preview, done} {
				if counts := fmt.Sprint(got.Matched, got.Changed); counts != tt.counts || got.Changed != len(got.IDs) {
					t.Errorf("dry run %t: %+v, want %s", got.DryRun, got, tt.counts)
				}
			}
			if all := listFacts(s, alice.ID); !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(tt.want))) {
				t.Errorf("facts = %q, want %q", all, tt.want)
			}
		})
	}
}

// Repeating a bulk action that failed halfway completes it.
func TestARetryCompletesAFailedBulkAction(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	var file strings.Builder
	for i := range 450 {
		fmt.Fprintf(&file, `{"text":"Clara knows the number %d"}`+"\n", i)
	}
	_, err := s.Memory.Import(t.Context(), s.Call(), alice.ID, strings.NewReader(file.String()))
	s.Must(err)
	call := s.Call()
	purge := func(m *memory.Service) (*memory.BulkDone, error) {
		return m.Bulk(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash}, alice.ID,
			memory.Bulk{Action: memory.BulkPurge, Filter: memory.Selection{Query: new("number")}})
	}
	if done, err := purge(memoryFailingAfter(s, 1)); err == nil {
		t.Fatalf("a store that fails has purged %+v", done)
	}
	if n := len(listFacts(s, alice.ID)); n != 250 {
		t.Fatalf("%d facts are left, want those without a piece of 200", n)
	}
	for range 2 {
		done, err := purge(s.Memory)
		s.Must(err)
		if done.Changed != 250 || len(done.IDs) != 250 {
			t.Errorf("the same request again: %d changed", done.Changed)
		}
		if n := len(listFacts(s, alice.ID)); n != 0 {
			t.Errorf("%d facts are left", n)
		}
	}
	// Purged memories are not imported again.
	again, err := s.Memory.Import(t.Context(), s.Call(), alice.ID, strings.NewReader(file.String()))
	s.Must(err)
	if again.Created != 0 || again.Skipped != 450 {
		t.Errorf("the file again: %+v", again)
	}
}

func TestInvalidBulkActionsAreRefused(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	s.AddFact(alice.ID, "Clara sails")
	yes := true
	for name, tt := range map[string]struct {
		action memory.Action
		filter memory.Selection
		field  string
	}{
		"no action":             {"", memory.Selection{All: true}, "action"},
		"an unknown action":     {"delete", memory.Selection{All: true}, "action"},
		"an empty filter":       {memory.BulkPurge, memory.Selection{}, "filter.all"},
		"a status alone":        {memory.BulkPurge, memory.Selection{Status: memory.Retired}, "filter.all"},
		"no ids":                {memory.BulkPurge, memory.Selection{IDs: []string{}}, "filter.ids"},
		"no ids of a kind":      {memory.BulkPurge, memory.Selection{IDs: []string{}, Kind: new(lang.KindOther)}, "filter.ids"},
		"all and something":     {memory.BulkPurge, memory.Selection{All: true, Pinned: &yes}, "filter.all"},
		"words without letters": {memory.BulkPurge, memory.Selection{Query: new(" ?! ")}, "filter.q"},
		"too many ids":          {memory.BulkPurge, memory.Selection{IDs: make([]string, 201)}, "filter.ids"},
		"older versions":        {memory.BulkPurge, memory.Selection{All: true, Status: memory.Superseded}, "filter.status"},
		"an unknown kind":       {memory.BulkPurge, memory.Selection{Kind: new(lang.Kind("rumour"))}, "filter.kind"},
		"an empty question":     {memory.BulkPurge, memory.Selection{Query: new(""), Kind: new(lang.KindPreference)}, "filter.q"},
		"an empty kind":         {memory.BulkPurge, memory.Selection{Kind: new(lang.Kind("")), Pinned: new(true)}, "filter.kind"},
		"an empty conversation": {memory.BulkPurge, memory.Selection{Conversation: new(""), Pinned: new(true)}, "filter.conversation"},
		"an unknown subject":    {memory.BulkPurge, memory.Selection{Subject: new(lang.Subject("dog"))}, "filter.subject"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Memory.Bulk(t.Context(), s.Call(), alice.ID, memory.Bulk{Action: tt.action, Filter: tt.filter})
			nodesttest.WantError(t, err, fault.Invalid, tt.field)
		})
	}
	chat := s.Chat() // with another character
	for _, id := range []string{chat.ID, "019a0000-0000-7000-8000-0000000000ff"} {
		_, err := s.Memory.Bulk(t.Context(), s.Call(), alice.ID, memory.Bulk{Action: memory.BulkPurge, Filter: memory.Selection{Conversation: new(id)}})
		nodesttest.WantError(t, err, fault.NotFound, "")
		_, err = s.Memory.List(t.Context(), nodesttest.Ann, alice.ID, memory.Filter{ConversationID: id}, "", 0)
		nodesttest.WantError(t, err, fault.NotFound, "")
	}
	if all := listFacts(s, alice.ID); len(all) != 1 {
		t.Errorf("facts = %q", all)
	}
}

// The list marks the memories in use; those whose evidence no conversation shows any
// more are listed but not marked.
func TestTheListMarksTheMemoriesInUse(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	source := s.ChatWith(alice.ID)
	reply := s.SayAndWait(source, nodesttest.Birthday)
	said := s.Message(reply.ParentID)
	rests := func(text string, m *chat.Message) {
		id := op.NewID()
		fact := &memory.Memory{
			ID: id, RootID: id, Version: 1, Text: text, Subject: lang.AboutUser, Kind: lang.KindOther,
			Origin: memory.ByRule, Standing: memory.Standing{Status: memory.Active}, ConversationID: source.ID, Evidence: []memory.Evidence{{
				ConversationID: source.ID, MessageID: m.ID, RevisionID: m.Chosen().RevisionID, Seq: m.Seq,
			}},
		}
		s.Must(s.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error { return tx.Memory.InsertFacts(alice.ID, fact) }))
	}
	rests("Clara has a birthday", said)
	rests("It was said that all is fine", reply)
	s.Must(s.Memory.Delete(t.Context(), s.Call(), alice.ID, s.AddFact(alice.ID, "Clara sings").ID, false))
	old := s.AddFact(alice.ID, "Clara sails")
	text := "Clara sails often"
	_, err := s.Memory.Edit(t.Context(), s.Call(), alice.ID, old.ID, memory.Patch{Text: &text})
	s.Must(err)
	shown := func() (all []string) {
		page, err := s.Memory.List(t.Context(), nodesttest.Ann, alice.ID, memory.Filter{Status: memory.AnyStatus}, "", 0)
		s.Must(err)
		for _, m := range page.Items {
			if m.Shown {
				all = append(all, m.Text)
			}
		}
		slices.Sort(all)
		return all
	}
	every := []string{"Clara has a birthday", "Clara sails often", "It was said that all is fine"}
	if got := shown(); !slices.Equal(got, every) {
		t.Errorf("%q count, want %q", got, every)
	}
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), reply.ID, "one")
	s.Must(err)
	if got := shown(); !slices.Equal(got, every[:2]) {
		t.Errorf("without the message %q count, want %q", got, every[:2])
	}
	s.Must(s.DeleteConversation(t.Context(), s.Call(), source.ID))
	if got := shown(); !slices.Equal(got, every[1:2]) {
		t.Errorf("without the chat %q count, want %q", got, every[1:2])
	}
}
