package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"nodest/index"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory/lang"
)

// Ask is a request to recall something, by a turn or by a user.
type Ask struct {
	CharacterID string
	Here        Place // the branch that is being talked on; zero = none
	Text        string
	Names       lang.Names
	Now         time.Time // default the present; its zone is that of days in Text and of the hits, unless the scene has one
	Scene       *Scene    // nil = Options.Scenes is asked

	Before       []string // texts of the last turn, the user's first, which Text may refer to
	Visible      Visible  // what the prompt shows anyway
	Known        []string // ids of facts that the prompt shows anyway, in the profile
	Search       bool     // of a user, who wants to see what fits: a floor of relevance instead of the gate
	Everything   bool     // mode=recall: neither gate, variety nor budget
	Relevant     bool     // with Everything: the floor all the same
	Hidden       bool     // also what no branch shows, and every version of a fact
	NoCircle     bool     // without what happened in the circle
	Public       bool     // only facts that may be told in the circle, of which one telling word of Text is enough; not on a branch (Here) or in a Conversation
	Layers       []Layer  // nil = both
	Conversation string   // only what was said, or learned, in this one; "" = all
	Limit        int      // hits; 0 = the scene's, else 10
	Lexical      bool     // without vectors

	// Tell waits until an embedding provider may be sent Text. If it fails, words and spelling have to
	// do; nil = at once.
	Tell func() error

	// The rest is for a search in one index; the service sets it.

	Characters int          // code points of all texts together; default 1500
	Vector     index.Vector // of the text by the model, if there is one
	Spelling   index.Vector // of the text by parts of words, if there is one

	// Skip excludes units of other conversations or layers.
	Skip func(*Unit) bool
	// Counts reports for each unit whether it may be returned; nil = all may. It is called only
	// for the best units.
	Counts func(context.Context, []*Unit) ([]bool, error)
	// Over returns the facts that have ended, and what counts instead (counter.over); nil =
	// none have.
	Over func(ctx context.Context, facts []*Unit) (map[string]string, error)

	only string         // likewise: exchanges of this conversation only; "" = all
	read *lang.Question // of Text; nil = not read yet
}

// bars is Skip by what the index tells of row n.
func (q *Ask) bars(l line, n int, v index.View) bool {
	layer := Exchange
	if l.is(lineFact) {
		layer = Fact
	}
	if len(q.Layers) > 0 && !slices.Contains(q.Layers, layer) || q.NoCircle && l.is(lineCircle) || q.Public && !l.is(linePublic) {
		return true
	}
	return q.only != "" && layer == Exchange && !strings.HasPrefix(v.Group(n), groupOf(q.only))
}

// Recall returns what fits, best first: only units that are shown on the branches of their
// conversations, and of each fact the version that counts there. It calls the embedder at most
// once; if that fails, words are enough.
//
// In a scene that does not share, only what was said in Here's conversation counts, and what
// the user wrote.
func (s *Service) Recall(ctx context.Context, userID string, a Ask) (hits []Hit, err error) {
	c, err := s.question(ctx, userID, &a)
	if err != nil {
		return nil, err
	}
	err = s.use(ctx, Scope{userID, a.CharacterID}, func(x *index.Index, _ bool) error {
		hits, _, err = find(ctx, x, &a, c)
		return err
	})
	return hits, err
}

// Turn is Recall for a turn with a profile. It passes the facts for the profile, as they count
// on the branch a.Here, to profile; what that returns becomes a.Known. Without a text there are
// no hits. whole is false if there was time for only a part of the memory.
func (s *Service) Turn(ctx context.Context, userID string, a Ask, profile func(facts []Memory) (known []string)) (hits []Hit, whole bool, err error) {
	c, err := s.question(ctx, userID, &a)
	if err != nil {
		return nil, false, err
	}
	err = s.use(ctx, Scope{userID, a.CharacterID}, func(x *index.Index, all bool) error {
		facts, err := c.profile(ctx, x, a.Skip)
		if err != nil {
			return err
		}
		compared := true
		if a.Known = profile(facts); a.Text != "" {
			hits, compared, err = find(ctx, x, &a, c)
		}
		whole = all && compared
		return err
	})
	return hits, whole, err
}

// question completes a by the settings and the vectors.
func (s *Service) question(ctx context.Context, userID string, a *Ask) (*counter, error) {
	scene, err := s.scene(ctx, userID, a)
	if err != nil {
		return nil, err
	}
	if a.Now.IsZero() {
		a.Now = time.Now()
	}
	if scene.Zone != nil {
		a.Now = a.Now.In(scene.Zone)
	}
	a.Limit, a.Names = cmp.Or(a.Limit, scene.Limit, DefaultLimit), cmp.Or(a.Names, scene.Names)
	a.Characters = defaultCharacters
	if a.Public {
		a.Here, a.Conversation = Place{}, ""
	}
	c := newCounter(s.store, userID, a, &scene)
	a.Skip, a.only = c.skip(a), c.only
	if !a.Hidden {
		a.Counts, a.Over = c.counts, c.over
	}
	if !a.Lexical && !(a.gated() && a.reading().Silent()) {
		s.embedQuestion(ctx, userID, a)
	}
	return c, nil
}

func find(ctx context.Context, x *index.Index, a *Ask, c *counter) (hits []Hit, whole bool, err error) {
	q := *a
	if len(a.Known) > 0 { // they take nothing from the others
		q.Limit += len(a.Known)
		q.Characters += MaxProfile
	}
	if hits, whole, err = Recall(ctx, x, q); err != nil {
		return nil, false, err
	}
	if hits, err = withName(ctx, x, a, c, hits); err != nil {
		return nil, false, err
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return slices.Contains(a.Known, h.ID) })
	return hits[:min(len(hits), a.Limit)], whole, nil
}

// withName puts the fact with the user's name first if they ask who they are.
func withName(ctx context.Context, x *index.Index, a *Ask, c *counter, hits []Hit) ([]Hit, error) {
	if !lang.AsksWho(a.Text) || a.Hidden || a.Public || len(a.Layers) > 0 && !slices.Contains(a.Layers, Fact) {
		return hits, nil
	}
	facts, err := c.profile(ctx, x, a.Skip)
	if err != nil {
		return nil, err
	}
	facts = slices.DeleteFunc(facts, func(m Memory) bool { return !lang.GivesName(m.Text) || a.Visible.Has(m.Text, m.Evidence) })
	for _, m := range slices.Backward(currentValues(facts)) {
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.ID == m.ID })
		u := m.unit()
		u.At = lang.LocalTime(u.At, a.Now.Location())
		hits = slices.Insert(hits, 0, Hit{
			Unit: u, Score: 1, Parts: Parts{Lexical: 1}, Signals: map[string]float64{signalNames[sigKind]: 1},
		})
	}
	return hits, nil
}

func (s *Service) scene(ctx context.Context, userID string, a *Ask) (Scene, error) {
	if a.Scene != nil {
		return *a.Scene, nil
	}
	return s.opts.Scenes(ctx, userID, a.CharacterID, a.Here.ConversationID)
}

func (s *Service) embedder(ctx context.Context, userID string) (llm.Embedder, error) {
	if s.opts.Embedder == nil {
		return offline.Embedder{}, nil
	}
	return s.opts.Embedder(ctx, userID)
}

// embedQuestion adds the vectors of a question: always by spelling, because rows have vectors
// of the offline embedder until the model's are ready. A model gets half of the remaining time.
func (s *Service) embedQuestion(ctx context.Context, userID string, q *Ask) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(until)/2, errEmbedderSlow)
		defer cancel()
	}
	var err error
	if q.Spelling, err = vectorOf(ctx, offline.Embedder{}, q.Text); err == nil {
		q.Vector, err = s.embedByModel(ctx, userID, q)
	}
	if err != nil {
		s.opts.Log.DebugContext(ctx, "embedding provider failed; memories are recalled without it", "user", userID, "err", err, "cause", context.Cause(ctx))
	}
}

// embedByModel returns the vector of a question by the user's model; none if that is the offline
// embedder.
func (s *Service) embedByModel(ctx context.Context, userID string, q *Ask) (index.Vector, error) {
	e, err := s.embedder(ctx, userID)
	if err != nil || e.ModelID() == q.Spelling.Model {
		return index.Vector{}, err
	}
	if q.Tell != nil {
		if err := q.Tell(); err != nil {
			return index.Vector{}, err
		}
	}
	return vectorOf(ctx, e, q.Text)
}

var errEmbedderSlow = errors.New("the embedding provider took too long")

func vectorOf(ctx context.Context, e llm.Embedder, text string) (index.Vector, error) {
	found, err := e.Embed(ctx, llm.Query, []string{text})
	if err != nil {
		return index.Vector{}, err
	}
	return index.Vector{Model: found.Model, Values: found.Vectors[0]}, nil
}

// counter tells which units count for one question, and remembers what it has read for it.
type counter struct {
	store               Store
	userID, characterID string
	here                *Place
	only                string // conversation; "" = all

	versions map[string][]Memory // of the facts read so far, oldest first, by root
	seen     map[string]bool     // whether a text is shown, of those asked for so far, by revision
}

func newCounter(store Store, userID string, a *Ask, scene *Scene) *counter {
	c := &counter{
		store: store, userID: userID, characterID: a.CharacterID, only: a.Conversation,
		versions: map[string][]Memory{}, seen: map[string]bool{},
	}
	if a.Here.ConversationID != "" {
		c.here = &a.Here
		if !scene.Share {
			c.only = cmp.Or(c.only, a.Here.ConversationID)
		}
	}
	return c
}

// skip excludes other layers and conversations, and what the circle may not, or shall not, add.
func (c *counter) skip(a *Ask) func(*Unit) bool {
	layers, noCircle, public := a.Layers, a.NoCircle, a.Public
	return func(u *Unit) bool {
		if len(layers) > 0 && !slices.Contains(layers, u.Layer) || noCircle && u.Origin == ByCircle || public && !u.public() {
			return true
		}
		return c.only != "" && u.Layer == Exchange && u.Conversation != c.only
	}
}

// counts reports for each unit whether it is shown or, for a fact, counts there.
func (c *counter) counts(ctx context.Context, units []*Unit) ([]bool, error) {
	if err := c.read(ctx, units); err != nil {
		return nil, err
	}
	return c.countsOf(units), nil
}

// countsOf is counts of units that were read.
func (c *counter) countsOf(units []*Unit) []bool {
	counts := make([]bool, len(units))
	for i, u := range units {
		if u.Layer == Exchange {
			counts[i] = len(u.Evidence) > 0 && holds(u.Evidence, c.shown)
		} else if m := c.current(u); m != nil {
			counts[i] = m.ID == u.ID
		}
	}
	return counts
}

// current is the version of a fact that counts; nil = none.
func (c *counter) current(u *Unit) *Memory { return Current(c.versions[u.Root], c.shown) }

// over returns the facts, by id, that have ended: superseded or retired by shown texts, or by
// the user. The value is the version that counts instead; "" = none.
func (c *counter) over(ctx context.Context, facts []*Unit) (map[string]string, error) {
	if err := c.read(ctx, facts); err != nil {
		return nil, err
	}
	over := map[string]string{}
	for _, u := range facts {
		all := c.versions[u.Root]
		at := slices.IndexFunc(all, func(m Memory) bool { return m.ID == u.ID })
		if at < 0 {
			continue
		}
		if now := c.current(u); now == nil {
			if ended(all[at:], c.shown) {
				over[u.ID] = ""
			}
		} else if now.Version > all[at].Version {
			over[u.ID] = now.ID
		}
	}
	return over, nil
}

// ended reports whether the last version was retired by the user, or any by shown texts.
func ended(versions []Memory, shown func(Evidence) bool) bool {
	if last := &versions[len(versions)-1]; last.Status == Retired && len(last.EndedBy) == 0 {
		return true
	}
	return slices.ContainsFunc(versions, func(m Memory) bool {
		return m.Status == Retired && len(m.EndedBy) > 0 && holds(m.EndedBy, shown)
	})
}

// read loads, in one transaction, what counts and over need to know of units.
func (c *counter) read(ctx context.Context, units []*Unit) error {
	if len(c.newRoots(units)) == 0 && len(c.newTexts(units)) == 0 {
		return nil
	}
	return c.store.View(ctx, c.userID, func(tx Tx) error { return c.load(tx, units) })
}

func (c *counter) load(tx Tx, units []*Unit) error {
	if roots := c.newRoots(units); len(roots) > 0 {
		all, err := tx.FactVersions(c.characterID, roots...)
		if err != nil {
			return fmt.Errorf("read the versions of facts: %w", err)
		}
		for _, root := range roots {
			c.versions[root] = nil
		}
		for _, m := range all {
			c.versions[m.RootID] = append(c.versions[m.RootID], m)
		}
	}
	texts := c.newTexts(units)
	shown, err := tx.Shown(c.here, texts)
	if err != nil {
		return fmt.Errorf("read which texts are shown: %w", err)
	}
	for i, e := range texts {
		c.seen[e.RevisionID] = shown[i]
	}
	return nil
}

func (c *counter) newRoots(units []*Unit) (roots []string) {
	for _, u := range units {
		if _, known := c.versions[u.Root]; u.Layer == Fact && !known && !slices.Contains(roots, u.Root) {
			roots = append(roots, u.Root)
		}
	}
	return roots
}

// newTexts are the texts, not asked for before, that support units and the versions read so
// far.
func (c *counter) newTexts(units []*Unit) (texts []Evidence) {
	added := map[string]bool{}
	add := func(evidence []Evidence) {
		for _, e := range evidence {
			if _, known := c.seen[e.RevisionID]; !known && !added[e.RevisionID] && (c.only == "" || e.ConversationID == c.only) {
				added[e.RevisionID] = true
				texts = append(texts, e)
			}
		}
	}
	for _, u := range units {
		if u.Layer == Exchange {
			add(u.Evidence)
			continue
		}
		for _, m := range c.versions[u.Root] {
			add(m.Evidence)
			add(m.EndedBy)
		}
	}
	return texts
}

// shown is false for texts of other conversations than c.only.
func (c *counter) shown(e Evidence) bool { return c.seen[e.RevisionID] }

// SignalStep is into how many parts one is divided for the signals of uses, which are rounded to
// them.
const SignalStep = 1e4

func rounded(x float64) float64 { return math.Round(x*SignalStep) / SignalStep }

// UsesOf are the stored form of hits.
func UsesOf(hits []Hit) []Use {
	uses := make([]Use, len(hits))
	for i := range hits {
		h := &hits[i]
		u := Use{ID: h.ID, Layer: h.Layer, Rank: i + 1, Signals: map[string]float64{}}
		put := func(name string, x float64) {
			u.Signals[name] = rounded(x)
			u.Score = rounded(u.Score + u.Signals[name])
		}
		for name, x := range h.Signals {
			put(name, x)
		}
		if h.Parts.Recency != 0 {
			put("recency", h.Parts.Recency)
		}
		if h.Parts.Importance != 0 {
			put("importance", h.Parts.Importance)
		}
		uses[i] = u
	}
	return uses
}

func (u Use) Parts() (p Parts) {
	for name, x := range u.Signals {
		switch name {
		case "recency":
			p.Recency += x
		case "importance", profileSignal:
			p.Importance += x
		case signalNames[sigVector], signalNames[sigSpelling]:
			p.Vector += x
		default:
			p.Lexical += x
		}
	}
	return p
}

// LineOf formats a hit for a <mem> block: who said it, the text or its excerpt, and the day.
func LineOf(h *Hit, n lang.Names) string {
	text := h.Shown()
	if h.Layer == Exchange {
		text = n.Speaker(lang.Line{Role: h.Speaker, Name: h.Name}) + ": " + text
	}
	return blockLine(text, &h.At)
}

// Run loads, in the background and slowly, the rest of the indexes that a turn had no time to
// load, until ctx ends.
func (s *Service) Run(ctx context.Context) { s.cache.Run(ctx) }

// Changed says that something was added to a memory that is probably asked again soon. Run gets it
// ready for that.
func (s *Service) Changed(userID, characterID string) {
	s.cache.Changed(Scope{userID, characterID}.key())
}

// Held returns how many search indexes are in memory, and their size in bytes.
func (s *Service) Held() (indexes, bytes int) { return s.cache.Stats() }
