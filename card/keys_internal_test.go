package card

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A text of keys is split at commas, and a /pattern/ in it stays whole, however the pattern is made.
func TestKeysAreSplitAroundPatterns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`a, b ,,c`:              {"a", "b", "c"},
		`/a{1,2}/i, b`:          {"/a{1,2}/i", "b"},
		` /[,/]+\/,/ , /x/gu,y`: {`/[,/]+\/,/`, "/x/gu", "y"},
		`/help, /start, /a,b/`:  {"/help", "/start", "/a,b/"},
		`//, /usr/bin, a/b/`:    {"//", "/usr/bin", "a/b/"},
		"/a,\nb/":               {"/a", "b/"},
		`/[a,b/, c`:             {"/[a", "b/", "c"},
		`/a\`:                   {`/a\`},
		`塔，海, /[灯,塔]/`:          {"塔", "海", `/[灯,塔]/`},
	} {
		if got := splitKeys(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	pattern := regexp.MustCompile(`^/(?:\\.|\[(?:\\.|[^\\\]\n])*\]|[^\\/\[\n])+/[dgimsuvy]*$`)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := []byte("/")
		for range rng.IntN(9) {
			b = append(b, `//[]\a,i`[rng.IntN(8)])
		}
		if key := string(b); isRegexKey(key) != pattern.MatchString(key) {
			t.Errorf("%q: a pattern is %t", key, isRegexKey(key))
		}
	}
}

// Keys that begin like patterns and never end cost no more than others.
func TestKeysLikePatternsWithoutAnEndAreSplitQuickly(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"/[", "/x[", "/x", `/\\`, "[]],/[/"} {
		const n = 200_000
		text := strings.Repeat(key+",", n) + strings.Repeat(" ", n)
		if got := len(splitKeys(text)); got < n {
			t.Errorf("%s: %d keys", key, got)
		}
	}
}
