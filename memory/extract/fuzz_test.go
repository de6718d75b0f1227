package extract

import (
	"testing"

	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

func FuzzReadObject(f *testing.F) {
	for _, s := range []string{`{"facts":[]}`, "```json\n{\"facts\":1}\n```", `<think>x</think>{"facts":null}`, `{"a":"\"}{"facts":[{}]}`, "\ufeff{", "````"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		o, err := llm.ReadObject(reply, "facts")
		if (err == nil) != (o != nil) {
			t.Fatalf("object %v with error %v", o, err)
		}
		if err != nil {
			return
		}
		if _, has := o["facts"]; !has {
			t.Fatal("an object without the key")
		}
		w := window{Turns: memory.TurnsOf([]memory.Message{userSays(1, "I love sushi and 绿茶")}), Names: testNames}
		good, _, _ := w.read(o)
		for _, c := range good {
			if why := lang.Unsupported(c.Text, memory.Lines(w.all()), w.Names); why != "" {
				t.Fatalf("%q came through: %s", c.Text, why)
			}
		}
	})
}
