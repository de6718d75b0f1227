package rules

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// noon is a time in the user's zone.
var noon = time.Date(2026, 5, 12, 12, 0, 0, 0, time.UTC)

var trades = []string{
	"a baker who bakes bread and cakes", "a sailor who loves boats and the harbour", "a painter of landscapes",
	"a doctor in a small hospital", "a gardener with roses and bees", "a teacher of mathematics", "a hunter of dragons",
	"a singer in a jazz band", "a programmer who repairs radios", "a cook of spicy noodles",
}

func tenCandidates(seed int) []Candidate {
	var all []Candidate
	for i, trade := range trades {
		all = append(all, Candidate{
			ID: fmt.Sprintf("c%d-%d", seed, i), Name: fmt.Sprintf("Name%c", 'a'+i), About: trade,
			Strength: []int{0, 0, 0, 5, 15, 30, 45, 70, -30, -70}[i], Recent: i % 5,
		})
	}
	return all
}

func TestChooseWhoHasTo(t *testing.T) {
	all := tenCandidates(0)
	all[3].OwnThread = true
	for seed := range uint64(200) {
		got := map[string]Reason{}
		for _, c := range Choose(seed, Subject{Author: all[1].ID, Text: "Does Nameb or Namec know?", At: noon}, all, true) {
			got[c.ID] = c.Reason
		}
		if got[all[2].ID] != Mentioned || got[all[3].ID] != OwnThread || got[all[1].ID] != "" {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

func TestChooseEverybodyForTheUser(t *testing.T) {
	all := tenCandidates(0)
	if got := Choose(1, Subject{Text: "hello", At: noon}, all, true); len(got) != len(all) || got[0].Reason != Everybody {
		t.Errorf("%v", got)
	}
	if got := Choose(1, Subject{Author: "x", Text: "hello", At: noon}, all, true); len(got) == len(all) {
		t.Error("everybody reacts to a post that is not the user's")
	}
	if got := Choose(1, Subject{}, nil, true); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}

func TestChooseDoesNotDependOnTheOrder(t *testing.T) {
	for seed := range uint64(100) {
		all := tenCandidates(int(seed))
		post := Subject{Text: "I baked bread", At: noon}
		first := Choose(seed, post, all, false)
		slices.Reverse(all)
		if again := Choose(seed, post, all, false); !reflect.DeepEqual(first, again) {
			t.Fatalf("%v\n%v", first, again)
		}
	}
}

// Two to four of ten react on average, whoever the author is.
func TestChooseSomeOfTen(t *testing.T) {
	const rounds = 5_000
	for _, author := range []string{"", "somebody"} {
		var sizes [11]int
		reasons := map[Reason]int{}
		byPlace := make([]int, 10)
		total := 0
		for seed := range rounds {
			all := tenCandidates(seed)
			text := []string{"The day was long and I am tired.", "I baked a cake with roses from the garden.", "Boats in the harbour at dawn"}[seed%3]
			chosen := Choose(uint64(seed), Subject{Author: author, Text: text, At: noon.Add(time.Duration(seed%24) * time.Hour)}, all, false)
			sizes[len(chosen)]++
			total += len(chosen)
			for _, c := range chosen {
				reasons[c.Reason]++
				byPlace[slices.IndexFunc(all, func(a Candidate) bool { return a.ID == c.ID })]++
			}
			if author == "" && len(chosen) == 0 {
				t.Fatal("nobody reacts to the user")
			}
		}
		mean := float64(total) / rounds
		t.Logf("author %q: %.2f of ten react; by number %v; by reason %v; by character %v", author, mean, sizes, reasons, byPlace)
		if mean < 2 || mean > 4 {
			t.Errorf("%.2f of ten react", mean)
		}
		if author != "" && sizes[0] == 0 {
			t.Error("there is always somebody who reacts")
		}
		for i, n := range byPlace {
			if n < rounds/20 {
				t.Errorf("character %d hardly ever reacts: %d", i, n)
			}
		}
		if byPlace[9] <= byPlace[2] { // has reacted more lately, but is an enemy
			t.Error("enemies react less than strangers")
		}
	}
}

func TestDelay(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	quiet := QuietHours("23:00", "07:00")
	type key struct {
		reason Reason
		toUser bool
	}
	medians := map[key]time.Duration{}
	for _, k := range []key{{Mentioned, true}, {OwnThread, true}, {Topic, true}, {Mentioned, false}, {OwnThread, false}, {Chance, false}} {
		var all []time.Duration
		for seed := range uint64(4_000) {
			now := time.Date(2026, 3, 28, 0, int(seed%(48*60)), 0, 0, zone) // the clocks change
			h := HabitOf(fmt.Sprint("c", seed%50))
			d := h.Delay(seed, now, quiet, k.reason, k.toUser)
			at := now.Add(d)
			if d < 20*time.Second || d > 36*time.Hour {
				t.Fatalf("seed %d at %v: %v", seed, now, d)
			}
			if !quiet.End(at).IsZero() {
				t.Fatalf("seed %d: it ends at %v", seed, at)
			}
			if h != HabitOf(fmt.Sprint("c", seed%50)) || d != h.Delay(seed, now, quiet, k.reason, k.toUser) {
				t.Fatal("it is not the same again")
			}
			all = append(all, d)
		}
		slices.Sort(all)
		at := func(p int) time.Duration { return all[len(all)*p/100].Round(time.Second) }
		t.Logf("%-10s to the user %-5v: 5 %% %v, half %v, 75 %% %v, 95 %% %v", k.reason, k.toUser, at(5), at(50), at(75), at(95))
		medians[k] = at(25)
	}
	if medians[key{OwnThread, true}] > medians[key{Topic, true}] || medians[key{Topic, true}] > medians[key{Chance, false}] ||
		medians[key{OwnThread, false}] > medians[key{Chance, false}] {
		t.Errorf("the user and threads do not come first: %v", medians)
	}
}

func TestDelayAtNoonOfTheUserIsShort(t *testing.T) {
	longest := time.Duration(0)
	for seed := range uint64(2_000) {
		longest = max(longest, HabitOf(fmt.Sprint(seed)).Delay(seed, noon, Quiet{}, OwnThread, true))
	}
	t.Logf("the longest answer to the user took %v", longest.Round(time.Second))
	if longest > 2*time.Hour {
		t.Errorf("an answer to the user took %v", longest)
	}
}

func TestQuietHours(t *testing.T) {
	for _, test := range []struct {
		from, until, at, end string
	}{
		{"23:00", "07:00", "23:00", "07:00"},
		{"23:00", "07:00", "06:59", "07:00"},
		{"23:00", "07:00", "07:00", ""},
		{"23:00", "07:00", "22:59", ""},
		{"13:00", "15:00", "14:00", "15:00"},
		{"13:00", "15:00", "15:00", ""},
		{"07:00", "07:00", "07:00", ""},
		{"x", "07:00", "03:00", ""},
		{"23:00", "", "23:30", ""},
		{"00:00", "24:00", "03:00", ""},
	} {
		at, err := time.Parse("15:04", test.at)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end := QuietHours(test.from, test.until).End(at); !end.IsZero() {
			if got = end.Format("15:04"); !end.After(at) || end.Sub(at) > 24*time.Hour {
				t.Errorf("%+v: %v after %v", test, end, at)
			}
		}
		if got != test.end {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

func TestQuickReactionsTakeSecondsAtAnyHour(t *testing.T) {
	for seed := range uint64(2_000) {
		now := noon.Add(time.Duration(seed%(24*60)) * time.Minute)
		for _, toUser := range []bool{true, false} {
			d := HabitOf(fmt.Sprint(seed)).Quick().Delay(seed, now, Quiet{}, Topic, toUser)
			if d < time.Second || d > 30*time.Minute || toUser && d > 3*time.Minute {
				t.Fatalf("at %v a reaction took %v", now, d)
			}
		}
	}
}
