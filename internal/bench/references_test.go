package bench

import (
	"strings"
	"testing"

	"nodest/websearch/miniweb"
)

// TestReferencesPrint runs the whole measurement once in small sizes: its figures are not judged.
func TestReferencesPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := measureReferences(t.Context(), &out, 50, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"references, 40 lines and 40 chunks", "by words", "best parts", "passages", "chunks of a text", "CPU ms"} {
		if got := out.String(); !strings.Contains(got, want) {
			t.Fatalf("out.String() is %q, want it with %q", got, want)
		}
	}
}

// TestCitationsOverTheMiniweb holds what the citations of replies have reached. It runs
// alone: a page that is not read within seconds is left out of the reply.
func TestCitationsOverTheMiniweb(t *testing.T) {
	web := miniweb.Start(t)
	c, err := judgeCitations(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c.print(&out)
	t.Log(out.String())
	if c.replies != c.questions {
		t.Fatalf("c.replies is %d, want %d", c.replies, c.questions)
	}
	if c.precise != c.marks {
		t.Fatalf("c.precise is %d, want %d", c.precise, c.marks)
	}
	if c.covered != c.stated {
		t.Fatalf("c.covered is %d, want %d", c.covered, c.stated)
	}
	if c.checks[rightMark].kept != c.checks[rightMark].replies {
		t.Fatalf("c.checks[rightMark].kept is %d, want %d", c.checks[rightMark].kept, c.checks[rightMark].replies)
	}
	if c.checks[wrongMark].kept > 2 {
		t.Fatalf("c.checks[wrongMark].kept is %d, want at most %d", c.checks[wrongMark].kept, 2)
	}
	if c.checks[wrongNumber].kept > 2 {
		t.Fatalf("c.checks[wrongNumber].kept is %d, want at most %d", c.checks[wrongNumber].kept, 2)
	}
}

func TestCitationsWithoutAMiniweb(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := measureCitations(t.Context(), &out, t.TempDir()+"/none"); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "not judged") {
		t.Fatalf("out.String() is %q, want it with %q", got, "not judged")
	}
}
