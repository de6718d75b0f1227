package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/websearch/miniweb"
)

// TestReferencesPrint runs the whole measurement once in small sizes: its figures are not judged.
func TestReferencesPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, measureReferences(t.Context(), &out, 50, 0))
	for _, want := range []string{"references, 40 lines and 40 chunks", "by words", "best parts", "passages", "chunks of a text", "CPU ms"} {
		require.Contains(t, out.String(), want)
	}
}

// TestCitationsOverTheMiniweb holds what the citations of replies have reached. It runs
// alone: a page that is not read within seconds is left out of the reply.
func TestCitationsOverTheMiniweb(t *testing.T) {
	web := miniweb.Start(t)
	c, err := judgeCitations(t.Context(), web)
	require.NoError(t, err)
	var out strings.Builder
	c.print(&out)
	t.Log(out.String())
	require.Equal(t, c.questions, c.replies)
	require.Equal(t, c.marks, c.precise)
	require.Equal(t, c.stated, c.covered)
	require.Equal(t, c.checks[rightMark].replies, c.checks[rightMark].kept)
	require.LessOrEqual(t, c.checks[wrongMark].kept, 2)
	require.LessOrEqual(t, c.checks[wrongNumber].kept, 2)
}

func TestCitationsWithoutAMiniweb(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, measureCitations(t.Context(), &out, t.TempDir()+"/none"))
	require.Contains(t, out.String(), "not judged")
}
