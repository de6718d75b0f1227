package framework

import (
	"testing"

	"nodest/card"
)

func TestDiffNamesWhatDiffers(t *testing.T) {
	in := sample()
	a := build(t, in)
	if d := Diff(a, a); len(d.Changes) != 0 || d.Same != len(a.Entries) || d.Prefix != len(a.Messages) || d.Tokens != 0 {
		t.Errorf("with itself: %+v", d)
	}
	in = sample()
	in.Sources.Card.Personality = "warm and wordy"           // changed
	in.Sources.Book.Entries[3].Disable = true                // removed
	in.Sources.Book.Entries[1].Depth = 1                     // not even in
	in.Sources.Book.Entries[0].Depth = 6                     // moved
	in.Sources.Book.Entries[5].Key = []string{"How is"}      // added
	in.Findings.Memories = in.Findings.Memories[:1]          // a memory removed
	in.History = append(in.History[:8:8], in.History[9:]...) // a message removed
	in.Sources.Book.Entries[4].Position = card.AfterNote     // moved
	d := Diff(a, build(t, in))
	got := map[string]string{}
	for _, c := range d.Changes {
		got[c.Op+" "+string(c.Source)+" "+c.ID] = c.Old + "→" + c.New
	}
	for _, want := range []string{
		"changed card charPersonality", "removed worldbook 3", "moved worldbook 0", "added worldbook 5",
		"removed memory m2", "removed history " + chatOf(9)[8].ID,
	} {
		if _, ok := got[want]; !ok {
			t.Errorf("%q is missing in %v", want, got)
		}
		delete(got, want)
	}
	if got["changed user_message u"] == "" {
		t.Errorf("the text with the findings has changed: %v", got)
	}
	if d.Prefix == 0 || d.Prefix >= len(a.Messages) {
		t.Errorf("prefix of %d messages", d.Prefix)
	}
}
