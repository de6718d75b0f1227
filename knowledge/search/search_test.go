package search_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
	"nodest/llm"
	"nodest/llm/offline"
)

// library has some files, and their texts for reranking.
type library struct {
	files  search.Files
	names  []string
	chunks [][]chunk.Chunk
}

func (l *library) add(t testing.TB, name, text string) {
	t.Helper()
	d := &parse.Document{Text: text}
	chunks := chunk.Cut(d, chunk.Rules{Size: 300, Overlap: 100})
	data, _, err := search.Encode(t.Context(), name, text, chunks)
	if err != nil {
		t.Fatal(err)
	}
	s, err := search.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Units) != len(chunks) {
		t.Fatalf("s.Units has %d, want %d: %+v", len(s.Units), len(chunks), s.Units)
	}
	var packed []index.Packed
	for _, c := range chunks {
		packed = append(packed, index.Pack(vector(t, name+"\n"+c.Text)))
	}
	l.files = append(l.files, search.File{ID: name, Segment: s, Vectors: search.NewVectors(packed)})
	l.names, l.chunks = append(l.names, name), append(l.chunks, chunks)
}

func (l *library) texts(_ context.Context, refs []search.Ref) ([]search.Passage, error) {
	var all []search.Passage
	for _, r := range refs {
		c := l.chunks[r.File][r.Chunk]
		all = append(all, search.Passage{Name: l.names[r.File], Heading: c.Heading, Text: c.Text})
	}
	return all, nil
}

func vector(t testing.TB, text string) []float32 {
	t.Helper()
	e, err := offline.Embedder{}.Embed(t.Context(), llm.Passage, []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return e.Vectors[0]
}

// found returns the text of the hits of a search in the library.
func (l *library) found(t testing.TB, q search.Query) (texts []string) {
	t.Helper()
	r, err := search.Search(t.Context(), l.files, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range r.Hits {
		texts = append(texts, l.chunks[h.File][h.Chunk].Text)
	}
	return texts
}

func someFiles(t testing.TB) *library {
	l := &library{}
	l.add(t, "harbour.md", "The harbour master keeps a list of all ships. Ships that come in at night pay twice.")
	l.add(t, "tea.txt", "乌龙茶是一种半发酵的茶。泡茶要用九十五度的水。")
	l.add(t, "code.go", "func getUserName(id int) string reads net.http headers; MAX_COOKIES is 3000.")
	l.add(t, "lighthouse.txt", "The lighthouse stands on a rock. Its keeper is called Maren. "+strings.Repeat("Birds rest on the way south. ", 20))
	return l
}

func TestWordsAndVectorsFindChunks(t *testing.T) {
	l := someFiles(t)
	for _, c := range []struct{ question, want string }{
		{"what do ships pay at night", "pay twice"}, {"泡乌龙茶用多少度的水", "九十五度"}, {"茶", "乌龙茶"},
		{"user name", "getUserName"}, {"getUserName", "getUserName"}, {"max cookies", "3000"}, {"http headers", "net.http"}, {"net.http", "net.http"},
		{"where does the lighthouse of Maren stand", "on a rock"},
	} {
		for _, mode := range []string{search.Lexical, search.Hybrid, search.Vector} {
			q := search.Query{Text: c.question, Vector: vector(t, c.question), Mode: mode, Texts: l.texts}
			if texts := l.found(t, q); len(texts) == 0 || !strings.Contains(texts[0], c.want) {
				t.Errorf("%s, %s: found %q", c.question, mode, texts)
			}
		}
	}
}

func TestOnlyTheDirectionOfVectorsCounts(t *testing.T) {
	l := someFiles(t)
	for i, v := range [][]float32{{100, 80}, {0.001, 0.0005}, {10, -10}, {-1000, 0}} {
		l.files[i].Vectors = search.NewVectors([]index.Packed{index.Pack(v)})
	}
	r, err := search.Search(t.Context(), l.files, search.Query{Text: "?", Vector: []float32{7, 0}, Mode: search.Vector})
	if err != nil {
		t.Fatal(err)
	}
	var files []int
	for _, h := range r.Hits {
		files = append(files, h.File)
	}
	if want := ([]int{1, 0, 2}); !reflect.DeepEqual(files, want) {
		t.Fatalf("files is %+v, want %+v", files, want)
	} // the last one looks away
	if got, want := r.Hits[0].Similarity, 2/math.Sqrt(5); math.Abs(float64(got)-want) > 0.005 {
		t.Fatalf("r.Hits[0].Similarity is %v, want %v", got, want)
	}
}

func TestASearchIsTheSameForEveryOrderOfTheFiles(t *testing.T) {
	l := someFiles(t)
	l.add(t, "copy-of-harbour.md", "The harbour master keeps a list of all ships. Ships that come in at night pay twice.")
	q := search.Query{Text: "ships at night 茶", Vector: vector(t, "ships at night 茶")}
	want := l.found(t, q)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		r.Shuffle(len(l.files), func(i, j int) {
			l.files[i], l.files[j] = l.files[j], l.files[i]
			l.chunks[i], l.chunks[j] = l.chunks[j], l.chunks[i]
		})
		if got := l.found(t, q); !slices.Equal(got, want) {
			t.Fatalf("found %q, want %q", got, want)
		}
	}
}

func TestAFileNeedsNeitherSegmentNorVectors(t *testing.T) {
	l := someFiles(t)
	l.files[0].Vectors, l.files[1].Segment, l.files[2] = nil, nil, search.File{ID: "parsing"}
	if got := l.found(t, search.Query{Text: "ships at night", Vector: vector(t, "ships at night")})[0]; !strings.Contains(got, "pay twice") {
		t.Fatalf("got %q, want it with %q", got, "pay twice")
	}
	if got := l.found(t, search.Query{Text: "乌龙茶", Vector: vector(t, "乌龙茶")})[0]; !strings.Contains(got, "乌龙茶") {
		t.Fatalf("got %q, want it with %q", got, "乌龙茶")
	}
	if got := l.found(t, search.Query{Text: "the of and"}); len(got) != 0 {
		t.Fatalf("got %q, want none", got)
	}
	r, err := search.Search(t.Context(), search.Files(nil), search.Query{Text: "ships"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Hits) != 0 {
		t.Fatalf("r.Hits is %+v, want none", r.Hits)
	}
}

func TestWordFrequenciesAreCountedInTheGivenFilesOnly(t *testing.T) {
	l := someFiles(t)
	one := l.files[:1]
	before, err := search.Search(t.Context(), one, search.Query{Text: "ships at night"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		l.add(t, fmt.Sprint("other", i), "ships ships ships at night")
	}
	after, err := search.Search(t.Context(), l.files[:1], search.Query{Text: "ships at night"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(after, before) {
		t.Fatalf("after is %+v, want %+v", after, before)
	}
}

// narrow is a library that gives one file at a time.
type narrow struct{ search.Files }

func (n narrow) Segments(ctx context.Context, files []int, do func(files []int, segments []*search.Segment) error) error {
	for i := range files {
		if err := n.Files.Segments(ctx, files[i:i+1], do); err != nil {
			return err
		}
	}
	return nil
}

func (n narrow) Vectors(ctx context.Context, files []int, do func(files []int, vectors []*search.Vectors) error) error {
	for i := range files {
		if err := n.Files.Vectors(ctx, files[i:i+1], do); err != nil {
			return err
		}
	}
	return nil
}

func TestASearchIsTheSameInWhicheverGroupsFilesCome(t *testing.T) {
	l := someFiles(t)
	for _, mode := range []string{search.Lexical, search.Vector, search.Hybrid} {
		for _, question := range []string{"Which ships pay twice?", "乌龙茶", "birds of the lighthouse, 茶", "茶"} {
			q := search.Query{Text: question, More: []string{"harbour", "net.http"}, Vector: vector(t, question), Mode: mode, Texts: l.texts}
			want, err := search.Search(t.Context(), l.files, q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := search.Search(t.Context(), narrow{l.files}, q)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got is %+v, want %+v", got, want)
			}
			if len(got.Hits) == 0 {
				t.Fatalf("got.Hits is %+v, want more", got.Hits)
			}
		}
	}
}

func TestASearchEndsWithItsContext(t *testing.T) {
	l := someFiles(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	_, err := search.Search(ctx, l.files, search.Query{Text: "ships"})
	if !errors.Is(err, gone) {
		t.Fatalf("got error %v, want %v", err, gone)
	}
}

func TestALongQuestionIsCutAndSaysSo(t *testing.T) {
	l := someFiles(t)
	r, err := search.Search(t.Context(), l.files, search.Query{Text: strings.Repeat("ships 茶壶 ", 3000)})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Truncated {
		t.Fatal("r.Truncated is false, want true")
	}
	if len(r.Hits) == 0 {
		t.Fatalf("r.Hits is %+v, want more", r.Hits)
	}
}

func TestOfManyLoneCharactersTheFirstFourAreSearched(t *testing.T) {
	l := someFiles(t)
	if got := l.found(t, search.Query{Text: "甲 乙 丙 茶 丁", Mode: search.Lexical}); len(got) == 0 {
		t.Fatalf("got %q, want more", got)
	}
	if got := l.found(t, search.Query{Text: "甲 乙 丙 丁 茶", Mode: search.Lexical}); len(got) != 0 {
		t.Fatalf("got %q, want none", got)
	}
	if got := l.found(t, search.Query{Text: "甲 乙 丙 丁 茶 茶", Mode: search.Lexical}); len(got) == 0 {
		t.Fatalf("got %q, want more", got)
	} // it is repeated
}

func TestDamagedSegmentsAreRefused(t *testing.T) {
	text := strings.Repeat("The harbour master keeps a list of ships. ", 100)
	data, _, err := search.Encode(t.Context(), "name.md", text, chunk.Cut(&parse.Document{Text: text}, chunk.Default))
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		broken := slices.Clone(data)
		broken[i] ^= 0x55
		_, err := search.Decode(broken)
		if err == nil {
			t.Fatalf("byte %d: got no error, want one", i)
		}
		_, err = search.Decode(data[:i])
		if err == nil {
			t.Fatalf("cut at %d: got no error, want one", i)
		}
	}
}

func TestEachTermOfATextIsFoundAndNoOther(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	number := func() string { // with long common beginnings
		digits := make([]byte, 1+r.IntN(12))
		for i := range digits {
			digits[i] = '1' + byte(r.IntN(2))
		}
		return string(digits)
	}
	there := map[string]bool{}
	var text strings.Builder
	for range 600 {
		n := number()
		there[n] = true
		text.WriteString(n + " ")
	}
	l := &library{}
	l.add(t, "numbers", text.String())
	for range 3000 {
		n := number()
		if got := len(l.found(t, search.Query{Text: n, Mode: search.Lexical})) > 0; got != there[n] {
			t.Fatalf("%s: got %v, want %v", n, got, there[n])
		}
	}
}

func TestATextOfTooManyTermsIsFoundByThoseThatComeFirst(t *testing.T) {
	var text strings.Builder
	for n := range 1<<20 + 1 {
		text.WriteString(strconv.Itoa(n) + " ")
	}
	chunks := chunk.Cut(&parse.Document{Text: text.String()}, chunk.Default)
	data, whole, err := search.Encode(t.Context(), "inventory.txt", text.String(), chunks)
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		t.Fatal("whole is true, want false")
	}
	s, err := search.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]bool{"0": true, strconv.Itoa(1<<20 - 1): true, strconv.Itoa(1 << 20): false, "inventory": true} {
		r, err := search.Search(t.Context(), search.Files{{ID: "a", Segment: s}}, search.Query{Text: question})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(r.Hits) > 0; got != want {
			t.Fatalf("%s: len(r.Hits) > 0 is %v, want %v", question, got, want)
		}
	}
}

func TestMakingAnIndexEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the file was deleted"))
	text := strings.Repeat("The harbour master keeps a list of ships. ", 100)
	_, _, err := search.Encode(ctx, "name.md", text, chunk.Cut(&parse.Document{Text: text}, chunk.Default))
	if err == nil || err.Error() != "the file was deleted" {
		t.Fatalf("got error %v, want %q", err, "the file was deleted")
	}
}
