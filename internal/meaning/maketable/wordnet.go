package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// wordNet is what the table needs of Princeton WordNet: its synsets by number, and the senses of its words.
type wordNet struct {
	synsets   []synset
	senses    map[string][]sense // by lemma, words of several parted by blanks
	numbers   map[string]int     // of synsets, by part of speech and offset
	irregular map[string][]string
}

type synset struct {
	pos      byte // n v a r
	words    []string
	pointers []pointer
	gloss    string
	named    bool // it is one thing or person, not a kind
}

type pointer struct {
	kind string
	to   int
}

type sense struct {
	synset int
	count  float64 // how often it was meant in a tagged text
}

var files = map[string]byte{"noun": 'n', "verb": 'v', "adj": 'a', "adv": 'r'}

func readWordNet(folder string) (*wordNet, error) {
	w := &wordNet{senses: map[string][]sense{}, numbers: map[string]int{}}
	var targets [][]string
	for _, name := range []string{"noun", "verb", "adj", "adv"} {
		err := eachLine(filepath.Join(folder, "data."+name), func(line string) error {
			if strings.HasPrefix(line, " ") {
				return nil // the licence
			}
			s, to, err := readSynset(line, files[name])
			if err != nil {
				return err
			}
			w.numbers[string(files[name])+line[:8]] = len(w.synsets)
			w.synsets, targets = append(w.synsets, s), append(targets, to)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range w.synsets {
		for p, to := range targets[i] {
			w.synsets[i].pointers[p].to = w.numbers[to]
		}
	}
	return w, eachLine(filepath.Join(folder, "index.sense"), w.readSense)
}

// readSynset reads a line of a data file. to are the targets of its pointers.
func readSynset(line string, pos byte) (s synset, to []string, err error) {
	data, gloss, _ := strings.Cut(line, " | ")
	f := strings.Fields(data)
	s = synset{pos: pos, gloss: gloss}
	n, err := strconv.ParseInt(f[3], 16, 32)
	if err != nil {
		return s, nil, err
	}
	f = f[4:]
	for range n {
		word, _, _ := strings.Cut(f[0], "(")
		s.words = append(s.words, strings.ReplaceAll(word, "_", " "))
		f = f[2:]
	}
	n, err = strconv.ParseInt(f[0], 10, 32)
	f = f[1:]
	for range n {
		p := f[2]
		if p == "s" {
			p = "a"
		}
		s.pointers, to = append(s.pointers, pointer{kind: f[0]}), append(to, p+f[1])
		s.named = s.named || f[0] == "@i"
		f = f[4:]
	}
	return s, to, err
}

var partOf = [...]byte{1: 'n', 2: 'v', 3: 'a', 4: 'r', 5: 'a'}

// readSense reads a line of index.sense: key, offset, number, count.
func (w *wordNet) readSense(line string) error {
	f := strings.Fields(line)
	lemma, key, _ := strings.Cut(f[0], "%")
	count, err := strconv.ParseFloat(f[3], 64)
	rank, _ := strconv.ParseFloat(f[2], 64)
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	n, ok := w.numbers[string(partOf[key[0]-'0'])+f[1]]
	if !ok {
		return fmt.Errorf("no synset of %s", line)
	}
	lemma = strings.ReplaceAll(lemma, "_", " ")
	w.senses[lemma] = append(w.senses[lemma], sense{n, count + 0.5/rank})
	return nil
}

// lemmas returns the base forms that a lower-case word may be of.
func (w *wordNet) lemmas(word string) (all []string) {
	add := func(s string) {
		if _, ok := w.senses[s]; ok && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	add(word)
	for _, base := range w.irregular[word] {
		add(base)
	}
	if len(all) > 0 {
		return all
	}
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(word, e[0]); ok && len(stem) > 1 {
			add(stem + e[1])
			if n := len(stem); n > 3 && e[1] == "" && e[0] != "s" && stem[n-1] == stem[n-2] {
				add(stem[:n-1])
			}
		}
	}
	return all
}

// endings are those of inflected forms, and what stands for them in the base form.
var endings = [][2]string{
	{"s", ""}, {"ies", "y"}, {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"}, {"men", "man"},
	{"es", "e"}, {"es", ""}, {"ed", "e"}, {"ed", ""}, {"ied", "y"}, {"ing", "e"}, {"ing", ""}, {"er", ""}, {"er", "e"}, {"est", ""}, {"est", "e"},
}

func eachLine(name string, take func(line string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := take(lines.Text()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return lines.Err()
}
