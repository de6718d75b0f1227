package lineage

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestWhereABranchWasLeft(t *testing.T) {
	for name, tt := range map[string]struct {
		born, now int64
		rewinds   []Rewind
		last      int64 // 0 = it was not left
	}{
		"no rewind":                             {born: 3, now: 9},
		"before the save point":                 {born: 3, now: 9, rewinds: []Rewind{{8, 5}}},
		"at the save point":                     {born: 5, now: 9, rewinds: []Rewind{{8, 5}}},
		"after the save point":                  {born: 6, now: 9, rewinds: []Rewind{{8, 5}}, last: 7},
		"just before the rewind":                {born: 7, now: 8, rewinds: []Rewind{{8, 5}}, last: 7},
		"in the rewind itself":                  {born: 8, now: 8, rewinds: []Rewind{{8, 5}}},
		"after the rewind":                      {born: 9, now: 9, rewinds: []Rewind{{8, 5}}},
		"left, and come back to":                {born: 6, now: 12, rewinds: []Rewind{{8, 5}, {11, 7}}},
		"what was left by coming back":          {born: 9, now: 12, rewinds: []Rewind{{8, 5}, {11, 7}}, last: 10},
		"left twice: the later end counts":      {born: 6, now: 20, rewinds: []Rewind{{8, 5}, {11, 7}, {15, 3}}, last: 14},
		"left, then a rewind before it":         {born: 6, now: 20, rewinds: []Rewind{{8, 5}, {11, 2}}, last: 7},
		"gone back to a version before it":      {born: 6, now: 20, rewinds: []Rewind{{8, 7}, {11, 5}}, last: 10},
		"the same save point twice":             {born: 6, now: 20, rewinds: []Rewind{{8, 5}, {9, 5}, {10, 5}}, last: 7},
		"through a rewind to another rewind":    {born: 3, now: 20, rewinds: []Rewind{{8, 5}, {12, 8}, {15, 12}}},
		"born beside: never in the way back":    {born: 7, now: 20, rewinds: []Rewind{{8, 5}, {12, 8}, {15, 12}}, last: 7},
		"born in the version that was gone to":  {born: 7, now: 20, rewinds: []Rewind{{9, 7}}},
		"born right after it, in the old run":   {born: 8, now: 20, rewinds: []Rewind{{9, 7}}, last: 8},
		"newer than now, which nobody can have": {born: 30, now: 20, rewinds: []Rewind{{9, 7}}},
	} {
		t.Run(name, func(t *testing.T) {
			last, left := LeftAt(tt.born, tt.now, tt.rewinds)
			if left != (tt.last != 0) || left && last != tt.last {
				t.Errorf("left at %d, %t; want %d", last, left, tt.last)
			}
		})
	}
}

// The computed lineage is the same as that found by walking back from each version.
func TestLineageMatchesASearchBackThroughTheVersions(t *testing.T) {
	random := rand.New(rand.NewPCG(20261122, 1))
	for range 300 {
		now := int64(1)
		var rewinds []Rewind
		for ; now < 40; now++ {
			if random.IntN(5) == 0 {
				rewinds = append(rewinds, Rewind{At: now + 1, To: 1 + random.Int64N(now)})
			}
		}
		has := func(version, born int64) bool {
			for version > 0 && version != born {
				next := version - 1
				for _, r := range rewinds {
					if r.At == version {
						next = r.To
					}
				}
				version = next
			}
			return version == born
		}
		for born := int64(1); born <= now; born++ {
			want := now
			for !has(want, born) {
				want--
			}
			last, left := LeftAt(born, now, rewinds)
			if got := fmt.Sprint(last, left); got != fmt.Sprint(want, !has(now, born)) {
				t.Fatalf("born %d, now %d, rewinds %v: %s, want %d", born, now, rewinds, got, want)
			}
		}
	}
}
