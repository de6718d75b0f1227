package summary

import (
	"slices"

	"nodest/internal/fault"
)

// Messages that stay word for word. With fewer than FewestLines nothing is summarised.
const (
	KeepFirst   = 3
	KeepLast    = 3
	FewestLines = 10
)

// rebuildEvery: every fourth generation is made from the messages themselves, since a summary
// of summaries drifts. In a chat of more than mostRebuilt messages all are folded: reading the
// whole chat again would take longer with every message, and of most of it nothing would fit
// into the summary.
const (
	rebuildEvery = 4
	mostRebuilt  = 500
)

type Occasion uint8

const (
	AfterReply Occasion = iota // a reply was stored, or a prompt is about to be built
	AtRest                     // nothing happens in the conversation: the time for repairs
	OnDemand                   // the user asks for a summary now
)

// Skip is a reason for making no summary; empty if one is due.
type Skip string

const (
	SkipNone       Skip = ""
	SkipDisabled   Skip = "disabled"           // by the settings
	SkipFew        Skip = "too_few_messages"   // three messages stay at each end
	SkipShort      Skip = "below_threshold"    //
	SkipNothingNew Skip = "nothing_new"        // everything between the ends is covered
	SkipLittleGain Skip = "little_gain"        // the rest is hardly longer than a summary
	SkipCooling    Skip = "cooling_down"       // the last one did not help, and little was said since
	SkipUserText   Skip = "written_by_user"    // nothing new, and the user's words are not thrown away
	SkipOffBranch  Skip = "summary_off_branch" // Active is not of this branch: ask again without it
)

// Attempt is what is stored of the last summary.
type Attempt struct {
	SummaryID string // that came of it
	Seq       int64  // the newest message at the time
	Length    int    // effective length with the new summary, in UTF-16 units
}

func AttemptOf(path []ChatLine, made *Summary) Attempt {
	a := Attempt{SummaryID: made.ID, Length: EffectiveLength(path, made)}
	if len(path) > 0 {
		a.Seq = path[len(path)-1].Seq
	}
	return a
}

// State is the input of a plan.
type State struct {
	// Lines are the shown branch, as Overlay needs it: of the messages that Active covers, any
	// but the last may be missing. A long one is thinned (Aim.Thin).
	Lines    []ChatLine
	Active   *Summary // in force; nil = none, or a covered message was deleted
	Latest   int      // highest generation that the conversation ever had
	Settings Settings
	Keep     int      // length at the end that stays unless a summary is asked for, in UTF-16 units; KeepLast messages stay in any case
	Last     *Attempt // nil = none yet
	Occasion Occasion
	NoModel  bool // there is none that could write better than the rules
}

// Plan says what to do, or why there is nothing to do.
type Plan struct {
	Skip       Skip
	Effective  int    // length of what would be sent now, in UTF-16 units
	Length     int    // length of the new summary at most, in code points
	Rebuild    bool   // from the messages themselves, not from the summary in force
	Generation int    //
	BaseID     string // the summary in force; a result for another one is worth nothing
	Range      Range  // that the new summary will stand for
	Count      int    // messages of Range
}

// MakePlan decides whether a summary is due and what it covers. It is a pure function.
//
// An active summary is folded: the next one is made of it and of what was said since. It is
// rebuilt from the messages every fourth generation, when it is stale, when rules wrote it and
// there is a model now, and when it leaves out messages between the first three and its own; a
// summary written by the user is only ever folded. In a chat of more than 500 messages it is not
// rebuilt every fourth generation, and one that rules wrote only while the conversation rests. A rebuild while the conversation rests, in a
// chat that is not too long, covers the same messages as before.
func MakePlan(st State) Plan {
	s := survey(st)
	plan := Plan{Skip: s.skip(), Effective: s.length, Length: st.Settings.Length}
	if plan.Skip != SkipNone {
		return plan
	}
	plan.Generation = s.generation()
	plan.Rebuild = s.rebuild()
	plan.Range, plan.Count = s.target(plan.Rebuild)
	if st.Active != nil {
		plan.BaseID = st.Active.ID
	}
	return plan
}

// surveyed is a state with what follows from it.
type surveyed struct {
	State
	length   int  // effective, in UTF-16 units
	from, to int  // Lines[from:to] are covered
	onBranch bool // the summary in force is
	missing  int  // covered lines that were not read
	n        int  // messages of the branch
	end      int  // position in Lines of the last one to be covered
}

func survey(st State) surveyed {
	s := surveyed{State: st, length: EffectiveLength(st.Lines, st.Active)}
	s.from, s.to, s.onBranch = st.Active.span(st.Lines)
	if s.onBranch {
		s.missing = max(0, st.Active.Count-Messages(st.Lines[s.from:s.to]))
	}
	s.n = Messages(st.Lines) + s.missing
	s.end = s.last()
	return s
}

// last is the position in Lines of the last message to be covered.
func (s *surveyed) last() int {
	end, kept := len(s.Lines)-KeepLast-1, 0
	if s.Occasion == OnDemand || s.Keep == 0 {
		return end
	}
	for i := len(s.Lines) - 1; i >= 0; i-- {
		if kept += s.Lines[i].length(); kept > s.Keep {
			return min(end, i)
		}
	}
	return -1
}

// first is the position in Lines of the first message that is not covered.
func (s *surveyed) first() int {
	if s.onBranch {
		return s.to
	}
	return KeepFirst
}

func (s *surveyed) skip() Skip {
	nothingNew := s.end < s.first() && !s.gap()
	switch {
	case !s.Settings.Enabled && s.Occasion != OnDemand:
		return SkipDisabled
	case s.n < FewestLines:
		return SkipFew
	case s.Active != nil && !s.onBranch:
		return SkipOffBranch
	case s.Occasion != OnDemand:
		return s.skipUnasked(nothingNew)
	case nothingNew && s.Active != nil && s.Active.Method == MethodUser:
		return SkipUserText
	}
	return SkipNone
}

// skipUnasked is skip if nobody has asked for a summary.
func (s *surveyed) skipUnasked(nothingNew bool) Skip {
	repair := s.repairable()
	switch {
	case s.Occasion == AtRest && repair:
		return SkipNone
	case s.length < s.Settings.Threshold:
		return SkipShort
	case nothingNew && !repair:
		return SkipNothingNew
	case !repair && s.littleGain():
		return SkipLittleGain
	case s.cooling():
		return SkipCooling
	}
	return SkipNone
}

// repairable reports whether the active summary should be rebuilt even without new messages.
func (s *surveyed) repairable() bool {
	return s.onBranch && s.Active.Method != MethodUser && (s.Active.Stale ||
		s.Active.Method == MethodExtractive && !s.NoModel && (s.n <= mostRebuilt || s.Occasion != AfterReply))
}

func (s *surveyed) rebuild() bool {
	switch {
	case !s.onBranch, s.repairable():
		return true
	case s.Active.Method == MethodUser:
		return false
	}
	return s.n <= mostRebuilt && s.generation()%rebuildEvery == 0 || s.gap() || s.end < s.to // asked for again: a fresh one
}

// gap reports whether messages are due before the active summary: the user chose its beginning.
func (s *surveyed) gap() bool {
	return s.onBranch && s.from > KeepFirst && s.Active.Method != MethodUser
}

// mends reports whether the active summary is rebuilt and nothing more is due.
func (s *surveyed) mends() bool {
	return s.onBranch && s.Occasion == AtRest && s.length < s.Settings.Threshold
}

func (s *surveyed) generation() int {
	latest := s.Latest
	if s.Active != nil {
		latest = max(latest, s.Active.Generation)
	}
	return latest + 1
}

// littleGain reports whether what would be covered is not worth a summary.
func (s *surveyed) littleGain() bool {
	n := 0
	for i := s.first(); i <= s.end; i++ {
		n += s.Lines[i].runes()
	}
	if s.gap() {
		for i := KeepFirst; i < s.from; i++ {
			n += s.Lines[i].runes()
		}
	}
	return 10*n < 12*s.Settings.Length
}

// cooling reports whether the last summary left the chat too long, and little was said since.
func (s *surveyed) cooling() bool {
	if s.Last == nil || s.Active == nil || s.Last.SummaryID != s.Active.ID || s.Last.Length < s.Settings.Threshold {
		return false
	}
	messages, length := 0, 0
	for i := range s.Lines {
		if s.Lines[i].Seq > s.Last.Seq {
			messages += s.Lines[i].count()
			length += s.Lines[i].length()
		}
	}
	return messages < 4 && 4*length < s.Settings.Threshold
}

// target is the range of the next summary. It never ends before the active one.
func (s *surveyed) target(rebuild bool) (Range, int) {
	if !s.onBranch {
		r := rangeOf(s.Lines, KeepFirst, s.end, 0)
		return r, r.End - r.Start + 1
	}
	start, end := s.from, max(s.end, s.to-1)
	switch {
	case s.mends():
		end = s.to - 1
	case rebuild && s.from > KeepFirst:
		start = KeepFirst
	}
	if rebuild && s.missing == 0 && start < KeepFirst && end > KeepFirst { // some of those before it are gone
		start = KeepFirst
	}
	r := rangeOf(s.Lines, start, end, s.missing)
	if s.missing > 0 && start == s.from {
		r.StartID, r.StartSeq = s.Active.Range.StartID, s.Active.Range.StartSeq
	}
	return r, r.End - r.Start + 1
}

func rangeOf(lines []ChatLine, start, end, missing int) Range {
	first := Messages(lines[:start])
	return Range{
		Start: first, End: first + Messages(lines[start:end]) + missing,
		StartID: lines[start].MessageID, StartSeq: lines[start].Seq,
		EndID: lines[end].MessageID, EndSeq: lines[end].Seq,
	}
}

// PlanRange plans a summary of lines[from:to+1], whatever is in force.
func PlanRange(st State, lines []ChatLine, from, to int) Plan {
	return Plan{
		Length: st.Settings.Length, Rebuild: true, Generation: st.Latest + 1,
		Range: rangeOf(lines, from, to, 0), Count: Messages(lines[from : to+1]),
	}
}

// Work returns the lines to summarise, out of the current branch, and the summary that they are
// folded into. A rebuild needs all lines of its range.
//
// It returns fault.Conflict if the branch or the active summary is no longer that of the plan.
func (p *Plan) Work(path []ChatLine, active *Summary) (Work, error) {
	w := Work{Previous: active, Rebuild: p.Rebuild, Length: p.Length}
	if active != nil && active.ID != p.BaseID || active == nil && p.BaseID != "" {
		return w, fault.New(fault.Conflict, "another summary became active")
	}
	end := indexOfMessage(path, p.Range.EndID)
	start := indexOfMessage(path, p.Range.StartID)
	if !p.Rebuild {
		start = indexOfMessage(path, active.Range.EndID) + 1
		if start == 0 {
			start = -1
		}
	}
	if start < 0 || end < start {
		return w, fault.New(fault.Conflict, "the conversation was changed by another request")
	}
	w.Lines = path[start : end+1]
	if active != nil {
		w.Known = indexOfMessage(w.Lines, active.Range.EndID) + 1
	}
	if n := Messages(w.Lines); p.Rebuild && n != p.Count {
		return w, fault.New(fault.Conflict, "only %d of the %d messages to summarise still exist", n, p.Count)
	}
	return w, nil
}

// Summary returns the planned summary with this text. The caller sets ID and time.
func (p *Plan) Summary(w Work, d Draft) *Summary {
	digest := ""
	if !p.Rebuild && w.Previous != nil {
		digest = w.Previous.Digest
	}
	return &Summary{
		Text: d.Text, Method: d.Method, Range: p.Range, Count: p.Count,
		Generation: p.Generation, BaseID: p.BaseID, Digest: ExtendDigest(digest, w.Lines),
	}
}

func indexOfMessage(path []ChatLine, id string) int {
	return slices.IndexFunc(path, func(l ChatLine) bool { return l.MessageID == id })
}
