package reader

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestAUserHasAShareAndTheOthersTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 2, time.Second)
		var gives []func()
		for range 2 {
			give, err := g.take(t.Context(), "one", 1)
			if err != nil {
				t.Fatal(err)
			}
			gives = append(gives, give)
		}
		started := time.Now()
		_, err := g.take(t.Context(), "one", 1)
		if got := OutcomeOf(err); got != Busy {
			t.Fatalf("more than the share: OutcomeOf(err) is %q, want %q", got, Busy)
		}
		if got := time.Since(started); got != time.Second {
			t.Fatalf("time.Since(started) is %d, want %d", got, time.Second)
		}
		give, err := g.take(t.Context(), "two", 99) // as much as a user may have
		if err != nil {
			t.Fatalf("another user waits for nobody: %v", err)
		}
		gives = append(gives, give)
		_, err = g.take(t.Context(), "three", 1)
		if got := OutcomeOf(err); got != Busy {
			t.Fatalf("all is taken: OutcomeOf(err) is %q, want %q", got, Busy)
		}
		for _, give := range gives {
			give()
		}
		give, err = g.take(t.Context(), "three", 2)
		if err != nil {
			t.Fatalf("what was given back is free: %v", err)
		}
		give()
	})
}

func TestUsersTakeTurnsHoweverMuchOneOfThemWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 4, time.Minute)
		work := func(user string) time.Duration {
			started := time.Now()
			give, err := g.take(t.Context(), user, 4)
			if err != nil {
				t.Error(err)
				return 0
			}
			waited := time.Since(started)
			<-time.After(time.Second)
			give()
			return waited
		}
		for range 20 {
			go work("many")
		}
		synctest.Wait()
		if got := work("few"); got > 2*time.Second {
			t.Errorf("one that runs, and one that was first: got %v, want at most %v", got, 2*time.Second)
		}
		<-time.After(time.Minute)
	})
}

func TestWhoLeavesWaitsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1, time.Minute)
		give, err := g.take(t.Context(), "one", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = g.take(ctx, "one", 1)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		give()
		give, err = g.take(t.Context(), "two", 1)
		if err != nil {
			t.Fatalf("the place is free: %v", err)
		}
		give()
	})
}

func TestABodyIsKeptUpToItsBoundAndReadToItsEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300_000)
	for name, c := range map[string]struct {
		body io.Reader
		keep int
		want int // bytes; -1 = an error
		held bool
	}{
		"nothing":               {strings.NewReader(""), 100_000, 0, false},
		"a little":              {iotest.OneByteReader(strings.NewReader(long[:1000])), 100_000, 1000, false},
		"as much as is free":    {strings.NewReader(long[:smallBody]), 100_000, smallBody, true},
		"all of it":             {iotest.HalfReader(strings.NewReader(long)), 400_000, 300_000, true},
		"more than is kept":     {strings.NewReader(long), 100_000, 100_000, true},
		"more, of little":       {strings.NewReader(long), 1000, 1000, false},
		"broken":                {io.MultiReader(strings.NewReader(long[:10]), iotest.ErrReader(io.ErrUnexpectedEOF)), 100_000, -1, false},
		"broken behind it":      {io.MultiReader(strings.NewReader(long), iotest.ErrReader(io.ErrUnexpectedEOF)), 100_000, -1, true},
		"too large in the rest": {&bounded{strings.NewReader(long), 200_000}, 100_000, -1, true},
	} {
		g := newGate(1<<20, 1<<20, time.Second)
		h := &hold{ctx: t.Context(), gate: g, user: "u"}
		text, err := collect(c.body, c.keep, h)
		if c.want < 0 {
			if err == nil {
				t.Errorf("%s: got no error, want one", name)
			}
		} else {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if expected := long[:c.want]; string(text) != expected {
				t.Errorf("%s: string(text) is %q, want %q", name, string(text), expected)
			}
			if got := cap(text); got > max(c.keep, smallBody) {
				t.Errorf("%s: cap(text) is %d, want at most %d", name, got, max(c.keep, smallBody))
			}
		}
		if got := h.give != nil; got != c.held {
			t.Errorf("%s: memory is taken before it is used: h.give != nil is %v, want %v", name, got, c.held)
		}
		h.release()
		give, err := g.take(t.Context(), "another", 1<<20)
		if err != nil {
			t.Fatalf("%s: all of it is given back: %v", name, err)
		}
		give()
	}
}

func TestThePartOfACharacterAtTheEndIsLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "ab": "ab", "aé": "aé", "a\xc3": "a", "京\xe4\xba": "京", "京\xe4": "京", "\xb0\xa1\xb0": "\xb0\xa1\xb0", "😀\xf0\x9f\x98": "😀"} {
		if got := string(wholeRunes([]byte(text))); got != want {
			t.Errorf("%q: string(wholeRunes([]byte(text))) is %q, want %q", text, got, want)
		}
	}
}

func TestTheWindowOfABrotliBodyIsCounted(t *testing.T) {
	t.Parallel()
	for first, want := range map[byte]int{0x00: 1 << 16, 0x0b: 1 << 22, 0x0f: 1 << 24, 0x01: 1 << 17, 0x21: 1 << 10, 0x71: 1 << 15, 0x03: 1 << 18} {
		if got := brotliWindow(first); got != want {
			t.Errorf("%#x: brotliWindow(first) is %d, want %d", first, got, want)
		}
	}
}

func TestErrorsOfAGateAreOfThatRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1, time.Second)
		give, err := g.take(t.Context(), "u", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer give()
		_, one := g.take(t.Context(), "u", 1)
		_, two := g.take(t.Context(), "u", 1)
		if a, b := failure("http://a.test/", one), failure("http://b.test/", two); a == b {
			t.Fatalf("got the same failure %v twice, want one each", a)
		}
		if errors.Is(one, two) {
			t.Fatal("errors.Is(one, two) is true, want false")
		}
	})
}
