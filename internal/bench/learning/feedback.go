package learning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// FeedbackOptions are those of Feedback.
type FeedbackOptions struct {
	Users int    // default 60
	Seed  uint64 // default 1
	JSON  bool
}

// A simulated user asks about one matter in each round. Sources of about one rank compete for the block of
// the prompt; three in four of them help. The one that helped most turns wrong in the middle.
const (
	feedbackSources = 24
	feedbackRounds  = 60
	feedbackTurn    = feedbackRounds / 2 // from which round on one source is wrong
	feedbackRight   = 0.9                // share of evaluations that say what is true
	feedbackSamples = 2000               // of the bootstrap
)

// feedbackReport is what Feedback prints. A gain is the share of hits in the first half of a block that
// help, less that of a recall without feedback.
type feedbackReport struct {
	Users         int        `json:"users"`
	Evaluations   int        `json:"evaluations"`
	Least         float64    `json:"leastFactor"`
	Most          float64    `json:"mostFactor"`
	Gain          float64    `json:"gain"`
	Interval      [2]float64 `json:"gain95"`
	Permuted      float64    `json:"permutedGain"` // with the labels of the sources permuted
	PermutedRange [2]float64 `json:"permutedGain95"`
	Slots         int        `json:"slots"`
	Tried         int        `json:"neverShown"` // of the slots of blocks for which there was a source that was never shown
	TriedOf       int        `json:"neverShownOf"`
	TurnedWithin  int        `json:"turnedWithin"` // evaluations until a source that turned wrong was below the median, at most
	WrongWithin   int        `json:"wrongWithin"`  // likewise of one that was wrong from the beginning
	Unfallen      int        `json:"notFallen"`    // of these that were evaluated as often as promised, and were not below the median
}

// The promises of decision 41: evaluations until a source is below the median.
const (
	turnedPromise = 10
	wrongPromise  = 5
)

// Feedback lets simulated users evaluate what real recalls find, and prints what evaluations do to the ranks.
func Feedback(ctx context.Context, out io.Writer, o FeedbackOptions) error {
	o.Users, o.Seed = cmp.Or(o.Users, 60), cmp.Or(o.Seed, 1)
	report := &feedbackReport{Users: o.Users, Least: 1, Most: 1}
	var gains, permuted []float64
	for n := range o.Users {
		var shares [3]float64
		for arm := range shares {
			u, err := newFeedbackUser(ctx, report, o.Seed, uint64(n), arm)
			if err != nil {
				return err
			}
			if shares[arm], err = u.live(ctx); err != nil {
				return err
			}
		}
		gains, permuted = append(gains, shares[armOn]-shares[armOff]), append(permuted, shares[armPermuted]-shares[armOff])
	}
	random := rand.New(rand.NewPCG(o.Seed, 41))
	report.Gain, report.Interval = bootstrap(random, gains)
	report.Permuted, report.PermutedRange = bootstrap(random, permuted)
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	_, err := fmt.Fprintf(out, `%d users, %d evaluations
factor                       %.3f to %.3f
gain over no feedback        %+.3f (95 %%: %+.3f to %+.3f)
gain with permuted labels    %+.3f (95 %%: %+.3f to %+.3f)
slots for never shown ones   %d of %d (%.1f %%)
turned wrong, below median   within %d evaluations
wrong, below median          within %d evaluations
not fallen as promised       %d
`, report.Users, report.Evaluations, report.Least, report.Most, report.Gain, report.Interval[0], report.Interval[1],
		report.Permuted, report.PermutedRange[0], report.PermutedRange[1], report.Tried, report.TriedOf,
		100*float64(report.Tried)/float64(max(1, report.TriedOf)), report.TurnedWithin, report.WrongWithin, report.Unfallen)
	return err
}

// The three lives of a user, who asks the same in each.
const (
	armOff = iota
	armOn
	armPermuted
)

type feedbackUser struct {
	*feedbackReport
	arm     int
	random  *rand.Rand
	x       *index.Index
	now     time.Time
	good    map[string]bool
	instead map[string]string // permuted: the source whose label one gets
	records map[string]feedback.Record
	turned  string
	since   map[string]int // evaluations of a source since it is wrong
	fallen  map[string]bool
}

func newFeedbackUser(ctx context.Context, report *feedbackReport, seed, n uint64, arm int) (*feedbackUser, error) {
	u := &feedbackUser{
		feedbackReport: report, arm: arm, random: rand.New(rand.NewPCG(seed, n)), x: index.New(),
		now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), good: map[string]bool{}, instead: map[string]string{}, records: map[string]feedback.Record{},
		since: map[string]int{}, fallen: map[string]bool{},
	}
	var rows []index.Row
	for i := range feedbackSources {
		text := fmt.Sprintf("The lighthouse needs part%d and tool%d.", u.random.IntN(1000), i)
		unit := recall.Unit{ID: fmt.Sprintf("s%02d", i), Version: 1, Layer: recall.Fact, Text: text, At: u.now.AddDate(0, 0, -u.random.IntN(20)), Importance: u.random.Float64()}
		unit.Terms = index.Join(text)
		rows, u.good[unit.ID] = append(rows, unit.Row()), u.random.IntN(4) > 0
	}
	for i, other := range u.random.Perm(feedbackSources) {
		u.instead[rows[i].ID] = rows[other].ID
	}
	return u, u.x.Apply(ctx, rows, nil)
}

// live returns which share of the first halves of the blocks helped.
func (u *feedbackUser) live(ctx context.Context) (float64, error) {
	helped, places := 0, 0
	for round := range feedbackRounds {
		u.now = u.now.Add(3 * time.Hour)
		if round == feedbackTurn {
			u.turn()
		}
		hits, err := u.ask(ctx)
		if err != nil {
			return 0, err
		}
		if u.arm == armOn {
			u.count(hits)
		}
		for _, h := range hits[:len(hits)/2] {
			if places++; u.good[h.ID] {
				helped++
			}
		}
		u.evaluate(hits)
	}
	return float64(helped) / float64(max(1, places)), nil
}

func (u *feedbackUser) ask(ctx context.Context) ([]recall.Hit, error) {
	q := recall.Query{Text: "What does the lighthouse need?", Names: lang.Names{User: "Ann", Character: "Reed"}, Now: u.now}
	if u.arm != armOff {
		q.Records = func(context.Context, []string) (map[string]feedback.Record, error) { return u.records, nil }
	}
	hits, _, err := recall.Find(ctx, u.x, &q, recall.Vectors{}, nil)
	return hits, err
}

// turn makes the source that helped most a wrong one.
func (u *feedbackUser) turn() {
	for id := range u.good {
		if u.good[id] && (u.turned == "" || cmp.Or(cmp.Compare(u.factor(id), u.factor(u.turned)), cmp.Compare(u.turned, id)) > 0) {
			u.turned = id
		}
	}
	u.good[u.turned] = false
}

func (u *feedbackUser) factor(id string) float64 { return feedback.Factor(u.records[id].Votes, u.now) }

// count notes the slots of a block for what was never shown, if there was something.
func (u *feedbackUser) count(hits []recall.Hit) {
	u.Slots += len(hits)
	if len(u.records) == feedbackSources {
		return
	}
	u.TriedOf += len(hits)
	for _, h := range hits {
		if !u.records[h.ID].Shown {
			u.Tried++
		}
	}
}

// evaluate votes on the hits of a block, most times what is true, or with the label of another source.
func (u *feedbackUser) evaluate(hits []recall.Hit) {
	for _, h := range hits {
		label := h.ID
		if u.arm == armPermuted {
			label = u.instead[h.ID]
		}
		status, right := feedback.Harmful, u.random.Float64() < feedbackRight
		if u.good[label] == right {
			status = feedback.Helpful
		}
		r := u.records[h.ID]
		r.Shown, r.Votes = true, append(r.Votes, feedback.Vote{Status: status, At: u.now})
		r.Votes = r.Votes[max(0, len(r.Votes)-feedback.Kept):]
		u.records[h.ID] = r
	}
	if u.arm == armOn {
		u.Evaluations += len(hits)
		for _, h := range hits {
			u.fall(h.ID)
		}
	}
}

// fall notes how many evaluations a wrong source takes until its factor is below the median.
func (u *feedbackUser) fall(id string) {
	f := u.factor(id)
	u.Least, u.Most = min(u.Least, f), max(u.Most, f)
	if u.good[id] || u.fallen[id] {
		return
	}
	u.since[id]++
	var all []float64
	for other := range u.good {
		all = append(all, u.factor(other))
	}
	slices.Sort(all)
	n, promise, within := u.since[id], wrongPromise, &u.WrongWithin
	if id == u.turned {
		promise, within = turnedPromise, &u.TurnedWithin
	}
	if u.fallen[id] = f < all[len(all)/2]; u.fallen[id] {
		*within = max(*within, n)
	} else if n == promise {
		u.Unfallen++
	}
}

// bootstrap returns the mean of paired differences, and its interval of 95 %.
func bootstrap(random *rand.Rand, all []float64) (mean float64, interval [2]float64) {
	means := make([]float64, feedbackSamples)
	for i := range means {
		for range all {
			means[i] += all[random.IntN(len(all))] / float64(len(all))
		}
	}
	for _, x := range all {
		mean += x / float64(len(all))
	}
	slices.Sort(means)
	return mean, [2]float64{means[feedbackSamples/40], means[feedbackSamples-1-feedbackSamples/40]}
}
