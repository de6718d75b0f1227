package kb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"nodest/internal/index"
	"nodest/knowledge/intent"
	"nodest/knowledge/shelf"
	"nodest/llm"
)

// reader is a model that answers questions from documents by a fixed rule: it searches with
// the question, reads around the best excerpts if no sentence of them has most of the question's
// words, and answers with the sentences that have the most of them, or says that the documents
// do not contain it. Where it found little it is forgetful, and asks for its search once more.
// It sees nothing but what the engine sends.
type reader struct{}

// watched notes what a model is shown and asks for.
type watched struct {
	llm.Generator
	mu   sync.Mutex
	seen sightings
}

// sightings is what the model has asked for and was shown in a turn.
type sightings struct {
	rounds     int      // requests
	asked      int      // searches
	suppressed int      // searches that were suppressed
	excerpts   []string // texts that searches have shown
}

// take returns what was seen since the last call.
func (m *watched) take() sightings {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen
	m.seen = sightings{}
	return seen
}

// Stream passes a request on, and the answer back.
func (m *watched) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	m.note(req)
	return func(yield func(llm.Chunk, error) bool) {
		for c, err := range m.Generator.Stream(ctx, req) {
			m.noteSearches(c.Calls)
			if !yield(c, err) {
				return
			}
		}
	}
}

// Stream answers a request in one piece.
func (m reader) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		text, call := answerTo(req)
		last := llm.Chunk{Last: true, Finish: llm.FinishStop}
		if call != nil {
			last.Calls = []llm.ToolCall{*call}
		} else if !yield(llm.Chunk{Text: text}, nil) {
			return
		}
		yield(last, nil)
	}
}

// shownSoFar is what the requests of a turn have shown.
type shownSoFar struct {
	searches, reads int // results of
	texts           []shownText
}

// shownText is a text that can be cited.
type shownText struct {
	ref     int
	chunkID string // an excerpt has one
	text    string
}

func answerTo(req llm.Request) (text string, call *llm.ToolCall) {
	question, _, _ := strings.Cut(req.UserText, "\n\n<")
	shown := shownIn(req)
	if !intent.Wanted(question, nil) {
		return "That is nice of you to say.", nil
	}
	best, found := bestPlaces(question, shown.texts)
	if len(req.Tools) > 0 && !req.NoCalls {
		if call = nextCall(question, &shown, best, found); call != nil {
			return "", call
		}
	}
	if found.weak() {
		return "I find nothing about that in my documents.", nil
	}
	lines := make([]string, len(best))
	for i, w := range best {
		lines[i] = withoutMarks.Replace(strings.TrimLeft(w.text, "#>*-| ")) + fmt.Sprintf(" [^%d]", shown.texts[w.from].ref)
	}
	return strings.Join(lines, "\n\n"), nil
}

// evidence is how well what is shown fits a question.
type evidence struct {
	cover   float64 // share of the question's words that one place has at most
	missing bool    // a word of the question is nowhere in it
}

// These bounds say which cover is too little to answer, and which is enough to read nothing more. Words alone cannot
// tell a question that the documents do not answer from one in other words: the bounds were chosen on the questions
// that this model is used with.
const (
	weakCover    = 0.25
	missingCover = 0.38 // with a missing word
	strongCover  = 0.6
)

func (e evidence) weak() bool { return e.cover < weakCover || e.missing && e.cover < missingCover }

// withoutMarks keeps what a document writes in brackets from passing for the model's citations.
var withoutMarks = strings.NewReplacer("[", "(", "]", ")")

// nextCall is what the model wants to look up; nil = nothing more.
func nextCall(question string, shown *shownSoFar, best []place, found evidence) *llm.ToolCall {
	switch {
	case shown.searches == 0:
		return calling(shelf.SearchTool, map[string]any{"query": question})
	case shown.reads == 0 && found.cover < strongCover && len(best) > 0:
		var chunks, files []string
		for _, w := range best {
			id := shown.texts[w.from].chunkID
			if file, _, ok := strings.Cut(id, "."); ok && !slices.Contains(chunks, id) {
				chunks = append(chunks, id)
				if !slices.Contains(files, file) {
					files = append(files, file)
				}
			}
		}
		return calling(shelf.ReadTool, map[string]any{"fileIds": files, "aroundChunkIds": chunks})
	case shown.searches == 1 && found.weak():
		words := index.Terms(question)
		slices.Reverse(words)
		return calling(shelf.SearchTool, map[string]any{"query": strings.Join(words, " ")})
	}
	return nil
}

func calling(tool string, args map[string]any) *llm.ToolCall {
	text, _ := json.Marshal(args) // texts cannot fail
	return &llm.ToolCall{ID: llm.NewCallID(), Name: tool, Arguments: string(text)}
}

func (m *watched) note(req llm.Request) {
	shown := shownIn(req)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.rounds++
	m.seen.suppressed, m.seen.excerpts = 0, nil
	for _, msg := range req.Messages {
		if msg.Result != nil && strings.HasPrefix(msg.Result.Text, "<repeated ") {
			m.seen.suppressed++
		}
	}
	for _, t := range shown.texts {
		if t.chunkID != "" {
			m.seen.excerpts = append(m.seen.excerpts, t.text)
		}
	}
}

func (m *watched) noteSearches(calls []llm.ToolCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range calls {
		if c.Name == shelf.SearchTool {
			m.seen.asked++
		}
	}
}

// shownIn are the texts with a number that a request has.
func shownIn(req llm.Request) (shown shownSoFar) {
	for _, msg := range req.Messages {
		if r := msg.Result; r != nil {
			shown.add(r)
		}
	}
	if len(req.Tools) == 0 {
		shown.texts = textsIn(req.UserText)
	}
	return shown
}

func (s *shownSoFar) add(r *llm.ToolResult) {
	if r.Name == shelf.SearchTool {
		s.searches++
	} else {
		s.reads++
	}
	s.texts = append(s.texts, textsIn(r.Text)...)
}

// element is a text with a number. Their attributes and texts are escaped.
var element = regexp.MustCompile(`(?s)<(?:chunk|file)\b[^>]*?\bref="(\d+)"([^>]*)>(.*?)</(?:chunk|file)>`)

var chunkID = regexp.MustCompile(`\bid="([^"]+)"`)

// textsIn are the texts with a number in what the engine shows.
func textsIn(markup string) (all []shownText) {
	for _, e := range element.FindAllStringSubmatch(markup, -1) {
		t := shownText{text: html.UnescapeString(e[3])}
		t.ref, _ = strconv.Atoi(e[1]) // digits
		if strings.HasPrefix(e[0], "<chunk") {
			if id := chunkID.FindStringSubmatch(e[2]); id != nil {
				t.chunkID = id[1]
			}
		}
		all = append(all, t)
	}
	return all
}

// place is a part of a shown text with the two sentences of it that fit a question best.
type place struct {
	from  int // the text
	text  string
	cover float64 // share of the question's words in the part, by their rarity in what is shown
	score float64 // with that of the two sentences, and the rank of the text
}

// unseenPair is what a pair of Chinese characters counts that is nowhere: many are no word.
const unseenPair = 0.2

const (
	mostCited   = 5   // places of an answer
	placeLength = 800 // code points
	longestSaid = 280 // code points of two sentences
)

// sentenceEnd is where a text may be taken apart.
var sentenceEnd = regexp.MustCompile(`[.!?]["”’)]?\s+|[。！？]["”’）」]?|\n\s*\n|\n\s*[-*#|]`)

// bestPlaces are the places with the most of a question's words, of which those that the search
// has put first count more.
func bestPlaces(question string, texts []shownText) (best []place, e evidence) {
	asked := index.Terms(question)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	var all []place
	var terms [][]string
	for from, t := range texts {
		for part := range slices.Chunk([]rune(t.text), placeLength) {
			all = append(all, place{from: from, text: string(part)})
			terms = append(terms, index.Terms(string(part)))
		}
	}
	worth, whole := map[string]float64{}, 0.0
	for _, term := range asked {
		n := 0
		for i := range all {
			if slices.Contains(terms[i], term) {
				n++
			}
		}
		worth[term] = math.Log(1 + float64(len(all))/(float64(n)+0.5))
		switch {
		case n == 0 && term[0] > unicode.MaxASCII:
			worth[term] *= unseenPair
		case n == 0:
			e.missing = true
		}
		whole += worth[term]
	}
	covers := func(terms []string) (share float64) {
		for _, term := range asked {
			if slices.Contains(terms, term) {
				share += worth[term] / whole
			}
		}
		return share
	}
	for i := range all {
		p := &all[i]
		text, said := bestSentences(p.text, covers)
		p.text, p.cover = text, covers(terms[i])
		p.score = p.cover + said + 1 - float64(p.from)/float64(len(texts))
		e.cover = max(e.cover, p.cover)
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(b.score, a.score) })
	known := map[string]bool{}
	for _, p := range all {
		if len(best) < mostCited && !known[p.text] {
			known[p.text] = true
			best = append(best, p)
		}
	}
	return best, e
}

// bestSentences are the sentence of a text, and the next one, that cover most.
func bestSentences(text string, covers func(terms []string) float64) (best string, most float64) {
	var sentences []string
	at := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		sentences, at = append(sentences, strings.TrimSpace(text[at:end[1]])), end[1]
	}
	sentences = append(sentences, strings.TrimSpace(text[at:]))
	sentences = slices.DeleteFunc(sentences, func(s string) bool { return s == "" })
	most = -1
	for i, s := range sentences {
		if i+1 < len(sentences) {
			s += " " + sentences[i+1]
		}
		if r := []rune(s); len(r) > longestSaid {
			s = string(r[:longestSaid])
		}
		if c := covers(index.Terms(s)); c > most {
			best, most = strings.Join(strings.Fields(s), " "), c
		}
	}
	return best, max(most, 0)
}
