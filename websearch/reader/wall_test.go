package reader

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/sharedtest"
)

// sample is a page that is a wall, or that looks like one.
type sample struct{ ID, Want, Kind, Lang, HTML string }

// ownSamples are those of testdata/walls.txt.
func ownSamples(t *testing.T) (all []sample) {
	t.Helper()
	doc, err := os.ReadFile("testdata/walls.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(doc), "\n== ")[1:] {
		head, page, _ := strings.Cut(part, " ==\n")
		f := strings.Fields(head)
		all = append(all, sample{ID: fmt.Sprintf("%s %d", head, i), Want: f[0], Kind: f[1], Lang: f[2], HTML: page})
	}
	return all
}

// TestWalls prints how many walls are found, and how many pages that look like them are lost, by
// kind and language: of our own pages, and of those in the folder NODEST_WALLS.
func TestWalls(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		found, walls, lost, pages := confusion(t, ownSamples(t))
		if found < walls || lost > 0 {
			t.Errorf("%d of %d walls found, %d of %d other pages lost", found, walls, lost, pages)
		}
	})
	t.Run("shared", func(t *testing.T) {
		var all []sample
		if err := json.Unmarshal(sharedtest.Read(t, "data/walls/walls.json"), &all); err != nil {
			t.Fatal(err)
		}
		found, walls, lost, pages := confusion(t, all)
		if found*10 < walls*8 || lost*20 > pages {
			t.Errorf("%d of %d walls found, %d of %d other pages lost", found, walls, lost, pages)
		}
	})
}

// confusion reads samples and logs what became of them.
func confusion(t *testing.T, all []sample) (found, walls, lost, pages int) {
	t.Helper()
	rows := map[string]*[4]int{}
	for _, s := range all {
		_, _, err := readHTML(s.HTML, mill, "", time.Unix(1_700_000_000, 0))
		is := err != nil
		if is != (s.Want == "wall") {
			t.Logf("%s (%s, %s): want %s, got %v", s.ID, s.Kind, s.Lang, s.Want, err)
		}
		for _, name := range []string{"kind " + s.Kind, "language " + s.Lang, "all"} {
			row := rows[name]
			if row == nil {
				row = &[4]int{}
				rows[name] = row
			}
			at := 0
			if s.Want != "wall" {
				at = 2
			}
			if row[at+1]++; is {
				row[at]++
			}
		}
	}
	t.Logf("%-20s %12s %12s", "", "walls found", "pages lost")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		t.Logf("%-20s %5d of %3d %5d of %3d", name, r[0], r[1], r[2], r[3])
	}
	r := rows["all"]
	return r[0], r[1], r[2], r[3]
}
