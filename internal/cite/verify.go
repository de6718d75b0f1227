package cite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
	"nodest/internal/index"
	"nodest/llm"
)

// The fates of sentences that no source supports.
const (
	Keep   = "keep"
	Mark   = "mark"   // with DoubtMark
	Remove = "remove" // with the line, if nothing is left on it
)

// DoubtMark stands where a sentence has no support. It is plain text in Markdown, and means the same
// in all languages.
const DoubtMark = "[?]"

// VerifyOptions is how Verify works. The zero value keeps sentences without support.
type VerifyOptions struct {
	Doubtful   string  // "" = Keep
	MinSupport float64 // the cosine from which a source supports a sentence; 0 = 0.55
	MaxRef     int     // references; 0 = 100
}

// Verified is an answer of which every mark holds.
type Verified struct {
	Answer     string
	References []Reference
	Report     Report
}

// Verdict is what became of one sentence.
type Verdict struct {
	Text     string `json:"text"`
	Position Span   `json:"position"` // in the answer that was checked, without its marks, in code points
	Marks    []int  `json:"marks"`    // numbers of references
	// Why says why the sentence has no support: codes such as claim.WhyNumber, one for each part of the sentence
	// that has none.
	Why []Reason `json:"why,omitempty"`

	Opinion Opinion `json:"opinion,omitempty"` // a model's; "" = none was asked
	ByModel bool    `json:"byModel,omitempty"` // the opinion has changed the verdict that words alone gave
}

const (
	maxVerified    = 500  // sentences
	maxVerifyRef   = 100  // references
	maxParts       = 4    // parts of a sentence, and its marks
	maxTried       = 16   // passages of a source's pages for a part of a sentence
	maxEmbedVerify = 4000 // sentences of sources
)

// Verify judges each sentence of an answer against the sources, whatever marks the model wrote: a mark
// stays or comes only where a quote supports all that the sentence says, from the source that the
// model named if it does. Two facts of a sentence may come from two sources. What is not supported is
// kept, marked or removed. Questions, headings and remarks about the sources need no support.
func Verify(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o VerifyOptions) Verified {
	return NewCheck(ctx, emb, answer, sources, o).Result(nil)
}

func judgedByWords(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o VerifyOptions) *verifier {
	clean, found := readMarks(withoutDoubts(answer), len(sources))
	v := newVerifier(clean, found, sources)
	v.threshold, v.most = cmp.Or(o.MinSupport, minSupport), cmp.Or(o.MaxRef, maxVerifyRef)
	for i, c := range v.chunks[:min(len(v.chunks), maxVerified)] {
		v.judged[i].claims = needsSource(c.Text)
	}
	v.read()
	v.embed(ctx, emb)
	for i := range v.judged {
		v.judge(i)
	}
	return v
}

// withoutDoubts removes the marks of an earlier check.
func withoutDoubts(answer string) string {
	if !strings.Contains(answer, DoubtMark) {
		return answer
	}
	safe := protected(answer, linesOf(answer))
	var out strings.Builder
	from := 0
	for at := strings.Index(answer, DoubtMark); at >= 0; {
		if next := at + len(DoubtMark); !touches(safe, at, next) {
			out.WriteString(answer[from:at])
			from = next
		}
		rest := strings.Index(answer[at+1:], DoubtMark)
		if rest < 0 {
			break
		}
		at += 1 + rest
	}
	return out.String() + answer[from:]
}

// verifier checks one answer.
type verifier struct {
	clean     string
	in        []line
	sources   []Source
	sentences []sentence
	chunks    []Chunk
	judged    []judged
	pages     *library
	threshold float64
	meaning   bool // there are vectors
	most      int
	lenient   bool                  // a reply of a character says more than its sources, and names whom it speaks to
	all       func() claim.Evidence // the evidence of all sources
}

// judged is a sentence with what was found for it.
type judged struct {
	claims bool    // it says something that needs a source
	named  []int   // sources that the model marked, from 0
	whole  part    // the sentence
	split  []*part // where it joins statements; nil = it is one
	parts  []*part // the parts that were judged in the end

	rescue  []*part // likewise, if nothing but their wording speaks against the sentence; nil = something does
	opinion Opinion
	byModel bool // opinion has changed what words alone gave
}

// part is what one quote must support.
type part struct {
	text    string
	scores  map[[2]int]float64 // how much it has in common with windows; nil = none is known
	terms   map[string]bool
	about   *claim.Text
	facts   claim.Facts
	found   []int // sentences with something of it
	vector  int
	against map[int]bool // sources that contradict it
	near    *quote       // a quote of the paragraph where its support must stand; nil = anywhere
	quotes  []quote      // nil = there is no support
	almost  []quote      // would support it, if words in common did not count
	loose   bool         // words in common do not count now
	why     Reason
}

func newVerifier(clean string, found []written, sources []Source) *verifier {
	in := linesOf(clean)
	v := &verifier{clean: clean, in: in, sources: sources}
	v.all = sync.OnceValue(func() claim.Evidence { return evidenceOf(sources) })
	v.sentences = sentencesOf(clean, in, protected(clean, in))
	spans := make([]Span, len(v.sentences))
	for i, s := range v.sentences {
		spans[i] = s.Span
	}
	v.chunks = locate(clean, spans)
	v.judged = make([]judged, len(v.sentences))
	for _, w := range found {
		if s := v.sentenceAt(w.at); s >= 0 {
			for _, n := range w.numbers {
				if n >= 1 && n <= len(sources) && !slices.Contains(v.judged[s].named, n-1) {
					v.judged[s].named = append(v.judged[s].named, n-1)
				}
			}
		}
	}
	return v
}

func (v *verifier) sentenceAt(at int) int { return sentenceAt(v.in, v.sentences, at) }

// read reads the sources that can be cited: all, or only those that are named.
func (v *verifier) read() {
	if !v.lenient {
		v.pages = newLibrary(v.sources, nil)
		return
	}
	named := map[int]bool{}
	for _, j := range v.judged {
		for _, n := range j.named {
			named[n] = true
		}
	}
	v.pages = newLibrary(v.sources, named)
}

var (
	aboutSources = data.Rule("about-sources")
	joints       = data.Set("joints")
)

// needsSource reports whether a sentence says something about the world.
func needsSource(text string) bool {
	plain := strings.TrimRightFunc(text, func(r rune) bool { return isCloser(r) || script.IsSpace(r) })
	if strings.HasSuffix(plain, "?") || strings.HasSuffix(plain, "？") || strings.HasSuffix(plain, ":") || strings.HasSuffix(plain, "：") {
		return false
	}
	if aboutSources.MatchString(text) {
		return false
	}
	said := inline.ReplaceAllStringFunc(text, linkText)
	return hasLetters(said) && (len(index.Terms(said)) > 2 || claim.FactsOf(said).Count() > 0)
}

// linkText returns the text of a link, and nothing of code, images and addresses.
func linkText(part string) string {
	if name, _, ok := strings.Cut(strings.TrimPrefix(part, "["), "]("); ok && part[0] == '[' {
		return name
	}
	return " "
}

// wholeAndParts are the ways to divide a sentence: as one, and where it joins statements.
func wholeAndParts(text string) (whole part, parts []*part) {
	for _, s := range jointsOf(text) {
		p := newPart(text[s[0]:s[1]])
		parts = append(parts, &p)
	}
	return newPart(text), parts
}

func newPart(text string) part {
	return part{text: text, terms: claim.Terms(text), about: claim.Read(text, nil), facts: claim.FactsOf(text)}
}

// jointsOf cuts a sentence where it joins statements, at most maxParts; nil if it is one. A part without
// two terms of its own belongs to the one before it.
func jointsOf(text string) (out []Span) {
	start := 0
	for _, s := range statementStarts(text) {
		if len(out) == maxParts-1 {
			break
		}
		if len(index.Terms(text[start:s])) >= 2 && len(index.Terms(text[s:])) >= 2 {
			out, start = append(out, Span{start, s}), s
		}
	}
	if len(out) == 0 {
		return nil
	}
	return append(out, Span{start, len(text)})
}

// result writes the answer.
func (v *verifier) result(o VerifyOptions) Verified {
	text, shift := v.edit(o.Doubtful)
	spans := make([]Span, 0, len(v.judged))
	texts := make([]string, len(v.chunks))
	for i, s := range v.sentences {
		texts[i] = v.chunks[i].Text
		if shift[i] != gone {
			spans = append(spans, Span{s.Span[0] + shift[i], s.Span[1] + shift[i]})
		}
	}
	places := locate(text, spans)
	refs := collector{sources: v.sources, most: v.most}
	report := Report{Sentences: len(v.judged), Unsourced: unsourced(texts, v.sources)}
	var marks []placed
	for i, s := range v.sentences {
		var place Chunk
		if shift[i] != gone {
			place, places = places[0], places[1:]
		}
		verdict := v.cite(i, place, &refs)
		for _, n := range verdict.Marks {
			marks = append(marks, placed{s.mark + shift[i], n})
		}
		report.add(verdict, v.judged[i].claims)
	}
	return Verified{insert(text, marks), refs.list, report}
}

// gone is the shift of a sentence that was removed.
const gone = math.MinInt

// edit marks or removes the sentences without support, and returns by how many bytes each of the others
// has moved.
func (v *verifier) edit(doubtful string) (text string, shift []int) {
	var out strings.Builder
	shift = make([]int, len(v.judged))
	from := 0
	for i, s := range v.sentences {
		j := &v.judged[i]
		shift[i] = out.Len() - from
		switch {
		case !j.claims || j.supported():
		case doubtful == Mark:
			out.WriteString(v.clean[from:s.mark] + DoubtMark)
			from = s.mark
		case doubtful == Remove:
			shift[i] = gone
			start, end := v.removable(s.Span, from)
			out.WriteString(v.clean[from:start])
			from = end
		}
	}
	out.WriteString(v.clean[from:])
	return out.String(), shift
}

// cite adds the references of a sentence, which stands at a place of the new answer.
func (v *verifier) cite(i int, place Chunk, refs *collector) Verdict {
	j := &v.judged[i]
	verdict := Verdict{Text: v.chunks[i].Text, Position: v.chunks[i].Points, Marks: []int{}, Opinion: j.opinion, ByModel: j.byModel}
	for _, p := range j.parts {
		if p.why.Code != "" && !j.supported() {
			verdict.Why = append(verdict.Why, p.why)
		}
		for _, q := range p.quotes {
			if !j.supported() {
				break
			}
			n := refs.add(place, q)
			if n == 0 || slices.Contains(verdict.Marks, n) {
				continue
			}
			refs.list[n-1].Auto = refs.list[n-1].Auto || !slices.Contains(j.named, q.source)
			verdict.Marks = append(verdict.Marks, n)
		}
	}
	slices.Sort(verdict.Marks)
	return verdict
}

func (j *judged) supported() bool {
	return len(j.parts) > 0 && !slices.ContainsFunc(j.parts, func(p *part) bool { return p.quotes == nil })
}

// removable is a sentence with the white space before it; with its line, if it is alone on it.
func (v *verifier) removable(s Span, from int) (start, end int) {
	start, end = s[0], s[1]
	lineStart := strings.LastIndexByte(v.clean[:start], '\n') + 1
	lineEnd := len(v.clean)
	if n := strings.IndexByte(v.clean[end:], '\n'); n >= 0 {
		lineEnd = end + n + 1
	}
	before := v.clean[max(lineStart, from):start]
	if !hasLetters(strings.TrimLeft(before, "0123456789")) && script.IsBlank(strings.ReplaceAll(v.clean[end:lineEnd], "|", "")) && from <= lineStart {
		return lineStart, lineEnd
	}
	trimmed := strings.TrimRight(before, " \t")
	if trimmed != "" && len(trimmed) < len(before) && bullet.FindString(v.clean[lineStart:start]) != v.clean[lineStart:start] {
		start -= len(before) - len(trimmed)
	}
	if trimmed == "" || bullet.FindString(v.clean[lineStart:start]) == v.clean[lineStart:start] { // the next one moves up
		end += len(v.clean[end:lineEnd]) - len(strings.TrimLeft(v.clean[end:lineEnd], " \t"))
	}
	return start, end
}

// statementStarts are the places where a sentence may join another statement: behind a comma or
// semicolon, and before a word such as "and".
func statementStarts(text string) (starts []int) {
	before := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+n:])
		switch {
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			if i > 0 && joints()[strings.ToLower(text[i:end])] {
				starts = append(starts, i)
			}
			n = end - i
		case strings.ContainsRune(",;，；", r) && !(script.IsDigit(before) && script.IsDigit(next)):
			starts = append(starts, i+n)
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	return starts
}
