package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"nodest/llm"
)

// probeFigures are the figures of the probes of one kind.
type probeFigures struct {
	N      int     `json:"n"`
	Good   int     `json:"good"`
	Half   int     `json:"half"`
	Wrong  int     `json:"wrong"`
	Blocks int     `json:"blocks"`
	First  int     `json:"first"`
	Stale  int     `json:"stale"`
	Lines  float64 `json:"lines"`

	sent int // lines of all blocks
}

// mostBefore is how many lines may stand before the answer.
const mostBefore = 5

// retrievalProbes fills a memory for each file of probes and asks what is to be asked.
func retrievalProbes(ctx context.Context, out io.Writer, o RetrievalOptions) error {
	for file := range strings.SplitSeq(o.Probes, ",") {
		s, err := readProbes(file, o.Noise)
		if err != nil {
			return err
		}
		r, err := s.measure(ctx, o.embedder())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if o.JSON {
			err = json.NewEncoder(out).Encode(r.byKind)
		} else {
			r.print(out, file)
		}
		if err != nil {
			return err
		}
		if o.Misses {
			r.printMisses(out)
		}
	}
	return nil
}

// probeResult are the figures of a file.
type probeResult struct {
	set      *probeSet
	messages int
	facts    int
	byKind   map[string]*probeFigures
	misses   []probeMiss
}

// probeMiss is a probe that is not good, or whose answer is not first where it should be.
type probeMiss struct {
	probe   *probe
	verdict string
	got     prompted
}

// measure takes all turns of a set, each as the first of a new chat.
func (s *probeSet) measure(ctx context.Context, embedder llm.Embedder) (r *probeResult, err error) {
	all := &filling{people: s.people, now: probesNow, talks: []*talk{s.talk()}, embedder: embedder}
	f, err := all.fill(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r = &probeResult{set: s, messages: f.messages, facts: len(f.known), byKind: map[string]*probeFigures{}}
	for i := range s.probes {
		p := &s.probes[i]
		got, err := f.turn(ctx, p.ask)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", p.ask, err)
		}
		r.add(p, got)
	}
	return r, nil
}

// add counts one turn.
func (r *probeResult) add(p *probe, got prompted) {
	of := r.byKind[p.kind]
	if of == nil {
		of = &probeFigures{}
		r.byKind[p.kind] = of
	}
	of.N++
	if len(got.block) > 0 {
		of.Blocks++
		of.sent += len(got.block)
		of.Lines = share(of.sent, of.Blocks)
	}
	if firstWith(got.profile, p.stale) >= 0 {
		of.Stale++
	}
	first := firstWith(got.block, p.answer) == 0
	if first {
		of.First++
	}
	verdict := p.judge(got)
	*map[string]*int{"good": &of.Good, "half": &of.Half, "wrong": &of.Wrong}[verdict]++
	if verdict == "good" && !first && p.answer != "" {
		verdict = "good, but not first"
	}
	if verdict != "good" {
		r.misses = append(r.misses, probeMiss{p, verdict, got})
	}
}

// judge says how right a prompt is. Where there is nothing to be found, a block is wrong.
func (p *probe) judge(got prompted) string {
	if p.answer == "" {
		if len(got.block) > 0 {
			return "wrong"
		}
		return "good"
	}
	told, at := firstWith(got.profile, p.answer) >= 0, firstWith(got.block, p.answer)
	stale := firstWith(got.block, p.stale)
	switch {
	case !told && at < 0:
		return "wrong"
	case firstWith(got.profile, p.stale) >= 0:
		return "half"
	case told || at <= mostBefore && (stale < 0 || at <= stale):
		return "good"
	}
	return "half"
}

func (r *probeResult) print(out io.Writer, file string) {
	fmt.Fprintf(out, "%s: %d messages, %d facts\n%-12s %5s %5s %5s %5s %6s %5s %5s %5s\n", file, r.messages, r.facts,
		"", "n", "good", "half", "wrong", "blocks", "first", "stale", "lines")
	for _, kind := range r.set.kinds() {
		f := r.byKind[kind]
		fmt.Fprintf(out, "%-12s %5d %5d %5d %5d %6d %5d %5d %5.1f\n", kind, f.N, f.Good, f.Half, f.Wrong, f.Blocks, f.First, f.Stale, f.Lines)
	}
}

func (r *probeResult) printMisses(out io.Writer) {
	for _, m := range r.misses {
		fmt.Fprintf(out, "\n%s %s: %s\n", m.probe.kind, m.verdict, m.probe.ask)
		for _, row := range []struct{ name, value string }{{"wanted", m.probe.answer}, {"stale", m.probe.stale}} {
			if row.value != "" {
				fmt.Fprintf(out, "  %-7s %s\n", row.name+":", row.value)
			}
		}
		for _, s := range m.probe.said {
			fmt.Fprintf(out, "  said:   %s %s\n", s.at.Format("2006-01-02"), s.text)
		}
		for _, line := range m.got.profile {
			if m.probe.stale != "" {
				fmt.Fprintf(out, "   -  %s\n", line)
			}
		}
		for i, line := range m.got.block {
			fmt.Fprintf(out, "  %2d. %s\n", i+1, line)
		}
	}
}
