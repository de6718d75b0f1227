package memory

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// Ask says whose memory is asked, and from where.
type Ask struct {
	CharacterID string
	Here        Place  // the branch that is being talked on; zero = none
	Scene       *Scene // nil = Options.Scenes is asked
	Hidden      bool   // also what no branch shows, and every version of a fact
	Lexical     bool   // without vectors
}

// question is what one Ask and its query need while they are answered.
type question struct {
	ask    *Ask
	q      *recall.Query
	known  []string // ids of facts that the prompt shows anyway, in the profile
	near   recall.Vectors
	branch *branch
}

// Recall returns what fits, best first: only units that are shown on the branches of their
// conversations, and of each fact the version that counts there. It calls the embedder at most
// once; if that fails, words are enough.
//
// In a scene that does not share, only what was said in Here's conversation counts, and what
// the user wrote. The query's names and limit are by default the scene's, its time is the present
// and its zone the scene's, if that has one. A public query is not on a branch or in a
// conversation.
func (s *Service) Recall(ctx context.Context, userID string, a Ask, q recall.Query) (hits []recall.Hit, err error) {
	hits, _, err = s.Turn(ctx, userID, a, q, nil)
	return hits, err
}

// Turn is Recall for a turn with a profile. It passes the facts for the profile, as they count
// on the branch a.Here, to profile, which returns the ids of those that the prompt shows. Without
// a text there are no hits; without profile, it is Recall. whole is false if there was time for only a part of the memory.
func (s *Service) Turn(ctx context.Context, userID string, a Ask, q recall.Query, profile func(facts []Memory) (known []string)) (hits []recall.Hit, whole bool, err error) {
	asked, err := s.question(ctx, userID, a, q)
	if err != nil {
		return nil, false, err
	}
	err = s.use(ctx, Scope{userID, a.CharacterID}, func(x *index.Index, all bool) error {
		if profile != nil {
			facts, err := asked.branch.profile(ctx, x, &asked.q.Only)
			if err != nil {
				return err
			}
			if asked.known = profile(facts); q.Text == "" {
				whole = all
				return nil
			}
		}
		hits, whole, err = asked.find(ctx, x)
		whole = whole && all
		return err
	})
	return hits, whole, err
}

// question completes what is asked by the settings and the vectors.
func (s *Service) question(ctx context.Context, userID string, a Ask, q recall.Query) (*question, error) {
	scene, err := s.scene(ctx, userID, &a)
	if err != nil {
		return nil, err
	}
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	if scene.Zone != nil {
		q.Now = q.Now.In(scene.Zone)
	}
	q.Limit, q.Names = cmp.Or(q.Limit, scene.Limit, recall.DefaultLimit), cmp.Or(q.Names, scene.Names)
	if q.Only.Public {
		a.Here, q.Only.Conversation = Place{}, ""
	}
	if q.Here = a.Here.ConversationID; !scene.Share {
		q.Only.Conversation = cmp.Or(q.Only.Conversation, q.Here)
	}
	if scene.Feedback && !q.Only.Public {
		q.Records = func(ctx context.Context, units []string) (map[string]feedback.Record, error) {
			return op.Read(ctx, s.store, userID, func(tx Tx) (map[string]feedback.Record, error) { return tx.Records(a.CharacterID, units...) })
		}
	}
	asked := &question{ask: &a, q: &q, branch: newBranch(s.store, userID, &a, q.Only.Conversation)}
	if !a.Lexical && !asked.q.Silent() {
		asked.near = s.embedQuestion(ctx, userID, q.Text)
	}
	return asked, nil
}

func (asked *question) find(ctx context.Context, x *index.Index) (hits []recall.Hit, whole bool, err error) {
	q := *asked.q
	if len(asked.known) > 0 { // they take nothing from the others
		q.Limit += len(asked.known)
		q.Characters = cmp.Or(q.Characters, recall.DefaultCharacters) + MaxProfile
	}
	var counts recall.Branch
	if !asked.ask.Hidden {
		counts = asked.branch
	}
	if hits, whole, err = recall.Find(ctx, x, &q, asked.near, counts); err != nil {
		return nil, false, err
	}
	if hits, err = asked.withName(ctx, x, hits); err != nil {
		return nil, false, err
	}
	hits = slices.DeleteFunc(hits, func(h recall.Hit) bool { return slices.Contains(asked.known, h.ID) })
	return atMost(hits, asked.q.Limit), whole, nil
}

// atMost leaves out the last hits; those that explore stay.
func atMost(hits []recall.Hit, limit int) []recall.Hit {
	for at := len(hits) - 1; at >= 0 && len(hits) > limit; at-- {
		if hits[at].Signals[recall.SignalExploration] == 0 {
			hits = slices.Delete(hits, at, at+1)
		}
	}
	return hits[:min(len(hits), limit)]
}

// withName puts the fact with the user's name first if they ask who they are.
func (asked *question) withName(ctx context.Context, x *index.Index, hits []recall.Hit) ([]recall.Hit, error) {
	q := asked.q
	if !lang.AsksWho(q.Text) || asked.ask.Hidden || q.Only.Public || len(q.Only.Layers) > 0 && !slices.Contains(q.Only.Layers, recall.Fact) {
		return hits, nil
	}
	facts, err := asked.branch.profile(ctx, x, &q.Only)
	if err != nil {
		return nil, err
	}
	facts = slices.DeleteFunc(facts, func(m Memory) bool {
		return !lang.GivesName(m.Text) || q.Visible.Has(m.Text, SourcesOf(m.Evidence))
	})
	for _, m := range slices.Backward(currentValues(facts)) {
		hits = slices.DeleteFunc(hits, func(h recall.Hit) bool { return h.ID == m.ID })
		u := m.unit()
		u.At = lang.LocalTime(u.At, q.Now.Location())
		hits = slices.Insert(hits, 0, recall.Answer(u))
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

// embedQuestion returns the vectors of a question: always one by spelling, which rows have until
// the model's are ready. A model gets half of the remaining time.
func (s *Service) embedQuestion(ctx context.Context, userID, text string) (near recall.Vectors) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(until)/2, errEmbedderSlow)
		defer cancel()
	}
	var e llm.Embedder
	var err error
	if near.Spelling, err = vectorOf(ctx, offline.Embedder{}, text); err == nil {
		e, err = s.embedder(ctx, userID)
	}
	if err == nil && e.ModelID() != near.Spelling.Model {
		near.Model, err = vectorOf(ctx, e, text)
	}
	if err != nil {
		s.opts.Log.DebugContext(ctx, "embedding provider failed; memories are recalled without it", "user", userID, "err", err, "cause", context.Cause(ctx))
	}
	return near
}

var errEmbedderSlow = errors.New("the embedding provider took too long")

func vectorOf(ctx context.Context, e llm.Embedder, text string) (index.Vector, error) {
	found, err := e.Embed(ctx, llm.Query, []string{text})
	if err != nil {
		return index.Vector{}, err
	}
	return index.Vector{Model: found.Model, Values: found.Vectors[0]}, nil
}

// SignalStep parts of one are what the signals of uses are rounded to.
const SignalStep = 1e4

func rounded(x float64) float64 { return math.Round(x*SignalStep) / SignalStep }

// UsesOf are the stored form of hits.
func UsesOf(hits []recall.Hit) []Use {
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

func (u Use) Parts() (p recall.Parts) {
	for name, x := range u.Signals {
		if name == profileSignal {
			name = "importance"
		}
		p.Add(name, x)
	}
	return p
}

// LineOf formats a hit for a <mem> block: who said it, the text or its excerpt, and the day.
func LineOf(h *recall.Hit, n lang.Names) string {
	text := h.Shown()
	if h.Layer == recall.Exchange {
		text = n.Speaker(lang.Line{Role: h.Speaker, Name: h.Name}) + ": " + text
	}
	return blockLine(text, &h.At)
}

// Run loads, slowly and until ctx ends, the rest of the indexes that a turn had no time to load.
func (s *Service) Run(ctx context.Context) { s.cache.Run(ctx) }

// Changed lets Run get a memory ready that was added to and is probably asked again soon.
func (s *Service) Changed(userID, characterID string) {
	s.cache.Changed(Scope{userID, characterID}.key())
}

// Held returns how many search indexes are in memory, and their size in bytes.
func (s *Service) Held() (indexes, bytes int) { return s.cache.Stats() }
