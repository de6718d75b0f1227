package dream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/memory"
	"nodest/memory/lang"
)

var night = time.Date(2026, 3, 14, 4, 0, 0, 0, time.UTC)

func said(n int, text string) Note {
	return Note{Text: text, Evidence: []memory.Evidence{{ConversationID: "c", MessageID: "m", RevisionID: fmt.Sprint("r", n), Seq: int64(n)}}}
}

// knownAlready is a memory with a document that both have written.
func knownAlready() Basis {
	d := &Document{Path: "user.md", Version: 1, Newest: 1, Made: 3, Lines: []Line{
		{ID: "L1", Text: "User keeps bees in the garden.", Author: ByUser},
		{ID: "L2", Text: "User has a cat named Tom.", Author: ByDream},
		{ID: "L3", Text: "User plays the cello every Sunday.", Author: ByDream},
	}}
	return Basis{
		Documents: []*Document{d}, Best: map[string]int{"user.md": d.Size()}, RunID: "run", Now: night, Names: lang.Names{User: "Mia", Character: "Alice"},
		Notes: []Note{said(1, "User bought a red bicycle."), said(2, "User's cat is named Tim now, no longer Tom."), said(3, "User wants to visit Lisbon in May.")},
	}
}

func textsOf(p Plan, path string) (texts []string) {
	for _, d := range p.Documents {
		if d.Path == path {
			for _, l := range d.Lines {
				texts = append(texts, l.Text)
			}
		}
	}
	return texts
}

// The rules say what a run may do with a line, and why not.
func TestRulesOfLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		update  Update
		change  func(b *Basis)
		refused string
	}{
		{"what was said is added", Update{Path: "user.md", Do: Add, Text: "- User bought a red bicycle.", Notes: []int{0}}, nil, ""},
		{"a new document", Update{Path: "threads.md", Do: Add, Text: "User wants to visit Lisbon in May.", Notes: []int{2}}, nil, ""},
		{"a change that notes support", Update{Path: "user.md", Do: Modify, Line: "L2", Text: "User has a cat named Tim.", Notes: []int{1}}, nil, ""},
		{"a removal above the floor", Update{Path: "user.md", Do: Remove, Line: "L2"}, nil, ""},
		{"nothing was said", Update{Path: "user.md", Do: Add, Text: "User bought a red bicycle."}, nil, reasonEvidence},
		{"something else was said", Update{Path: "user.md", Do: Add, Text: "User owns a yacht in Monaco.", Notes: []int{0}}, nil, reasonEvidence},
		{"a note that there is not", Update{Path: "user.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{-1, 7}}, nil, reasonEvidence},
		{"it is known", Update{Path: "self.md", Do: Add, Text: "user keeps bees in the garden", Notes: []int{0}}, nil, reasonKnown},
		{"a part of it is known", Update{Path: "user.md", Do: Add, Text: "User has a cat.", Notes: []int{0}}, nil, reasonKnown},
		{"the user's line is changed", Update{Path: "user.md", Do: Modify, Line: "L1", Text: "User bought a red bicycle.", Notes: []int{0}}, nil, reasonUser},
		{"the user's line is removed", Update{Path: "user.md", Do: Remove, Line: "L1"}, nil, reasonUser},
		{"a locked document", Update{Path: "user.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) { b.Documents[0].Locked = true }, reasonLocked},
		{"below the floor", Update{Path: "user.md", Do: Remove, Line: "L2"}, func(b *Basis) { b.Best["user.md"] = 120 }, reasonFloor},
		{"a change below the floor", Update{Path: "user.md", Do: Modify, Line: "L3", Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) { b.Best["user.md"] = 140 }, reasonFloor},
		{"forgotten words", Update{Path: "user.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) {
			b.Tombstones = []memory.Tombstone{{ContentHash: lang.ContentHash("User bought a red bicycle.")}}
		}, reasonForgotten},
		{"no such line", Update{Path: "user.md", Do: Remove, Line: "L9"}, nil, reasonLine},
		{"no such document", Update{Path: "self.md", Do: Remove, Line: "L1"}, nil, reasonPath},
		{"a folder", Update{Path: "../user.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, nil, reasonPath},
		{"the archive", Update{Path: Archive, Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, nil, reasonPath},
		{"no text", Update{Path: "user.md", Do: Add, Text: " ", Notes: []int{0}}, nil, reasonShape},
		{"a long text", Update{Path: "user.md", Do: Add, Text: strings.Repeat("red bicycle ", 50), Notes: []int{0}}, nil, reasonShape},
		{"a full document", Update{Path: "user.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) {
			b.Documents[0].Lines = append(b.Documents[0].Lines, Line{ID: "L4", Text: strings.Repeat("x", MaxText-95), Author: ByUser})
		}, reasonFull},
		{"too many documents", Update{Path: "more.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) {
			for i := range MaxOthers {
				b.Documents = append(b.Documents, &Document{Path: fmt.Sprintf("d%d.md", i)})
			}
		}, "there are 4 documents besides the default ones already"},
		{"a default one beside many", Update{Path: "threads.md", Do: Add, Text: "User bought a red bicycle.", Notes: []int{0}}, func(b *Basis) {
			for i := range MaxOthers {
				b.Documents = append(b.Documents, &Document{Path: fmt.Sprintf("d%d.md", i)})
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := knownAlready()
			if tt.change != nil {
				tt.change(&b)
			}
			p := Apply(b, []Update{tt.update})
			if len(p.Changes) != 1 || p.Changes[0].Refused != tt.refused || (len(p.Documents) > 0) != (tt.refused == "") {
				t.Errorf("%+v, %d documents; want %q", p.Changes, len(p.Documents), tt.refused)
			}
		})
	}
}

// A line that is removed is in the archive with its document and its evidence, and the oldest ones
// make room there.
func TestRemovedLinesAreFiled(t *testing.T) {
	t.Parallel()
	b := knownAlready()
	b.Documents[0].Lines[1].Evidence = b.Notes[0].Evidence
	full := &Document{Path: Archive, Version: 1, Newest: 1, Made: 2, Lines: []Line{{ID: "L1", Text: strings.Repeat("x", 4000)}, {ID: "L2", Text: strings.Repeat("y", 3990)}}}
	b.Documents = append(b.Documents, full)
	p := Apply(b, []Update{{Path: "user.md", Do: Remove, Line: "L2"}})
	if got := textsOf(p, Archive); len(got) != 2 || got[1] != "User has a cat named Tom." {
		t.Fatalf("the archive: %q", got)
	}
	l := p.Documents[0].Lines[1]
	if l.ID != "L3" || l.From != "user.md" || !slices.Equal(l.Evidence, b.Notes[0].Evidence) || !slices.Equal(p.Changes[0].Evidence, b.Notes[0].Evidence) {
		t.Errorf("%+v, %+v", l, p.Changes)
	}
	if len(full.Lines) != 2 || len(b.Documents[0].Lines) != 3 {
		t.Error("the basis has changed")
	}
}

// Whatever a model answers, the user's lines stay word for word, and no document falls below its
// floor.
func TestNoUpdatesHarmWhatTheUserWrote(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := knownAlready()
		var updates []Update
		for range rng.IntN(20) {
			updates = append(updates, Update{
				Path: []string{"user.md", "self.md", "archive.md", "x"}[rng.IntN(4)], Do: []Do{Add, Modify, Remove, "wipe"}[rng.IntN(4)],
				Line: fmt.Sprint("L", rng.IntN(5)), Text: []string{"", "User bought a red bicycle.", "x", "User's cat is named Tim now."}[rng.IntN(4)], Notes: []int{rng.IntN(5) - 1},
			})
		}
		for _, d := range Apply(b, updates).Documents {
			if d.Path != "user.md" {
				continue
			}
			if d.Lines[0].Text != "User keeps bees in the garden." || float64(d.Size()) < floorShare*float64(b.Documents[0].Size()) {
				t.Fatalf("%+v: %+v", updates, d.Lines)
			}
		}
	}
}

// The best size is that of 30 days, and none before the user wrote the document.
func TestBestSizes(t *testing.T) {
	t.Parallel()
	ago := func(days int) time.Time { return night.AddDate(0, 0, -days) }
	for _, tt := range []struct {
		name     string
		versions []Version
		want     int
	}{
		{"the largest", []Version{{Version: 1, Size: 50, At: ago(3)}, {Version: 2, Size: 90, At: ago(2)}, {Version: 3, Size: 60, At: ago(1)}}, 90},
		{"in force 30 days ago", []Version{{Version: 1, Size: 99, At: ago(50)}, {Version: 2, Size: 90, At: ago(40)}, {Version: 3, Size: 60, At: ago(1)}}, 90},
		{"since the user wrote it", []Version{{Version: 1, Size: 90, At: ago(3)}, {Version: 2, Size: 30, Author: ByUser, At: ago(2)}, {Version: 3, Size: 40, At: ago(1)}}, 40},
	} {
		for i := range tt.versions {
			tt.versions[i].Path = "user.md"
		}
		if got := BestSizes(tt.versions, night)["user.md"]; got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Only the lines that the user changed in a text that they send back are theirs.
func TestOnlyChangedLinesBecomeTheUsers(t *testing.T) {
	t.Parallel()
	d := knownAlready().Documents[0]
	d.Lines[1].Evidence = said(1, "").Evidence
	for text, want := range map[string]string{
		d.Text(): "L1 user, L2 dream, L3 dream",
		"User keeps bees in the garden.\nUser has a dog.\nUser plays the cello every Sunday.":                             "L1 user, L2 user, L3 dream",
		"New\nUser keeps bees in the garden.\nUser has a cat named Tom.\nNew too\r\nUser plays the cello every Sunday.\n": "L4 user, L1 user, L2 dream, L5 user, L3 dream, L6 user",
		"User plays the cello every Sunday.": "L3 dream",
		"":                                   "",
	} {
		next := d.edited(text, night)
		var got []string
		for _, l := range next.Lines {
			got = append(got, l.ID+" "+string(l.Author))
		}
		if strings.Join(got, ", ") != want || next.Text() != strings.ReplaceAll(text, "\r\n", "\n") {
			t.Errorf("%q: %q, %q; want %q", text, got, next.Text(), want)
		}
	}
}
