package dream

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/memory"
	"nodest/memory/lang"
)

var heard = []memory.Message{
	{Evidence: memory.Evidence{MessageID: "m1", RevisionID: "r1", Seq: 1}, Role: lang.RoleUser, Text: "Yesterday I bought a red bicycle, and I love it."},
	{Evidence: memory.Evidence{MessageID: "m2", RevisionID: "r2", Seq: 2}, Role: lang.RoleCharacter, Text: "How nice! I sail to Lisbon in May."},
	{Evidence: memory.Evidence{MessageID: "m3", RevisionID: "r3", Seq: 3}, Role: lang.RoleUser, Text: "我昨天买了一辆红色的自行车。"},
}

func FuzzReadNotes(f *testing.F) {
	for _, seed := range []string{
		`{"notes":[{"text":"User bought a red bicycle.","kind":"event","seqs":[1]}]}`,
		"Sure! Here it is:\n```json\n{\"notes\":[{\"text\":\"User bought a red bicycle.\",\"seqs\":[1]}]}\n```\nAnything else?",
		`<think>{"notes":[]}</think>{"notes":[{"text":"User bought a red bicycle.","seqs":["1"]}]}`,
		`{"notes":[{"text":"User bought a red bicycle.","seqs":[1]},{"text":"User bou`,
		`{"answer":{"notes":[{"text":"User bought a red bicycle.","seqs":[1]}]}}`,
		`{"notes":{"text":"User bought a red bicycle.","seqs":1}}`,
		`{"notes":["User bought a red bicycle.",7,null,[],{"text":7,"seqs":{}},{"text":null},{"seqs":[1]}]}`,
		`{"notes":"User bought a red bicycle."}`, `{"notes":null}`, `{"notes":[]}`, ``, `null`, `[]`, `{`,
		`{"notes":[{"text":"User bought a red bicycle.","seqs":[9,-1,1e99,1]}]}`,
		`{"notes"：[{"text"："用户买了一辆红色的自行车。"，"seqs"：[3]}]}`,
		`｛“notes”：［｛“text”：“用户买了一辆红色的自行车。”，“seqs”：［3］｝］｝`,
		`{"notes":[{"text":"用户买了一辆红色的自行车。","seqs":[3],"kind":"事件"}]}`,
		`{"notes":[{"text":"- User bought\n a red\tbicycle.","seqs":[1]},{"text":"# <b>User</b> bought a red bicycle.","seqs":[1]}]}`,
	} {
		f.Add(seed)
	}
	names := lang.Names{User: "Mia", Character: "Alice"}
	f.Fuzz(func(t *testing.T, reply string) {
		notes, err := readNotes(reply, heard, names, nil)
		if err != nil && notes != nil || len(notes) > mostNotes {
			t.Fatalf("%d notes, %v", len(notes), err)
		}
		for _, n := range notes {
			if n.Text == "" || utf8.RuneCountInString(n.Text) > longestLine || strings.ContainsAny(n.Text, "\r\n") || !slices.Contains(lang.Kinds, lang.Kind(n.Kind)) {
				t.Errorf("the note %+v", n)
			}
			var sources []lang.Line
			for _, m := range n.Messages {
				at := slices.IndexFunc(heard, func(h memory.Message) bool { return h.Seq == m.Sequence && h.RevisionID == m.RevisionID })
				if at < 0 {
					t.Fatalf("a message that there is not: %+v", m)
				}
				sources = append(sources, heard[at].Line())
			}
			if len(sources) == 0 || lang.Unsupported(n.Text, sources, names) != "" {
				t.Errorf("nobody said %q", n.Text)
			}
		}
	})
}

// The forms in which models wrap what they were asked for are read all the same.
func TestNotesAreReadInAnyForm(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]int{
		"```json\n{\"notes\":[{\"text\":\"User bought a red bicycle.\",\"seqs\":[1]}]}\n```":                         1,
		`Of course: {"notes":[{"text":"User bought a red bicycle.","seqs":["1"]}]}`:                                  1,
		`{"notes":{"text":"User bought a red bicycle.","seqs":1}}`:                                                   1,
		`{"data":{"notes":[{"text":"User bought a red bicycle.","seqs":[1]}]}}`:                                      1,
		`{"notes":[{"text":"用户买了一辆红色的自行车。","seqs":[3]}]}`:                                                            1,
		`{"notes":[{"text":"User bought a red bicycle.","seqs":[9,1]},{"text":"User owns a castle.","seqs":[1]},7]}`: 1,
		`{"notes":[{"text":"User bought a red bicycle.","seqs":[9]}]}`:                                               0,
		`{"notes":[]}`: 0,
	} {
		notes, err := readNotes(reply, heard, lang.Names{User: "Mia", Character: "Alice"}, nil)
		if err != nil || len(notes) != want {
			t.Errorf("%s: %+v, %v", reply, notes, err)
		}
	}
	for _, reply := range []string{``, `I cannot do that.`, `{"notes":"none"}`, `{"notes":[{"text":"User bought`, `[]`, `{"updates":[]}`} {
		if notes, err := readNotes(reply, heard, lang.Names{}, nil); err == nil {
			t.Errorf("%s: %+v", reply, notes)
		}
	}
}

// A character that quotes its memory is no witness: of the user it is none at all, and of itself only
// for what no document has.
func TestWhatDreamsWroteIsNeverEvidence(t *testing.T) {
	t.Parallel()
	lines := func(texts ...string) (d *Document) {
		d = &Document{Path: "self.md"}
		for _, text := range texts {
			d.Lines = append(d.Lines, Line{Text: text, Author: ByDream})
		}
		return d
	}
	known := []*Document{lines("Alice sails to Lisbon in May."), {Path: Archive, Lines: lines("Alice plays the harp on Sundays.").Lines}}
	say := func(role lang.Role, seq int64, text string) memory.Message {
		return memory.Message{Evidence: memory.Evidence{MessageID: "m", RevisionID: "r", Seq: seq}, Role: role, Text: text}
	}
	messages := []memory.Message{
		say(lang.RoleUser, 1, "Yesterday I bought a red bicycle."),
		say(lang.RoleCharacter, 2, "You have a cat named Tom, and you sold your old piano. I play the harp on Sundays."),
		say(lang.RoleUser, 3, "The weather is nice today."),
		say(lang.RoleCharacter, 4, "I sail to Lisbon in May. I will learn to juggle with knives."),
		say(lang.RoleUser, 5, "I also have a cat named Tim."),
	}
	for text, want := range map[string]bool{
		`User bought a red bicycle.","seqs":[1]`:                  true,
		`User has a cat named Tom.","seqs":[2]`:                   false,
		`User has a cat named Tom.","seqs":[2,3]`:                 false,
		`Mia sold the old piano.","seqs":[2,3]`:                   false,
		`User has a cat named Tim.","seqs":[5]`:                   true,
		`Alice sails to Lisbon in May.","seqs":[4]`:               false,
		`Alice plays the harp on Sundays.","seqs":[2]`:            false,
		`Alice will learn to juggle with knives.","seqs":[4]`:     true,
		`The cat of the house is named Tom.","seqs":[2]`:          false,
		`Alice will learn to juggle with knives.","seqs":[1,3,4]`: true,
	} {
		notes, err := readNotes(`{"notes":[{"text":"`+text+`}]}`, messages, lang.Names{User: "Mia", Character: "Alice"}, known)
		if err != nil || (len(notes) == 1) != want {
			t.Errorf("%s: %+v, %v", text, notes, err)
		}
	}
}

func FuzzReadUpdates(f *testing.F) {
	for _, seed := range []string{
		`{"updates":[{"path":"user.md","do":"add","text":"User bought a red bicycle.","notes":[1]}]}`,
		"```\n{\"updates\":[{\"path\":\"user.md\",\"do\":\"change\",\"line\":\"L2\",\"text\":\"User's cat is named Tim now.\",\"notes\":[2]}]}\n```",
		`Done. {"updates":[{"path":"user.md","do":"remove","line":"L1"},{"path":"user.md","do":"remove","line":"L2"},{"path":"user.md","do":"remove","line":"L3"}]} Good night!`,
		`{"updates":[{"path":"user.md","new_content":"User bought a red bicycle.\n\n# Pets\n- User's cat is named Tim now."}]}`,
		`{"updates":[{"path":"user.md","new_content":""},{"path":"locked.md","new_content":"x"},{"path":"archive.md","do":"add","text":"x"}]}`,
		`{"updates":[{"path":"../../etc/passwd","do":"add","text":"User bought a red bicycle.","notes":[1]},{"path":"USER.MD"},{"path":""}]}`,
		`{"updates":[{"path":7,"do":[],"line":{},"text":true,"notes":"1"},null,"x",{"path":"user.md","new_content":{"a":1}}]}`,
		`{"updates":{"path":"user.md","do":"add","text":"User bought a red bicycle.","notes":1}}`,
		`{"result":{"updates":[{"path":"user.md","do":"add","text":"User bought a red bicycle.","notes":["1",99,-5,1e300]}]}}`,
		`{"updates":[{"path":"user.md","do":"change","line":"L99","text":"x","notes":[1]}]}`,
		`{"updates":[{"path":"user.md","do":"add","text":"User bou`,
		`｛“updates”：［｛“path”：“user.md”，“do”：“add”｝］｝`,
		`{"updates":[{"path":"user.md","do":"add","text":"用户买了一辆红色的自行车。","notes":[1]}]}`,
		`{"updates":"none"}`, `{"updates":[]}`, `null`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		b := knownAlready()
		locked := &Document{Path: "locked.md", Version: 1, Newest: 1, Made: 1, Locked: true, Lines: []Line{{ID: "L1", Text: "Mine.", Author: ByUser}}}
		b.Documents = append(b.Documents, locked)
		updates, err := readUpdates(reply, &b)
		if err != nil && updates != nil || len(updates) > 2*mostUpdates {
			t.Fatalf("%d updates, %v", len(updates), err)
		}
		plan := Apply(b, updates)
		for _, d := range plan.Documents {
			ids := map[string]bool{}
			for _, l := range d.Lines {
				if ids[l.ID] || strings.ContainsAny(l.Text, "\r\n") || !utf8.ValidString(l.Text) {
					t.Errorf("%s has the line %+v", d.Path, l)
				}
				ids[l.ID] = true
			}
			switch {
			case d.Path == "locked.md", !pathForm.MatchString(d.Path), d.Size() > MaxText:
				t.Errorf("%s was written: %d", d.Path, d.Size())
			case d.Path == "user.md" && (d.Lines[0].Text != "User keeps bees in the garden." || float64(d.Size()) < floorShare*float64(b.Best["user.md"])):
				t.Errorf("%+v", d.Lines)
			}
		}
		if _, err := json.Marshal(plan.Changes); err != nil {
			t.Error(err)
		}
	})
}

// A whole text is the difference to the document, whatever its line is called.
func TestUpdatesAreReadInAnyForm(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"```json\n{\"updates\":[{\"path\":\"user.md\",\"do\":\"add\",\"text\":\"User bought a red bicycle.\",\"notes\":[\"1\"]}]}\n```":                          "add ",
		`Here: {"updates":{"path":"user.md","do":"remove","line":"L2"}}`:                                                                                         "remove L2",
		`{"updates":[{"path":"user.md","new_content":"User keeps bees in the garden.\n* User's cat is named Tim.\nUser plays the cello every Sunday."}]}`:        "change L2",
		`{"updates":[{"path":"user.md","new_content":"# All\nUser keeps bees in the garden\n\nUser has a cat named Tom.\nUser plays the cello every Sunday."}]}`: "",
		`{"updates":[{"do":"add","text":"User bought a red bicycle."},7,null]}`:                                                                                  "",
	} {
		b := knownAlready()
		updates, err := readUpdates(reply, &b)
		var got []string
		for _, u := range updates {
			got = append(got, string(u.Do)+" "+u.Line)
		}
		if err != nil || strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, %v", reply, got, err)
		}
	}
	for _, reply := range []string{``, `No.`, `{"updates":"none"}`, `{"updates":[{"path":"user.md","do":"add","text":"User bou`, `{"notes":[]}`} {
		b := knownAlready()
		if updates, err := readUpdates(reply, &b); err == nil {
			t.Errorf("%s: %+v", reply, updates)
		}
	}
}
