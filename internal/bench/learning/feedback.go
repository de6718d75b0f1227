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
	Users int     // users of each world, default 60
	Seed  uint64  // default 1
	Right float64 // share of the evaluations that say what is true, default 0.9
	JSON  bool
}

// A simulated user asks about one matter in each round. Sources of about one rank compete for the block of
// the prompt. In one world a quarter of them helps, in the others half and three quarters. The one that
// helped most turns wrong in the middle.
const (
	feedbackSources = 24
	feedbackRounds  = 60
	feedbackTurn    = feedbackRounds / 2 // from which round on one source is wrong
	feedbackSamples = 2000               // samples of the bootstrap
)

// feedbackReport is what Feedback prints of a world. A gain is the share of hits in the first half of a
// block that help, less that of a recall without feedback. A source has fallen when its factor is below
// that of one which nobody has evaluated, and of half of those that help: below the median of all sources
// no more than half can be, and in a world of wrong sources that is no promise.
type feedbackReport struct {
	Helpful       float64    `json:"helpful"` // share of the sources
	Users         int        `json:"users"`
	Evaluations   int        `json:"evaluations"`
	Least         float64    `json:"leastFactor"`
	Most          float64    `json:"mostFactor"`
	Gain          float64    `json:"gain"`
	Interval      [2]float64 `json:"gain95"`
	Permuted      float64    `json:"permutedGain"` // with the labels of the sources permuted
	PermutedRange [2]float64 `json:"permutedGain95"`
	Slots         int        `json:"slots"`
	Tried         int        `json:"neverShown"` // slots for a source that was never shown, in blocks for which there was one
	TriedOf       int        `json:"neverShownOf"`
	TurnedWithin  int        `json:"turnedWithin"` // evaluations until a source that turned wrong had fallen, at most
	WrongWithin   int        `json:"wrongWithin"`  // likewise of one that was wrong from the beginning
	Wrong         int        `json:"wrong"`        // sources of both kinds that were evaluated as often as promised, or had fallen
	Unfallen      int        `json:"notFallen"`    // those of Wrong that had not fallen
}

// The promises of decision 41: evaluations until a source has fallen.
const (
	turnedPromise = 10
	wrongPromise  = 5
)

// Feedback lets simulated users evaluate what real recalls find, and prints what evaluations do to the ranks.
func Feedback(ctx context.Context, out io.Writer, o FeedbackOptions) error {
	o.Users, o.Seed, o.Right = cmp.Or(o.Users, 60), cmp.Or(o.Seed, 1), cmp.Or(o.Right, 0.9)
	var worlds []*feedbackReport
	for quarters := 1; quarters < 4; quarters++ {
		report := &feedbackReport{Helpful: float64(quarters) / 4, Users: o.Users, Least: 1, Most: 1}
		if err := report.measure(ctx, o); err != nil {
			return err
		}
		worlds = append(worlds, report)
	}
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"worlds": worlds})
	}
	for _, r := range worlds {
		_, err := fmt.Fprintf(out, `%.0f %% of the sources help: %d users, %d evaluations
factor                       %.3f to %.3f
gain over no feedback        %+.3f (95 %%: %+.3f to %+.3f)
gain with permuted labels    %+.3f (95 %%: %+.3f to %+.3f)
slots for never shown ones   %d of %d (%.1f %%)
turned wrong, fallen         within %d evaluations
wrong, fallen                within %d evaluations
not fallen as promised       %d of %d
`, 100*r.Helpful, r.Users, r.Evaluations, r.Least, r.Most, r.Gain, r.Interval[0], r.Interval[1],
			r.Permuted, r.PermutedRange[0], r.PermutedRange[1], r.Tried, r.TriedOf,
			100*float64(r.Tried)/float64(max(1, r.TriedOf)), r.TurnedWithin, r.WrongWithin, r.Unfallen, r.Wrong)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *feedbackReport) measure(ctx context.Context, o FeedbackOptions) error {
	var gains, permuted []float64
	for n := range o.Users {
		var shares [3]float64
		for arm := range shares {
			u, err := newFeedbackUser(ctx, r, o, uint64(n), arm)
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
	r.Gain, r.Interval = bootstrap(random, gains)
	r.Permuted, r.PermutedRange = bootstrap(random, permuted)
	return nil
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
	right   float64
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

func newFeedbackUser(ctx context.Context, report *feedbackReport, o FeedbackOptions, n uint64, arm int) (*feedbackUser, error) {
	u := &feedbackUser{
		feedbackReport: report, arm: arm, right: o.Right, random: rand.New(rand.NewPCG(o.Seed, n)), x: index.New(),
		now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), good: map[string]bool{}, instead: map[string]string{}, records: map[string]feedback.Record{},
		since: map[string]int{}, fallen: map[string]bool{},
	}
	var rows []index.Row
	for i, place := range u.random.Perm(feedbackSources) {
		text := fmt.Sprintf("The lighthouse needs part%d and tool%d.", u.random.IntN(1000), i)
		unit := recall.Unit{ID: fmt.Sprintf("s%02d", i), Version: 1, Layer: recall.Fact, Text: text, At: u.now.AddDate(0, 0, -u.random.IntN(20)), Importance: u.random.Float64()}
		unit.Terms = index.Join(text)
		rows, u.good[unit.ID] = append(rows, unit.Row()), float64(place) < feedbackSources*report.Helpful
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
		status, right := feedback.Harmful, u.random.Float64() < u.right
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

// fall notes how many evaluations a wrong source takes until it has fallen.
func (u *feedbackUser) fall(id string) {
	f := u.factor(id)
	u.Least, u.Most = min(u.Least, f), max(u.Most, f)
	if u.good[id] || u.fallen[id] {
		return
	}
	u.since[id]++
	var helping []float64
	for other := range u.good {
		if u.good[other] {
			helping = append(helping, u.factor(other))
		}
	}
	slices.Sort(helping)
	n, promise, within := u.since[id], wrongPromise, &u.WrongWithin
	if id == u.turned {
		promise, within = turnedPromise, &u.TurnedWithin
	}
	if u.fallen[id] = f < min(1, helping[len(helping)/2]); u.fallen[id] {
		*within = max(*within, n)
	}
	switch {
	case n == promise && !u.fallen[id]:
		u.Unfallen++
		u.Wrong++
	case n <= promise && u.fallen[id]:
		u.Wrong++
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
