package llm

import (
	"strings"
	"testing"
)

// Ugly replies, read in three steps; nothing else is repaired.
func TestReadObject(t *testing.T) {
	const good = `{"facts":[{"text":"a"}]}`
	tests := []struct {
		name, reply string
		want        string // text of the first fact; "" = unreadable
	}{
		{"the whole reply", good, "a"},
		{"blanks and a mark around it", "\ufeff \n" + good + "\n", "a"},
		{"thoughts before it", "<think>{\"facts\":[{\"text\":\"wrong\"}]}</think>\n" + good, "a"},
		{"thoughts that the prompt has opened", "I write {\"facts\":[{\"text\":\"wrong\"}]} or so" + "</think>\n" + good, "a"},
		{"a fence with a tag", "Here it is:\n```json\n" + good + "\n```\nBye", "a"},
		{"a fence in capitals", "```JSON\n" + good + "```", "a"},
		{"a fence without a tag", "```\n" + good + "\n```", "a"},
		{"the second fence", "```json\n{\"x\":1}\n```\nor\n```json\n" + good + "\n```", "a"},
		{"a fence of another language", "```python\n{\"facts\":[{\"text\":\"b\"}]}\n```\n" + good, "b"}, // step three takes it
		{"an open fence", "```json\n" + good, "a"},
		{"inside a sentence", "Sure! " + good + " Hope this helps.", "a"},
		{"behind other objects", `{"note":"{"} {"x":{}} ` + good, "a"},
		{"wrapped", `{"result":` + good + `}`, "a"},
		{"braces and quotes in strings", `x {"facts":[{"text":"a"}],"why":"} \" {"} y`, "a"},
		{"an empty list", `{"facts":[]}`, "-"},
		{"a lone object", `{"facts":{"text":"a"}}`, "a"},
		{"another key", `{"memory":[]}`, ""},
		{"an array", `[{"text":"a"}]`, ""},
		{"cut off", `{"facts":[{"text":"a"}`, ""},
		{"a comma too many", `{"facts":[{"text":"a"},]}`, ""},
		{"single quotes", `{'facts':[]}`, ""},
		{"prose", "I could not find any facts.", ""},
		{"nothing", "", ""},
		{"null", "null", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := ReadObject(tt.reply, "facts")
			if (err == nil) != (tt.want != "") {
				t.Fatalf("error = %v", err)
			}
			if err != nil || tt.want == "-" {
				return
			}
			if got := ObjectOf(string(o.List("facts")[0]), "text").Text("text"); got != tt.want {
				t.Errorf("text = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMembersAreReadLeniently(t *testing.T) {
	o := ObjectOf(`{"s":" a\u0000b ","n":0.25,"ns":"0.75","i":[1.0,"2",3.5,null,{}],"one":7,"null":null,"o":{}}`, "")
	if got := o.Text("s"); got != "ab" {
		t.Errorf("text = %q", got)
	}
	if n, ok := o.Number("ns"); !ok || n != 0.75 {
		t.Errorf("number in a string = %v, %v", n, ok)
	}
	if _, ok := o.Number("null"); ok {
		t.Error("null is no number")
	}
	if got := o.Integers("i"); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("integers = %v", got)
	}
	if got := o.Integers("one"); len(got) != 1 || got[0] != 7 {
		t.Errorf("a lone integer = %v", got)
	}
	if got := o.Text("o") + o.Text("null") + o.Text("missing"); got != "" {
		t.Errorf("no text = %q", got)
	}
}

// A reply that is made to cost time is given up after scanBudget bytes.
func TestHostileRepliesCostLittle(t *testing.T) {
	for _, reply := range []string{
		strings.Repeat("{", 1<<18), strings.Repeat(`{"a":`, 1<<16), strings.Repeat(`{"`, 1<<17), strings.Repeat("```json", 1<<15),
		strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	} {
		if _, err := ReadObject(reply, "facts"); err == nil {
			t.Error("read something")
		}
	}
}

func TestThoughtsInFrontOfAnAnswerAreLeftOut(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"<think>a</think>\n[1]": "[1]", "a</think>[1]": "[1]", "<think>a</think><think>b</think>[1]": "[1]", "[1]": "[1]",
		"<think>a</think><think>b": "<think>b", "[1] <think>a</think>": "[1] <think>a</think>", `{"a":"</think>"}`: `{"a":"</think>"}`,
	} {
		if got := WithoutThoughts(reply); got != want {
			t.Errorf("%q: %q, want %q", reply, got, want)
		}
	}
}
