package index

import (
	"strings"

	"nodest/index/segment"
)

// Builder makes a segment of rows.
type Builder struct{ *segment.Builder }

// NewBuilder returns an empty builder.
func NewBuilder() Builder { return Builder{segment.NewBuilder()} }

// Add adds the next row, in the order of segment.Compare.
func (b Builder) Add(r *Row) {
	stored := segment.Row{ID: r.ID, Group: r.Group, Order: r.Order, Attr: r.Attr, Terms: strings.Fields(r.Terms), Marks: r.Marks}
	for _, k := range r.Vectors {
		stored.Bits = append(stored.Bits, segment.Bits{Model: k.Model, Dim: k.Packed.Dim(), Bits: segment.Signs(k.Packed.numbers())})
	}
	b.Builder.Add(&stored)
}
