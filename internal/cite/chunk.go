package cite

import (
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/fault"
)

// The ways to cut a text.
const (
	ByNewline     = "newline"
	ByPunctuation = "punctuation" // after each of . ! ? 。 ！ ？
	ByCharacters  = "characters"
	ByRegex       = "regex"
)

const (
	minChunk  = 80   // default of ChunkOptions.MinLength
	chunkSize = 1000 // default of ChunkOptions.Size
)

// ChunkOptions is how ChunkText cuts. The zero value cuts lines.
type ChunkOptions struct {
	By        string // "" = ByNewline
	Size      int    // units of a piece ByCharacters; 0 = 1,000
	Pattern   string // matches the separators of pieces ByRegex; a JavaScript regular expression
	MinLength int    // shorter pieces are left out, in units; 0 = 80
}

// ChunkText cuts text into chunks, which are not trimmed. It returns fault.Invalid for an
// unknown way to cut, and for a pattern that is missing, invalid, or takes too long.
func ChunkText(text string, o ChunkOptions) ([]Chunk, error) {
	var spans []Span
	switch o.By {
	case "", ByNewline:
		spans = splitAfter(text, func(r rune) bool { return r == '\n' }, true)
	case ByPunctuation:
		spans = splitAfter(text, script.IsStop, false)
	case ByCharacters:
		spans = splitUnits(text, o.Size)
	case ByRegex:
		var err error
		if spans, err = splitRegex(text, o.Pattern); err != nil {
			return nil, err
		}
	default:
		return nil, fault.New(fault.Invalid, "invalid chunking type %.40q", o.By)
	}
	return longEnough(locate(text, spans), o.MinLength), nil
}

// lines are the chunks of the default options.
func lines(text string, minLength int) []Chunk {
	chunks, _ := ChunkText(text, ChunkOptions{MinLength: minLength}) // only other ways to cut can fail
	return chunks
}

func longEnough(chunks []Chunk, minLength int) []Chunk {
	if minLength <= 0 {
		minLength = minChunk
	}
	kept := chunks[:0]
	for _, c := range chunks {
		if c.Units[1]-c.Units[0] >= minLength {
			kept = append(kept, c)
		}
	}
	return kept
}

// splitAfter cuts text after every rune that ends a piece, and leaves out blank pieces. drop
// says that the rune is not part of the piece.
func splitAfter(text string, ends func(rune) bool, drop bool) []Span {
	var spans []Span
	start := 0
	add := func(end, next int) {
		if !script.IsBlank(text[start:end]) {
			spans = append(spans, Span{start, end})
		}
		start = next
	}
	for i, r := range text {
		if !ends(r) {
			continue
		}
		if next := i + utf8.RuneLen(r); drop {
			add(i, next)
		} else {
			add(next, next)
		}
	}
	add(len(text), len(text))
	return spans
}

func splitUnits(text string, size int) []Span {
	if size <= 0 {
		size = chunkSize
	}
	var spans []Span
	for at := (ruler{}); at.bytes < len(text); {
		start := at.bytes
		at.advanceUnits(text, size)
		spans = append(spans, Span{start, at.bytes})
	}
	return spans
}
