package summary_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"time"

	"nodest/framework"
	"nodest/internal/sharedtest"
	"nodest/internal/summary"
	"nodest/llm"
)

// vectorPart is a message in the format of the original. A summary has the fields of
// its document as well.
type vectorPart struct {
	Role   string `json:"role"`
	Parts  []struct{ Text string }
	DEntry bool `json:"is_d_entry"`

	IsSummary bool             `json:"isMemorySummary"`
	Document  *summary.Summary `json:"-"`
}

func (p *vectorPart) UnmarshalJSON(data []byte) error {
	type plain vectorPart
	if err := json.Unmarshal(data, (*plain)(p)); err != nil || !p.IsSummary {
		return err
	}
	p.Document = new(summary.Summary)
	return json.Unmarshal(data, p.Document)
}

func (p *vectorPart) text() string {
	if len(p.Parts) == 0 {
		return ""
	}
	return p.Parts[0].Text
}

type summaryInput struct {
	Parts    []vectorPart
	Settings summary.Settings
}

type summaryOutput struct {
	Summarised bool
	Parts      []vectorPart
	Transcript *string
}

// The recorded summaries of the original, whose model answered "SUMMARY", are
// reproduced. Its D entries, which were counted there, are dropped; for chats with
// such entries only the decision is compared.
func TestGoldenSummary(t *testing.T) {
	sharedtest.Replay(t, "nodest/summary.json", replaySummary)
}

func replaySummary(t *testing.T, v sharedtest.Vector[summaryInput, summaryOutput]) {
	want := v.Output
	lines, active, dropped := vectorLines(v.Input.Parts)
	plan := summary.MakePlan(summary.State{Lines: lines, Active: active, Settings: v.Input.Settings})
	if done := plan.Skip == ""; done != want.Summarised {
		t.Fatalf("summarised = %v (%s), want %v", done, plan.Skip, want.Summarised)
	}
	if dropped {
		return
	}
	if want.Summarised {
		w, err := plan.Work(lines, active)
		if err != nil {
			t.Fatal(err)
		}
		if got := summary.Transcript(w.Lines, time.UTC); want.Transcript != nil && got != *want.Transcript {
			t.Errorf("transcript\n%s\nwant\n%s", got, *want.Transcript)
		}
		active = plan.Summary(w, summary.Draft{Text: "SUMMARY", Method: summary.MethodModel})
	}
	got := vectorParts(summary.View(lines, active))
	var wanted [][2]string
	for _, p := range want.Parts {
		wanted = append(wanted, [2]string{p.Role, p.text()})
		if p.IsSummary {
			if p.Document.Text != active.Text || p.Document.Range.Start != active.Range.Start || p.Document.Range.End != active.Range.End {
				t.Errorf("summary %+v, want %+v", active, p.Document)
			}
		}
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("view\n%q\nwant\n%q", got, wanted)
	}
}

// vectorLines turns the messages of a vector into a branch. A summary among them is
// the active one: of the messages it covers only the last one is there, without a
// text.
func vectorLines(parts []vectorPart) (lines []summary.ChatLine, active *summary.Summary, dropped bool) {
	seq := 0
	add := func(l summary.ChatLine) {
		l.MessageID = "m" + strconv.Itoa(seq)
		l.RevisionID = l.MessageID
		l.Seq = int64(seq)
		lines = append(lines, l)
		seq++
	}
	for _, p := range parts {
		switch {
		case p.DEntry:
			dropped = true
		case p.IsSummary:
			active = p.Document
			active.Range.StartID, active.Range.StartSeq = "m"+strconv.Itoa(active.Range.Start), int64(active.Range.Start)
			active.Range.EndID, active.Range.EndSeq = "m"+strconv.Itoa(active.Range.End), int64(active.Range.End)
			active.Method = summary.MethodModel
			seq = active.Range.End
			add(summary.ChatLine{Role: llm.Assistant})
		case p.Role == "model":
			add(summary.ChatLine{Role: llm.Assistant, Text: p.text()})
		default:
			add(summary.ChatLine{Role: llm.User, Text: p.text()})
		}
	}
	return lines, active, dropped
}

// vectorParts is a view in the format of the original, where the user sends the
// summary.
func vectorParts(view []framework.Message) [][2]string {
	var parts [][2]string
	for _, m := range view {
		role := "user"
		if m.Role == string(llm.Assistant) {
			role = "model"
		}
		parts = append(parts, [2]string{role, m.Text})
	}
	return parts
}
