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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAUserHasAShareAndTheOthersTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 2, time.Second)
		var gives []func()
		for range 2 {
			give, err := g.take(t.Context(), "one", 1)
			require.NoError(t, err)
			gives = append(gives, give)
		}
		started := time.Now()
		_, err := g.take(t.Context(), "one", 1)
		require.Equal(t, Busy, OutcomeOf(err), "more than the share")
		require.Equal(t, time.Second, time.Since(started))
		give, err := g.take(t.Context(), "two", 99) // as much as a user may have
		require.NoError(t, err, "another user waits for nobody")
		gives = append(gives, give)
		_, err = g.take(t.Context(), "three", 1)
		require.Equal(t, Busy, OutcomeOf(err), "all is taken")
		for _, give := range gives {
			give()
		}
		give, err = g.take(t.Context(), "three", 2)
		require.NoError(t, err, "what was given back is free")
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
			require.NoError(t, err)
			waited := time.Since(started)
			<-time.After(time.Second)
			give()
			return waited
		}
		for range 20 {
			go work("many")
		}
		synctest.Wait()
		assert.LessOrEqual(t, work("few"), 2*time.Second, "one that runs, and one that was first")
		<-time.After(time.Minute)
	})
}

func TestWhoLeavesWaitsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1, time.Minute)
		give, err := g.take(t.Context(), "one", 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = g.take(ctx, "one", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		give()
		give, err = g.take(t.Context(), "two", 1)
		require.NoError(t, err, "the place is free")
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
			assert.Error(t, err, name)
		} else {
			require.NoError(t, err, name)
			assert.Equal(t, long[:c.want], string(text), name)
			assert.LessOrEqual(t, cap(text), max(c.keep, smallBody), name)
		}
		assert.Equal(t, c.held, h.give != nil, "%s: memory is taken before it is used", name)
		h.release()
		give, err := g.take(t.Context(), "another", 1<<20)
		require.NoError(t, err, "%s: all of it is given back", name)
		give()
	}
}

func TestThePartOfACharacterAtTheEndIsLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "ab": "ab", "aé": "aé", "a\xc3": "a", "京\xe4\xba": "京", "京\xe4": "京", "\xb0\xa1\xb0": "\xb0\xa1\xb0", "😀\xf0\x9f\x98": "😀"} {
		assert.Equal(t, want, string(wholeRunes([]byte(text))), "%q", text)
	}
}

func TestTheWindowOfABrotliBodyIsCounted(t *testing.T) {
	t.Parallel()
	for first, want := range map[byte]int{0x00: 1 << 16, 0x0b: 1 << 22, 0x0f: 1 << 24, 0x01: 1 << 17, 0x21: 1 << 10, 0x71: 1 << 15, 0x03: 1 << 18} {
		assert.Equal(t, want, brotliWindow(first), "%#x", first)
	}
}

func TestErrorsOfAGateAreOfThatRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1, time.Second)
		give, err := g.take(t.Context(), "u", 1)
		require.NoError(t, err)
		defer give()
		_, one := g.take(t.Context(), "u", 1)
		_, two := g.take(t.Context(), "u", 1)
		require.NotSame(t, failure("http://a.test/", one), failure("http://b.test/", two))
		require.False(t, errors.Is(one, two))
	})
}
