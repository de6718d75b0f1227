package outbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
)

func words(s string) []string { return strings.Fields(s) }

const (
	always = "start say say say say say think block chat memory flush flush flush drain sleep finish "
	while  = always + "drain drain attach attach fail reply ping tell "
)

// TestPromises tells random stories to an outbox. Whatever happens, nothing durable
// is left out or sent again, deltas continue what the client has, what waits stays
// bounded, and the client knows everything once nothing waits any more.
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
			w := newWorld(t, opts, set)
			after, in := while, "start say say say chat flush flush attach "
			if w.exact = rng.IntN(2) == 0; !w.exact {
				after, in = after+"rewind ", in+"rewind "
			}
			if rng.IntN(3) == 0 {
				after, in = after+"subscribe unsubscribe ", in+"subscribe unsubscribe "
			}
			w.play(rng, story(rng, rng.IntN(20), words(always), nil),
				story(rng, rng.IntN(10), words("start say say chat flush flush "), nil),
				story(rng, rng.IntN(200), words(after), words(in)))
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
