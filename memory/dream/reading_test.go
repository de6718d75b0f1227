package dream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/cognition"
	"nodest/memory/dream"
	"nodest/nodest"
)

// night lets the user be away, and orders a run and waits for its end.
func (w *world) night() *dream.Run {
	w.Helper()
	w.clock.Add(time.Hour)
	w.order(dream.Order{})
	w.must(w.work(w.db.Dreams()))
	return w.last()
}

func TestWithoutAModelADreamKeepsWhatUsersSayOfThemselves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.model = nil
		said := []string{
			"I live in Marseille.", "What is the weather like?", "My sister is called Mia.", "Haha, yes.", "I am allergic to peanuts.", "I plan to visit Lisbon in May.",
			"我住在杭州。", "你今天好吗？",
		}
		w.say(said...)
		if r := w.night(); r.State != dream.Done || r.Calls != 0 {
			w.Errorf("the run: %+v", r)
		}
		user, threads := strings.Join(w.lines("user.md"), "\n"), strings.Join(w.lines("threads.md"), "\n")
		for _, word := range []string{"Marseille", "Mia", "peanuts", "杭州"} {
			if !strings.Contains(user, word) {
				w.Errorf("%q is not in %q", word, user)
			}
		}
		if !strings.Contains(threads, "Lisbon") || strings.Contains(user+threads, "weather") || !strings.HasPrefix(user, "2026-02-10: ") {
			w.Errorf("user.md %q, threads.md %q", user, threads)
		}
		w.say(said...)
		if r := w.night(); r.State != dream.Done || strings.Join(w.lines("user.md"), "\n") != user {
			w.Errorf("the same again: %+v, %q", r, w.lines("user.md"))
		}
		w.say(bought(0, 3)...)
		w.model = obedient
		if w.night(); !strings.Contains(strings.Join(w.lines("user.md"), "\n"), "kettle") {
			w.Errorf("with a model again: %q", w.lines("user.md"))
		}
	})
}

// forget deletes the chat.
func (w *world) forget() {
	w.Helper()
	w.must(w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(w.chat) }))
}

func TestADeletedChatIsNotReadAndWhatWasNotedOfItIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]string{"before it": "", "while it is read": `{"notes":`, "while its notes are worked in": `{"updates":`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				w.say(bought(0, 3)...)
				gone := false
				w.model = func(prompt string) string {
					if deleted != "" && strings.Contains(prompt, deleted) && !gone {
						gone = true
						w.forget()
					}
					return obedient(prompt)
				}
				if deleted == "" {
					w.forget()
				}
				if r := w.night(); r.State != dream.Done || r.Consumed != 0 {
					w.Errorf("the run: %+v", r)
				}
				if got := w.lines("user.md"); len(got) != 0 {
					w.Errorf("the lines: %q", got)
				}
				if deleted == "" && w.calls.Load() != 0 {
					w.Errorf("%d calls", w.calls.Load())
				}
			})
		})
	}
}

// Facts that are purged while the model thinks come back neither as lines nor as a run.
func TestAPurgeWhileTheModelThinksHolds(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(w *world, revision string) error{
		"a text": func(w *world, revision string) error {
			return w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(w.character, revision) })
		},
		"everything": func(w *world, _ string) error {
			return w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error { return tx.Memory.PurgeScope(w.character) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				m := w.say("I bought a red bicycle.", "I bought a blue kettle.")[0]
				purged := false
				w.model = func(prompt string) string {
					if answer := obedient(prompt); purged || !strings.Contains(prompt, `{"updates":`) {
						return answer
					}
					purged = true
					answer := obedient(prompt)
					w.must(purge(w, m.Swipes[0].RevisionID))
					return answer
				}
				w.clock.Add(time.Hour)
				w.order(dream.Order{})
				w.must(w.work(w.db.Dreams()))
				if got := strings.Join(append(w.lines("user.md"), w.lines(dream.Archive)...), "\n"); !purged || strings.Contains(got, "bicycle") {
					w.Errorf("the lines: %q", got)
				}
				if runs := w.runs(); name == "everything" && len(runs) != 0 {
					w.Errorf("the run is back: %+v", runs[0])
				}
				for _, r := range w.runs() {
					for _, c := range r.Changes {
						if r.State != dream.Done || strings.Contains(c.After, "bicycle") {
							w.Errorf("the report: %+v", r)
						}
					}
				}
			})
		})
	}
}

func TestAReflectionSeesTheNewestEventsSinceTheOneBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		log := func(from, n int) {
			w.must(w.db.Dreams().Update(w.Context(), w.user, func(tx dream.Tx) error {
				for i := from; i < from+n; i++ {
					e := cognition.New(w.chat, &cognition.Evaluation{KnowledgeID: fmt.Sprintf("page-%03d.", i), Result: cognition.Result{Status: "helpful"}, QueryID: fmt.Sprint("q", i)})
					if err := tx.Log.AppendEvents(w.chat, e); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		var seen []string
		w.model = func(prompt string) string {
			for i := range 200 {
				if name := fmt.Sprintf("page-%03d.", i); strings.Contains(prompt, name) {
					seen = append(seen, name)
				}
			}
			return obedient(prompt)
		}
		for round, want := range []struct{ first, last string }{{"page-010.", "page-059."}, {"page-070.", "page-119."}} {
			seen = nil
			w.say(bought(round, 1)...)
			log(60*round, 60)
			w.night()
			if len(seen) != 50 || seen[0] != want.first || seen[49] != want.last || !slices.IsSorted(seen) {
				w.Errorf("round %d: %d events: %q", round, len(seen), seen)
			}
		}
	})
}
