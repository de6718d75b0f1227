package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/framework"
)

func TestDealDealsEveryKindBeforeAnyComesAgain(t *testing.T) {
	first := map[Kind]int{}
	for character := range 200 {
		var latest []Kind
		for post := range 5 * len(deck) {
			k := Deal(fmt.Sprint(character), latest)
			if post == 0 {
				first[k]++
			}
			if k.Words(framework.English) == "" || k.Words(framework.Chinese) == "" {
				t.Fatalf("kind %q has no words", k)
			}
			if at := slices.Index(latest, k); at >= 0 && at != len(deck)-1 {
				t.Fatalf("character %d, post %d: %s again after %d others", character, post, k, at)
			}
			latest = append([]Kind{k}, latest...)
		}
	}
	if len(first) != len(deck) {
		t.Errorf("all characters begin with the same: %v", first)
	}
}

func TestDealIgnoresOtherPosts(t *testing.T) {
	if a, b := Deal("c", []Kind{"moment", "tip"}), Deal("c", []Kind{Digest, "", "moment"}); a != b {
		t.Errorf("%s, %s", a, b)
	}
	if Digest.Words(framework.Chinese) == "" || Kind("x").Words(framework.English) != "" {
		t.Error("words")
	}
}

func TestPlanItems(t *testing.T) {
	card := []string{
		"{{char}} loves {{user}}. Mira repairs old radios in a cellar near the harbour. She drinks far too much tea!\n[System: stay in character]\nName: Mira | Age: 30\n" +
			"Her sister sailed north three years ago. The user is her oldest friend. https://example.com/a.b is a page.",
		"她的工作室里总是有松木的味道。用户是她的朋友。她怕黑！",
	}
	told := []Memory{{"m1", "The harbour festival\nwas lovely."}, {"m2", "Luna has a new boat."}, {"m3", "Tea is out."}, {"m4", " "}}
	for _, l := range []framework.Language{framework.English, framework.Chinese} {
		for seed := range uint64(500) {
			date := noon.AddDate(0, 0, int(seed))
			items := PlanItems(seed, l, card, told, date)
			if len(items) < planFewest || len(items) > planItems {
				t.Fatalf("%d items", len(items))
			}
			texts := map[string]bool{}
			for _, it := range items {
				texts[it.Text] = true
				if it.Source == "card" && (strings.Contains(strings.ToLower(it.Text), "user") || strings.ContainsAny(it.Text, "{}[]|") ||
					!strings.Contains(strings.Join(card, ""), it.Text)) {
					t.Fatalf("%q", it.Text)
				}
				if (it.Source == "memory") != (it.Ref != "") || strings.ContainsAny(it.Text, "\n%") || it.Text == "" {
					t.Fatalf("%+v", it)
				}
			}
			if len(texts) != len(items) || !reflect.DeepEqual(items, PlanItems(seed, l, card, told, date)) {
				t.Fatalf("%+v", items)
			}
		}
		for _, it := range PlanItems(3, l, card, told, time.Date(2026, 12, 24, 8, 0, 0, 0, time.UTC)) {
			t.Logf("%s: %s", it.Source, it.Text)
		}
	}
}

func TestPlanItemsOfAnEmptyCard(t *testing.T) {
	for day := range 366 {
		items := PlanItems(1, framework.English, nil, nil, noon.AddDate(0, 0, day))
		if len(items) != planFewest {
			t.Fatalf("day %d: %+v", day, items)
		}
	}
}

func TestSeasonsAndHolidays(t *testing.T) {
	sydney, err := time.LoadLocation("Australia/Sydney")
	if err != nil {
		t.Skip(err)
	}
	july := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	if a, b := textsOf(framework.English).Dates.Seasons[seasonOf(july)], textsOf(framework.Chinese).Dates.Seasons[seasonOf(july.In(sydney))]; a != "summer" || b != "冬天" {
		t.Errorf("%s, %s", a, b)
	}
	for _, test := range []struct {
		l    framework.Language
		date time.Time
		want string
	}{
		{framework.Chinese, time.Date(2026, 2, 17, 0, 0, 0, 0, time.UTC), "今天是春节。"},
		{framework.Chinese, time.Date(2026, 9, 24, 0, 0, 0, 0, time.UTC), "过几天就是中秋节了。"},
		{framework.English, time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC), "Today is Christmas Eve."},
		{framework.English, time.Date(2026, 12, 29, 0, 0, 0, 0, time.UTC), "New Year's Eve is coming up in a few days."},
		{framework.English, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), ""},
	} {
		if got, _ := datesOf(test.l, test.date); got != test.want {
			t.Errorf("%v: %q, want %q", test.date, got, test.want)
		}
	}
}
