package stream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"nodest/stream"
)

// A delta that was said is, byte for byte, the event that would be encoded from
// its payload.
func checkSaid(t *testing.T, text, part, by string, off int) {
	t.Helper()
	data, err := json.Marshal(stream.Delta{Text: text, Part: part})
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1_773_489_600_123).UTC()
	usual := stream.Event{
		UserID: "u", Type: "gen.delta", ConversationID: "c", MessageID: "", GenerationID: "g\"<", Off: off, At: at, By: by, Data: data,
	}
	said := stream.Event{UserID: "u", ConversationID: "c", GenerationID: "g\"<", Off: off, At: at, By: by}
	said.Say(text, part)
	if got, want := string(said.Frame()), string(usual.Frame()); got != want {
		t.Errorf("frame of %q:\n%s\nwant\n%s", text, got, want)
	}
	if string(said.Data) != string(data) || said.Type != usual.Type {
		t.Errorf("data of %q: %s, want %s", text, said.Data, data)
	}
	want := *usual.Delta()
	want.Text = text // of invalid text the payload has U+FFFD
	if got := *said.Delta(); got != want {
		t.Errorf("delta of %q: %+v, want %+v", text, got, want)
	}
}

func TestSay(t *testing.T) {
	for _, text := range []string{
		"", " word", "„Grüße“, 你好 🙂", `a "b" \ c`, "<i>&amp;</i>", "line\nline\ttab\r\x00\x1f\x7f", "\u2028\u2029", "\xff\xfe", "\uFFFD",
		strings.Repeat("long ", 1000),
	} {
		for _, part := range []string{"text", "reasoning", ""} {
			checkSaid(t, text, part, "server", len(text))
		}
	}
	checkSaid(t, "x", "mem", "", 0)
}

func FuzzSay(f *testing.F) {
	f.Add("hello", "text", "server", 3)
	f.Add("\xf0\x9f\x99", "mem", "\u2028", 0)
	f.Fuzz(func(t *testing.T, text, part, by string, off int) {
		if strings.ToValidUTF8(part, "") != part {
			t.Skip("parts are names of ours")
		}
		checkSaid(t, text, part, by, off)
	})
}
