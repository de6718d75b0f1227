package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"nodest/framework"
	"nodest/memory/lang"
)

// probesNow is the time that relative dates of probes hold for, a Saturday.
var probesNow = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// mostNoise is how many turns are said between the lines of probes.
const mostNoise = 480

// probeSet is a file of probes. Its form is that of shared/data/probes:
//
//	# user Dana, character Corvin
//	= kind
//	[2026-02-02] said ## [2026-06-10] said later >> question == answer|alternative !! stale value
//
// A line without ">>" is a message for which there is nothing to find.
type probeSet struct {
	people lang.Names
	probes []probe
	noise  []item
}

type probe struct {
	kind          string
	said          []saying
	ask           string
	answer, stale string // "|" separates wordings; "" = none
}

var (
	probePeople = regexp.MustCompile(`user ([^,，;；]+)[,，] *character ([^,，;；.]+)`)
	probeSaid   = regexp.MustCompile(`^\[(\d{4}-\d{2}-\d{2})\] *(.+)$`)
)

// readProbes reads a file of probes and that of its noise; "" = the one beside it, by its language.
func readProbes(name, noise string) (*probeSet, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, kind := &probeSet{people: lang.Names{User: "Dana", Character: "Corvin"}}, ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			if m := probePeople.FindStringSubmatch(line); m != nil {
				s.people = lang.Names{User: m[1], Character: m[2]}
			}
		case strings.HasPrefix(line, "= "):
			kind = strings.TrimSpace(line[2:])
		default:
			p, err := s.read(kind, line)
			if err != nil {
				return nil, fmt.Errorf("%s line %d: %w", name, n, err)
			}
			s.probes = append(s.probes, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if noise == "" {
		noise = filepath.Join(filepath.Dir(name), "..", s.noiseFile())
	}
	if s.noise, err = s.readNoise(noise); err != nil {
		return nil, fmt.Errorf("the lines between the probes are missing (--noise names their file): %w", err)
	}
	return s, nil
}

func (s *probeSet) read(kind, line string) (p probe, err error) {
	told, ask, asks := strings.Cut(line, ">>")
	if kind == "" {
		return p, errors.New("no line = kind before it")
	}
	if p.kind = kind; !asks {
		p.ask = line
		return p, nil
	}
	ask, p.answer, asks = strings.Cut(ask, "==")
	if !asks {
		return p, errors.New("no == answer")
	}
	p.answer, p.stale, _ = strings.Cut(p.answer, "!!")
	p.ask, p.answer, p.stale = strings.TrimSpace(ask), strings.TrimSpace(p.answer), strings.TrimSpace(p.stale)
	for one := range strings.SplitSeq(told, "##") {
		m := probeSaid.FindStringSubmatch(strings.TrimSpace(one))
		if m == nil {
			return p, fmt.Errorf("%q does not begin with a [day]", strings.TrimSpace(one))
		}
		day, err := readDate(m[1])
		if err != nil {
			return p, err
		}
		p.said = append(p.said, saying{lang.RoleUser, s.people.User, m[2], day.Add(12 * time.Hour)})
	}
	return p, nil
}

// noiseFile is where the noise for the language of the probes is, beside their folder: that of a
// Chinese conversation, or of an English one.
func (s *probeSet) noiseFile() string {
	var asked []string
	for i := range s.probes {
		asked = append(asked, s.probes[i].ask)
	}
	if framework.LanguageOf(asked...) == framework.Chinese {
		return filepath.Join("madial", "madial_zh.jsonl")
	}
	return filepath.Join("locomo", "dev.json")
}

// readNoise reads the first items of a file of conversations. What the user of a conversation says
// is said by the user here, the rest by the character.
func (s *probeSet) readNoise(name string) (noise []item, err error) {
	q, err := readQuestions("locomo", name)
	if err != nil {
		return nil, err
	}
	for _, t := range q.talks {
		noise = append(noise, t.items...)
	}
	noise = noise[:min(len(noise), mostNoise)]
	for _, i := range noise {
		for k := range i.said {
			if i.said[k].name = s.people.Character; i.said[k].role == lang.RoleUser {
				i.said[k].name = s.people.User
			}
		}
	}
	return noise, nil
}

// talk is one chat with all that was said, in the order of its days, and the noise evenly in
// between, dated so that time goes on.
func (s *probeSet) talk() *talk {
	var said []item
	for i := range s.probes {
		for _, one := range s.probes[i].said {
			said = append(said, item{said: []saying{one}})
		}
	}
	slices.SortStableFunc(said, func(a, b item) int { return a.said[0].at.Compare(b.said[0].at) })
	t := &talk{name: "probes", people: s.people, now: probesNow}
	for i, one := range said {
		t.items = append(t.items, one)
		from, to := one.said[0].at, probesNow
		if i+1 < len(said) {
			to = said[i+1].said[0].at
		}
		between := s.noise[len(s.noise)*i/len(said) : len(s.noise)*(i+1)/len(said)]
		for k, n := range between {
			for j := range n.said {
				n.said[j].at = from.Add(to.Sub(from) * time.Duration(k+1) / time.Duration(len(between)+1)).Truncate(time.Second)
			}
			t.items = append(t.items, n)
		}
	}
	return t
}

// kinds are those of the probes, in their order.
func (s *probeSet) kinds() (kinds []string) {
	for i := range s.probes {
		if !slices.Contains(kinds, s.probes[i].kind) {
			kinds = append(kinds, s.probes[i].kind)
		}
	}
	return kinds
}
