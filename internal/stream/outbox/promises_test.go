package outbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
)

const (
	stepsAlways    = "start say say say say say think block chat memory flush flush flush drain sleep finish "
	stepsConnected = stepsAlways + "drain drain attach attach fail reply ping tell "
)

// TestPromises runs random steps on an outbox. Whatever happens, no durable event is
// left out or sent twice, deltas continue the client's text, the queue stays bounded,
// and the client knows everything once the queue is empty.
func TestPromises(t *testing.T) {
	runs := 3000
	if testing.Short() {
		runs = 300
	}
	closed := 0
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			opts, set := randomSettings(rng)
			w := newSimulation(t, opts, set)
			after, in := stepsConnected, "start say say say chat flush flush attach "
			if w.exact = rng.IntN(2) == 0; !w.exact {
				after, in = after+"rewind ", in+"rewind "
			}
			if rng.IntN(3) == 0 {
				after, in = after+"subscribe unsubscribe ", in+"subscribe unsubscribe "
			}
			w.run(rng, randomSteps(rng, rng.IntN(20), strings.Fields(stepsAlways), nil),
				randomSteps(rng, rng.IntN(10), strings.Fields("start say say chat flush flush "), nil),
				randomSteps(rng, rng.IntN(200), strings.Fields(after), strings.Fields(in)))
			if w.closed == 4408 {
				closed++
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Log(fmt.Sprint(runs, " runs, ", closed, " of them too slow"))
}
