package tavern

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/internal/sharedtest"
	"nodest/llm"
)

// wireMessage is a message of the vectors.
type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Name    string          `json:"name"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

func (w *wireMessage) message(t *testing.T, called map[string]string) llm.Message {
	m := llm.Message{Role: llm.Role(w.Role), Name: w.Name}
	for _, c := range w.Calls {
		called[c.ID] = c.Function.Name
		m.Calls = append(m.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	var parts []struct {
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	switch {
	case len(w.Content) == 0:
	case w.Content[0] == '[':
		if err := json.Unmarshal(w.Content, &parts); err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			m.Text += p.Text
			if kind, data, ok := strings.Cut(strings.TrimPrefix(p.Image.URL, "data:"), ";base64,"); ok {
				image, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					t.Fatal(err)
				}
				m.Images = append(m.Images, llm.Image{ContentType: kind, Data: image})
			}
		}
	default:
		if err := json.Unmarshal(w.Content, &m.Text); err != nil {
			t.Fatal(err)
		}
	}
	if w.Role == "tool" {
		m.Result = &llm.ToolResult{CallID: w.CallID, Name: called[w.CallID], Text: m.Text}
		m.Text = ""
	}
	return m
}

// geminiContent is a message of the answer of a vector for Gemini.
type geminiContent struct {
	Role  string
	Parts []struct {
		Text   string
		Inline *struct {
			Type string `json:"mimeType"`
			Data string
		} `json:"inlineData"`
		Call *struct {
			Name string
			Args json.RawMessage
		} `json:"functionCall"`
		Response *struct {
			Name     string
			Response struct{ Content string }
		} `json:"functionResponse"`
	}
}

// contentOf is what a message says in the terms of the API.
func contentOf(m llm.Message) (role string, parts []string) {
	role = "user"
	if m.Role == llm.Assistant {
		role = "model"
	}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	for _, image := range m.Images {
		parts = append(parts, image.ContentType+" "+base64.StdEncoding.EncodeToString(image.Data))
	}
	for _, c := range m.Calls {
		parts = append(parts, "call "+c.Name+c.Arguments)
	}
	if m.Result != nil {
		parts = append(parts, "result "+m.Result.Name+" "+m.Result.Text)
	}
	return role, parts
}

func (c *geminiContent) said() (role string, parts []string) {
	for _, p := range c.Parts {
		switch {
		case p.Inline != nil:
			parts = append(parts, p.Inline.Type+" "+p.Inline.Data)
		case p.Call != nil:
			var args bytes.Buffer
			_ = json.Compact(&args, p.Call.Args)
			parts = append(parts, "call "+p.Call.Name+args.String())
		case p.Response != nil:
			parts = append(parts, "result "+p.Response.Name+" "+p.Response.Response.Content)
		default:
			parts = append(parts, p.Text)
		}
	}
	return c.Role, parts
}

func TestGoldenProvider(t *testing.T) {
	type input struct {
		Messages []wireMessage
		System   *bool  `json:"use_system_instruction"`
		Type     string `json:"type"`
		Char     string `json:"char_name"`
		User     string `json:"user_name"`
	}
	type output struct {
		Contents []geminiContent
		System   geminiContent `json:"system_instruction"`
		Messages []wireMessage
	}
	sharedtest.Replay(t, "sillytavern/provider.json", func(t *testing.T, v sharedtest.Vector[input, output]) {
		called := map[string]string{}
		var in, want []llm.Message
		for _, m := range v.Input.Messages {
			in = append(in, m.message(t, called))
		}
		for _, m := range v.Output.Messages {
			want = append(want, m.message(t, called))
		}
		if v.Input.System == nil {
			got, places := arrange(in, turnsOf(v.Input.Type), v.Input.User, v.Input.Char)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			checkPlaces(t, in, got, places)
			return
		}
		turns := TurnsUser
		if *v.Input.System {
			turns = TurnsGemini
		}
		got, places := arrange(in, turns, v.Input.User, v.Input.Char)
		checkPlaces(t, in, got, places)
		var system []string
		for len(got) > 0 && got[0].Role == llm.System {
			system, got = append(system, got[0].Text), got[1:]
		}
		if _, want := v.Output.System.said(); !slices.Equal(system, want) {
			t.Errorf("system %q, want %q", system, want)
		}
		if len(got) != len(v.Output.Contents) {
			t.Fatalf("%d contents %+v, want %d", len(got), got, len(v.Output.Contents))
		}
		for i, want := range v.Output.Contents {
			role, parts := contentOf(got[i])
			wantRole, wantParts := want.said()
			if role != wantRole || !slices.Equal(parts, wantParts) {
				t.Errorf("content %d: %s %q, want %s %q", i, role, parts, wantRole, wantParts)
			}
		}
	})
}

// checkPlaces checks that each text is where its place says.
func checkPlaces(t *testing.T, before, after []llm.Message, places []llm.Place) {
	t.Helper()
	for i, p := range places {
		text := []rune(after[p.Message].Text)
		if p.At > len(text) || !strings.HasPrefix(string(text[p.At:]), before[i].Text) {
			t.Errorf("message %d is not at %+v", i, p)
		}
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("s:a|u:b|a:c|s:d|s:", "strict")
	f.Add("a:剑|a:c|e:x|s:d", "gemini")
	f.Add("", "single")
	f.Fuzz(func(t *testing.T, text, form string) {
		roles := map[string]llm.Message{
			"s": {Role: llm.System}, "u": {Role: llm.User}, "a": {Role: llm.Assistant, Name: "Eve"}, "e": {Role: llm.System, Name: exampleUser},
		}
		var in []llm.Message
		for part := range strings.SplitSeq(text, "|") {
			role, said, _ := strings.Cut(part, ":")
			if m, ok := roles[role]; ok && utf8.ValidString(said) {
				m.Text = said
				in = append(in, m)
			}
		}
		for _, turns := range []Turns{turnsOf(form), TurnsGemini, TurnsUser, TurnsStrict} {
			got, places := arrange(slices.Clone(in), turns, "Bob", "Alice")
			checkPlaces(t, in, got, places)
			if turns != TurnsStrict {
				continue
			}
			for i, m := range got {
				if i > 0 && m.Role == llm.System || i > 1 && m.Role == got[i-1].Role && m.Text != "" {
					t.Fatalf("%q becomes %+v", text, got)
				}
			}
		}
	})
}
