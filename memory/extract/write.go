package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
)

// errRaced says that the scope changed between a plan and its transaction.
var errRaced = fault.New(fault.Busy, "the memory was changed by another request")

// races is how often a plan is repeated.
const races = 8

// window reads one window and stores the result in one transaction, with the end of the job if
// it is the last. done reports that the job has ended: also if the model is unreachable, for
// then rules have read this window and the rest waits.
func (r *attempt) window(ctx context.Context, p part, d due, last bool) (done bool, err error) {
	x := newRun(nil)
	paid := &allowance{attempt: r, exchanges: exchangesIn(p.Turns)}
	if d.model {
		x = newRun(paid)
	}
	candidates, err := x.candidates(ctx, p.window)
	if err != nil {
		return false, err
	}
	known, err := r.neighbours(ctx, candidates)
	if err != nil {
		return false, err
	}
	decisions, err := x.decide(ctx, candidates, known)
	if err != nil {
		return false, err
	}
	if paid.failed != nil {
		return false, paid.failed
	}
	if x.down != nil {
		if r.job.Attempt <= 1 && fault.Retry(fault.Public(x.down).Code) != "no" && paid.more() {
			return false, x.down
		}
		if !last {
			last, d.after = true, r.opts.Rest
		}
	}
	for range races {
		var plan *planned
		if plan, err = r.plan(ctx, p, candidates, decisions); err != nil {
			return false, err
		}
		if err = r.write(ctx, p, d, x, plan, last); !errors.Is(err, errRaced) {
			break
		}
	}
	return last, err
}

// neighbours are the known facts nearest to each candidate: by property, then by spelling.
func (r *attempt) neighbours(ctx context.Context, candidates []candidate) (known []memory.Memory, err error) {
	if len(candidates) == 0 || r.model == nil {
		return nil, nil
	}
	var st *factState
	err = r.store.View(ctx, r.job.UserID, func(tx memory.Tx) error {
		st, err = readFacts(tx, r.characterID)
		return err
	})
	if err != nil {
		return nil, err
	}
	properties := make([]string, len(st.current))
	for i := range st.current {
		properties[i] = lang.PropertyOf(st.current[i].Text)
	}
	type near struct {
		m    *memory.Memory
		near float64
	}
	taken := map[string]bool{}
	for i := range candidates {
		c := &candidates[i]
		property := lang.PropertyOf(c.Text)
		all := make([]near, len(st.current))
		for at := range st.current {
			m := &st.current[at]
			n := r.similar(c.Text, m.Text)
			if property != "" && property == properties[at] && c.Subject == m.Subject {
				n++
			}
			all[at] = near{m, n}
		}
		slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(b.near, a.near) })
		for _, n := range all[:min(len(all), nearestKnown)] {
			if !taken[n.m.ID] {
				taken[n.m.ID] = true
				known = append(known, *n.m)
			}
		}
	}
	return known, ctx.Err()
}

// planned is a plan for one version of the scope.
type planned struct {
	plan
	*factState
	version int64
}

func (r *attempt) plan(ctx context.Context, of part, candidates []candidate, decisions []decision) (*planned, error) {
	p := &planned{}
	b := basis{Similar: r.similar, Names: of.Names}
	err := r.store.View(ctx, r.job.UserID, func(tx memory.Tx) (err error) {
		b.Now = tx.Now()
		if p.version, err = tx.MemoryVersion(r.characterID); err != nil || len(candidates) == 0 {
			return err
		}
		if b.Tombstones, err = tx.Tombstones(r.characterID); err != nil {
			return err
		}
		b.Tombstones = memory.WithCopies(b.Tombstones, of.texts, of.Names)
		if b.Suggested, err = tx.SuggestionKeys(r.characterID); err != nil {
			return err
		}
		p.factState, err = readFacts(tx, r.characterID)
		return err
	})
	if err != nil || len(candidates) == 0 {
		return p, err
	}
	b.Active, b.Hidden = p.current, p.hidden
	var dropped []change
	b.Candidates, b.Decisions, dropped = withoutDone(candidates, decisions, p.over)
	p.plan = apply(b)
	p.Changes = append(p.Changes, dropped...)
	return p, ctx.Err()
}

// withoutDone drops candidates that were stored before, from the same texts, and have ended
// since. What the user retired is not stored again in other words either.
func withoutDone(candidates []candidate, decisions []decision, done []memory.Memory) ([]candidate, []decision, []change) {
	var kept []candidate
	var dropped []change
	place := map[int]int{-1: -1}
	for i := range candidates {
		c := &candidates[i]
		if slices.ContainsFunc(done, func(m memory.Memory) bool { return over(&m, c) }) {
			dropped = append(dropped, change{Op: opDrop, Reason: reasonOver})
			continue
		}
		place[i] = len(kept)
		kept = append(kept, *c)
	}
	var left []decision
	for _, d := range decisions {
		if at, ok := place[d.Candidate]; ok {
			d.Candidate = at
			left = append(left, d)
		}
	}
	return kept, left, dropped
}

const reasonOver = "already known from this message, and ended"

func over(m *memory.Memory, c *candidate) bool {
	if _, more := memory.WithSighting(m.Evidence, c.Evidence); more || len(m.Evidence) == 0 {
		return false
	}
	byUser := m.Status == memory.Retired && len(m.EndedBy) == 0
	return memory.HashOf(m) == lang.ContentHash(c.Text) || byUser && related(c, m)
}

// write carries a plan out and marks the texts as read.
func (r *attempt) write(ctx context.Context, p part, d due, x *run, plan *planned, last bool) error {
	var report report
	err := r.store.Update(ctx, r.job.UserID, func(tx memory.Tx) error {
		report = r.report.with(x, len(p.Turns), d.mark)
		if err := tx.LockMemory(r.characterID); err != nil {
			return err
		}
		version, err := tx.MemoryVersion(r.characterID)
		if err != nil {
			return err
		}
		ids, err := r.stillThere(tx, p.texts)
		switch {
		case err != nil:
			return err
		case version != plan.version:
			return errRaced
		}
		w := &writing{
			tx: tx, attempt: r, plan: plan, report: &report,
			rows: map[string]*memory.Memory{}, made: map[*memory.Memory]*memory.Memory{}, last: map[string]*memory.Memory{},
		}
		if err := w.all(); err != nil {
			return err
		}
		if d.mark {
			if err := tx.MarkRead(r.job.Subject, ids...); err != nil {
				return err
			}
		}
		exchanges := 0
		if d.mark && d.model && !r.ordered {
			exchanges = exchangesIn(p.Turns)
		}
		if err := r.settle(tx, exchanges, last); err != nil {
			return err
		}
		if err := tx.Jobs.NoteJob(r.job, &report); err != nil || !last {
			return err
		}
		return r.finish(tx, d.after)
	})
	if err == nil {
		r.report = report
	}
	return err
}

// stillThere checks that texts are unread and shown as before, and returns their ids.
func (r *attempt) stillThere(tx memory.Tx, texts []memory.Text) (ids []string, err error) {
	for _, t := range texts {
		ids = append(ids, t.RevisionID)
	}
	now, err := tx.SaidByID(r.characterID, ids...)
	if err != nil {
		return nil, err
	}
	now = slices.DeleteFunc(now, func(s memory.Text) bool { return s.Read })
	now, err = shownTexts(tx, now)
	if err == nil && len(now) != len(texts) {
		err = errMoved
	}
	return ids, err
}

// with adds the result of a window.
func (r report) with(x *run, exchanges int, read bool) report {
	r.Method = x.method
	r.Calls += x.calls
	if read {
		r.Exchanges += exchanges
		r.Waiting = max(0, r.Waiting-exchanges)
	}
	r.Notes = slices.Concat(r.Notes, x.notes)
	dropped := map[string]int{}
	maps.Copy(dropped, r.Dropped)
	for _, reason := range x.dropped {
		dropped[reason]++
	}
	r.Dropped = dropped
	return r
}

// writing carries out a plan, unmodified, within a transaction, which may be retried.
type writing struct {
	*attempt
	tx     memory.Tx
	plan   *planned
	report *report

	rows map[string]*memory.Memory         // versions that were there, as they are now
	made map[*memory.Memory]*memory.Memory // new ones, by those of the plan
	last map[string]*memory.Memory         // the newest of both, by root

	added, updated, retired []string // ids
}

func (w *writing) all() error {
	w.report.Held = w.report.Held || w.plan.Held
	for i := range w.plan.Changes {
		c := &w.plan.Changes[i]
		do := w.change
		if w.plan.Held {
			do = w.suggestInstead
		}
		if err := do(c); err != nil {
			return fmt.Errorf("%s a fact: %w", c.Op, err)
		}
	}
	for _, done := range []struct {
		op  string
		ids []string
	}{{memory.WroteAdded, w.added}, {memory.WroteUpdated, w.updated}, {memory.WroteRetired, w.retired}} {
		if err := memory.EmitWritten(w.tx, server, w.characterID, done.op, done.ids...); err != nil {
			return err
		}
	}
	if len(w.updated) > 0 { // some may be other texts
		return memory.WantVectors(w.tx, w.characterID)
	}
	return nil
}

// row is a version that existed before; nil for none.
func (w *writing) row(id string) *memory.Memory {
	stored := w.plan.rows[id]
	if stored == nil || w.rows[id] != nil {
		return w.rows[id]
	}
	m := *stored
	w.rows[id] = &m
	return &m
}

func (w *writing) newest(root string) *memory.Memory {
	if m := w.last[root]; m != nil {
		return m
	}
	return w.row(w.plan.newest[root].ID)
}

// server causes the events of a job.
const server = "server"

func (w *writing) change(c *change) error {
	old := w.row(c.OldID)
	switch c.Op {
	case opAdd:
		return w.add(c.New)
	case opReplace:
		if old == nil {
			old = w.made[c.Old]
		}
		return w.replace(old.RootID, c.New)
	case opRetire:
		if old.Status != memory.Retired {
			old.EndedBy = nil
		}
		old.EndedBy = alsoEndedBy(old.EndedBy, c.EndedBy)
		old.Status, old.UpdatedAt = memory.Retired, w.tx.Now()
		w.retired = append(w.retired, old.ID)
		w.report.Retired++
		return w.tx.UpdateFact(w.characterID, old)
	case opSeen:
		old.Evidence, old.SeenCount, old.LastSeenAt = c.New.Evidence, c.New.SeenCount, c.New.LastSeenAt
		old.UpdatedAt = w.tx.Now()
		w.report.Seen++
		return w.tx.UpdateFact(w.characterID, old)
	case opSuggest:
		return w.suggest(c.Suggestion)
	case opDrop:
		w.report.Dropped[c.Reason]++
	}
	return nil
}

func (w *writing) add(planned *memory.Memory) error {
	id := op.NewID()
	w.added = append(w.added, id)
	w.report.Added++
	return w.insert(planned, id, id, 1)
}

func (w *writing) insert(planned *memory.Memory, id, root string, version int) error {
	m := *planned
	m.ID, m.RootID, m.Version = id, root, version
	w.made[planned], w.last[root] = &m, &m
	return w.tx.InsertFacts(w.characterID, &m)
}

// replace stores the next version. A newer one on another branch still counts there.
func (w *writing) replace(root string, planned *memory.Memory) error {
	newest, id := w.newest(root), op.NewID()
	if newest.Status == memory.Active {
		newest.Status, newest.SupersededBy, newest.UpdatedAt = memory.Superseded, id, w.tx.Now()
		if err := w.tx.UpdateFact(w.characterID, newest); err != nil {
			return err
		}
	}
	w.updated = append(w.updated, id)
	w.report.Updated++
	return w.insert(planned, id, root, newest.Version+1)
}

func (w *writing) suggest(s *memory.Suggestion) error {
	stored := &memory.Suggested{ID: op.NewID(), Suggestion: *s, State: memory.SuggestionOpen, CreatedAt: w.tx.Now()}
	if err := w.tx.InsertSuggestion(w.characterID, stored); err != nil {
		return err
	}
	w.report.Suggested++
	data := map[string]any{"suggestionId": stored.ID, "memoryId": nil, "event": s.Event}
	if s.MemoryID != "" {
		data["memoryId"] = s.MemoryID
	}
	return memory.Emit(w.tx, server, "memory.suggestion", w.job.Subject, data)
}

// suggestInstead turns a change of a held plan into a suggestion.
func (w *writing) suggestInstead(c *change) error {
	const reason = "too many changes in one run"
	var s *memory.Suggestion
	switch c.Op {
	case opAdd:
		s = &memory.Suggestion{Event: memory.EventAdd, Text: c.New.Text, Reason: reason, Evidence: c.New.Evidence}
	case opReplace:
		s = &memory.Suggestion{MemoryID: c.OldID, Event: memory.EventUpdate, Text: c.New.Text, Reason: reason, Evidence: c.New.Evidence}
		if c.Old != nil { // that is no more than a suggestion itself
			s.Event = memory.EventAdd
		}
	case opRetire:
		s = &memory.Suggestion{MemoryID: c.OldID, Event: memory.EventDelete, Reason: reason, Evidence: c.EndedBy}
	case opSuggest:
		s = c.Suggestion
	default:
		return w.change(c)
	}
	return w.suggest(s)
}
