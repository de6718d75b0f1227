package index_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"nodest/internal/index"
	"nodest/internal/sharedtest"
	"nodest/llm"
	"nodest/llm/offline"
)

// TestMeasureVectors prints how many of the 10, 50 and 200 nearest by exact cosines are found: by the
// signs of stored vectors alone, with the best 200 rescored, by all packed vectors (documents), and
// in memory. NODEST_MEASURE=1 go test ./internal/index -run TestMeasureVectors -v
func TestMeasureVectors(t *testing.T) {
	if os.Getenv("NODEST_MEASURE") == "" {
		t.Skip("prints figures; NODEST_MEASURE=1 runs it")
	}
	t.Log("numbers | vectors                       | signs               | rescored            | documents           | in memory")
	t.Run("512", func(t *testing.T) { measureVectors(t, "LoCoMo, offline embedder", locomoVectors) })
	for _, dim := range []int{768, 1024, 1536} {
		t.Run(fmt.Sprint(dim), func(t *testing.T) {
			measureVectors(t, "made up, like a model's", func(t *testing.T) (vectors, questions [][]float32) { return modelVectors(dim) })
		})
	}
}

// nearestRanks are the lengths of the lists of which the share that is found is printed.
var nearestRanks = []int{10, 50, 200}

// shares are sums of what was found of the nearest 10, 50 and 200.
type shares [3]float64

func (s *shares) add(want, found []string) {
	for i, n := range nearestRanks {
		s[i] += 1 - float64(missed(want[:n], found[:min(n, len(found))]))/float64(n)
	}
}

func (s *shares) of(questions int) string {
	n := float64(questions)
	return fmt.Sprintf("%.3f, %.3f, %.3f", s[0]/n, s[1]/n, s[2]/n)
}

func measureVectors(t *testing.T, name string, read func(t *testing.T) (vectors, questions [][]float32)) {
	vectors, questions := read(t)
	r := rand.New(rand.NewPCG(3, 1))
	stretch(r, vectors)
	stretch(r, questions)
	rows := vectorRows(vectors)
	s := &shelf{}
	for some := range slices.Chunk(rows, 16_384) {
		s.keep(some...)
	}
	newest := vectors[max(0, len(vectors)-1000):]
	held := filled(t, vectorRows(newest)...)
	var signs, rescored, documents, memory shares
	var like [4]float64 // cosines of the nearest, the tenth, the 200th and any row
	s.use(t, func(v index.View) error {
		for _, q := range questions {
			exact := nearestOf(vectors, q, 200)
			for i, id := range []string{exact[0], exact[9], exact[199], fmt.Sprint(r.IntN(len(vectors)))} {
				at, err := strconv.Atoi(id)
				if err != nil {
					return err
				}
				like[i] += cosine(vectors[at], q) / float64(len(questions))
			}
			signs.add(exact, nearIDs(t, v, q, 0))
			rescored.add(exact, nearIDs(t, v, q, 200))
			documents.add(exact, nearestPacked(rows, q, 200))
			err := held.View(func(v index.View) error {
				memory.add(nearestOf(newest, q, 200), nearIDs(t, v, q, 0))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	n := len(questions)
	t.Logf("%7d | %6d, %-25s | %s | %s | %s | %s", len(vectors[0]), len(vectors), name, signs.of(n), rescored.of(n), documents.of(n), memory.of(n))
	t.Logf("cosines of the nearest, the tenth, the 200th and any: %.2f", like)
}

// nearIDs are the 200 nearest rows, of which the first are rescored.
func nearIDs(t *testing.T, v index.View, q []float32, rescored int) (ids []string) {
	t.Helper()
	near, whole, err := v.Near(t.Context(), index.Vector{Model: "m", Values: q}, 200, rescored)
	if err != nil || !whole {
		t.Fatalf("whole: %v, %v", whole, err)
	}
	numbers := make([]int, len(near))
	for i, n := range near {
		numbers[i] = n.Row
	}
	found, err := v.Rows(t.Context(), numbers, index.Vector{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	return ids
}

// nearestPacked compares all packed vectors, as the search in documents does.
func nearestPacked(rows []index.Row, v []float32, n int) (ids []string) {
	q := index.Pack(v)
	order := slices.Clone(rows)
	cosines := make(map[string]float32, len(rows))
	for _, r := range rows {
		cosines[r.ID] = q.Cosine(r.Vectors[0].Packed)
	}
	slices.SortFunc(order, func(a, b index.Row) int { return cmp.Compare(cosines[b.ID], cosines[a.ID]) })
	for _, r := range order[:n] {
		ids = append(ids, r.ID)
	}
	return ids
}

// locomoVectors are those of all messages of LoCoMo, and of 150 questions.
func locomoVectors(t *testing.T) (vectors, questions [][]float32) {
	f, err := os.Open(sharedtest.Require(t, "data/locomo/dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var texts, asked []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ T, X, Q string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch {
		case line.T == "turn" && line.X != "":
			texts = append(texts, line.X)
		case line.Q != "" && len(asked) < 150:
			asked = append(asked, line.Q)
		}
	}
	embed := func(task llm.EmbedTask, texts []string) [][]float32 {
		found, err := offline.Embedder{}.Embed(t.Context(), task, texts)
		if err != nil {
			t.Fatal(err)
		}
		return found.Vectors
	}
	return embed(llm.Passage, texts), embed(llm.Query, asked)
}

// modelVectors makes 20,000 vectors like those of models: all have something in common, some numbers
// are much larger than others, and texts are about subjects of topics. A question is like one text.
func modelVectors(dim int) (vectors, questions [][]float32) {
	r := rand.New(rand.NewPCG(uint64(dim), 2))
	spread := make([]float64, dim)
	for i, at := range r.Perm(dim) {
		spread[at] = math.Pow(float64(i+1), -0.4)
	}
	noise := func(v []float32, share float64) []float32 {
		out := make([]float32, dim)
		for i := range out {
			out[i] = v[i] + float32(share*spread[i]*r.NormFloat64())
		}
		return out
	}
	common := noise(make([]float32, dim), 0.7)
	for range 4 {
		common[r.IntN(dim)] += 1
	}
	var subjects [][]float32
	for range 100 {
		topic := noise(common, 0.6)
		for range 10 {
			subjects = append(subjects, noise(topic, 0.5))
		}
	}
	for range 20_000 {
		vectors = append(vectors, noise(subjects[r.IntN(len(subjects))], 0.6))
	}
	for range 150 {
		questions = append(questions, noise(vectors[r.IntN(len(vectors))], 0.7))
	}
	return vectors, questions
}
