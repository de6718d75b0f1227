package memory

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"nodest/index"
	"nodest/llm"
	"nodest/llm/offline"
)

var fitFlag = flag.String("fit", "", "mode")
var sub = flag.String("sigs", "", "signals")

type qa struct {
	conv  string
	cat   string
	set   string
	gold  []int32
	feats [signals][]float32 // rows
	n     int
	text  string
}

type line struct {
	T, C, ID, D, Sp, X, Cap, A, B, Q, Rsp, R string
	S                                        int
	Cat                                      any
	Ev                                       []string
}

func loadSet(t *testing.T, file, set string) []*qa {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*qa
	var people People
	var x *index.Index
	var rows []index.Row
	var last time.Time
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	order := int64(0)
	flush := func() {
		if rows != nil {
			if err := x.Apply(t.Context(), rows, nil); err != nil {
				t.Fatal(err)
			}
			rows = nil
		}
	}
	for sc.Scan() {
		var raw map[string]json.RawMessage
		json.Unmarshal(sc.Bytes(), &raw)
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil && raw["a"] == nil {
			t.Fatal(err)
		}
		switch l.T {
		case "conv":
			people = People{l.A, l.B}
			x = index.New()
		case "turn":
			order++
			at, err := time.Parse("2006-01-02T15:04", l.D)
			if err != nil {
				t.Fatal(err)
			}
			last = at
			u := Unit{ID: l.ID, Layer: Exchange, Conversation: l.C, Session: l.S, Order: order, Speaker: l.Sp, At: at, Text: l.X}
			if l.Cap != "" {
				u.Text += " [image: " + l.Cap + "]"
			}
			if l.R != "" {
				u.Speaker = ""
				u.Text += "\n" + l.R
			}
			u.Terms = Terms(u.Text)
			vec, _ := offline.Embedder{}.Embed(t.Context(), llm.Passage, []string{u.Text})
			u.Vectors = []index.Vector{{Model: "m", Values: vec.Vectors[0]}}
			rows = append(rows, u.Row())
		case "qa":
			flush()
			q := ReadQuery(l.Q, people, last)
			vec, _ := offline.Embedder{}.Embed(t.Context(), llm.Query, []string{stripNames(l.Q, people)})
			e := &qa{conv: set + l.C, cat: fmt.Sprint(l.Cat), set: set, text: l.Q}
			x.View(func(v index.View) error {
				c, err := measure(t.Context(), v, q, index.Vector{Model: "m", Values: vec.Vectors[0]})
				if err != nil {
					t.Fatal(err)
				}
				e.feats = c.of
				e.n = v.Slots()
				for _, id := range l.Ev {
					e.gold = append(e.gold, int32(v.Number(id)))
				}
				return nil
			})
			out = append(out, e)
		}
	}
	return out
}

func stripNames(q string, p People) string {
	for _, n := range []string{p.User, p.Character} {
		if len(n) > 2 {
			q = strings.ReplaceAll(q, n, "")
		}
	}
	return q
}

type metrics struct{ r5, r10, r20, mrr, n float64 }

func (m *metrics) add(o metrics) {
	m.r5 += o.r5
	m.r10 += o.r10
	m.r20 += o.r20
	m.mrr += o.mrr
	m.n += o.n
}
func (m metrics) String() string {
	return fmt.Sprintf("R5 %.3f R10 %.3f R20 %.3f MRR %.3f (n=%.0f)", m.r5/m.n, m.r10/m.n, m.r20/m.n, m.mrr/m.n, m.n)
}

var scratch []float32

func eval(e *qa, w *[signals]float32) metrics {
	if cap(scratch) < e.n {
		scratch = make([]float32, e.n)
	}
	s := scratch[:e.n]
	clear(s)
	for k := range w {
		if w[k] == 0 {
			continue
		}
		f := e.feats[k]
		wk := w[k]
		for i := range s {
			s[i] += wk * f[i]
		}
	}
	m := metrics{n: 1}
	best := e.n + 1
	for _, g := range e.gold {
		rank := 1
		gs := s[g]
		for i, x := range s {
			if x > gs || x == gs && int32(i) < g {
				rank++
			}
		}
		best = min(best, rank)
		k := 1 / float64(len(e.gold))
		if rank <= 5 {
			m.r5 += k
		}
		if rank <= 10 {
			m.r10 += k
		}
		if rank <= 20 {
			m.r20 += k
		}
	}
	m.mrr = 1 / float64(best)
	return m
}

func total(set []*qa, w *[signals]float32, keep func(*qa) bool) metrics {
	var m metrics
	for _, e := range set {
		if keep(e) {
			m.add(eval(e, w))
		}
	}
	return m
}

func objective(set []*qa, w *[signals]float32, without string) float64 {
	l := total(set, w, func(e *qa) bool { return e.set == "locomo" && e.cat != "5" && e.conv != without })
	z := total(set, w, func(e *qa) bool { return e.set == "zh" && e.conv != without })
	n := total(set, w, func(e *qa) bool { return e.set == "en" && e.conv != without })
	o := l.r10/l.n + l.mrr/l.n + 0.3*l.r5/l.n
	o += 0.15*(z.r5/z.n+n.r5/n.n) + 0.1*(z.mrr/z.n+n.mrr/n.n)
	a := total(set, w, func(e *qa) bool { return e.cat == "5" && e.conv != without })
	return o + 0.1*a.mrr/a.n + 0.1*a.r10/a.n
}

func optimise(set []*qa, start [signals]float32, free []signal, without string, rounds int, seed uint64) ([signals]float32, float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := start
	best := objective(set, &w, without)
	for range rounds {
		before := best
		for _, p := range r.Perm(len(free)) {
			k := free[p]
			for _, step := range []float32{0.2, -0.2, 0.08, -0.08, 0.03, -0.03} {
				for {
					try := w
					try[k] += step
					if try[k] < 0 && k != sigAsks && k != sigShort {
						break
					}
					if o := objective(set, &try, without); o > best+1e-5 {
						w, best = try, o
						continue
					}
					break
				}
			}
		}
		if best-before < 5e-4 {
			break
		}
	}
	return w, best
}

func show(w *[signals]float32) string {
	var b strings.Builder
	for k, x := range w {
		if x != 0 {
			fmt.Fprintf(&b, " %s=%.2f", signalNames[k], x)
		}
	}
	return b.String()
}

func loadAll(t *testing.T) []*qa {
	set := loadSet(t, "/work/shared/data/locomo/dev.json", "locomo")
	set = append(set, loadSet(t, "/work/shared/data/memorybank/dev_zh.json", "zh")...)
	return append(set, loadSet(t, "/work/shared/data/memorybank/dev_en.json", "en")...)
}

func report(set []*qa, w *[signals]float32) string {
	var b strings.Builder
	fmt.Fprintln(&b, "locomo 1-4", total(set, w, func(e *qa) bool { return e.set == "locomo" && e.cat != "5" }))
	for _, c := range []string{"1", "2", "3", "4", "5"} {
		fmt.Fprintln(&b, "  cat", c, total(set, w, func(e *qa) bool { return e.set == "locomo" && e.cat == c }))
	}
	fmt.Fprintln(&b, "zh", total(set, w, func(e *qa) bool { return e.set == "zh" }))
	fmt.Fprintln(&b, "en", total(set, w, func(e *qa) bool { return e.set == "en" }))
	return b.String()
}

func TestFit(t *testing.T) {
	if *fitFlag == "" {
		t.Skip()
	}
	start := time.Now()
	set := loadAll(t)
	t.Log("loaded", time.Since(start))
	var w [signals]float32
	w[sigRow] = 1
	t.Log("row alone\n", report(set, &w))
	start = time.Now()
	objective(set, &w, "")
	t.Log("one", time.Since(start))
	w[sigNear], w[sigAround] = 0.7, 0.3
	t.Log("windows\n", report(set, &w))
	var free []signal
	for k := range signals {
		if k != sigRow && (*sub == "" || slices.Contains(strings.Split(*sub, ","), signalNames[k])) {
			free = append(free, k)
		}
	}
	w, best := optimise(set, w, free, "", 3, 1)
	t.Log("fitted", best, show(&w), time.Since(start))
	t.Log("\n", report(set, &w))
	// what each is worth
	type loss struct {
		k signal
		d float64
	}
	var ls []loss
	for _, k := range free {
		try := w
		try[k] = 0
		ls = append(ls, loss{k, best - objective(set, &try, "")})
	}
	sort.Slice(ls, func(i, j int) bool { return ls[i].d > ls[j].d })
	for _, l := range ls {
		t.Logf("  without %s: -%.4f", signalNames[l.k], l.d)
	}
}

// TestBackward drops the signal that costs least, again and again.
func TestBackward(t *testing.T) {
	if *fitFlag == "" {
		t.Skip()
	}
	set := loadAll(t)
	var w [signals]float32
	w[sigRow], w[sigNear], w[sigAround] = 1, 0.7, 0.3
	var free []signal
	for k := range signals {
		if k != sigRow && (*sub == "" || slices.Contains(strings.Split(*sub, ","), signalNames[k])) {
			free = append(free, k)
		}
	}
	w, best := optimise(set, w, free, "", 2, 1)
	for len(free) > 5 {
		worst, cost := -1, 9.0
		for i, k := range free {
			try := w
			try[k] = 0
			if d := best - objective(set, &try, ""); d < cost {
				worst, cost = i, d
			}
		}
		k := free[worst]
		w[k] = 0
		free = slices.Delete(free, worst, worst+1)
		if cost > 0.0005 {
			w, best = optimise(set, w, free, "", 2, 1)
		}else { best = objective(set,&w,"") }
		l := total(set, &w, func(e *qa) bool { return e.set == "locomo" && e.cat != "5" })
		t.Logf("%d -%s: %.4f  locomo %v %s", len(free), signalNames[k], best, l, show(&w))
	}
}

func TestLeaveOneOut(t *testing.T) {
	if *fitFlag == "" {
		t.Skip()
	}
	set := loadAll(t)
	var start [signals]float32
	start[sigRow], start[sigNear], start[sigAround] = 1, 0.7, 0.3
	var free []signal
	for k := range signals {
		if k != sigRow && (*sub == "" || slices.Contains(strings.Split(*sub, ","), signalNames[k])) {
			free = append(free, k)
		}
	}
	var sum, five metrics
	full, _ := optimise(set, start, free, "", 4, 1)
	for _, c := range []string{"conv-26", "conv-41", "conv-43", "conv-47", "conv-49"} {
		w, _ := optimise(set, full, nil, "", 4, 1)
		w, _ = optimise(set, start, free, "locomo"+c, 4, 1)
		m := total(set, &w, func(e *qa) bool { return e.conv == "locomo"+c && e.cat != "5" })
		in := total(set, &full, func(e *qa) bool { return e.conv == "locomo"+c && e.cat != "5" })
		sum.add(m)
		five.add(total(set, &w, func(e *qa) bool { return e.conv == "locomo"+c && e.cat == "5" }))
		t.Logf("%s left out %v  fitted with it %v", c, m, in)
	}
	t.Logf("left out: %v; cat 5 %v", sum, five)
	t.Log("all:", show(&full), "\n", report(set, &full))
}
