package index

import "math"

// The constants of BM25.
const (
	saturation = 1.2
	lengthNorm = 0.75

	Saturated = saturation + 1 // what a term is worth at most that is very often in a text
)

// Falloff is the part of BM25 that depends on the length of a text.
type Falloff struct{ same, each float32 }

// FalloffOf returns that of texts with so many terms on average.
func FalloffOf(average float32) Falloff {
	return Falloff{saturation * (1 - lengthNorm), saturation * lengthNorm / average}
}

// Of returns the value of a term with this count in a text of that length, without the factor Saturated.
func (f Falloff) Of(count float32, length int32) float32 {
	return count / (count + f.same + f.each*float32(length))
}

// IDF is the inverse document frequency of a term that is in some of all texts.
func IDF(some, all int) float32 {
	n := float64(max(some, all))
	return float32(math.Log(1 + (n-float64(some)+0.5)/(float64(some)+0.5)))
}

// usual is added to the number of rows when computing rarity: in a small index every word is
// rare, and few of them mean anything.
const usual = 1000

// rarity of a term that is in so many rows, at most 1. Unlike IDF it means the same in indexes
// of all sizes.
func (x *Index) rarity(rows int) float32 {
	n := float64(x.rows() + usual)
	of := func(rows float64) float64 { return math.Log(1 + (n-rows+0.5)/(rows+0.5)) }
	return float32(of(float64(max(1, rows))) / of(1))
}
