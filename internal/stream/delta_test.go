package stream_test

import (
	"encoding/json"
	"testing"
	"time"

	"nodest/internal/stream"
)

func TestADeltaHasItsTextAndOffset(t *testing.T) {
	for _, text := range []string{"", " word", "„Grüße“, 你好 🙂", `a "b" \ c`, "<i>&amp;</i>", "line\nline\ttab\r\x00\x7f", "\u2028\u2029"} {
		e := stream.Event{GenerationID: "g", Off: 3, At: time.UnixMilli(5), By: "server"}
		e.Say(text, "reasoning")
		var frame struct {
			Ev   string
			Off  int
			Data stream.Delta
		}
		if err := json.Unmarshal(e.Frame(), &frame); err != nil || frame.Ev != "gen.delta" || frame.Off != 3 {
			t.Errorf("frame of %q: %s %v", text, e.Frame(), err)
		}
		if d := e.Delta(); frame.Data.Text != text || frame.Data.Part != "reasoning" || d.Text != text || d.Part != "reasoning" || d.Runes != len([]rune(text)) {
			t.Errorf("delta of %q: %s %+v", text, e.Frame(), *d)
		}
	}
}
