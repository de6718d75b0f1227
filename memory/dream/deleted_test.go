package dream_test

import (
	"testing"

	"nodest/character"
	"nodest/internal/op"
	"nodest/memory/dream"
	"nodest/nodest"
)

// A run that waits when its character is deleted has ended.
func TestTheRunsOfADeletedCharacterEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.say(bought(0, 3)...)
		_, err := w.start(dream.Order{Force: true})
		w.must(err)
		if run := w.last(); run.State != dream.Waiting {
			w.Fatalf("the run is %s", run.State)
		}
		w.must(w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error {
			return character.Delete(tx.Characters, &op.Call{UserID: w.user}, w.character)
		}))
		w.must(w.work(w.db.Dreams()))
		w.must(w.db.Update(w.Context(), w.user, func(tx nodest.Tx) error { return tx.Characters.HideCharacter(w.character, false) }))
		if run := w.last(); run.State != dream.Failed || run.FinishedAt == nil || run.Failure != "the character was deleted" || w.calls.Load() != 0 {
			w.Errorf("the run is %+v", run)
		}
	})
}
