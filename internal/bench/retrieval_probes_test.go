package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/memory/lang"
)

const someProbes = `# user Ann, character Reed; now 2026-11-28
= small
haha, stop
= direct
[2026-02-03] I keep bees in Lund. >> Where do I keep bees? == Lund
[2025-02-03] My parrot speaks Danish. >> Which language does my parrot speak? == Danish|Dane
= current
[2026-04-03] I live in Rome. ## [2026-07-19] I live in Paris now. >> Where do I live? == Paris !! in Rome
`

// probeFiles writes files of probes and of noise, and returns their names.
func probeFiles(t *testing.T, probes string) (file, noise string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"t":"conv","c":"c1","a":"Caroline","b":"Mel"}` + "\n")
	for i := range mostNoise + 5 {
		fmt.Fprintf(&b, `{"t":"turn","c":"c1","id":"%d","d":"2023-04-02","sp":"%s","x":"Kettle number %d sang."}`+"\n", i, []string{"Caroline", "Mel"}[i%2], i)
	}
	dir := t.TempDir()
	file, noise = filepath.Join(dir, "probes", "x.txt"), filepath.Join(dir, "locomo", "dev.json")
	for name, text := range map[string]string{file: probes, noise: b.String()} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, noise
}

func TestProbesAreSaidInOrderBetweenNoise(t *testing.T) {
	t.Parallel()
	file, _ := probeFiles(t, someProbes)
	s, err := readProbes(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.people != (lang.Names{User: "Ann", Character: "Reed"}) || !slices.Equal(s.kinds(), []string{"small", "direct", "current"}) {
		t.Errorf("%+v, kinds %q", s.people, s.kinds())
	}
	var said []string
	before := time.Time{}
	all := s.talk().items
	for _, i := range all {
		one := i.said[0]
		if one.at.Before(before) || !one.at.Before(probesNow) {
			t.Errorf("%q is out of order", one.text)
		}
		if before = one.at; !strings.HasPrefix(one.text, "Kettle") {
			said = append(said, one.text)
		}
		if want := map[lang.Role]string{lang.RoleUser: "Ann", lang.RoleCharacter: "Reed"}[one.role]; one.name != want {
			t.Errorf("%s says %q", one.name, one.text)
		}
	}
	if want := []string{"My parrot speaks Danish.", "I keep bees in Lund.", "I live in Rome.", "I live in Paris now."}; !slices.Equal(said, want) || len(all) != mostNoise+4 {
		t.Errorf("%d items, said %q", len(all), said)
	}
}

func TestBadProbesAreRefused(t *testing.T) {
	t.Parallel()
	for probes, want := range map[string]string{
		"hello":                            "= kind",
		"= direct\nI live here. >> Where?": "== answer",
		"= direct\nI live here. >> Where? == here":              "[day]",
		"= direct\n[2026-13-01] I live here. >> Where? == here": "line 2",
	} {
		file, _ := probeFiles(t, probes)
		if _, err := readProbes(file, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", probes, err, want)
		}
	}
	file, _ := probeFiles(t, someProbes)
	if _, err := readProbes(file, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--noise") {
		t.Errorf("missing noise: %v", err)
	}
}

func TestProbesAreJudged(t *testing.T) {
	t.Parallel()
	small, current := probe{kind: "small"}, probe{kind: "current", answer: "Paris", stale: "in Rome"}
	for _, c := range []struct {
		name string
		p    probe
		got  prompted
		want string
	}{
		{"nothing for small talk", small, prompted{profile: []string{"x"}}, "good"},
		{"a block for small talk", small, prompted{block: []string{"x"}}, "wrong"},
		{"no answer", current, prompted{block: []string{"x"}}, "wrong"},
		{"the answer in the block", current, prompted{block: []string{"x", "in PARIS"}}, "good"},
		{"the answer in the profile", current, prompted{profile: []string{"in Paris"}, block: []string{"in Rome"}}, "good"},
		{"behind five lines", current, prompted{block: []string{"1", "2", "3", "4", "5", "Paris"}}, "good"},
		{"behind six lines", current, prompted{block: []string{"1", "2", "3", "4", "5", "6", "Paris"}}, "half"},
		{"stale above", current, prompted{block: []string{"in Rome", "in Paris"}}, "half"},
		{"stale below", current, prompted{block: []string{"in Paris", "in Rome"}}, "good"},
		{"stale beside", current, prompted{block: []string{"from Paris, not in Rome"}}, "good"},
		{"stale in the profile", current, prompted{profile: []string{"in Rome"}, block: []string{"in Paris"}}, "half"},
		{"stale alone in the profile", current, prompted{profile: []string{"in Rome"}}, "wrong"},
	} {
		if got := c.p.judge(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Files go through the whole product, without an embedding model and with one.
func TestProbesAreMeasured(t *testing.T) {
	t.Parallel()
	file, noise := probeFiles(t, someProbes)
	for _, random := range []bool{false, true} {
		var out bytes.Buffer
		if err := Retrieval(t.Context(), &out, RetrievalOptions{Probes: file, Noise: noise, JSON: true, Random: random}); err != nil {
			t.Fatal(err)
		}
		var found map[string]map[string]float64
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			t.Fatal(err)
		}
		direct := found["direct"]
		if direct["n"] != 2 || direct["good"] != 2 || direct["blocks"] != 2 || direct["lines"] == 0 || found["small"]["n"] != 1 || found["current"]["stale"] != 0 {
			t.Errorf("random %t: %s", random, out.String())
		}
	}
	var out bytes.Buffer
	if err := Retrieval(t.Context(), &out, RetrievalOptions{Probes: file, Misses: true}); err != nil || !strings.Contains(out.String(), "blocks") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestRandomVectorsAreOfTheText(t *testing.T) {
	t.Parallel()
	e := randomVectors(64)
	a, b := e.of("a"), e.of("b")
	if !slices.Equal(a, e.of("a")) || slices.Equal(a, b) || len(a) != e.Dim() {
		t.Errorf("%v, %v", a, b)
	}
}
