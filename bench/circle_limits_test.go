package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/circle"
	"nodest/circle/rules"
)

func TestReactionsAboveTheLimitsAreCounted(t *testing.T) {
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
