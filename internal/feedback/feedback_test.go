package feedback

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// votes are one per hour, the last one now.
func votes(all ...Status) (list []Vote) {
	for i, s := range all {
		list = append(list, Vote{s, now.Add(-time.Duration(len(all)-1-i) * time.Hour)})
	}
	return list
}

func times(n int, s Status) []Status { return slices.Repeat([]Status{s}, n) }

var statuses = []Status{Helpful, Neutral, Unused, Irrelevant, Harmful}

func TestWithoutVotesTheFactorIsExactlyOne(t *testing.T) {
	t.Parallel()
	if f := Factor(nil, now); f != 1 {
		t.Errorf("factor %v", f)
	}
	for _, s := range []Status{Neutral, Unused} {
		if f := Factor(votes(times(50, s)...), now); f != 1 {
			t.Errorf("%s: factor %v", s, f)
		}
	}
}

func TestNoVotesLeaveTheBounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(45, 5))
	for range 2_000 {
		var list []Vote
		for range random.IntN(300) {
			at := now.Add(time.Duration(random.Int64N(int64(400*24*time.Hour))) - 390*24*time.Hour)
			list = append(list, Vote{statuses[random.IntN(len(statuses))], at})
		}
		if f := Factor(list, now); f < Least || f > Most || math.IsNaN(f) {
			t.Fatalf("factor %v of %d votes", f, len(list))
		}
	}
	if best := Factor(votes(times(1000, Helpful)...), now); best > Most || best < 1.12 {
		t.Errorf("a source that always helps has %v", best)
	}
	if worst := Factor(votes(times(1000, Harmful)...), now); worst < Least || worst > 0.88 {
		t.Errorf("a source that always harms has %v", worst)
	}
}

func TestEachVoteMovesTheFactorItsWay(t *testing.T) {
	t.Parallel()
	for _, before := range [][]Status{nil, times(1, Helpful), times(3, Harmful), {Helpful, Harmful, Unused}} {
		old := Factor(votes(before...), now)
		with := func(s Status) float64 { return Factor(votes(append(slices.Clone(before), s)...), now) }
		if with(Helpful) <= old || with(Harmful) >= old || with(Harmful) >= with(Irrelevant) || with(Irrelevant) >= with(Neutral) {
			t.Errorf("after %v: %v, then helpful %v, neutral %v, irrelevant %v, harmful %v",
				before, old, with(Helpful), with(Neutral), with(Irrelevant), with(Harmful))
		}
	}
}

func TestTheOrderOfTheListDoesNotMatter(t *testing.T) {
	t.Parallel()
	list := votes(Helpful, Harmful, Unused, Irrelevant, Helpful, Helpful, Neutral)
	list = append(list, Vote{Harmful, now}, Vote{Helpful, now}) // at one time
	want := Factor(list, now)
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if f := Factor(list, now); f != want {
			t.Fatalf("%v and %v", f, want)
		}
	}
}

func TestVotesFadeWithTime(t *testing.T) {
	t.Parallel()
	last, list := 2.0, votes(times(10, Helpful)...)
	for days := range 400 {
		f := Factor(list, now.Add(time.Duration(days)*24*time.Hour))
		if f >= last || f < 1 {
			t.Fatalf("after %d days %v, the day before %v", days, f, last)
		}
		last = f
	}
	if last > 1.001 {
		t.Errorf("after more than a year: %v", last)
	}
	if early := Factor(list, now.Add(-24*time.Hour)); early > Most {
		t.Errorf("before the votes: %v", early)
	}
}

func TestAHelpfulSourceThatTurnsWrongFallsBelowOneInTenHoweverLongItHelped(t *testing.T) {
	t.Parallel()
	for _, good := range []int{1, 5, 30, 1000} {
		for bad, within := range map[Status]int{Harmful: 4, Irrelevant: 5} {
			n := 0
			for Factor(votes(append(times(good, Helpful), times(n, bad)...)...), now) >= 1 {
				n++
			}
			if n > within {
				t.Errorf("after %d helpful ones it takes %d %s ones", good, n, bad)
			}
		}
	}
}

func TestWhatIsNotKeptHardlyCounts(t *testing.T) {
	t.Parallel()
	all := votes(append(times(500, Harmful), times(Kept, Helpful)...)...)
	if d := Factor(all, now) - Factor(all[500:], now); math.Abs(d) > 0.001 {
		t.Errorf("older votes than are kept change the factor by %v", d)
	}
}

func TestOneSlotInTenIsForWhatWasNeverShown(t *testing.T) {
	t.Parallel()
	shown := func(n int) bool { return n >= 0 } // negative numbers were never shown
	for _, c := range []struct {
		name                string
		block, others, want []int
	}{
		{"nothing found", nil, []int{-1}, nil},
		{"the only one stays", []int{1}, []int{-1}, []int{1}},
		{"the last gives way", []int{1, 2, 3}, []int{4, -1, -2}, []int{1, 2, -1}},
		{"one of the block is new already", []int{1, -1, 3}, []int{-2}, []int{1, -1, 3}},
		{"the first is new", []int{-1, 2, 3}, []int{-2}, []int{-1, 2, 3}},
		{"no other was never shown", []int{1, 2, 3}, []int{4, 5}, []int{1, 2, 3}},
		{"no others", []int{1, 2, 3}, nil, []int{1, 2, 3}},
		{"two of eleven", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []int{-1, 12, -2, -3}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2}},
		{"one more of eleven", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -9}, []int{-1, -2}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, -9, -1}},
	} {
		before := slices.Clone(c.block)
		got, tried, replaced := Explore(c.block, c.others, shown)
		if !slices.Equal(got, c.want) || len(tried) != len(replaced) || !slices.Equal(c.block, before) {
			t.Errorf("%s: %v, tried %v for %v", c.name, got, tried, replaced)
		}
	}
	for n := 2; n <= 200; n++ {
		if s := Slots(n); s*10 < n || s >= n {
			t.Errorf("%d slots of %d", s, n)
		}
	}
}
