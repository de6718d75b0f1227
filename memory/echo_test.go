package memory_test

import (
	"slices"
	"testing"

	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

// onBothStores runs a test on SQLite and on PostgreSQL.
func onBothStores(t *testing.T, test func(t *testing.T, r *fixture)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, memory.Options{}))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, newFixtureOn(t, memory.Options{}, storetest.OpenPostgres))
	})
}

const echoQuestion = "What music do I like?"

// A reply that repeats a purged fact is not recalled for it, in no chat; what else it says still is.
func TestAPurgedFactIsNotRecalledThroughItsEchoes(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, r *fixture) {
		character := r.character()
		chat, other := r.conversation(character), r.conversation(character)
		said := r.addMessage(chat, "", "Ann: I love jazz music more than anything.")
		r.addMessage(chat, said.ID, "Reed: You love jazz music, I will remember it.")
		hello := r.addMessage(other, "", "Ann: Good evening.")
		mixed := r.addMessage(other, hello.ID, "Reed: You told me that you love jazz music. The ferry to Gotland leaves at nine.")
		near := r.addMessage(other, mixed.ID, "Reed: Jazz music is playing in the harbour.")
		fact := r.addFact(character, "User loves jazz music", nil, said)
		ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: echoQuestion}}
		if got := r.recall(ask); len(got) < 3 {
			t.Fatalf("before the purge: %q", got)
		}

		call := &op.Call{UserID: r.user}
		preview, err := r.svc.Forget(t.Context(), call, character, memory.ForgetInput{IDs: []string{fact.ID}, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		gone, err := r.svc.Forget(t.Context(), call, character, memory.ForgetInput{IDs: []string{fact.ID}})
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range []*memory.Forgotten{preview, gone} {
			var texts []string
			for _, e := range answer.Echoes {
				if texts = append(texts, e.Text); e.MessageID == "" || e.ConversationID == "" || e.Role != lang.RoleCharacter {
					t.Errorf("dry run %v: echo %+v", answer.DryRun, e)
				}
			}
			slices.Sort(texts)
			if want := []string{"You love jazz music, I will remember it.", "You told me that you love jazz music."}; !slices.Equal(texts, want) {
				t.Errorf("dry run %v: echoes %q, want %q", answer.DryRun, texts, want)
			}
		}

		r.wantRecall("after the purge", ask)
		r.wantRecall("another line with its words", asked{memory.Ask{CharacterID: character}, recall.Query{Text: "Where is jazz music playing?"}},
			"Jazz music is playing in the harbour.")
		hits := r.hits(asked{memory.Ask{CharacterID: character}, recall.Query{Text: "When does the ferry to Gotland leave?"}})
		if len(hits) == 0 || hits[0].Shown() != "The ferry to Gotland leaves at nine." {
			t.Errorf("what else a reply says: %q", hitTexts(hits))
		}

		again := r.addMessage(other, near.ID, "Reed: As you love jazz music, I booked a table.")
		r.wantRecall("said again by the character", ask)
		r.addMessage(other, again.ID, "Ann: By the way, I love jazz music again, the old records.")
		if got := r.recall(ask); !slices.Contains(got, "By the way, I love jazz music again, the old records.") {
			t.Errorf("said anew by the user: %q", got)
		}
	})
}

// A reply that repeats the old value of a corrected fact is not recalled for it, until the value is
// restored.
func TestACorrectedFactIsNotRecalledThroughItsEchoes(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, r *fixture) {
		character := r.character()
		chat, other := r.conversation(character), r.conversation(character)
		said := r.addMessage(chat, "", "Ann: My favourite music is jazz.")
		const echo = "Your favourite music is jazz, so I bought the old record with the torn sleeve."
		hello := r.addMessage(other, "", "Ann: Good evening.")
		r.addMessage(other, hello.ID, "Reed: "+echo)
		fact := r.addFact(character, "User's favourite music is jazz", nil, said)
		ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "What is my favourite music?"}}
		if got := r.recall(ask); !slices.Contains(got, echo) {
			t.Fatalf("before the correction: %q", got)
		}
		r.edit(character, fact.ID, "User's favourite music is reggae")
		r.wantRecall("after the correction", ask, "User's favourite music is reggae")
		r.wantRecall("a question about the past", asked{memory.Ask{CharacterID: character}, recall.Query{Text: "What was my favourite music before?"}},
			"User's favourite music is reggae", echo, "My favourite music is jazz.")

		r.update(func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Restore(t.Context(), &op.Call{Device: "test"}, character, fact.ID)
			return err
		})
		if got := r.recall(ask); !slices.Contains(got, echo) {
			t.Errorf("after the old value was restored: %q", got)
		}
	})
}

func (r *fixture) edit(character, id, text string) (m *memory.Memory) {
	r.Helper()
	r.update(func(tx nodest.Tx) (err error) {
		m, err = storetest.Memory(tx.Memory).Edit(r.Context(), &op.Call{Device: "test"}, character, id, memory.Patch{Text: &text})
		return err
	})
	return m
}

// Echoes are looked for in the memory of one user and character: those of others stay, and so do
// their tombstones.
func TestEchoesAreIsolated(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, r *fixture) {
		const echo = "You told me that you love jazz music, on the pier, when the gulls had stolen our bread."
		scope := func(as *fixture) (character string, fact *memory.Memory, ask asked) {
			character = as.character()
			said := as.addMessage(as.conversation(character), "", "Ann: I love jazz music.")
			chat := as.conversation(character)
			hello := as.addMessage(chat, "", "Ann: Good evening.")
			as.addMessage(chat, hello.ID, "Reed: "+echo)
			return character, as.addFact(character, "User loves jazz music", nil, said), asked{memory.Ask{CharacterID: character}, recall.Query{Text: echoQuestion}}
		}
		stranger := r.asUser(storetest.User(t, r.db))
		mine, fact, _ := scope(r)
		_, _, hisAsk := scope(stranger)
		_, _, otherAsk := scope(r)
		gone, err := r.svc.Forget(t.Context(), &op.Call{UserID: r.user}, mine, memory.ForgetInput{IDs: []string{fact.ID}})
		if err != nil || len(gone.Echoes) != 1 {
			t.Fatalf("echoes %+v, error %v", gone, err)
		}
		for name, got := range map[string][]string{"another user": stranger.recall(hisAsk), "another character": r.recall(otherAsk)} {
			if !slices.Contains(got, echo) {
				t.Errorf("%s: %q", name, got)
			}
		}
		if err := r.db.Update(t.Context(), stranger.user, func(tx nodest.Tx) error {
			_, _, err := tx.Memory.Gists(mine, []string{"x"})
			return err
		}); err == nil {
			t.Error("a stranger reads the gists of a character")
		}
	})
}
