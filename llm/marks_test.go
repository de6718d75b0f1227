package llm_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

// pieces is a reply that comes in pieces, and an error behind them, or none.
func pieces(err error, texts ...string) llm.Generator {
	return llm.GeneratorFunc(func(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			for _, text := range texts {
				if !yield(llm.Chunk{Text: text}, nil) {
					return
				}
			}
			if err != nil {
				yield(llm.Chunk{}, err)
				return
			}
			yield(llm.Chunk{Last: true, Finish: llm.FinishStop}, nil)
		}
	})
}

func TestMarksOfModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, reply, want string }{
		{"Harmony", "<|channel|>analysis<|message|>Hard.<|end|><|start|>assistant<|channel|>final<|message|>One two.", "<think>Hard.</think>One two."},
		{"Harmony with both ends", "<|start|>assistant<|channel|>analysis<|message|>Hard.<|end|><|start|>assistant<|channel|>final<|message|>One <|two|>.<|return|>", "<think>Hard.</think>One <|two|>."},
		{"Harmony without thoughts", "<|channel|>final<|message|>One two.<|return|>", "One two."},
		{"Harmony, thoughts only", "<|channel|>analysis<|message|>Hard.", "<think>Hard."},
		{"Harmony, two thoughts and a call", "<|channel|>analysis<|message|>Hard.<|end|><|start|>assistant<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|><|start|>assistant<|message|>One.", "<think>Hard.</think><think>{}</think>One."},
		{"thought", "<thought>Hard.</thought>One two.", "<think>Hard.</think>One two."},
		{"thought in capitals, behind blanks", " \n<Thought>Hard.</THOUGHT>\n\nOne two.", "<think>Hard.</think>\n\nOne two."},
		{"thought about its own end", "<thought>a</though> b</thought>One", "<think>a</though> b</think>One"},
		{"thought that is not closed", "<thought>Hard.", "<think>Hard."},
		{"reasoning", "<reasoning>Hard.</reasoning>One two.", "<think>Hard.</think>One two."},
		{"Seed", "<seed:think>Hard.</seed:think>One two.", "<think>Hard.</think>One two."},
		{"Kimi", "◁think▷Hard.◁/think▷One two.", "<think>Hard.</think>One two."},
		{"Kimi, opened by the prompt", "Hard.◁/think▷One two.", "Hard.</think>One two."},
		{"Magistral", "[THINK]Hard.[/THINK]One two.", "<think>Hard.</think>One two."},
		{"OpenThinker", "<|begin_of_thought|>Hard.<|end_of_thought|><|begin_of_solution|>One two.<|end_of_solution|>", "<think>Hard.</think>One two."},
		{"the common tags", "<think>Hard.</think>One <thinking>hm</thinking> two.", "<think>Hard.</think>One <thinking>hm</thinking> two."},

		{"the end of ChatML", "One two.<|im_end|>", "One two."},
		{"the end of ChatML on a line", "One two.\n<|im_end|>\n", "One two.\n"},
		{"the end of Llama", "One two.<|eot_id|>", "One two."},
		{"the end of Phi", "One two.<|end|>", "One two."},
		{"the end of Mistral", "One two.</s>", "One two."},
		{"the end of Gemma", "One two.<end_of_turn>\n", "One two."},
		{"the end of DeepSeek", "One two.<｜end▁of▁sentence｜>", "One two."},
		{"two ends", "One two.<|im_end|><|endoftext|>", "One two."},
		{"many ends", "One two." + strings.Repeat("<|endoftext|>", 1000), "One two."},
		{"an end cut off", "One two.<|im_end|><|im_", "One two."},
		{"the end behind thoughts", "<thought>Hard.</thought>One two.<|im_end|>", "<think>Hard.</think>One two."},

		{"role-play about thoughts", "She says: <thought>hm</thought> [THINK] <|channel|>analysis", "She says: <thought>hm</thought> [THINK] <|channel|>analysis"},
		{"thoughts of a character", "“Sure.” [THINK]He lies.[/THINK] She left. ◁think▷Or not.◁/think▷", "“Sure.” [THINK]He lies.[/THINK] She left. ◁think▷Or not.◁/think▷"},
		{"a text that begins like Harmony", "<|start|>Hello, she said.", "<|start|>Hello, she said."},
		{"another one, with an end", "<|channel|>Seven news.<|end|>", "<|channel|>Seven news."},
		{"a long one", "<|channel|>final " + strings.Repeat("a", 300), "<|channel|>final " + strings.Repeat("a", 300)},
		{"Harmony cut off in a header", "<|channel|>analysis<|message|>Hard.<|end|><|start|>assist", "<think>Hard.</think>"},
		{"[thinking] in role-play", "[thinking] Well.", "[thinking] Well."},
		{"a longer word", "<thoughtful>Well.</thoughtful>", "<thoughtful>Well.</thoughtful>"},
		{"an end within", "One <|im_end|> two.", "One <|im_end|> two."},
		{"struck text", "One <s>two</s>", "One <s>two</s>"},
		{"struck text only", "<s>two</s>", "<s>two</s>"},
		{"the beginning of a mark", "One < two <", "One < two <"},
		{"the beginning of a mark only", "<tho", "<tho"},
		{"the beginning of a thought", "  <", "  <"},
		{"blanks first", strings.Repeat("\n", 1000) + "One", strings.Repeat("\n", 1000) + "One"},
	} {
		for how, texts := range map[string][]string{"whole": {c.reply}, "letter by letter": strings.Split(c.reply, "")} {
			r := llmtest.Read(t, llm.Marked(pieces(nil, texts...)).Stream(t.Context(), llm.Request{}))
			if r.Text != c.want || r.Err != nil {
				t.Errorf("%s, %s: %q, %v; want %q", c.name, how, r.Text, r.Err, c.want)
			}
		}
	}
}

// Text that was held back is kept when a reply breaks off.
func TestMarksOfAReplyThatBreaksOff(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	for _, reply := range []string{"One <|im_e", "<tho", "One.<|im_end|>", "  "} {
		r := llmtest.Read(t, llm.Marked(pieces(broken, reply)).Stream(t.Context(), llm.Request{}))
		if r.Text != reply || !errors.Is(r.Err, broken) {
			t.Errorf("%q: %q, %v", reply, r.Text, r.Err)
		}
	}
}

func TestNothingButTheEndOfATurnIsNoReply(t *testing.T) {
	t.Parallel()
	r := llmtest.Read(t, llm.Checked("test", pieces(nil, "<|im_", "end|>")).Stream(t.Context(), llm.Request{}))
	if !fault.Is(r.Err, fault.EmptyReply) {
		t.Errorf("%q, %v", r.Text, r.Err)
	}
}

// Text comes as soon as it is certain to be no mark.
func TestMarksHoldNoTextBack(t *testing.T) {
	t.Parallel()
	var got []string
	for c, err := range llm.Marked(pieces(nil, "One", " two", " <", "b>", "three")).Stream(t.Context(), llm.Request{}) {
		if got = append(got, c.Text); err != nil {
			t.Fatal(err)
		}
	}
	struck := llmtest.Read(t, llm.Marked(pieces(nil, "<s", "", ">two", "</s>")).Stream(t.Context(), llm.Request{}))
	if struck.Text != "<s>two</s>" {
		t.Errorf("struck text in pieces: %q", struck.Text)
	}
	if said := strings.Join(got, "|"); said != "One| two| |<b>|three|" {
		t.Errorf("%q", said)
	}
}

func FuzzMarks(f *testing.F) {
	f.Add("<|channel|>analysis<|message|>a<|end|>b", 3)
	f.Add(" <thought>a</thought>b<s>c</s><|im_end|>\n", 1)
	f.Add("a◁/think▷[/THINK]b<eos> <eo", 2)
	f.Fuzz(func(t *testing.T, reply string, size int) {
		if size < 1 || len(reply) > 250 || !utf8.ValidString(reply) { // more may be held back than that
			return
		}
		var texts []string
		for rest := []rune(reply); len(rest) > 0; { // no piece ends within a code point
			n := min(size, len(rest))
			texts = append(texts, string(rest[:n]))
			rest = rest[n:]
		}
		read := func(texts ...string) string {
			return llmtest.Read(t, llm.Marked(pieces(nil, texts...)).Stream(t.Context(), llm.Request{})).Text
		}
		whole := read(reply)
		if got := read(texts...); got != whole {
			t.Errorf("%q in pieces of %d: %q, whole %q", reply, size, got, whole)
		}
		if !strings.ContainsAny(reply, "<◁[") && whole != reply {
			t.Errorf("%q was changed to %q", reply, whole)
		}
	})
}
