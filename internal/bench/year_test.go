package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestYearTexts(t *testing.T) {
	t.Parallel()
	y, n, facts := yearChat{seed: 1, exchanges: 2000}, 0, map[string]bool{}
	for i := range 4000 {
		l := y.line(i)
		require.Equal(t, l, y.line(i))
		n += len(l.text)
	}
	for k := range y.facts() {
		_, name, _, _ := y.planted(k)
		require.False(t, facts[name])
		facts[name] = true
	}
	require.Greater(t, n/2000, 1100)
	require.Less(t, n/2000, 1400)
}
