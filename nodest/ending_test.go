package nodest_test

import (
	"testing"

	"nodest/nodest"
	"nodest/stream"
)

// TestWhoHeardOfAnEndFindsIt attaches to a generation at the moment when the
// events of its end are told: it has ended, and gives no text that would look
// like one more delta.
func TestWhoHeardOfAnEndFindsIt(t *testing.T) {
	const turns = 10
	s := newStudio(t, nodest.Options{})
	found := make(chan *nodest.Attached, turns)
	s.ears.told = func(events []*stream.Event) {
		for _, ev := range events {
			if ev.Type != "gen.done" {
				continue
			}
			begun := make(chan struct{})
			go func() {
				close(begun)
				a, err := s.Attach(t.Context(), ann, ev.GenerationID, 0)
				if err != nil {
					t.Error(err)
				}
				found <- a
			}()
			<-begun
		}
	}
	c := s.chat()
	for range turns {
		sent := s.send(c, "Hi")
		s.wait(sent.GenerationID)
		if a := <-found; a == nil || !a.Generation.Ended() {
			t.Errorf("attached to %+v after its end was told", a)
		}
	}
}
