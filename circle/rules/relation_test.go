package rules

import (
	"slices"
	"testing"
)

func TestChanged(t *testing.T) {
	for _, test := range []struct {
		name     string
		strength int
		typ      string
		kept     bool
		delta    int
		newType  string
		want     int
		wantType string
		wantKept bool
	}{
		{"a like", 9, "stranger", false, LikeDelta, "", 10, "acquaintance", false},
		{"a change is at most 10", 0, "stranger", false, 400, "", 10, "acquaintance", false},
		{"and at least -10", 0, "stranger", false, -400, "", -10, "stranger", false},
		{"a strength is at most 100", 98, "best_friend", false, 10, "", 100, "best_friend", false},
		{"and at least -100", -98, "enemy", false, -10, "", -100, "enemy", false},
		{"a named type is kept", 20, "acquaintance", false, 1, "lover", 21, "lover", true},
		{"a kept type does not follow the strength", 39, "lover", true, 5, "", 44, "lover", true},
		{"a named type that follows anyway is not kept", 39, "lover", true, 5, "friend", 44, "friend", false},
		{"an unknown type is none", 39, "acquaintance", false, 5, "god", 44, "friend", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, typ, kept := Changed(test.strength, test.typ, test.kept, test.delta, test.newType)
			if s != test.want || typ != test.wantType || kept != test.wantKept {
				t.Errorf("got %d %s %v", s, typ, kept)
			}
		})
	}
}

func TestEveryTypeByStrengthIsAType(t *testing.T) {
	for s := -maxStrength; s <= maxStrength; s++ {
		if !slices.Contains(Types, TypeOf(s)) {
			t.Errorf("%d is %s", s, TypeOf(s))
		}
	}
}

func TestOffers(t *testing.T) {
	for _, test := range []struct {
		name         string
		typ          string
		strength     int
		interactions int64
		want         []string
	}{
		{"strangers", "stranger", 0, 0, nil},
		{"who has met often", "stranger", 0, 5, []string{"support"}},
		{"friends", "friend", 40, 3, []string{"invitation"}},
		{"friends who have hardly met", "friend", 60, 2, nil},
		{"close friends", "close_friend", 70, 9, []string{"gift", "invitation", "support"}},
		{"close friends by name", "close_friend", 69, 2, nil},
		{"lovers get no gift by the rule", "lover", 90, 3, []string{"invitation"}},
		{"rivals by name", "rival", 80, 4, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range Offers(test.typ, test.strength, test.interactions) {
				if got = append(got, o.Type); o.For <= 0 {
					t.Errorf("%s never expires", o.Type)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheUserIsNotLimited(t *testing.T) {
	var done []Interaction
	for range 100 {
		for _, next := range []Interaction{{}, {Thread: "t"}} {
			if !Allowed("low", done, next) {
				t.Fatal("an answer to the user was not allowed")
			}
			done = append(done, next)
		}
	}
	if !Allowed("low", done, Interaction{Author: "a"}) || !Allowed("low", done, Interaction{Author: "a", Thread: "t"}) {
		t.Error("answers to the user count as answers to others")
	}
}

func TestAnswersInOneThreadCountForAllItsAuthors(t *testing.T) {
	done := []Interaction{{Author: "a", Thread: "t"}}
	if Allowed("low", done, Interaction{Author: "b", Thread: "t"}) {
		t.Error("a second answer in the thread was allowed")
	}
	if !Allowed("low", done, Interaction{Author: "a", Thread: "u"}) {
		t.Error("an answer in another thread was not allowed")
	}
}
