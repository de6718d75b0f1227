package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"nodest/index"
	"nodest/memory"
)

// scaleResult are the times of a scope of many items, in milliseconds. CPU is what
// the process really had, for machines with other things to do.
type scaleResult struct {
	Items  int     `json:"items"`
	Dim    int     `json:"dim"` // 0 = by words alone
	LoadMs float64 `json:"loadMs"`
	P50Ms  float64 `json:"p50Ms"`
	P95Ms  float64 `json:"p95Ms"`
	CPUMs  float64 `json:"cpuMs"`
	MB     float64 `json:"mb"`
}

// retrievalScale measures loading a scope of so many items and searching it on one
// core, by words and with vectors of 512 and 1,024 numbers.
func retrievalScale(ctx context.Context, out io.Writer, items int, asJSON bool) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, dim := range []int{0, 512, 1024} {
		r, err := measureScale(ctx, items, dim)
		if err != nil {
			return err
		}
		if asJSON {
			if err := json.NewEncoder(out).Encode(r); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%d items, %4d dimensions: load %4.0f ms, query p50 %5.2f ms, p95 %5.2f ms, cpu %5.2f ms; %.0f MB\n", r.Items, r.Dim, r.LoadMs, r.P50Ms, r.P95Ms, r.CPUMs, r.MB)
	}
	return nil
}

func measureScale(ctx context.Context, items, dim int) (*scaleResult, error) {
	units := scaleUnits(items, dim)
	r := &scaleResult{Items: items, Dim: dim}
	cache := index.NewCache(unitsLoader(units), index.CacheOptions{Bytes: math.MaxInt})
	var times []float64
	r.LoadMs = math.Inf(1)
	for range 3 {
		cache.Drop("")
		start := time.Now()
		if err := cache.Use(ctx, "", func(x *index.Index) error { r.MB = float64(x.Bytes()) / 1e6; return nil }); err != nil {
			return nil, err
		}
		r.LoadMs = min(r.LoadMs, milliseconds(time.Since(start)))
	}
	const queries = 200
	before := processTime()
	for i := range queries {
		q := memory.Query{
			Text:  fmt.Sprintf("When did Ann speak of w1 and w%d with w%d at w%d, w%d, w%d and w%d?", 2+i%3, 8+i%9, 40+i, 300+i, 2000+i, 9000+i),
			Names: memory.Names{User: "Ann", Character: "Reed"}, Now: units[items-1].At,
		}
		if dim > 0 {
			q.Vector = units[(i*37)%items].Vectors[0]
		}
		start := time.Now()
		err := cache.Use(ctx, "", func(x *index.Index) error { _, err := memory.Recall(ctx, x, q); return err })
		if err != nil {
			return nil, err
		}
		times = append(times, milliseconds(time.Since(start)))
	}
	r.CPUMs = milliseconds(processTime()-before) / queries
	slices.Sort(times)
	r.P50Ms, r.P95Ms = times[queries/2], times[queries*95/100]
	return r, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// processTime is the time that all threads of the process have run.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// scaleUnits are turns of 15 to 34 words, whose frequencies fall as in texts, in
// sessions of 25.
func scaleUnits(items, dim int) []memory.Unit {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	units := make([]memory.Unit, items)
	day := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range units {
		words := make([]string, 15+r.IntN(20))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		u := memory.Unit{
			ID: fmt.Sprintf("unit-%08d", i), Layer: memory.Exchange, Conversation: "c", Session: i / 25, Order: int64(i),
			Speaker: []memory.Role{memory.RoleUser, memory.RoleCharacter}[i%2], Text: strings.Join(words, " "), At: day.AddDate(0, 0, i/25), Importance: 0.5,
		}
		u.Terms = memory.Terms(u.Text)
		if dim > 0 {
			u.Vectors = []index.Vector{{Model: "scale", Values: direction(r, dim)}}
		}
		units[i] = u
	}
	return units
}

// direction is a vector of length one.
func direction(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	var square float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		square += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(square))
	}
	return v
}

// unitsLoader makes the rows while it loads, as from a database.
type unitsLoader []memory.Unit

func (unitsLoader) Version(context.Context, string) (int64, error) { return 1, nil }

func (l unitsLoader) Load(context.Context, string, int64) (index.Delta, error) {
	rows := make([]index.Row, len(l))
	for i := range l {
		rows[i] = l[i].Row()
	}
	return index.Delta{Version: 1, Rows: rows}, nil
}
