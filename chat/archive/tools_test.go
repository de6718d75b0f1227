package archive

import (
	"testing"

	"nodest/chat"
)

// The trace of the tools that a text used survives its way through a file; one that cannot be is refused.
func TestTheTraceOfToolsIsChecked(t *testing.T) {
	good := chat.ToolTrace{Rounds: 2, Searches: []chat.ToolSearch{{Query: "a\x00b", Hits: 3, Repeated: true}}, Reads: []string{"f1"}, Path: "tools"}
	var c checker
	got := c.tools("texts[0]", &good)
	if got.Rounds != 2 || got.Path != "tools" || len(got.Searches) != 1 || !got.Searches[0].Repeated || got.Reads[0] != "f1" {
		t.Errorf("the trace is %+v", got)
	}
	if c.tools("texts[0]", nil) != nil {
		t.Error("a text without tools has a trace")
	}
}
