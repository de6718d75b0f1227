package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, 0, overLimit("medium", to("b", "", 0, 1, 2)))
	require.Equal(t, 2, overLimit("medium", to("b", "", 4, 3, 2, 1, 0)))
	require.Equal(t, 0, overLimit("medium", to("b", "", 0, 1, 2, 25)), "the day rolls")
	require.Equal(t, 1, overLimit("low", to("b", "thread", 0, 24)))
	require.Equal(t, 0, overLimit("low", to(circle.Me, "", 0, 1, 2, 3)), "the user is not limited")

	var many []reaction
	for _, author := range []string{"b", "c", "d", "e", "f", "g"} {
		many = append(many, to(author, "", 0)...)
	}
	require.Equal(t, 1, overLimit("medium", many), "the sixth author")
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
	require.Equal(t, map[string][]reaction{
		"a": {{rules.Interaction{Author: "b", Thread: "1"}, circleStart}},
		"b": {{rules.Interaction{Author: "a"}, circleStart}},
		"c": {{rules.Interaction{Author: "a"}, circleStart}},
	}, done)
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
			require.NoError(t, Circle(t.Context(), &out, CircleOptions{Days: 1, Characters: 5, JSON: true, Database: database}))
			var f circleReport
			require.NoError(t, json.Unmarshal([]byte(out.String()), &f))
			require.Len(t, f.Models, 2)
			require.Positive(t, f.Posts)
			require.Positive(t, f.Comments)
			require.Zero(t, f.ExactDuplicates)
			require.Zero(t, f.OverLimit)
			require.Zero(t, f.SlotsTwice)
			require.Zero(t, f.PrivateLeaks)
			require.Zero(t, f.Unfounded)
			require.LessOrEqual(t, f.CallsPerDayMax, f.CallLimit)
			require.LessOrEqual(t, f.TokensPerDayMax, f.TokenLimit)
		})
	}
}
