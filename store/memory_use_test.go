package store

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"nodest/memory"
	"nodest/op"
)

// What was recalled is read as it was stored, and a use with six signals takes 46 bytes.
func TestUsesArePacked(t *testing.T) {
	signals := map[string]float64{"around": 0.01483, "length": 0.06061, "near": 0.00372, "recency": 0.01568, "session": 0.06818, "words": 0.00946}
	uses := []memory.Use{
		{ID: op.NewID(), Layer: memory.Exchange, Rank: 1, Score: 0.17247001826763153, Signals: signals},
		{ID: op.NewID(), Layer: memory.Fact, Rank: 2, Score: 1, Signals: map[string]float64{"profile": 1}},
		{ID: "tea", Layer: "another", Rank: 300, Score: -math.Pi, Signals: map[string]float64{"": -0.00001, "a new signal": 12.5}},
		{ID: "01a21c5b-aab3-73b4-beed-b70000000000", Rank: 301},
	}
	packed := packUses([]memory.Use{uses[1], uses[0], uses[2], uses[3]})
	got, err := unpackUses(packed)
	if err != nil || !reflect.DeepEqual(got, uses) {
		t.Errorf("%+v, %v\nwant %+v", got, err, uses)
	}
	if n := len(packUses(uses[:1])); n > 46 {
		t.Errorf("a use takes %d bytes", n)
	}
	whole := packUses(uses[:1])
	for n := 1; n < len(whole); n++ {
		if _, err := unpackUses(whole[:n]); err == nil {
			t.Errorf("the first %d bytes of %d are read", n, len(whole))
		}
	}
	for range 10_000 { // whatever is stored, reading it ends
		b := make([]byte, rand.IntN(60))
		for i := range b {
			b[i] = byte(rand.IntN(256))
		}
		_, _ = unpackUses(b)
	}
	if got, err := unpackUses(nil); err != nil || len(got) != 0 {
		t.Errorf("nothing is read as %v, %v", got, err)
	}
}
