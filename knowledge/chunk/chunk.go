// Package chunk cuts the text of a document into overlapping chunks along its structure.
package chunk

import "nodest/knowledge/parse"

// Rules say how large chunks are, in code points.
type Rules struct {
	Size    int // 100 to 8000
	Overlap int // 0 to Size/2
}

// Default is what a knowledge base starts with.
var Default = Rules{Size: 800, Overlap: 400}

// Chunk is a range of a document's text, in code points.
type Chunk struct {
	Start, End int
	Text       string // the text in that range
	Heading    string // path of the section it begins in, such as "People › Maren Oduya"; for code the symbol
	Page       int    // where it begins, from 1; 0 = none
	Kind       string // text, code, table, row or entry
}

// Cut cuts a document. Chunks are in order, cover everything but blanks, and none is contained
// in the one before it.
func Cut(d *parse.Document, r Rules) []Chunk { panic("not yet") }
