package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
)

// How much a text is compared with: the author's own latest texts and those of the feed.
const (
	ownTexts  = 20
	feedTexts = 300 // texts of some days
	nearly    = 0.8 // cosine of the n-gram counts of texts that are alike
	opening   = 6   // words that no two texts begin with
	openingZh = 12  // the same in characters, in scripts without spaces
)

// maxCompared bounds what is compared of a text, in code points.
const maxCompared = 2_000

// Repeats reports whether a text repeats one of its author's latest 20 texts or the feed's
// latest 300; own and feed are newest first. A text repeats another one if they differ only
// in case, punctuation and spaces, if their character n-grams are alike, or if they begin
// with the same six words (twelve characters in scripts without spaces).
func Repeats(text string, own, feed []string) bool {
	p := newPrint(text)
	for _, list := range [][]string{own[:min(len(own), ownTexts)], feed[:min(len(feed), feedTexts)]} {
		for _, earlier := range list {
			if p.like(earlier) {
				return true
			}
		}
	}
	return false
}

// Key identifies the words of a text: texts that differ only in case, punctuation and
// spaces have the same key.
func Key(text string) string {
	sum := sha256.Sum256([]byte(fold(text).folded))
	return hex.EncodeToString(sum[:16])
}

// imprint is what a text is compared by.
type imprint struct {
	folded string // words with one space between, dense scripts without
	n      int    // length of its n-grams
	grams  map[uint64]int
	norm   float64
	begins string // "" = it is too short to begin like another one
}

func newPrint(text string) imprint {
	p := fold(text)
	p.grams, p.norm = grams(p.folded, p.n)
	return p
}

// fold finds the words of a text, without its n-grams.
func fold(text string) imprint {
	runes := 0
	for i := range text {
		if runes++; runes > maxCompared {
			text = text[:i]
			break
		}
	}
	var b, begin strings.Builder
	words, denses, lastDense := 0, 0, true
	tokens(text, func(word string, dense bool) bool {
		if word == "" {
			return true
		}
		if words+denses > 0 && !(dense && lastDense) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		lastDense = dense
		if dense {
			denses++
		} else {
			words++
		}
		if words <= opening && words*openingZh/opening+denses <= openingZh {
			begin.WriteString(word + " ")
		}
		return true
	})
	p := imprint{folded: b.String(), n: 3}
	if denses > words {
		p.n = 2
	}
	if words*openingZh/opening+denses >= openingZh {
		p.begins = begin.String()
	}
	if p.folded == "" { // only signs
		p.folded = strings.Join(strings.Fields(text), " ")
	}
	return p
}

// grams counts the n-grams of a text, n <= 3; a code point has 21 bits.
func grams(text string, n int) (counts map[uint64]int, norm float64) {
	counts = map[uint64]int{}
	mask, last, seen := uint64(1)<<(21*n)-1, uint64(0), 0
	for _, r := range text {
		last = last<<21 | uint64(r)
		if seen++; seen >= n {
			counts[last&mask]++
		}
	}
	sum := 0
	for _, c := range counts {
		sum += c * c
	}
	return counts, math.Sqrt(float64(sum))
}

// like tells whether another text says the same.
func (p *imprint) like(other string) bool {
	o := fold(other)
	if o.folded == p.folded || p.begins != "" && o.begins == p.begins {
		return true
	}
	counts, norm := grams(o.folded, p.n)
	dot := 0
	for g, c := range counts {
		dot += c * p.grams[g]
	}
	return norm > 0 && p.norm > 0 && float64(dot) >= nearly*norm*p.norm
}
