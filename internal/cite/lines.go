package cite

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/llm"
)

// citeLines gives each line at most one reference, and each source chunk at most one line.
func citeLines(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o ReferenceOptions) Cited {
	minLength := o.MinChunkLength
	if minLength <= 0 {
		minLength = minChunk
	}
	chunks := markableLines(answer, minLength)
	passages := quotable(sources, o.Hostnames, func(s string) bool { return Len16(s) >= minLength })
	if len(chunks) == 0 || len(passages) == 0 {
		return Cited{Answer: answer}
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.Text
	}
	rows, relevance, _ := match(ctx, emb, texts, passages, matching{o.MaxRef + 1, o.MinRelScore, min(o.MinRelScore, minOverlap), words, false})
	out := Cited{Relevance: relevance}
	var marks []placed
	for i, h := range assign(rows, o.MaxRef) {
		if h.chunk < 0 {
			continue
		}
		p := passages[h.chunk]
		ref := newReference(&sources[p.source], p.chunk, p.text, h.score, chunks[i])
		ref.Marker, ref.Auto = len(out.References)+1, true
		out.References = append(out.References, ref)
		marks = append(marks, placed{lineMark(answer, chunks[i].Bytes[1]), ref.Marker})
	}
	out.Answer = insert(answer, marks)
	return out
}

// markableLines are the lines of an answer that can get a mark, without a carriage return.
func markableLines(answer string, minLength int) []Chunk {
	chunks := lines(answer, minLength)
	in := linesOf(answer)
	safe := protected(answer, in)
	kept := chunks[:0]
	for _, c := range chunks {
		i, _ := slices.BinarySearchFunc(in, c.Bytes[0], func(l line, at int) int { return cmp.Compare(l.start, at) })
		if in[i].kind == unmarked {
			continue
		}
		if strings.HasSuffix(c.Text, "\r") {
			c.Text = c.Text[:len(c.Text)-1]
			c.Bytes[1]--
			c.Units[1]--
			c.Points[1]--
		}
		if c.Units[1]-c.Units[0] >= minLength && len(kept) < maxAnswerChunks && !endsAddress(answer, safe, c.Bytes[1]) {
			kept = append(kept, c)
		}
	}
	return kept
}

// assign chooses a hit for each row, -1 for none, so that no chunk is chosen twice: the pairs
// of the highest scores first. Then a row that lost all its chunks to others gets one back, if
// the other row has an alternative and both together score more than the one did.
func assign(rows [][]hit, most int) []hit {
	type pair struct {
		row int
		hit
	}
	var pairs []pair
	chosen := make([]hit, len(rows))
	for i, row := range rows {
		chosen[i].chunk = -1
		for _, h := range row {
			pairs = append(pairs, pair{i, h})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	owner := map[int]int{}
	for _, p := range pairs {
		if _, taken := owner[p.chunk]; taken || chosen[p.row].chunk >= 0 {
			continue
		}
		if len(owner) == most {
			return chosen
		}
		owner[p.chunk], chosen[p.row] = p.row, p.hit
	}
	for i := range rows {
		if chosen[i].chunk < 0 && len(owner) < most {
			giveWay(i, rows, chosen, owner)
		}
	}
	return chosen
}

// giveWay makes the owner of a chunk that row could use take another one.
func giveWay(row int, rows [][]hit, chosen []hit, owner map[int]int) {
	for _, wanted := range rows[row] {
		other, taken := owner[wanted.chunk]
		if !taken {
			continue
		}
		for _, instead := range rows[other] {
			if _, taken := owner[instead.chunk]; taken || wanted.score+instead.score <= chosen[other].score {
				continue
			}
			owner[instead.chunk], owner[wanted.chunk] = other, row
			chosen[other], chosen[row] = instead, wanted
			return
		}
	}
}

var (
	beforeItem = regexp.MustCompile(`^[\s\p{Z}\x{FEFF}]*\n[\s\p{Z}\x{FEFF}]*\*[\s\p{Z}\x{FEFF}]`)
	cellEnd    = regexp.MustCompile(`[\s\p{Z}\x{FEFF}]*\|[\s\p{Z}\x{FEFF}]*\z`)
)

// lineMark is where the mark of a line goes that ends at end: before its punctuation if an
// item with an asterisk follows, into the last cell of a table, or at its end.
func lineMark(answer string, end int) int {
	if beforeItem.MatchString(answer[end:]) {
		last, n := utf8.DecodeLastRuneInString(answer[:end])
		if script.IsStop(last) {
			return end - n
		}
	}
	from := end
	for range 5 {
		_, n := utf8.DecodeLastRuneInString(answer[:from])
		from -= n
	}
	if m := cellEnd.FindStringIndex(answer[from:end]); m != nil {
		return from + m[0]
	}
	return end
}
