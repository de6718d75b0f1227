// Package bench has the measurements behind "nodest-bench". Each one prints its figures;
// none fails for being slow.
package bench

import (
	"context"
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
	frameworkDepth    = 352 // depth of the entries: in the chat
)

// Framework measures the building of prompts and prints one line per measurement:
// the median time of a run, allocations and bytes of one run. It needs neither
// network nor data.
func Framework(ctx context.Context, out io.Writer) error {
	return measureFramework(ctx, out, frameworkMessages, 300*time.Millisecond)
}

// measureFramework is Framework for a chat of another length, with each measurement
// repeated for another time.
func measureFramework(ctx context.Context, out io.Writer, messages int, each time.Duration) error {
	fmt.Fprintf(out, "prompt building: %d messages, %d entries (%d in the chat)\n", messages, frameworkEntries, frameworkDepth)
	f := newFrameworkChat(messages)
	t := &table{ctx: ctx, out: out, each: each}
	compiled := framework.Compile(f.sources)
	var texts []string
	for _, m := range f.history {
		texts = append(texts, m.Text)
	}
	t.row("compile the documents (once per version)", func() { framework.Compile(f.sources) })
	t.row("key scan, last 20 messages", func() { t.scan(compiled, texts[len(texts)-20:]) })
	t.row("key scan, all messages", func() { t.scan(compiled, texts) })

	for _, scan := range []struct {
		name  string
		depth int
	}{{"scan over 20", 20}, {"scan over all", -1}} {
		in := f.input(compiled)
		in.Options.ScanDepth = scan.depth
		t.row("whole build, "+scan.name+", estimated tokens, nothing cached", func() { t.build(in) })
		in.Options.Tokenizer, in.Cache = "o200k_base", framework.NewCache(0)
		t.row("whole build, "+scan.name+", o200k_base, tokens cached", func() { t.build(in) })
		t.turns("a further turn, "+scan.name+", o200k_base", in)
	}
	for _, length := range []int{messages, 10 * messages} {
		long := newFrameworkChat(length)
		in := long.input(framework.Compile(long.sources))
		in.Options.Context, in.Options.Tokenizer, in.Cache = 64_000, "o200k_base", framework.NewCache(0)
		t.turns(fmt.Sprintf("a further turn, budget of 64,000 tokens, %d messages", length), in)
	}
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

// table prints measurements.
type table struct {
	ctx  context.Context
	out  io.Writer
	each time.Duration // how long a measurement is repeated
	err  error
}

func (t *table) scan(c *framework.Compiled, texts []string) {
	if _, err := c.Matches(t.ctx, texts, nil); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) build(in framework.Input) *framework.Prompt {
	p, err := framework.Build(t.ctx, in)
	if err != nil && t.err == nil {
		t.err = err
	}
	return p
}

// turns measures builds, each with two more messages than the one before and compared
// with its prompt.
func (t *table) turns(name string, in framework.Input) {
	inputs := make([]framework.Input, 100)
	history := slices.Clone(in.History)
	for i := range inputs {
		history = append(history, frameworkMessage(len(history)), frameworkMessage(len(history)+1))
		inputs[i] = in
		inputs[i].History = history
	}
	previous := t.build(in)
	t.measure(name, len(inputs), func(i int) {
		inputs[i].Previous = previous.Hashes
		if p := t.build(inputs[i]); p != nil {
			previous = p
		}
	})
}

func (t *table) row(name string, run func()) {
	run() // caches and the allocator warm up
	start := time.Now()
	run()
	n := int(t.each/max(time.Since(start), time.Microsecond)) + 1
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
