package llm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"nodest/internal/fault"
	"nodest/llm"
)

// TestNoReplyIsDoubledOrHalved plays random failures to the whole stack: two
// providers with retries behind a chain. Whatever happens, the text that comes out
// is what one single attempt said, it is called whole only if that attempt was, and
// nothing follows an end.
func TestNoReplyIsDoubledOrHalved(t *testing.T) {
	seed := uint64(20261121)
	if s, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("seed %d (NODEST_SEED)", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	outcomes := map[fault.Code]int{}
	for round := range 2000 {
		synctest.Test(t, func(t *testing.T) {
			a, b := randomModel(random, "a"), randomModel(random, "b")
			chain := llm.Chain(quiet,
				llm.Link{Provider: "a", Generator: llm.Dependable("a", a)},
				llm.Link{Provider: "b", Generator: llm.Dependable("b", b)})
			var text strings.Builder
			ends, whole := 0, false
			var failed error
			for c, err := range chain.Stream(t.Context(), llm.Request{}) {
				if ends > 0 {
					t.Fatalf("round %d: %+v, %v after the end", round, c, err)
				}
				if err != nil || c.Last {
					ends++
					whole, failed = err == nil, err
				}
				text.WriteString(c.Text)
			}
			outcomes[codeOf(failed)]++
			if ends != 1 {
				t.Fatalf("round %d: %d ends", round, ends)
			}
			if !saidOnce(text.String(), whole, a, b) {
				t.Fatalf("round %d: %q (whole: %v, %v) is not what one attempt said", round, text.String(), whole, failed)
			}
		})
	}
	t.Logf("outcomes: %v", outcomes)
	for _, code := range []fault.Code{"", fault.UpstreamDown, fault.UpstreamBadAnswer, fault.UpstreamTimeout, fault.Blocked} {
		if outcomes[code] == 0 {
			t.Errorf("no round ended with %q: the scripts are not random enough", code)
		}
	}
}

func codeOf(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.Public(err).Code
}

// randomModel has a script for each attempt; its words are unlike any other's.
func randomModel(random *rand.Rand, name string) *scripted {
	model := script()
	for attempt := range 3 {
		var steps []step
		for word := range random.IntN(4) {
			steps = append(steps, say(name+strconv.Itoa(attempt)+strconv.Itoa(word)+" "))
		}
		switch random.IntN(8) {
		case 0, 1:
			steps = append(steps, end(llm.FinishStop))
		case 2:
			steps = append(steps, fail(status([]int{400, 401, 429, 503}[random.IntN(4)])))
		case 3:
			steps = append(steps, step{hang: true})
		case 4:
			steps = append(steps, end(llm.FinishBlocked))
		case 5:
			steps = append(steps, end(llm.FinishLength))
		case 6:
			steps = append(steps, fail(llm.NetworkError(context.Background(), name, errors.New("reset"))))
		case 7: // cut off
		}
		model.scripts = append(model.scripts, steps)
	}
	return model
}

// saidOnce reports whether text is all that one of the attempts said.
func saidOnce(text string, whole bool, models ...*scripted) bool {
	for _, m := range models {
		for _, steps := range m.scripts {
			said, finished := "", false
			for _, s := range steps {
				said += s.chunk.Text
				finished = finished || s.chunk.Last && s.chunk.Finish != llm.FinishBlocked
			}
			if said == text && (finished || !whole) {
				return true
			}
		}
	}
	return text == "" && !whole
}
