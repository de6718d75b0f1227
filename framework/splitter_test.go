package framework

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// seeded returns a generator with a fixed seed; NODEST_SEED overrides it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv("NODEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("seed %d (NODEST_SEED)", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// split passes a reply's chunks to a Splitter and returns its output: text unchanged,
// blocks as ⟦part …⟧.
func split(chunks ...string) string {
	var s Splitter
	var b strings.Builder
	write := func(pieces []Piece) {
		for _, p := range pieces {
			switch p.State {
			case StateOpen:
				b.WriteString("⟦" + string(p.Part) + " ")
			case StateClose:
				b.WriteString("⟧")
			case StateThought:
				b.WriteString("⟸⟦" + p.Text + "⟧")
			case StateUnclosed:
				b.WriteString("…" + strconv.Quote(p.Text))
			default:
				b.WriteString(p.Text)
			}
		}
	}
	for _, c := range chunks {
		write(s.Feed(c))
	}
	write(s.Close())
	return b.String()
}

func TestSplitterFindsBlocks(t *testing.T) {
	for _, c := range []struct{ name, reply, want, visible string }{
		{"plain", "Hello.\n\n  Bye. \n", "Hello.\n\n  Bye. \n", "Hello.\n\n  Bye. \n"},
		{"in front", "<mem>\nI recall.\n</mem>\n\nHello.", "⟦mem I recall.⟧Hello.", "Hello."},
		{"at the end", "Hello.\n\n<mem>I recall.</mem>\n", "Hello.⟦mem I recall.⟧", "Hello."},
		{"between paragraphs", "A\n\n<mem>m</mem>\n\nB", "A⟦mem m⟧\n\nB", "A\n\nB"},
		{"between lines", "A\n<mem>m</mem>\nB", "A⟦mem m⟧\nB", "A\nB"},
		{"within a line", "A <mem>m</mem> B", "A⟦mem m⟧ B", "A B"},
		{"without white space", "A<mem>m</mem>B", "A⟦mem m⟧B", "AB"},
		{"both kinds", "<mem>m</mem>\n<websearch>w\n\nx</websearch>\nB", "⟦mem m⟧⟦websearch w\n\nx⟧B", "B"},
		{"two in a row between text", "A\n\n<mem>m</mem>\n<websearch>w</websearch> B", "A⟦mem m⟧⟦websearch w⟧\n\nB", "A\n\nB"},
		{"in any case, with blanks", "<MEM >m</Mem\n>B", "⟦mem m⟧B", "B"},
		{"never closed", "A\n<mem>m", "A⟦mem m…\"\\n\"", "A\nm"},
		{"never closed, alone", "<mem> I recall.\n\nHello. ", "⟦mem I recall.\n\nHello.…\"\"", "I recall.\n\nHello."},
		{"never closed behind a block", "A <mem>m</mem>\n<websearch>w", "A⟦mem m⟧⟦websearch w…\"\\n\"", "A\nw"},
		{"thoughts", "<think>\nHm, <mem>?</mem>\n</think>\n\nHello.", "⟦think Hm, <mem>?</mem>⟧Hello.", "Hello."},
		{"thoughts by the longer name", "<Thinking>Hm</thinking >Hello.", "⟦think Hm⟧Hello.", "Hello."},
		{"thoughts never closed", "Hello. <think>What else", "Hello.⟦think What else…\" \"", "Hello."},
		{"nothing but thoughts never closed", "<think>Well, hello", "⟦think Well, hello…\"\"", "Well, hello"},
		{"thoughts that the prompt has opened", "Hm, tea?\n\nYes. </think>\n\nHello.", "Hm, tea?\n\nYes.⟸⟦Hm, tea?\n\nYes.⟧Hello.", "Hello."},
		{"such thoughts about tags", "I put it in <mem> tags. <mem>m</mem></think>A <mem>m</mem>", "I put it in⟦mem tags. m⟧⟸⟦I put it in <mem> tags. <mem>m</mem>⟧A⟦mem m⟧", "A"},
		{"no thoughts that the prompt has opened", "</think>\nHello.", "⟸⟦⟧Hello.", "Hello."},
		{"closed twice", "<think>Hm</think>A</think>B", "⟦think Hm⟧AB", "AB"},
		{"a tag that begins like one", "<thinker>x</thinker> <thin", "<thinker>x</thinker> <thin", "<thinker>x</thinker> <thin"},
		{"the other one opens", "<mem>m<websearch>w</websearch>B", "⟦mem m⟧⟦websearch w⟧B", "B"},
		{"opened twice", "<mem>a<mem>b</mem>B", "⟦mem ab⟧B", "B"},
		{"closed without opening", "A</mem>B", "AB", "AB"},
		{"other tags are text", "<memo> <mem/> < mem> <b>x</b> 1<2 <", "<memo> <mem/> < mem> <b>x</b> 1<2 <", "<memo> <mem/> < mem> <b>x</b> 1<2 <"},
		{"a tag that ends too soon", "A <mem", "A <mem", "A <mem"},
		{"empty block", "A\n<mem> </mem>\nB", "A⟦mem ⟧\nB", "A\nB"},
		{"only a block", "<mem>m</mem>", "⟦mem m⟧", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := split(c.reply); got != c.want {
				t.Errorf("in one piece: %q, want %q", got, c.want)
			}
			if got := split(strings.Split(c.reply, "")...); got != c.want {
				t.Errorf("letter by letter: %q, want %q", got, c.want)
			}
			if got := StripBlocks(c.reply); got != c.visible {
				t.Errorf("visible: %q, want %q", got, c.visible)
			}
		})
	}
}

func TestSplitterGivesTextAsSoonAsItIsCertain(t *testing.T) {
	var s Splitter
	for _, step := range []struct{ chunk, want string }{
		{"Hello ", "Hello"}, {"you", " you"}, {" <", ""}, {"m", ""}, {"ore", " <more"}, {"</", ""}, {"b>", "</b>"},
	} {
		got := ""
		for _, p := range s.Feed(step.chunk) {
			got += p.Text
		}
		if got != step.want {
			t.Errorf("after %q: %q, want %q", step.chunk, got, step.want)
		}
	}
}

// Random replies, cut at random places, are split the same.
func TestSplitterDoesNotDependOnTheChunks(t *testing.T) {
	r := seeded(t)
	tokens := []string{"<mem>", "</mem>", "<websearch>", "</websearch>", "<mem", ">", "<think>", "</think>", "<thinking>", "<think", "<", "/", "a", "字", " ", "\n", "\n\n", "</MEM >", "web"}
	for range 3000 {
		var reply strings.Builder
		for range r.IntN(12) {
			reply.WriteString(tokens[r.IntN(len(tokens))])
		}
		whole := split(reply.String())
		rest, chunks := reply.String(), []string(nil)
		for rest != "" {
			n := 1 + r.IntN(len(rest))
			chunks = append(chunks, rest[:n])
			rest = rest[n:]
		}
		if got := split(chunks...); got != whole {
			t.Fatalf("%q in chunks %q: %q, whole: %q", reply.String(), chunks, got, whole)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add("A <mem>\nm</mem> B<websearch>w", 3)
	f.Add("</mem <<mem>>", 1)
	f.Fuzz(func(t *testing.T, reply string, size int) {
		if size < 1 || len(reply) > 10_000 {
			return
		}
		var chunks []string
		for rest := reply; rest != ""; {
			n := min(size, len(rest))
			chunks = append(chunks, rest[:n])
			rest = rest[n:]
		}
		if got, want := split(chunks...), split(reply); got != want {
			t.Errorf("in chunks %q, whole %q", got, want)
		}
		if !strings.Contains(reply, "<") && split(reply) != reply {
			t.Error("a reply without tags was changed")
		}
	})
}
