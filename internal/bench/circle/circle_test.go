package circle

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
	"nodest/store/storetest"
)

func TestReactionsAboveTheLimitsAreCounted(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return circleStart.Add(time.Duration(hours) * time.Hour) }
	to := func(author, thread string, hours ...int) (done []reaction) {
		for _, h := range hours {
			done = append(done, reaction{rules.Interaction{Author: author, Thread: thread}, at(h)})
		}
		return done
	}
	if got := overLimit("medium", to("b", "", 0, 1, 2)); got != 0 {
		t.Fatalf("got %d, want %d", got, 0)
	}
	if got := overLimit("medium", to("b", "", 4, 3, 2, 1, 0)); got != 2 {
		t.Fatalf("got %d, want %d", got, 2)
	}
	if got := overLimit("medium", to("b", "", 0, 1, 2, 25)); got != 0 {
		t.Fatalf("the day rolls: got %d, want %d", got, 0)
	}
	if got := overLimit("low", to("b", "thread", 0, 24)); got != 1 {
		t.Fatalf("got %d, want %d", got, 1)
	}
	if got := overLimit("low", to(circle.Me, "", 0, 1, 2, 3)); got != 0 {
		t.Fatalf("the user is not limited: got %d, want %d", got, 0)
	}

	var many []reaction
	for _, author := range []string{"b", "c", "d", "e", "f", "g"} {
		many = append(many, to(author, "", 0)...)
	}
	if got := overLimit("medium", many); got != 1 {
		t.Fatalf("the sixth author: got %d, want %d", got, 1)
	}
}

func TestALikeWithACommentIsOneReaction(t *testing.T) {
	t.Parallel()
	done := map[string][]reaction{}
	reactionsTo(&circle.Entry{
		Post: &circle.Post{ID: "p", AuthorID: "a", Likes: []circle.Like{{AuthorID: "b", CreatedAt: circleStart}, {AuthorID: "c", CreatedAt: circleStart}}},
		Comments: []*circle.Comment{
			{ID: "1", AuthorID: "b", Thread: "1", CreatedAt: circleStart},
			{ID: "2", AuthorID: "a", ReplyTo: "1", Thread: "1", CreatedAt: circleStart},
		},
	}, done)
	if want := (map[string][]reaction{
		"a": {{rules.Interaction{Author: "b", Thread: "1"}, circleStart}},
		"b": {{rules.Interaction{Author: "a"}, circleStart}},
		"c": {{rules.Interaction{Author: "a"}, circleStart}},
	}); !reflect.DeepEqual(done, want) {
		t.Fatalf("done is %+v, want %+v", done, want)
	}
}

// A circle of a day, on PostgreSQL with two processes. How lively it is does not matter
// here.
func TestASimulatedCircleKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{"sqlite": "", "postgres": os.Getenv("NODEST_TEST_DATABASE_URL")} {
		t.Run(name, func(t *testing.T) {
			if name == "postgres" && database == "" {
				t.Skip("NODEST_TEST_DATABASE_URL is not set (scripts/with-postgres sets it)")
			}
			if name == "sqlite" {
				storetest.NeedSQLite(t)
			}
			var out strings.Builder
			if err := Measure(t.Context(), &out, Options{Days: 1, Characters: 5, JSON: true, Database: database}); err != nil {
				t.Fatal(err)
			}
			var f circleReport
			if err := json.Unmarshal([]byte(out.String()), &f); err != nil {
				t.Fatal(err)
			}
			if len(f.Models) != 2 {
				t.Fatalf("f.Models has %d, want %d: %+v", len(f.Models), 2, f.Models)
			}
			if f.Posts <= 0 {
				t.Fatalf("f.Posts is %d, want more than 0", f.Posts)
			}
			if f.Comments <= 0 {
				t.Fatalf("f.Comments is %d, want more than 0", f.Comments)
			}
			if f.ExactDuplicates != 0 {
				t.Fatalf("f.ExactDuplicates is %d, want none", f.ExactDuplicates)
			}
			if f.OverLimit != 0 {
				t.Fatalf("f.OverLimit is %d, want none", f.OverLimit)
			}
			if f.SlotsTwice != 0 {
				t.Fatalf("f.SlotsTwice is %d, want none", f.SlotsTwice)
			}
			if f.PrivateLeaks != 0 {
				t.Fatalf("f.PrivateLeaks is %d, want none", f.PrivateLeaks)
			}
			if f.Unfounded != 0 {
				t.Fatalf("f.Unfounded is %d, want none", f.Unfounded)
			}
			if f.CallsPerDayMax > f.CallLimit {
				t.Fatalf("f.CallsPerDayMax is %d, want at most %d", f.CallsPerDayMax, f.CallLimit)
			}
			if f.TokensPerDayMax > f.TokenLimit {
				t.Fatalf("f.TokensPerDayMax is %d, want at most %d", f.TokensPerDayMax, f.TokenLimit)
			}
		})
	}
}
