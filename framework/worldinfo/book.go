package worldinfo

import (
	"context"

	"nodest/card"
)

// Book is books made ready for scans. It is immutable and safe for concurrent use.
type Book struct{}

// Compile makes books ready. It never fails: Lint says what will not work.
func Compile(sources ...Source) *Book { return &Book{} }

// Size estimates the memory of b, in bytes, without the texts of the entries.
func (b *Book) Size() int { return 0 }

func (b *Book) scan(context.Context, *Input) (*Output, error) { return &Output{}, nil }

// Lint examines a book for what will not work as its author meant it: keys that never can fire,
// members without effect, patterns that do not compile. context is that of Input, for entries larger
// than the budget; 0 = not known.
func Lint(entries []card.Entry, s Settings, context int) []card.Warning { return nil }
