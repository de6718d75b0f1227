package summary

// A long chat is read in parts. Of the messages whose texts a summary will not be made of, only
// the sums are kept, so that the memory for a plan does not grow with the chat.

// Run is what is known of consecutive messages whose texts were dropped.
type Run struct {
	Count  int
	Length int    // in UTF-16 units
	Runes  int    // code points
	Digest string // digest of the range to summarise, up to the last of them; only for messages of the range
}

// Messages is how many messages lines stand for.
func Messages(lines []ChatLine) int {
	n := 0
	for i := range lines {
		n += lines[i].count()
	}
	return n
}

func (l *ChatLine) count() int {
	if l.Run != nil {
		return l.Run.Count
	}
	return 1
}

func (l *ChatLine) length() int {
	if l.Run != nil {
		return l.Run.Length
	}
	return utf16Len(l.Text)
}

func (l *ChatLine) runes() int {
	if l.Run != nil {
		return l.Run.Runes
	}
	return runes(l.Text)
}

// Aim is what is known of the messages to summarise before they are read.
type Aim struct {
	Active   *Summary // in force; nil = none
	Fold     bool     // it is continued: the range is read from behind it
	From, To string   // ids of the first and the last message; "" = as MakePlan chooses them
}

// Thin joins lines to runs where only their number and length matter. lines are the beginning of a
// branch, which may have been thinned before; it changes them.
//
// The plan, the work and the summary made of what it returns are those of all lines.
func (a Aim) Thin(lines []ChatLine) []ChatLine {
	from, digest := a.from(lines)
	end := max(from, a.end(lines))
	kept := max(from, end-newest(lines[from:end]))
	out := lines[:0]
	for i := range lines {
		l := lines[i]
		run := Run{Count: l.count(), Length: l.length(), Runes: l.runes()}
		if i >= from && i < kept {
			digest = ExtendDigest(digest, lines[i:i+1])
			run.Digest = digest
		}
		switch before := len(out) - 1; {
		case i < KeepFirst, i >= len(lines)-KeepLast, i >= kept && i < end, a.names(&l):
		case i != from && i != end && !a.beginsBetween(out[before].Seq, l.Seq) && out[before].Run != nil:
			out[before].Run.add(run)
			continue
		default:
			l.Text, l.Run = "", &run
		}
		out = append(out, l)
	}
	clear(lines[len(out):])
	return out
}

func (r *Run) add(next Run) {
	*r = Run{r.Count + next.Count, r.Length + next.Length, r.Runes + next.Runes, next.Digest}
}

// from is the position of the first line of the range, and the digest that its texts continue.
func (a Aim) from(lines []ChatLine) (at int, digest string) {
	at = KeepFirst
	switch {
	case a.Fold:
		at, digest = behind(lines, a.Active.Range.EndID), a.Active.Digest
	case a.From != "":
		at = max(KeepFirst, behind(lines, a.From)-1)
	}
	return min(at, len(lines)), digest
}

// behind is the position behind a message; behind all where it was not read yet.
func behind(lines []ChatLine, id string) int {
	if at := indexOfMessage(lines, id); at >= 0 {
		return at + 1
	}
	return len(lines) + 1
}

// end is the position behind the last line of the range, among those that were read.
func (a Aim) end(lines []ChatLine) int {
	if at := behind(lines, a.To); a.To != "" && at <= len(lines) {
		return at
	}
	return max(0, len(lines)-KeepLast)
}

// names reports whether a line is looked for by its id.
func (a Aim) names(l *ChatLine) bool {
	return l.MessageID == a.To || a.Active != nil && l.MessageID == a.Active.Range.EndID
}

// beginsBetween reports whether the active summary begins after one seq, and not after the next.
func (a Aim) beginsBetween(seq, next int64) bool {
	return a.Active != nil && seq < a.Active.Range.StartSeq && a.Active.Range.StartSeq <= next
}

// newest is how many lines at the end have mostRead code points together, at least one.
func newest(lines []ChatLine) int {
	n, size := 0, 0
	for n < len(lines) {
		l := &lines[len(lines)-n-1]
		if size += l.runes(); n > 0 && (size > mostRead || l.Run != nil) {
			break
		}
		n++
	}
	return n
}
