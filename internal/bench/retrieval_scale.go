package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodest/internal/bench/figure"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// scaleResult are the times of a scope of many items, in milliseconds.
type scaleResult struct {
	Items  int     `json:"items"`
	Dim    int     `json:"dim"`    // 0 = by words alone
	LoadMs float64 `json:"loadMs"` // the first question, for which everything is read
	P50Ms  float64 `json:"p50Ms"`
	P95Ms  float64 `json:"p95Ms"`
}

// retrievalScale measures the first question to a chat of so many messages and those
// after it, on one core: by words, with the offline vectors of 512 numbers, and with
// 1,024 as of a model. It goes through the store and the service, as a chat does.
func retrievalScale(ctx context.Context, out io.Writer, items int, asJSON bool) (err error) {
	l, err := openLibrary(ctx, libraryOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	t := scaleTalk(items)
	if err := l.take(ctx, t); err != nil {
		return err
	}
	if err := l.embed(ctx); err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	random := randomVectors(scaleDim)
	for _, dim := range []int{0, offline.Dim, scaleDim} {
		o := memory.Options{Scenes: l.scene}
		if dim == scaleDim {
			o.Embedder = func(context.Context, string) (llm.Embedder, error) { return random, nil }
			if err := l.putRandom(ctx, t.character, random); err != nil {
				return err
			}
		}
		r, err := l.measureScale(ctx, t, dim, o)
		if err != nil {
			return err
		}
		if asJSON {
			err = json.NewEncoder(out).Encode(r)
		} else {
			_, err = fmt.Fprintf(out, "%d items, %4d dimensions: first %4.0f ms, query p50 %5.2f ms, p95 %5.2f ms\n", r.Items, r.Dim, r.LoadMs, r.P50Ms, r.P95Ms)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *library) measureScale(ctx context.Context, t *talk, dim int, o memory.Options) (*scaleResult, error) {
	var service *memory.Service
	ask := func(i int) error {
		_, err := service.Recall(ctx, l.user, memory.Ask{CharacterID: t.character, Lexical: dim == 0}, recall.Query{
			Now:  t.now,
			Text: fmt.Sprintf("When did Ann speak of w1 and w%d with w%d at w%d, w%d, w%d and w%d?", 2+i%3, 8+i%9, 40+i, 300+i, 2000+i, 9000+i),
		})
		return err
	}
	w := stopwatch{}
	for range 3 {
		service = memory.New(l.db.Memory(), o)
		if err := w.rounds(1, step{"first", func() error { return ask(0) }}); err != nil {
			return nil, err
		}
	}
	asked := 0
	err := w.rounds(200, step{"next", func() error {
		asked++
		return ask(asked)
	}})
	if err != nil {
		return nil, err
	}
	next := spreadOf(w["next"])
	return &scaleResult{Items: len(t.items), Dim: dim, LoadMs: figure.Millis(slices.Min(w["first"])), P50Ms: next.P50, P95Ms: next.P95}, nil
}

// scaleTalk has messages of 15 to 34 words, whose frequencies fall as in texts, in
// sessions of 25.
func scaleTalk(items int) *talk {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	t := &talk{name: "scale", people: lang.Names{User: "Ann", Character: "Reed"}}
	day := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range items {
		words := make([]string, 15+r.IntN(20))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		s := saying{role: lang.RoleUser, name: t.people.User, text: strings.Join(words, " "), at: day.AddDate(0, 0, i/25).Add(time.Duration(i%25) * time.Minute)}
		if i%2 == 1 {
			s.role, s.name = lang.RoleCharacter, t.people.Character
		}
		t.items = append(t.items, item{id: fmt.Sprint(i), said: []saying{s}})
		t.now = s.at
	}
	return t
}

const scaleDim = 1024

// putRandom gives every text of a character a vector of e.
func (l *library) putRandom(ctx context.Context, character string, e randomVectors) error {
	for more := true; more; {
		err := l.db.Memory().Update(ctx, l.user, func(tx memory.Tx) error {
			batch, err := tx.WithoutVector(character, e.ModelID(), 0, 5000)
			if err != nil {
				return err
			}
			vectors := make(map[string][]float32, len(batch))
			for _, c := range batch {
				v := e.of(c.Text)
				for _, id := range c.IDs {
					vectors[id] = v
				}
			}
			more = len(batch) > 0
			return tx.PutVectors(character, e.ModelID(), vectors)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
