package extract_test

import (
	"testing"

	"nodest/internal/jobs"
	"nodest/memory"
	"nodest/nodest"
)

// New facts get vectors at once, without waiting for the next message.
func TestNewFactsGetVectors(t *testing.T) {
	t.Parallel()
	c := newChatter(t, "sqlite")
	wants := func(what string, want int, do func()) {
		t.Helper()
		c.update(func(tx nodest.Tx) error { return tx.Jobs.CancelJobs(c.character, memory.JobEmbed) })
		do()
		var open []*jobs.Job
		c.view(func(tx nodest.Tx) (err error) {
			open, _, err = tx.Jobs.Jobs(jobs.Filter{Kind: memory.JobEmbed, Subject: c.character, Open: true}, "", 0)
			return err
		})
		c.equal("jobs after "+what, len(open), want)
	}
	var m *memory.Memory
	wants("a memory", 1, func() { m = c.create(memory.Draft{Text: "User lives in Paris"}) })
	wants("a pin", 0, func() { c.patch(m.ID, memory.Patch{Pinned: ptr(true)}) })
	wants("another text", 1, func() { m = c.patch(m.ID, memory.Patch{Text: ptr("User lives in Lyon")}) })
	wants("a file", 1, func() { c.imports(c.user, c.character, []byte(`{"text":"User has a cat"}`)) })
	wants("the same file", 0, func() { c.imports(c.user, c.character, []byte(`{"text":"User has a cat"}`)) })
}
