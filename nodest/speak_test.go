package nodest

import (
	"testing"
	"time"
)

// Replies that are written at the same time are stored at the same moments, in few commits, and
// none later than it should be.
func TestCheckpointsOfRepliesComeTogether(t *testing.T) {
	t.Parallel()
	const every, replies = 2 * time.Second, 32
	begin := time.Date(2026, 1, 1, 12, 0, 0, 123456789, time.UTC)
	moments := map[time.Time]bool{}
	for i := range replies {
		last := begin.Add(time.Duration(i) * 4 * time.Second / replies)
		next := nextCheckpoint(last, every)
		if wait := next.Sub(last); wait > every || wait < every*3/4 {
			t.Errorf("a reply waits %v for its next checkpoint", wait)
		}
		moments[next] = true
	}
	if len(moments) > 9 {
		t.Errorf("the checkpoints of %d replies come at %d moments", replies, len(moments))
	}
	if next := nextCheckpoint(begin, 1); !next.After(begin) {
		t.Error("with the shortest time between them, checkpoints do not go on")
	}
}
