package extract

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
)

// cosine is the similarity of the offline embedding.
func cosine(a, b string) float64 {
	e, err := offline.Embedder{}.Embed(context.Background(), llm.Similarity, []string{a, b})
	if err != nil {
		panic(err)
	}
	sum := 0.0
	for i, x := range e.Vectors[0] {
		sum += float64(x) * float64(e.Vectors[1][i])
	}
	return sum
}

var monday = sunday.AddDate(0, 0, 1)

// stored returns an active memory about the user.
func stored(id, text string, kind lang.Kind) memory.Memory {
	return memory.Memory{
		ID: id, RootID: id, Version: 1, ConversationID: "old", Text: text, Subject: lang.AboutUser, Kind: kind, Importance: 0.5,
		Evidence: []memory.Evidence{{ConversationID: "old", MessageID: "m-" + id, RevisionID: "r-" + id, Seq: 1}}, Origin: memory.ByModel, Standing: memory.Standing{Status: memory.Active}, Sightings: memory.Sightings{SeenCount: 1, LastSeenAt: sunday},
		ContentHash: lang.ContentHash(text),
	}
}

// stated returns a candidate about the user, from message seq.
func stated(seq int64, text string, kind lang.Kind) candidate {
	m := userSays(seq, text)
	return candidate{Text: text, Subject: lang.AboutUser, Kind: kind, Importance: 0.5, Evidence: []memory.Evidence{m.Evidence}, Origin: memory.ByModel, At: sunday}
}

func guarded(m memory.Memory, by string) memory.Memory {
	switch by {
	case "pinned":
		m.Pinned = true
	case "locked":
		m.Locked = true
	default:
		m.Origin = memory.ByUser
	}
	return m
}

// changeLines lists the changes of a plan, one per line.
func changeLines(p plan) []string {
	out := []string{}
	for _, c := range p.Changes {
		switch c.Op {
		case opAdd:
			out = append(out, "add "+c.New.Text)
		case opReplace:
			out = append(out, "replace "+c.OldID+" "+c.New.Text)
		case opSuggest:
			out = append(out, strings.TrimSpace(fmt.Sprintf("suggest %s %s %s", c.OldID, c.Suggestion.Event, c.Suggestion.Text)))
		case opDrop:
			out = append(out, "drop: "+c.Reason)
		default:
			out = append(out, string(c.Op)+" "+c.OldID)
		}
	}
	return out
}

// Every decision of a model has its effect, and wrong ones do no harm.
func TestApply(t *testing.T) {
	t.Parallel()
	loves, hates := stored("1", "User loves coffee", lang.KindPreference), stated(9, "User hates coffee", lang.KindPreference)
	paris, berlin := stored("2", "User lives in Paris", lang.KindProfile), stated(9, "User lives in Berlin", lang.KindProfile)
	dog := stored("3", "User has a dog called Rex", lang.KindProfile)
	tests := []struct {
		name       string
		active     []memory.Memory
		candidates []candidate
		decisions  []decision
		tombstones []memory.Tombstone
		want       []string
	}{
		{"ADD", nil, []candidate{berlin}, []decision{{memory.EventAdd, 0, "", ""}}, nil, []string{"add User lives in Berlin"}},
		{"ADD of what is known word for word", []memory.Memory{paris}, []candidate{stated(9, "user lives in PARIS.", lang.KindProfile)},
			[]decision{{memory.EventAdd, 0, "", ""}}, nil, []string{"seen 2"}},
		{"ADD of what was forgotten", nil, []candidate{berlin}, []decision{{memory.EventAdd, 0, "", ""}},
			[]memory.Tombstone{{ContentHash: lang.ContentHash("User lives in Berlin")}}, []string{"drop: " + reasonForgotten}},
		{"ADD in other words of what was forgotten", nil, []candidate{berlin}, []decision{{memory.EventAdd, 0, "", ""}},
			[]memory.Tombstone{{ContentHash: "x", Evidence: berlin.Evidence}}, []string{"drop: " + reasonForgotten}},
		{"ADD of a new statement after one was forgotten", nil, []candidate{berlin}, nil,
			[]memory.Tombstone{{ContentHash: "x", Evidence: paris.Evidence}}, []string{"add User lives in Berlin"}},
		{"ADD of what is no candidate", nil, []candidate{berlin}, []decision{{memory.EventAdd, -1, "", "User owes me money"}}, nil,
			[]string{"drop: " + lang.ReasonUnsupported, "add User lives in Berlin"}},

		{"UPDATE", []memory.Memory{paris}, []candidate{berlin}, []decision{{memory.EventUpdate, 0, "2", "User lives in Berlin"}}, nil,
			[]string{"replace 2 User lives in Berlin"}},
		{"UPDATE joins old and new", []memory.Memory{dog}, []candidate{stated(9, "Rex is 3 years old", lang.KindProfile)},
			[]decision{{memory.EventUpdate, 0, "3", "User has a dog called Rex, Rex is 3 years old"}}, nil,
			[]string{"replace 3 User has a dog called Rex, Rex is 3 years old"}},
		{"UPDATE with a text that nobody said", []memory.Memory{paris}, []candidate{berlin},
			[]decision{{memory.EventUpdate, 0, "2", "User lives in Berlin and is a convicted thief from Lyon"}}, nil,
			[]string{"replace 2 User lives in Berlin"}},
		{"UPDATE that leaves out the new", []memory.Memory{dog}, []candidate{stated(9, "Rex is 3 years old", lang.KindProfile)},
			[]decision{{memory.EventUpdate, 0, "3", "User has a dog"}}, nil, []string{"replace 3 Rex is 3 years old"}},
		{"UPDATE of an unknown memory is ADD", []memory.Memory{paris}, []candidate{stated(9, "User plays chess", lang.KindPreference)},
			[]decision{{memory.EventUpdate, 0, "77", ""}}, nil, []string{"add User plays chess"}},
		{"UPDATE of something else is ADD", []memory.Memory{dog}, []candidate{stated(9, "User plays chess", lang.KindPreference)},
			[]decision{{memory.EventUpdate, 0, "3", "User plays chess"}}, nil, []string{"add User plays chess"}},
		{"UPDATE to what another memory says", []memory.Memory{paris, stored("4", "User lives in Berlin", lang.KindProfile)}, []candidate{berlin},
			[]decision{{memory.EventUpdate, 0, "2", ""}}, nil, []string{"seen 4", "retire 2"}},
		{"UPDATE with the same text counts", []memory.Memory{paris}, []candidate{stated(9, "User lives in Paris", lang.KindProfile)},
			[]decision{{memory.EventUpdate, 0, "2", ""}}, nil, []string{"seen 2"}},

		{"DELETE with the opposite stores the opposite", []memory.Memory{loves}, []candidate{hates}, []decision{{memory.EventDelete, 0, "1", ""}}, nil,
			[]string{"retire 1", "add User hates coffee"}},
		{"DELETE that names no candidate", []memory.Memory{loves}, []candidate{hates}, []decision{{memory.EventDelete, -1, "1", "User loves coffee"}}, nil,
			[]string{"retire 1", "add User hates coffee"}},
		{"DELETE and NONE for the same", []memory.Memory{loves}, []candidate{hates},
			[]decision{{memory.EventDelete, 0, "1", ""}, {memory.EventNone, 0, "1", ""}}, nil, []string{"retire 1", "add User hates coffee"}},
		{"DELETE of an unknown memory is NONE", []memory.Memory{loves}, []candidate{berlin}, []decision{{memory.EventDelete, 0, "77", ""}}, nil,
			[]string{"add User lives in Berlin"}},
		{"DELETE that nothing calls for", []memory.Memory{loves}, []candidate{berlin}, []decision{{memory.EventDelete, 0, "1", ""}}, nil,
			[]string{"drop: " + reasonUnfounded, "add User lives in Berlin"}},
		{"DELETE without anything said", []memory.Memory{loves}, nil, []decision{{memory.EventDelete, -1, "1", ""}}, nil,
			[]string{"drop: " + reasonUnfounded}},
		{"DELETE of what was said again", []memory.Memory{loves}, []candidate{stated(9, "User loves coffee", lang.KindPreference)},
			[]decision{{memory.EventDelete, 0, "1", ""}}, nil, []string{"seen 1", "drop: " + reasonUnfounded}},
		{"DELETE of what was said again afterwards", []memory.Memory{loves}, []candidate{hates, stated(11, "User loves coffee", lang.KindPreference)},
			[]decision{{memory.EventDelete, 0, "1", ""}, {memory.EventAdd, 0, "", ""}}, nil,
			[]string{"seen 1", "drop: " + reasonRepeated, "add User hates coffee"}},
		{"DELETE twice", []memory.Memory{loves, paris}, []candidate{hates}, []decision{{memory.EventDelete, 0, "1", ""}, {memory.EventDelete, 0, "1", ""}}, nil,
			[]string{"retire 1", "add User hates coffee"}},

		{"NONE", []memory.Memory{paris}, []candidate{stated(9, "User lives in the city of Paris", lang.KindProfile)}, []decision{{memory.EventNone, 0, "2", ""}}, nil,
			[]string{"seen 2"}},
		{"NONE about the opposite", []memory.Memory{loves}, []candidate{hates}, []decision{{memory.EventNone, 0, "1", ""}}, nil,
			[]string{"replace 1 User hates coffee"}},
		{"NONE about another value", []memory.Memory{paris}, []candidate{berlin}, []decision{{memory.EventNone, 0, "2", ""}}, nil,
			[]string{"replace 2 User lives in Berlin"}},
		{"NONE about something else loses nothing", []memory.Memory{loves}, []candidate{berlin}, []decision{{memory.EventNone, 0, "1", ""}}, nil,
			[]string{"add User lives in Berlin"}},
		{"NONE of an unknown memory loses nothing", nil, []candidate{berlin}, []decision{{memory.EventNone, 0, "77", ""}}, nil,
			[]string{"add User lives in Berlin"}},
		{"a candidate that no decision covers", []memory.Memory{loves}, []candidate{berlin}, []decision{{memory.EventNone, -1, "1", ""}}, nil,
			[]string{"add User lives in Berlin"}},

		{"twice in one run", nil, []candidate{berlin, stated(11, "User lives in  Berlin!", lang.KindProfile)}, nil, nil,
			[]string{"add User lives in Berlin", "drop: " + reasonDuplicate}},
		{"otherwise later in one run", nil, []candidate{berlin, stated(11, "User moved to Porto", lang.KindProfile)}, nil, nil,
			[]string{"add User lives in Berlin", "replace  User moved to Porto"}},
		{"and back again", []memory.Memory{paris}, []candidate{berlin, stated(11, "User moved back to Paris", lang.KindProfile)}, nil, nil,
			[]string{"replace 2 User lives in Berlin", "replace  User moved back to Paris"}},
		{"otherwise earlier in one run", nil, []candidate{stated(11, "User moved to Porto", lang.KindProfile), berlin}, nil, nil,
			[]string{"add User moved to Porto", "drop: " + reasonOlder}},
		{"and then what was known", []memory.Memory{paris}, []candidate{berlin, stated(11, "User lives in Paris", lang.KindProfile)}, nil, nil,
			[]string{"seen 2", "drop: " + reasonRepeated}},
		{"two of a kind in one run", nil, []candidate{stated(9, "User likes Rome", lang.KindPreference), stated(11, "User likes Oslo", lang.KindPreference)}, nil, nil,
			[]string{"add User likes Rome", "add User likes Oslo"}},
		{"said before what is known", []memory.Memory{stored("5", "User lives in Oslo", lang.KindProfile)}, []candidate{
			{Text: "User lives in Berlin", Subject: lang.AboutUser, Kind: lang.KindProfile, Evidence: []memory.Evidence{{ConversationID: "old", MessageID: "m0", RevisionID: "r0"}}}},
			nil, nil, []string{"drop: " + reasonOlder}},
		{"from the message that it is known from", []memory.Memory{paris}, []candidate{
			{Text: "User lives in Paris", Subject: lang.AboutUser, Kind: lang.KindProfile, Evidence: paris.Evidence}},
			nil, nil, []string{"drop: " + reasonKnownHere}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := basis{Active: tt.active, Candidates: tt.candidates, Decisions: tt.decisions, Tombstones: tt.tombstones, Similar: cosine, Names: testNames, Now: monday}
			p := apply(b)
			if !slices.Equal(changeLines(p), tt.want) || p.Held {
				t.Errorf("got %q (held %v), want %q", changeLines(p), p.Held, tt.want)
			}
			if again := apply(b); !reflect.DeepEqual(p, again) {
				t.Error("the same basis gives another plan")
			}
			for _, c := range p.Changes {
				if c.New != nil {
					if err := c.New.Validate(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// Memories that the user pinned, locked or wrote change only with the user's consent.
func TestApplyOnlySuggestsChangesToGuardedMemories(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"pinned", "locked", "user"} {
		loves, paris := guarded(stored("1", "User loves coffee", lang.KindPreference), by), guarded(stored("2", "User lives in Paris", lang.KindProfile), by)
		hates, berlin := stated(9, "User hates coffee", lang.KindPreference), stated(9, "User lives in Berlin", lang.KindProfile)
		tests := []struct {
			name       string
			candidates []candidate
			decisions  []decision
			want       []string
		}{
			{"UPDATE", []candidate{berlin}, []decision{{memory.EventUpdate, 0, "2", ""}}, []string{"suggest 2 UPDATE User lives in Berlin"}},
			{"DELETE", []candidate{hates}, []decision{{memory.EventDelete, 0, "1", ""}, {memory.EventAdd, 0, "", ""}},
				[]string{"suggest 1 DELETE", "add User hates coffee"}},
			{"by rule", []candidate{berlin}, nil, []string{"suggest 2 UPDATE User lives in Berlin"}},
			{"said again", []candidate{stated(9, "User loves coffee", lang.KindPreference)}, nil, []string{"seen 1"}},
		}
		for _, tt := range tests {
			b := basis{Active: []memory.Memory{loves, paris}, Candidates: tt.candidates, Decisions: tt.decisions, Similar: cosine, Now: monday}
			p := apply(b)
			if !slices.Equal(changeLines(p), tt.want) {
				t.Errorf("%s, %s: got %q, want %q", by, tt.name, changeLines(p), tt.want)
			}
			if s := p.Changes[0].Suggestion; s != nil {
				b.Suggested = map[string]bool{s.Key(): true}
				if again := changeLines(apply(b)); again[0] != "drop: "+reasonSuggested {
					t.Errorf("%s, %s: suggested twice: %q", by, tt.name, again)
				}
			}
		}
	}
}

func TestApplyHoldsARunThatWouldRetireTooMuch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		active, deletes int
		held            bool
	}{{1, 1, false}, {4, 2, true}, {10, 2, false}, {10, 3, true}, {25, 5, false}, {25, 25, true}} {
		var active []memory.Memory
		var decisions []decision
		for i := range tt.active {
			active = append(active, stored(fmt.Sprint(i), fmt.Sprintf("User has coffee mug number %d", i+20), lang.KindProfile))
		}
		for i := range tt.deletes {
			decisions = append(decisions, decision{memory.EventDelete, 0, fmt.Sprint(i), ""})
		}
		p := apply(basis{Active: active, Candidates: []candidate{stated(9, "User broke every coffee mug", lang.KindProfile)}, Decisions: decisions, Similar: cosine, Now: monday})
		if p.Held != tt.held {
			t.Errorf("%d of %d retired: held = %v", tt.deletes, tt.active, p.Held)
		}
	}
}

// A new version keeps the fact's properties, and a retirement keeps its evidence.
func TestVersionsAndRetirementsKeepTheirEvidence(t *testing.T) {
	t.Parallel()
	old := stored("7", "User lives in Paris", lang.KindProfile)
	old.RootID, old.Version, old.SeenCount, old.Importance = "1", 3, 4, 0.9
	c := stated(9, "User lives in Berlin", lang.KindProfile)
	p := apply(basis{Active: []memory.Memory{old}, Candidates: []candidate{c}, Similar: cosine, Now: monday})
	n := p.Changes[0].New
	if n.RootID != "1" || n.Version != 4 || n.SeenCount != 5 || n.Importance != 0.9 || n.Status != memory.Active || n.ID != "" ||
		!slices.Equal(n.Evidence, c.Evidence) || n.ConversationID != "conv" || !n.CreatedAt.Equal(monday) {
		t.Errorf("new version %+v", n)
	}
	loves, hates := stored("1", "User loves coffee", lang.KindPreference), stated(9, "User hates coffee", lang.KindPreference)
	p = apply(basis{Active: []memory.Memory{loves}, Candidates: []candidate{hates}, Decisions: []decision{{memory.EventDelete, 0, "1", ""}}, Similar: cosine, Now: monday})
	if !slices.Equal(p.Changes[0].EndedBy, hates.Evidence) {
		t.Errorf("retired because of %v", p.Changes[0].EndedBy)
	}
	again := stated(9, "User loves coffee", lang.KindPreference)
	again.At = monday.Add(-time.Hour) // it was said before the run
	p = apply(basis{Active: []memory.Memory{loves}, Candidates: []candidate{again}, Similar: cosine, Now: monday})
	if n := p.Changes[0].New; n.SeenCount != 2 || !n.LastSeenAt.Equal(again.At) || len(n.Evidence) != 2 || n.Evidence[1].Sighting != 1 {
		t.Errorf("seen %+v", n)
	}
	if len(loves.Evidence) != 1 || loves.SeenCount != 1 {
		t.Error("Apply changed its input")
	}
}

// Without a model, rules recognise the same statement, a similar one, and a new value
// of the same property.
func TestRuleDecisions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		known, said string
		kind        lang.Kind
		want        string
	}{
		{"用户叫小明", "用户叫小红", lang.KindProfile, "suggest 1"},
		{"用户住在北京", "用户搬到上海", lang.KindProfile, "replace 1"},
		{"用户今年二十五岁", "用户今年26岁", lang.KindProfile, "replace 1"},
		{"用户是医生", "用户是骑士", lang.KindProfile, "add"},
		{"用户的狗叫旺财", "用户的狗叫来福", lang.KindRelation, "add"},
		{"用户喜欢香菜", "用户讨厌香菜", lang.KindPreference, "replace 1"},
		{"用户喜欢绿茶", "用户喜欢香菜", lang.KindPreference, "add"},
		{"用户有一只猫", "用户有一只狗", lang.KindProfile, "add"},
		{"用户对花生过敏", "用户对青霉素过敏", lang.KindProfile, "add"},
		{"用户喜欢在周末的早上去公园里跑步", "用户喜欢在周末的早上去公园里跑步的", lang.KindPreference, "seen 1"},
		{"User's name is Emily", "User's name is Emma", lang.KindProfile, "suggest 1"},
		{"User is 29 years old", "User is 92 years old", lang.KindProfile, "suggest 1"},
		{"User's birthday is May 4", "User's birthday is June 5", lang.KindProfile, "suggest 1"},
		{"User is from Lyon", "User is from Mars", lang.KindProfile, "suggest 1"},
		{"User's dog is called Rex", "User's dog is called Max", lang.KindRelation, "add"},
		{"User lives in Paris", "User moved to Berlin", lang.KindProfile, "replace 1"},
		{"User loves sushi", "User hates sushi", lang.KindPreference, "replace 1"},
		{"User loves sushi", "User doesn't like sushi", lang.KindPreference, "replace 1"},
		{"User loves sushi", "User loves ramen", lang.KindPreference, "add"},
		{"User's favorite room at the grand old hotel by the sea is number 12", "User's favorite room at the grand old hotel by the sea is number 13", lang.KindPreference, "replace 1"},
		{"User is allergic to peanuts", "User is allergic to cats", lang.KindProfile, "add"},
		{"User enjoys long walks along the beach", "User enjoys long walks along the beaches", lang.KindPreference, "seen 1"},
	}
	for _, tt := range tests {
		p := apply(basis{Active: []memory.Memory{stored("1", tt.known, tt.kind)}, Candidates: []candidate{stated(9, tt.said, tt.kind)}, Similar: cosine, Now: monday})
		if got := changeLines(p); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%q after %q: %q, want %s (cosine %.2f)", tt.said, tt.known, got, tt.want, cosine(tt.known, tt.said))
		}
		if !strings.HasPrefix(tt.want, "suggest") {
			continue
		}
		corrected := stated(9, tt.said, tt.kind)
		corrected.Corrects = true
		p = apply(basis{Active: []memory.Memory{stored("1", tt.known, tt.kind)}, Candidates: []candidate{corrected}, Similar: cosine, Now: monday})
		if got := changeLines(p); len(got) != 1 || !strings.HasPrefix(got[0], "replace 1") {
			t.Errorf("%q, which corrects %q: %q", tt.said, tt.known, got)
		}
		p = apply(basis{Candidates: []candidate{stated(8, tt.known, tt.kind), stated(9, tt.said, tt.kind)}, Similar: cosine, Now: monday})
		if got := changeLines(p); len(got) != 2 || got[0] != "add "+tt.known || !strings.HasPrefix(got[1], "drop") {
			t.Errorf("%q and then %q in one run: %q", tt.known, tt.said, got)
		}
	}
}

func TestAMalformedDecisionDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	known := []memory.Memory{stored("real-id-1", "User loves coffee", lang.KindPreference), stored("real-id-2", "User lives in Paris", lang.KindProfile)}
	candidates := []candidate{stated(8, "User loves coffee", lang.KindPreference), stated(9, "User hates coffee", lang.KindPreference), stated(10, "User lives in Berlin", lang.KindProfile)}
	tests := []struct {
		name    string
		answers []string
		want    []decision
	}{
		{"with numbers", []string{`{"memory":[{"new":0,"id":0,"event":"DELETE","text":"x"},{"new":1,"id":"1","event":"update","text":"User lives in Berlin","old_memory":"User lives in Paris"}]}`},
			[]decision{{memory.EventDelete, 1, "real-id-1", "x"}, {memory.EventUpdate, 2, "real-id-2", "User lives in Berlin"}}},
		{"by their texts", []string{`{"memory":[{"id":"5","text":"User hates coffee","event":"ADD"},{"id":"1","text":"User lives in Berlin","event":"UPDATE"},{"id":"0","text":"User loves coffee","event":"DELETE"}]}`},
			[]decision{{memory.EventAdd, 1, "", "User hates coffee"}, {memory.EventUpdate, 2, "real-id-2", "User lives in Berlin"}, {memory.EventDelete, -1, "real-id-1", "User loves coffee"}}},
		{"with unknown and odd ones", []string{`{"memory":[{"new":0,"id":99,"event":"UPDATE"},{"new":-1,"id":-1,"event":"DELETE"},{"event":"DROP TABLE"},7,null,{"id":0}]}`},
			[]decision{{memory.EventUpdate, 1, "", ""}, {memory.EventDelete, -1, "", ""}}},
		{"after a retry", []string{"hm", `{"memory":[]}`}, nil},
		{"not at all", []string{"hm", "hm"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := &script{answers: tt.answers}
			x := newRun(model)
			x.method = memory.ByModel
			got, err := x.decide(t.Context(), candidates, known)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v; notes %q", got, err, tt.want, x.notes)
			}
			if strings.Contains(model.prompts[0], "real-id") {
				t.Error("the model sees real ids")
			}
		})
	}
	model := &script{}
	x := newRun(model)
	x.method = memory.ByModel
	if _, err := x.decide(t.Context(), candidates[:1], known); err != nil || len(model.prompts) != 0 {
		t.Error("asked about what is known word for word")
	}
	if _, err := x.decide(t.Context(), candidates, nil); err != nil || len(model.prompts) != 0 {
		t.Error("asked although nothing is known")
	}
}

// A run makes two calls, or three if an answer is unusable.
func TestARunCostsThreeCallsAtMost(t *testing.T) {
	t.Parallel()
	first := factsAnswer(fact{"Anna hates coffee", "user", "preference", 0.5, "", []int64{1}})
	for _, tt := range []struct {
		answers []string
		calls   int
	}{
		{[]string{first, `{"memory":[]}`}, 2},
		{[]string{"no", first, `{"memory":[]}`}, 3},
		{[]string{"no", first, "no", "no"}, 3},
		{[]string{first, "no", "no", "no"}, 3},
		{[]string{"no", "no", "no"}, 2},
	} {
		x := newRun(&script{answers: tt.answers})
		found, err := x.candidates(t.Context(), windowOf(userSays(1, "I hate coffee.")))
		if err != nil {
			t.Fatal(err)
		}
		loves := stored("1", "Anna loves coffee", lang.KindPreference)
		decisions, err := x.decide(t.Context(), found, []memory.Memory{loves})
		if err != nil {
			t.Fatal(err)
		}
		if x.calls != tt.calls {
			t.Errorf("%q: %d calls, want %d", tt.answers, x.calls, tt.calls)
		}
		p := apply(basis{Active: []memory.Memory{loves}, Candidates: found, Decisions: decisions, Similar: cosine, Now: monday})
		if len(p.Changes) != 1 || !strings.HasSuffix(p.Changes[0].New.Text, "hates coffee") {
			t.Errorf("%q: %q", tt.answers, changeLines(p))
		}
	}
}

// FuzzApply: no decision of a model loses a candidate, changes a memory twice, or
// changes what the user guards.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"memory":[{"new":0,"id":0,"event":"DELETE"},{"new":1,"id":1,"event":"NONE"}]}`))
	f.Add([]byte(`{"memory":[{"id":"2","text":"User lives in Berlin","event":"UPDATE"},{"id":3,"event":"DELETE"}]}`))
	known := []memory.Memory{
		stored("1", "User loves coffee", lang.KindPreference), stored("2", "User lives in Paris", lang.KindProfile),
		guarded(stored("3", "User has a dog called Rex", lang.KindProfile), "pinned"), stored("4", "用户喜欢绿茶", lang.KindPreference),
	}
	candidates := []candidate{
		stated(9, "User hates coffee", lang.KindPreference), stated(9, "User lives in Berlin", lang.KindProfile), stated(10, "用户喜欢绿茶", lang.KindPreference), stated(11, "Rex is old", lang.KindProfile),
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		o, err := llm.ReadObject(string(answer), "memory")
		if err != nil {
			return
		}
		p := apply(basis{Active: known, Candidates: candidates, Decisions: readDecisions(o, candidates, known), Similar: cosine, Now: time.Unix(0, 0)})
		touched := map[string]int{}
		var kept strings.Builder
		for _, c := range p.Changes {
			if c.Op == opReplace || c.Op == opRetire {
				if touched[c.OldID]++; touched[c.OldID] > 1 || c.OldID == "3" {
					t.Errorf("%s changed wrongly: %q", c.OldID, changeLines(p))
				}
			}
			if c.New != nil {
				kept.WriteString(c.New.Text + "\n")
			}
			if c.Suggestion != nil {
				kept.WriteString(c.Suggestion.Text + "\n")
			}
		}
		for _, want := range []string{"hates coffee", "Berlin", "绿茶", "Rex is old"} {
			if !strings.Contains(kept.String(), want) {
				t.Errorf("%q is lost: %q", want, changeLines(p))
			}
		}
	})
}
