package store

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"nodest/memory"
	"nodest/op"
)

// What was recalled is read as it was stored, and a use with six signals takes 14 bytes, one like it 9.
func TestUsesArePacked(t *testing.T) {
	t.Parallel()
	signals := map[string]float64{"around": 0.0148, "length": 0.0606, "near": 0.0037, "recency": 0.0157, "session": 0.0682, "words": 0.0095}
	uses := []memory.Use{
		{ID: op.NewID(), Layer: memory.Exchange, Rank: 1, Score: 0.1725, Signals: signals},
		{ID: op.NewID(), Layer: memory.Fact, Rank: 2, Score: 1, Signals: map[string]float64{"profile": 1}},
		{ID: "tea", Layer: memory.Fact, Rank: 3, Score: 12.4999, Signals: map[string]float64{"": -0.0001, "a new signal": 12.5}},
		{ID: "01a21c5b-aab3-73b4-beed-b70000000000", Layer: memory.Fact, Rank: 4},
	}
	known := []string{"other", uses[0].ID}
	packed := packUses([]memory.Use{uses[1], uses[0], uses[2], uses[3]}, known)
	got, err := unpackUses(packed, known)
	if err != nil || !reflect.DeepEqual(got, uses) {
		t.Errorf("%+v, %v\nwant %+v", got, err, uses)
	}
	if n := len(packUses(uses[:1], known)); n > 14 {
		t.Errorf("a use takes %d bytes", n)
	}
	whole := packUses(uses[:1], known)
	for n := 1; n < len(whole); n++ {
		if _, err := unpackUses(whole[:n], known); err == nil {
			t.Errorf("the first %d bytes of %d are read", n, len(whole))
		}
	}
	near := map[string]float64{"around": 0.0121, "length": 0.0606, "near": 0.0095, "recency": 0.0157, "session": 0.0682, "words": 0.0099}
	two := []memory.Use{uses[0], {ID: known[0], Layer: memory.Exchange, Rank: 2, Score: 0.176, Signals: near}}
	if got, err := unpackUses(packUses(two, known), known); err != nil || !reflect.DeepEqual(got, two) {
		t.Errorf("%+v, %v\nwant %+v", got, err, two)
	}
	if n := len(packUses(two, known)) - len(whole); n > 9 {
		t.Errorf("a use like the one before takes %d bytes", n)
	}
	for range 10_000 { // whatever is stored, reading it ends
		b := make([]byte, rand.IntN(60))
		for i := range b {
			b[i] = byte(rand.IntN(256))
		}
		_, _ = unpackUses(b, known)
	}
	if got, err := unpackUses(nil, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing is read as %v, %v", got, err)
	}
}
