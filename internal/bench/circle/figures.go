package circle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
)

// circleFigures is what became of a circle.
type circleFigures struct {
	Posts              int     `json:"posts"`    // all, those of the user included
	Comments           int     `json:"comments"` // all, those of the user included
	ExactDuplicates    int     `json:"exactDuplicates"`
	NearDuplicateShare float64 `json:"nearDuplicateShare"` // share of the texts of characters
	AnsweredShare      float64 `json:"answeredShare"`      // share of all comments
	AuthorReturnShare  float64 `json:"authorReturnShare"`  // share of the characters' posts with comments by others
	MeanDepth          float64 `json:"meanDepth"`          // depth of a comment; 1 = on the post
	MeanThreadDepth    float64 `json:"meanThreadDepth"`    // depth of the deepest comment of a thread
	CallsPerDayMax     int64   `json:"callsPerDayMax"`
	CallsPerDayMean    float64 `json:"callsPerDayMean"`
	CallLimit          int64   `json:"callLimit"`
	TokensPerDayMax    int64   `json:"tokensPerDayMax"`
	TokenLimit         int64   `json:"tokenLimit"`
	LeftOut            int64   `json:"leftOut"` // turns, because of the limits of a day
	SilentCharacters   int     `json:"silentCharacters"`
	OverLimit          int     `json:"overLimit"` // interactions above the limits of a character
	SlotsTwice         int     `json:"slotsTwice"`
	Jobs               []int   `json:"jobs"`         // that each process has run
	PrivateLeaks       int64   `json:"privateLeaks"` // prompts with private text
	Unfounded          int     `json:"unfounded"`    // statements about others without evidence
	DelayMinutesP10    float64 `json:"delayMinutesP10"`
	DelayMinutesP50    float64 `json:"delayMinutesP50"`
	DelayMinutesP90    float64 `json:"delayMinutesP90"`
	ReactionShareMin   float64 `json:"reactionShareMin"` // share of the others' posts that a character reacts to
	ReactionShareMean  float64 `json:"reactionShareMean"`
	ReactionShareMax   float64 `json:"reactionShareMax"`
	Seconds            float64 `json:"seconds"`

	turns map[string]int // by state and note
	leak  string
}

// circleReport is the JSON of all models: at the top the worst of them.
type circleReport struct {
	circleFigures
	Models map[string]*circleFigures `json:"models"`
}

// add joins figures to the worst.
func (r *circleReport) add(name string, f *circleFigures) {
	first := len(r.Models) == 0
	r.Models[name] = f
	if first {
		r.circleFigures = *f
		return
	}
	a := &r.circleFigures
	a.Posts, a.Comments = min(a.Posts, f.Posts), min(a.Comments, f.Comments)
	a.ExactDuplicates, a.NearDuplicateShare = max(a.ExactDuplicates, f.ExactDuplicates), max(a.NearDuplicateShare, f.NearDuplicateShare)
	a.AnsweredShare, a.AuthorReturnShare = min(a.AnsweredShare, f.AnsweredShare), min(a.AuthorReturnShare, f.AuthorReturnShare)
	a.MeanDepth, a.MeanThreadDepth = min(a.MeanDepth, f.MeanDepth), min(a.MeanThreadDepth, f.MeanThreadDepth)
	a.CallsPerDayMax, a.CallsPerDayMean = max(a.CallsPerDayMax, f.CallsPerDayMax), max(a.CallsPerDayMean, f.CallsPerDayMean)
	a.TokensPerDayMax, a.LeftOut = max(a.TokensPerDayMax, f.TokensPerDayMax), max(a.LeftOut, f.LeftOut)
	a.SilentCharacters, a.OverLimit = max(a.SilentCharacters, f.SilentCharacters), max(a.OverLimit, f.OverLimit)
	a.SlotsTwice, a.PrivateLeaks, a.Unfounded = max(a.SlotsTwice, f.SlotsTwice), max(a.PrivateLeaks, f.PrivateLeaks), max(a.Unfounded, f.Unfounded)
	a.ReactionShareMin, a.ReactionShareMax = min(a.ReactionShareMin, f.ReactionShareMin), max(a.ReactionShareMax, f.ReactionShareMax)
	a.Seconds += f.Seconds
}

func (f *circleFigures) print(out io.Writer, name string, o Options) {
	fmt.Fprintf(out, "\n%d days, %d characters, seed %d, the %s model (%.1f s)\n", o.Days, o.Characters, o.Seed, name, f.Seconds)
	row := func(what, format string, value any, aim string) {
		fmt.Fprintf(out, "  %-62s "+format+"  %s\n", what, value, aim)
	}
	row("posts", "%8d", f.Posts, "")
	row("comments", "%8d", f.Comments, "")
	row("exact duplicates", "%8d", f.ExactDuplicates, "aim 0")
	row("near duplicates, of the characters' texts", "%8.4f", f.NearDuplicateShare, "aim ≤ 0.02")
	row("comments that get an answer", "%8.3f", f.AnsweredShare, "aim ≥ 0.22")
	row("authors who return to their commented post", "%8.3f", f.AuthorReturnShare, "aim ≥ 0.50")
	row("mean depth of a comment", "%8.2f", f.MeanDepth, "aim ≥ 1.6")
	row("mean depth of a thread", "%8.2f", f.MeanThreadDepth, "")
	row("calls a day, most", "%8d", f.CallsPerDayMax, fmt.Sprintf("limit %d", f.CallLimit))
	row("calls a day, mean", "%8.1f", f.CallsPerDayMean, "")
	row("tokens a day, most", "%8d", f.TokensPerDayMax, fmt.Sprintf("limit %d", f.TokenLimit))
	row("turns left out because of these limits", "%8d", f.LeftOut, "")
	row("characters that fall silent", "%8d", f.SilentCharacters, "aim 0")
	row("interactions above a character's limits", "%8d", f.OverLimit, "aim 0")
	if len(f.Jobs) > 1 {
		row("jobs of each process", "%8s", strings.Trim(fmt.Sprint(f.Jobs), "[]"), "")
	}
	row("slots used twice", "%8d", f.SlotsTwice, "aim 0")
	row("prompts with private text", "%8d", f.PrivateLeaks, "aim 0")
	row("statements about others without evidence", "%8d", f.Unfounded, "aim 0")
	row("minutes until a reaction, 10 % / median / 90 %", "%s", fmt.Sprintf("%.1f / %.1f / %.1f", f.DelayMinutesP10, f.DelayMinutesP50, f.DelayMinutesP90), "")
	row("share of others' posts a character reacts to, least/mean/most", "%s",
		fmt.Sprintf("%.3f / %.3f / %.3f", f.ReactionShareMin, f.ReactionShareMean, f.ReactionShareMax), "")
	fmt.Fprintf(out, "  turns:")
	for _, k := range slices.Sorted(maps.Keys(f.turns)) {
		fmt.Fprintf(out, " %s %d;", k, f.turns[k])
	}
	fmt.Fprintln(out)
	if f.leak != "" {
		fmt.Fprintf(out, "  a prompt with private text:\n%s\n", f.leak)
	}
}

// said is a text of a character.
type said struct {
	author, text string
	at           time.Time
}

// circleTally collects figures from posts, comments and turns.
type circleTally struct {
	f                   *circleFigures
	names               []string // the characters' names
	texts               []said
	answered            map[string]bool // comments
	depth, threads      int
	deepest             map[string]int // by thread
	discussed, returned int            // posts of characters with comments of others; that their author has answered
	postAt              map[string]time.Time
	author              map[string]string // by post
	spoke               map[string]time.Time
	slots               map[string]int             // turns
	written             map[string]int             // turns by what they became
	reactions           map[string][]reaction      // by character
	reacted             map[string]map[string]bool // by character: posts
	delays              []float64
}

// measure reads what the circle has done.
func (w *circleWorld) measure(ctx context.Context) (*circleFigures, error) {
	f := &circleFigures{turns: map[string]int{}, leak: w.model.leaked, PrivateLeaks: w.model.leaks}
	t := &circleTally{
		f: f, answered: map[string]bool{}, deepest: map[string]int{}, postAt: map[string]time.Time{}, author: map[string]string{},
		spoke: map[string]time.Time{}, slots: map[string]int{}, written: map[string]int{}, reactions: map[string][]reaction{}, reacted: map[string]map[string]bool{},
	}
	for _, ch := range w.characters {
		t.names = append(t.names, ch.Name)
	}
	if err := w.eachPost(ctx, t.post); err != nil {
		return nil, err
	}
	if err := w.eachTurn(ctx, t.turn); err != nil {
		return nil, err
	}
	for _, p := range w.processes {
		f.Jobs = append(f.Jobs, p.jobs)
	}
	t.finish(w)
	return f, w.costs(ctx, f)
}

func (t *circleTally) post(entry *circle.Entry) {
	p := entry.Post
	t.f.Posts++
	t.postAt[p.ID], t.author[p.ID] = p.CreatedAt, p.AuthorID
	t.say(p.AuthorID, p.AuthorName, p.Text, p.CreatedAt, p.Evidence)
	reactionsTo(entry, t.reactions)
	others, back := false, false
	for _, c := range entry.Comments {
		if c.DeletedAt != nil {
			continue
		}
		t.f.Comments++
		t.say(c.AuthorID, c.AuthorName, c.Text, c.CreatedAt, c.Evidence)
		if c.ReplyTo != "" {
			t.answered[c.ReplyTo] = true
		}
		t.depth += c.Depth
		t.deepest[c.Thread] = max(t.deepest[c.Thread], c.Depth)
		others = others || c.AuthorID != p.AuthorID
		back = back || c.AuthorID == p.AuthorID
		t.reacts(c.AuthorID, p.ID)
	}
	for _, l := range p.Likes {
		t.reacts(l.AuthorID, p.ID)
	}
	if p.AuthorID != circle.Me && others {
		t.discussed++
		if back {
			t.returned++
		}
	}
}

func (t *circleTally) reacts(characterID, postID string) {
	if t.reacted[characterID] == nil {
		t.reacted[characterID] = map[string]bool{}
	}
	t.reacted[characterID][postID] = true
}

// say notes a text of a character.
func (t *circleTally) say(author, name, text string, at time.Time, evidence []string) {
	if author == circle.Me {
		return
	}
	t.texts = append(t.texts, said{author, text, at})
	if at.After(t.spoke[author]) {
		t.spoke[author] = at
	}
	others := slices.DeleteFunc(rules.Mentions(text, t.names), func(n string) bool { return n == name })
	if len(evidence) == 0 && len(others) > 0 {
		t.f.Unfounded++
	}
}

func (t *circleTally) turn(turn *circle.Turn) {
	key := string(turn.State)
	if turn.Note != "" {
		key += " " + string(turn.Note)
	}
	t.f.turns[key]++
	if turn.Slot != "" && turn.State == circle.TurnDone {
		t.slots[turn.CharacterID+" "+turn.Day+" "+turn.Slot]++
		t.written[turn.PostID]++
	}
	if at, ok := t.postAt[turn.PostID]; ok && turn.Slot == "" && turn.CommentID == "" && turn.State == circle.TurnDone && turn.EndedAt != nil {
		t.delays = append(t.delays, turn.EndedAt.Sub(at).Minutes())
	}
}

func (t *circleTally) finish(w *circleWorld) {
	f := t.f
	share := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	f.AnsweredShare, f.AuthorReturnShare = share(len(t.answered), f.Comments), share(t.returned, t.discussed)
	f.MeanDepth = share(t.depth, f.Comments)
	for _, d := range t.deepest {
		t.threads += d
	}
	f.MeanThreadDepth = share(t.threads, len(t.deepest))
	f.ExactDuplicates, f.NearDuplicateShare = duplicates(t.texts)
	for _, n := range t.slots {
		f.SlotsTwice += n - 1
	}
	for id, author := range t.author { // a turn knows only the last post that it has become
		if author != circle.Me && t.written[id] != 1 {
			f.SlotsTwice++
		}
	}
	last := w.clock.Now().AddDate(0, 0, -7)
	var shares []float64
	for i, ch := range w.characters {
		f.OverLimit += overLimit(circleFrequency(i), t.reactions[ch.ID])
		if t.spoke[ch.ID].Before(last) {
			f.SilentCharacters++
		}
		others := 0
		for _, author := range t.author {
			if author != ch.ID {
				others++
			}
		}
		shares = append(shares, share(len(t.reacted[ch.ID]), others))
	}
	slices.Sort(shares)
	if n := len(shares); n > 0 {
		sum := 0.0
		for _, s := range shares {
			sum += s
		}
		f.ReactionShareMin, f.ReactionShareMean, f.ReactionShareMax = shares[0], sum/float64(n), shares[n-1]
	}
	slices.Sort(t.delays)
	if n := len(t.delays); n > 0 {
		f.DelayMinutesP10, f.DelayMinutesP50, f.DelayMinutesP90 = t.delays[n/10], t.delays[n/2], t.delays[n*9/10]
	}
}

// duplicates counts texts that are equal to an earlier one, and the share of those that
// are near an earlier one of the last 300: the same in at least 80 of 100 three-letter
// pieces.
func duplicates(texts []said) (exact int, near float64) {
	slices.SortStableFunc(texts, func(a, b said) int { return a.at.Compare(b.at) })
	seen := map[string]bool{}
	var window []map[string]float64
	n := 0
	for _, s := range texts {
		folded := strings.Join(strings.Fields(strings.ToLower(s.text)), " ")
		if seen[folded] {
			exact++
		}
		seen[folded] = true
		grams := gramsOf(folded)
		if slices.ContainsFunc(window, func(o map[string]float64) bool { return cosine(grams, o) >= 0.8 }) {
			n++
		}
		if window = append(window, grams); len(window) > 300 {
			window = window[1:]
		}
	}
	return exact, float64(n) / float64(max(len(texts), 1))
}

// gramsOf counts the pieces of three letters of a text.
func gramsOf(text string) map[string]float64 {
	grams := map[string]float64{}
	runes := []rune(text)
	for i := range max(len(runes)-2, 0) {
		grams[string(runes[i:i+3])]++
	}
	return grams
}

func cosine(a, b map[string]float64) float64 {
	dot, na, nb := 0.0, 0.0, 0.0
	for k, n := range a {
		dot += n * b[k]
		na += n * n
	}
	for _, n := range b {
		nb += n * n
	}
	if na == 0 || nb == 0 {
		return 0
	}
	return dot / math.Sqrt(na*nb)
}

// costs reads what each day has cost.
func (w *circleWorld) costs(ctx context.Context, f *circleFigures) error {
	return w.first().db.Circle().View(ctx, w.call.UserID, func(tx circle.Tx) error {
		state, err := tx.CircleState()
		if err != nil {
			return err
		}
		f.CallLimit, f.TokenLimit = state.Settings.CallsPerDay, state.Settings.TokensPerDay
		days, err := tx.Spends("2000-01-01", "2100-01-01")
		if err != nil {
			return err
		}
		calls := int64(0)
		for _, d := range days {
			f.CallsPerDayMax, f.TokensPerDayMax = max(f.CallsPerDayMax, d.Calls), max(f.TokensPerDayMax, d.Tokens)
			f.LeftOut += d.LeftOut
			calls += d.Calls
		}
		f.CallsPerDayMean = float64(calls) / float64(max(len(days), 1))
		if calls < w.model.calls {
			return fmt.Errorf("%d calls of the model, but only %d are on the bill", w.model.calls, calls)
		}
		return nil
	})
}
