// Package bench has the measurements behind "nodest bench". Each one prints its figures;
// none fails for being slow.
package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/framework"
)

// The size of the chat and the book that Framework builds prompts from. The
// original app needed 2.5 ms with a window of 20 messages and 270 to 470 ms over
// all of them.
const (
	frameworkMessages = 1000
	frameworkEntries  = 500
	frameworkDepth    = 352 // of the entries: in the chat
)

// Framework measures the building of prompts and prints one line per measurement:
// the median time of a run, allocations and bytes of one run. It needs neither
// network nor data.
func Framework(out io.Writer) error { return measureFramework(out, frameworkMessages, 0) }

// measureFramework is Framework for a chat of another length; runs = 0 repeats
// each measurement for measureFor.
func measureFramework(out io.Writer, messages, runs int) error {
	f := newFrameworkChat(messages)
	fmt.Fprintf(out, "prompt building: %d messages (%d kB), %d entries (%d in the chat), %d keys\n",
		messages, f.bytes()/1000, frameworkEntries, frameworkDepth, f.keys())
	t := &table{out: out, runs: runs}
	compiled := framework.Compile(f.sources)
	texts := f.texts()
	t.row("compile the documents (once per version)", func() { framework.Compile(f.sources) })
	t.row("key scan, last 20 messages", func() { compiled.Matches(texts[len(texts)-20:], nil) })
	t.row("key scan, all messages", func() { compiled.Matches(texts, nil) })

	for _, scan := range []struct {
		name  string
		depth int
	}{{"scan over 20", 20}, {"scan over all", -1}} {
		in := f.input(compiled)
		in.Options.ScanDepth = scan.depth
		t.build("whole build, "+scan.name+", estimated tokens, nothing cached", in)
		in.Options.Tokenizer = "o200k_base"
		t.cold("whole build, "+scan.name+", o200k_base, nothing cached", in)
		in.Cache = framework.NewCache(0)
		t.build("whole build, "+scan.name+", o200k_base, tokens cached", in)
		t.turns("a further turn, "+scan.name+", o200k_base", in)
	}
	for _, length := range []int{messages, 10 * messages} {
		long := newFrameworkChat(length)
		in := long.input(framework.Compile(long.sources))
		in.Options.Context, in.Options.Tokenizer, in.Cache = 64_000, "o200k_base", framework.NewCache(0)
		t.turns(fmt.Sprintf("a further turn, budget of 64,000 tokens, %d messages", length), in)
	}
	p, err := framework.Build(f.input(compiled))
	if err != nil {
		return err
	}
	t.row("store a prompt (Compact)", func() { p.Compact() })
	fmt.Fprintf(out, "stored prompt: %d kB for %d kB of text in %d messages\n",
		len(p.Compact())/1000, promptBytes(p)/1000, len(p.Messages))
	return t.err
}

// frameworkChat is a chat and the documents of its character.
type frameworkChat struct {
	sources framework.Sources
	history []framework.Message
}

func newFrameworkChat(messages int) *frameworkChat {
	f := &frameworkChat{}
	f.sources.Card = card.RoleCard{
		Name: "Mara", Description: strings.Repeat("Captain of the salvage ship Kestrel, grey-eyed and patient. ", 20),
		Personality: "dry humour", Scenario: "Deep space.", FirstMes: "Welcome aboard, {{user}}.", MesExample: "{{char}}: \"Never trust a quiet engine.\"",
	}
	for i := range frameworkEntries {
		e := card.Entry{
			ID: fmt.Sprint(i), Comment: fmt.Sprintf("lore %d", i), Order: float64(i % 10), Depth: i % 12,
			Content:  strings.Repeat(fmt.Sprintf("The beacon %d stands on the moon of {{char}}. ", i), 4),
			Constant: i%10 == 0, Key: []string{fmt.Sprintf("beacon %d", i), fmt.Sprintf("灯塔%d号", i), fmt.Sprintf("keeper%d", i)},
		}
		switch {
		case i < frameworkDepth:
			e.Position = card.AtDepth
		default:
			e.Position = card.Position(i % 2)
		}
		f.sources.Book.Entries = append(f.sources.Book.Entries, e)
	}
	f.history = append(f.history, framework.Message{ID: frameworkID(0), Role: "assistant", Text: "Welcome aboard, {{user}}.", Greeting: true})
	for i := 1; i < messages; i++ {
		f.history = append(f.history, frameworkMessage(i))
	}
	return f
}

func frameworkID(i int) string { return fmt.Sprintf("0193f000-0000-7000-8000-%012x", i) }

// frameworkMessage is a message of some 300 characters, now and then with a key.
func frameworkMessage(i int) framework.Message {
	m := framework.Message{ID: frameworkID(i), Role: "user"}
	if i%2 == 0 {
		m.Role = "assistant"
	}
	m.Text = fmt.Sprintf("%d: We drift past the wreck and I count the lights again. ", i) +
		strings.Repeat("The corridor is cold, the engine hums, and nobody answers the radio. ", 3) + "我们继续往前走吧。"
	if i%17 == 0 {
		m.Text += fmt.Sprintf(" Is that beacon %d?", i%frameworkEntries)
	}
	return m
}

func (f *frameworkChat) input(c *framework.Compiled) framework.Input {
	return framework.Input{
		Compiled: c, History: f.history, Persona: framework.Persona{Name: "Sam"},
		User:     framework.Message{ID: frameworkID(len(f.history)), Text: "Tell me about beacon 7 and keeper21."},
		Note:     &card.AuthorNote{Text: "Keep the tension high.", Depth: 3},
		Findings: framework.Findings{Memories: []framework.Memory{{ID: "m1", Text: "Sam is afraid of the dark."}}},
	}
}

func (f *frameworkChat) texts() []string {
	var texts []string
	for _, m := range f.history {
		texts = append(texts, m.Text)
	}
	return texts
}

func (f *frameworkChat) bytes() int {
	n := 0
	for _, m := range f.history {
		n += len(m.Text)
	}
	return n
}

func (f *frameworkChat) keys() int {
	n := 0
	for _, e := range f.sources.Book.Entries {
		n += len(e.Key)
	}
	return n
}

func promptBytes(p *framework.Prompt) int {
	n := 0
	for _, m := range p.Messages {
		n += len(m.Text)
	}
	return n
}

// table prints measurements.
type table struct {
	out  io.Writer
	runs int // of each measurement; 0 = as many as fit into measureFor
	err  error
}

// measureFor is how long a measurement is repeated.
const measureFor = 300 * time.Millisecond

func (t *table) build(name string, in framework.Input) {
	t.row(name, func() { t.once(in) })
}

func (t *table) once(in framework.Input) *framework.Prompt {
	p, err := framework.Build(in)
	if err != nil && t.err == nil {
		t.err = err
	}
	return p
}

// cold measures a single run: the tokenizer's vocabulary is read before.
func (t *table) cold(name string, in framework.Input) {
	framework.CountTokens(in.Options.Tokenizer, "warm")
	t.measure(name, 1, func(int) { t.once(in) })
}

// turns measures builds of which each has two messages more than the one before;
// the prompt before is compared with.
func (t *table) turns(name string, in framework.Input) {
	turns := 100
	if t.runs > 0 {
		turns = t.runs
	}
	inputs := make([]framework.Input, turns)
	history := slices.Clone(in.History)
	for i := range inputs {
		history = append(history, frameworkMessage(len(history)), frameworkMessage(len(history)+1))
		inputs[i] = in
		inputs[i].History = history
	}
	previous := t.once(in)
	t.measure(name, turns, func(i int) {
		inputs[i].Previous = previous.Hashes
		if p := t.once(inputs[i]); p != nil {
			previous = p
		}
	})
}

func (t *table) row(name string, run func()) {
	if t.runs > 0 {
		t.measure(name, t.runs, func(int) { run() })
		return
	}
	run() // caches and the allocator warm up
	start := time.Now()
	run()
	n := int(measureFor/max(time.Since(start), time.Microsecond)) + 1
	t.measure(name, min(n, 2000), func(int) { run() })
}

func (t *table) measure(name string, n int, run func(i int)) {
	var before, after runtime.MemStats
	times := make([]time.Duration, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range times {
		start := time.Now()
		run(i)
		times[i] = time.Since(start)
	}
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	fmt.Fprintf(t.out, "%-68s %10.3f ms %8d allocs %10d B\n", name, float64(times[n/2])/1e6,
		(after.Mallocs-before.Mallocs)/uint64(n), (after.TotalAlloc-before.TotalAlloc)/uint64(n))
}
