package index

import "math"

// The constants of BM25, for memories and documents.
const (
	saturation = 1.2
	lengthNorm = 0.75

	saturated = saturation + 1 // a term that is very often in a text is worth at most this
)

// falloff is the part of BM25 that depends on the length of a text.
type falloff struct{ same, each float32 }

// falloffOf returns that of texts with so many terms on average.
func falloffOf(average float32) falloff {
	return falloff{saturation * (1 - lengthNorm), saturation * lengthNorm / average}
}

// of returns the value of a term with this count in a text of that length, without the factor saturated.
func (f falloff) of(count float32, length int32) float32 {
	return count / (count + f.same + f.each*float32(length))
}

// worth is what a term counts that is in some of all texts: its weight, times its inverse document
// frequency.
func worth(weight float32, some, all int) float32 {
	n := float64(max(some, all))
	return weight * float32(math.Log(1+(n-float64(some)+0.5)/(float64(some)+0.5)))
}

// usual is added to the number of rows when computing rarity: in a small index every word is
// rare, and few of them mean anything.
const usual = 1000

// rarity of a term that is in so many rows, at most 1. Unlike worth it means the same in indexes
// of all sizes.
func (x *Index) rarity(rows int) float32 {
	n := float64(x.rows() + usual)
	of := func(rows float64) float64 { return math.Log(1 + (n-rows+0.5)/(rows+0.5)) }
	return float32(of(float64(max(1, rows))) / of(1))
}
