package record

import (
	"reflect"
	"strings"
	"testing"

	"nodest/card"
	"nodest/chat"
	"nodest/framework"
)

// built builds a prompt from lines of a chat that came from nowhere.
func built(t *testing.T, in framework.Input) *framework.Prompt {
	t.Helper()
	p, err := framework.Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lines(n int) (list []framework.Message) {
	for i := range n {
		list = append(list, framework.Message{
			ID: "id" + strings.Repeat("i", i+1), Role: []string{"user", "assistant"}[i%2], Name: "N",
			Text: strings.Repeat("word ", 20) + strings.Repeat("a", i),
		})
	}
	return list
}

// A stored prompt repeats no line, also where lines are merged with what stands beside them.
func TestAStoredPromptHasNoLineOfTheChat(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"apart": false, "merged": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Chat{lines: lines(60)}
			in := framework.Input{
				Sources: framework.Sources{Book: card.WorldBook{Entries: []card.Entry{
					{ID: "0", Content: "About the engine.", Constant: true, Position: card.AtDepth, Depth: 3},
				}}},
				History: c.lines[:59], User: c.lines[59], Options: framework.Options{StrictTurns: strict},
				Findings: framework.Findings{Memories: []framework.Memory{{ID: "m", Text: "Sam said: It rained on the day of the long walk to the old harbour. (2026-01-02)"}}},
			}
			p := built(t, in)
			recalled := []Recalled{{RevisionID: "m", Text: "It began. It rained on the day of the long walk to the old harbour.", Pieces: []string{"It rained on the day of the long walk to the old harbour."}}}
			body, err := Pack(p, c, recalled)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"word word", "rained"} {
				if strings.Contains(string(body), text) {
					t.Errorf("%q is in %s", text, body)
				}
			}
			if strings.Contains(string(body), `"`+c.lines[5].ID+`"`) {
				t.Errorf("it lists what was said: %s", body)
			}
		})
	}
}

// A text that no line has is stored as it was sent.
func TestAStoredPromptKeepsWhatNoLineHas(t *testing.T) {
	t.Parallel()
	said := lines(10)
	changed := append([]framework.Message(nil), said...)
	changed[3].Text, changed[3].ID = "changed by a script, so that it is not what was said any more", ""
	p := built(t, framework.Input{History: changed[:9], User: changed[9]})
	body, err := Pack(p, &Chat{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unpack(chat.Tx{}, "", body)
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got  %+v\nwant %+v\n%v", got, p, err)
	}
	if body, err = Pack(p, &Chat{lines: said}, nil); err != nil || !strings.Contains(string(body), changed[3].Text) || strings.Contains(string(body), "word word") {
		t.Errorf("%v: %s", err, body)
	}
}

func TestADamagedPromptIsAnError(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no JSON":               `{"messages":[`,
		"a line that is not":    `{"messages":[{"from":0,"run":1}]}`,
		"before the first line": `{"messages":[{"from":-1,"run":1}]}`,
		"too many":              `{"messages":[{"from":9223372036854775807,"run":9223372036854775807}]}`,
		"a cut of no line":      `{"messages":[{"role":"user","text":"a","cuts":[{"at":0,"line":0}]}]}`,
		"a cut before the text": `{"messages":[{"role":"user","text":"a","cuts":[{"at":-1,"line":0}]}]}`,
		"a cut behind the text": `{"messages":[{"role":"user","text":"a","cuts":[{"at":2,"line":0}]}]}`,
		"another text":          `{"messages":[{"role":"user","text":"a"}],"hash":1}`,
	} {
		if p, err := Unpack(chat.Tx{}, "", []byte(body)); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
