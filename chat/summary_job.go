package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"nodest/character"
	"nodest/fault"
	"nodest/jobs"
	"nodest/llm"
	"nodest/memory"
	"nodest/op"
	"nodest/stream"
	"nodest/summary"
)

// JobSummarise is the kind of job that makes, or repairs, the summary of a
// conversation, which is its subject.
const JobSummarise = "memory.summarise"

// Kinds are the jobs of the engine, for jobs.Runner.Handle.
func (svc *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobSummarise, Run: svc.summarise}, svc.forkKind(), {Name: JobWords, Run: svc.indexWords, AtOnce: 1}}
}

// summaryOrder is the payload of the job; its zero value is what a reply asks for.
type summaryOrder struct {
	Rest   bool          `json:"rest,omitempty"`   // nothing happens in the conversation: the time for repairs
	Forced *SummaryRange `json:"forced,omitempty"` // the user asks
	Tries  int           `json:"tries,omitempty"`  // that came to nothing

	atOnce bool // a turn waits
}

func (o summaryOrder) spec(conversationID string, notBefore time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobSummarise, Subject: conversationID, Payload: op.MustJSON(o), NotBefore: notBefore}
}

// repairTries is how often a model is asked to replace a summary by rule.
const repairTries = 5

// errOutdated reports that a conversation changed while its summary was being written.
var errOutdated = fault.New(fault.Conflict, "the conversation changed while its summary was being written")

// errNotDue is the error that no summary is due, with the reason.
func errNotDue(skip summary.Skip) error {
	why := map[summary.Skip]string{
		summary.SkipFew:        ": the chat is too short (the first three and last three messages are never summarised)",
		summary.SkipNothingNew: ": all messages between the first three and the last three are already summarised",
		summary.SkipUserText:   ": you wrote the summary, and there are no new messages since",
	}
	return fault.New(fault.Conflict, "nothing to summarise%s", why[skip]).With("reason", string(skip))
}

// SummaryDue enqueues the summary of a conversation. The job decides whether one is due.
func SummaryDue(tx Tx, conversationID string) error {
	return enqueueSummary(tx, conversationID, summaryOrder{}, time.Time{})
}

// enqueueSummary enqueues the job of a conversation, unless it would replace a waiting
// one that the user has requested. The caller has locked the conversation, so that no
// request comes in between.
func enqueueSummary(tx Tx, conversationID string, o summaryOrder, at time.Time) error {
	open, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: JobSummarise, Subject: conversationID, Open: true}, "", 0)
	if err != nil {
		return err
	}
	for _, j := range open {
		waiting := j.Payload
		switch {
		case j.Next != nil:
			waiting = j.Next.Payload
		case j.State == jobs.Running:
			continue
		}
		waits, err := readOrder(waiting)
		if err != nil {
			return err
		}
		if waits.Forced != nil {
			return nil
		}
	}
	return tx.Jobs.Enqueue(o.spec(conversationID, at))
}

// readOrder reads a payload.
func readOrder(payload json.RawMessage) (o summaryOrder, err error) {
	if len(payload) > 0 {
		if err = json.Unmarshal(payload, &o); err != nil {
			err = fmt.Errorf("payload of %s: %w", JobSummarise, err)
		}
	}
	return o, err
}

// RepairSummary enqueues a repair when messages that the summary in force covers
// have changed. It does not look whether they show something else.
func RepairSummary(tx Tx, conv *Conversation, changed ...*Message) error {
	if conv.SummaryID == "" {
		return nil
	}
	k, err := tx.Summary(conv.SummaryID, 0)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(changed, func(m *Message) bool { return m.Seq >= k.Range.StartSeq && m.Seq <= k.Range.EndSeq }) {
		return nil
	}
	return enqueueSummary(tx, conv.ID, summaryOrder{Rest: true}, tx.Now().Add(summaryRest))
}

// summaryRest is how long a conversation is quiet before its summary is repaired.
const summaryRest = 2 * time.Minute

// summarise does one job.
func (svc *Service) summarise(ctx context.Context, j *jobs.Job) error {
	o, err := readOrder(j.Payload)
	if err != nil {
		return err
	}
	if o.Rest {
		later, err := svc.postpone(ctx, j, o)
		if later || err != nil {
			return ignoreGone(err)
		}
	}
	d, err := svc.draftSummary(ctx, j.UserID, j.Subject, o)
	switch {
	case fault.Is(err, fault.NotFound): // the conversation is gone
		return nil
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.Invalid): // nothing to do
		return nil
	case err != nil:
		return err
	}
	if d.pointless() {
		return ignoreGone(svc.store.Update(ctx, j.UserID, func(tx Tx) error {
			if _, err := tx.LockConversation(j.Subject); err != nil {
				return err
			}
			if err := d.followUp(tx); err != nil {
				return err
			}
			return tx.Jobs.FinishJob(j)
		}))
	}
	err = svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if _, err := d.store(tx, "server"); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
	switch {
	case !errors.Is(err, errOutdated):
		return ignoreGone(err)
	case o.Tries > 0:
		return nil
	}
	o.Tries++
	return svc.requeue(ctx, j, o, time.Time{})
}

// pointless reports that a repair would replace a summary by rule with another.
func (d *draft) pointless() bool {
	return d.order.Rest && d.written.Method == summary.MethodExtractive && d.base != nil &&
		d.base.Method == summary.MethodExtractive && !d.base.Stale
}

func ignoreGone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// requeue ends a job and enqueues it once more, unless its conversation is gone.
func (svc *Service) requeue(ctx context.Context, j *jobs.Job, o summaryOrder, at time.Time) error {
	err := svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if _, err := tx.LockConversation(j.Subject); err != nil {
			return err
		}
		if err := enqueueSummary(tx, j.Subject, o, at); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
	return ignoreGone(err)
}

// postpone delays a repair while the conversation is active.
func (svc *Service) postpone(ctx context.Context, j *jobs.Job, o summaryOrder) (yes bool, err error) {
	var quiet time.Time
	err = svc.store.View(ctx, j.UserID, func(tx Tx) error {
		conv, err := tx.Conversation(j.Subject)
		if err == nil {
			quiet = conv.UpdatedAt.Add(summaryRest)
			yes = tx.Now().Before(quiet)
		}
		return err
	})
	if !yes || err != nil {
		return false, err
	}
	return true, svc.requeue(ctx, j, o, quiet)
}

// draft is a summary in the making.
type draft struct {
	conv  *Conversation // as it was read
	base  *KeptSummary  // that it replaces; nil = none
	plan  summary.Plan
	work  summary.Work
	lines []summary.ChatLine // of the branch, as memory.PlanSummary takes them
	order summaryOrder

	written summary.Draft
	model   string // that wrote it; "" = none
	asked   bool   // a model was
}

// draftSummary plans a summary and writes its text. It changes nothing.
//
// Errors: NotFound; Conflict with details.reason when there is nothing to do;
// Invalid for a range.
func (svc *Service) draftSummary(ctx context.Context, userID, conversationID string, o summaryOrder) (*draft, error) {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return nil, err
	}
	d, err := svc.planSummary(ctx, userID, conversationID, o, model == nil)
	if err != nil {
		return nil, err
	}
	if err := svc.extractFirst(ctx, userID, conversationID); err != nil {
		return nil, err
	}
	if err := d.write(ctx, model); err != nil {
		return nil, err
	}
	if d.written.Cause != nil {
		svc.opts.Log.WarnContext(ctx, "summary written without a model", "conversation", conversationID, "err", d.written.Cause)
	}
	return d, nil
}

// writer is a model that writes summaries.
type writer struct {
	llm.Asker
	name string
}

// model is what writes the summaries of a user; nil = rules do.
func (svc *Service) model(ctx context.Context, userID string) (*writer, error) {
	if svc.opts.Model == nil {
		return nil, nil
	}
	asker, name, err := svc.opts.Model(ctx, userID)
	if asker == nil {
		return nil, err
	}
	return &writer{asker, name}, err
}

// write writes the text with a model, nil = by rule. Its only error is that ctx
// ended.
func (d *draft) write(ctx context.Context, model *writer) (err error) {
	var asker llm.Asker
	if d.asked = model != nil; d.asked {
		asker = model.Asker
	}
	if d.written, err = summary.Write(ctx, asker, d.work); err != nil {
		return err
	}
	if d.written.Method == summary.MethodModel {
		d.model = model.name
	}
	return nil
}

// extractFirst has memories extracted before the messages are summarised. It does not
// wait for that.
func (svc *Service) extractFirst(ctx context.Context, userID, conversationID string) error {
	if !svc.opts.Memory {
		return nil
	}
	return svc.store.Update(ctx, userID, func(tx Tx) error { return memory.ExtractFirst(tx.Memory, conversationID) })
}

// planSummary decides what a summary has to cover.
func (svc *Service) planSummary(ctx context.Context, userID, conversationID string, o summaryOrder, noModel bool) (*draft, error) {
	var d *draft
	err := svc.store.View(ctx, userID, func(tx Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		setup, err := svc.ReadSetup(tx, conv, character.TurnOptions{})
		if err != nil {
			return err
		}
		if d, err = planIn(tx, conv, setup.Summaries(), o, noModel); err == nil {
			d.work.Location = setup.Zone
		}
		return err
	})
	return d, err
}

// Summaries are the settings of its summaries.
func (s *Setup) Summaries() summary.Settings {
	set := s.Docs.Settings.Memory
	return summary.Settings{Enabled: set.Enabled, Threshold: set.Threshold, Length: set.Length}
}

// planIn is planSummary in a transaction.
func planIn(tx Tx, conv *Conversation, settings summary.Settings, o summaryOrder, noModel bool) (*draft, error) {
	d := &draft{conv: conv, order: o}
	deleted, err := d.findBase(tx)
	if err != nil {
		return nil, err
	}
	state := summary.State{Settings: settings, NoModel: noModel, Occasion: o.occasion()}
	if state.Latest, err = tx.LatestGeneration(conv.ID); err != nil {
		return nil, err
	}
	if err := d.readLines(tx, false); err != nil {
		return nil, err
	}
	if deleted != nil && o.Forced == nil && lengthSince(d.lines, deleted.HeadSeq) < settings.Threshold {
		return nil, errNotDue(summary.SkipCooling)
	}
	if o.Forced != nil && *o.Forced != (SummaryRange{}) {
		return d, d.planRange(tx, &state)
	}
	d.decide(state)
	if d.plan.Skip == summary.SkipNone && d.plan.Rebuild && d.base != nil {
		if err := d.readLines(tx, true); err != nil {
			return nil, err
		}
		d.decide(state)
	}
	if d.plan.Skip != summary.SkipNone {
		return nil, errNotDue(d.plan.Skip)
	}
	d.work, err = d.plan.Work(d.lines, d.active())
	return d, err
}

func (o summaryOrder) occasion() (why summary.Occasion) {
	switch {
	case o.Forced != nil:
		why = summary.OnDemand
	case o.Rest:
		why = summary.AtRest
	}
	return why
}

// findBase finds the summary in force. Where there is none because the user has
// deleted it, it returns that one.
func (d *draft) findBase(tx Tx) (deleted *SummaryRef, err error) {
	if d.base, err = ActiveSummary(tx, d.conv.SummaryID, d.conv.HeadID, 0); d.base != nil || err != nil {
		return nil, err
	}
	_, deleted, err = summaryFor(tx, d.conv.ID, d.conv.HeadID)
	return deleted, err
}

func (d *draft) decide(state summary.State) {
	state.Lines, state.Active = d.lines, d.active()
	if d.base != nil {
		state.Last = d.base.attempt()
	}
	d.plan = summary.MakePlan(state)
}

func (d *draft) active() *summary.Summary {
	if d.base == nil {
		return nil
	}
	return d.base.Summary
}

// lengthSince is the length of the messages after a seq, in UTF-16 units.
func lengthSince(lines []summary.ChatLine, seq int64) int {
	return summary.EffectiveLength(slices.DeleteFunc(slices.Clone(lines), func(l summary.ChatLine) bool { return l.Seq <= seq }), nil)
}

// readLines reads the shown branch: all of it, or without most of what the summary
// in force covers.
func (d *draft) readLines(tx Tx, all bool) error {
	d.lines = nil
	if d.conv.HeadID == "" {
		return nil
	}
	read := func(before string, size int) ([]*Message, bool, error) {
		return tx.Path(d.conv.ID, d.conv.HeadID, before, size)
	}
	until := ""
	if d.base != nil && !all {
		until = d.base.Range.EndID
	}
	if err := d.short(tx, until != ""); err != nil {
		return err
	}
	tail, more, err := ReadPath("", math.MaxInt, until, read)
	if err != nil {
		return err
	}
	if more {
		a, ok, err := ReadSummarised(d.base.Summary, tail, 0, more, math.MaxInt, read)
		if err != nil {
			return err
		}
		if ok {
			known := slices.IndexFunc(tail, func(m *Message) bool { return m.Seq >= d.base.Range.StartSeq })
			d.lines = LinesOf(slices.Concat(a.Front, tail[known:]))
			return nil
		}
		return d.readLines(tx, true)
	}
	d.lines = LinesOf(tail)
	return d.recount()
}

// short returns errLong if a turn waits, and there are too many messages: of all, or since the
// summary in force.
func (d *draft) short(tx Tx, since bool) error {
	if !d.order.atOnce {
		return nil
	}
	head, err := tx.Message(d.conv.HeadID)
	if err != nil {
		return err
	}
	n := head.Seq
	if since {
		n -= d.base.Range.EndSeq
	}
	if n > mostAtOnce {
		return errLong
	}
	return nil
}

// recount makes the summary in force agree with a branch that was read whole: it is
// none where its last message says nothing any more.
func (d *draft) recount() error {
	if d.base == nil {
		return nil
	}
	r := d.base.Range
	end := slices.IndexFunc(d.lines, func(l summary.ChatLine) bool { return l.MessageID == r.EndID })
	start := slices.IndexFunc(d.lines, func(l summary.ChatLine) bool { return l.Seq >= r.StartSeq })
	if end < 0 || start > end {
		d.base = nil
		return nil
	}
	known := *d.base.Summary
	known.Count = end - start + 1
	d.base.Summary = &known
	return nil
}

// store stores a draft and activates it. If another summary of the same messages came
// first it returns that one, unless the user has named the messages. After other changes
// it returns errOutdated.
func (d *draft) store(tx Tx, by string) (*KeptSummary, error) {
	kept, err := insertSummary(tx, d, by)
	if errors.Is(err, errOutdated) && (d.order.Forced == nil || *d.order.Forced == (SummaryRange{})) {
		return d.concurrentSummary(tx)
	}
	return kept, err
}

// concurrentSummary is the summary of the same messages that became active since the
// draft was planned; errOutdated without one.
func (d *draft) concurrentSummary(tx Tx) (*KeptSummary, error) {
	conv, err := tx.Conversation(d.conv.ID)
	if err != nil {
		return nil, err
	}
	if conv.SummaryID == "" || conv.SummaryID == d.conv.SummaryID {
		return nil, errOutdated
	}
	made, err := tx.Summary(conv.SummaryID, 0)
	if err == nil && (made.DeletedAt != nil || made.Range.StartID != d.plan.Range.StartID || made.Range.EndID != d.plan.Range.EndID) {
		return nil, errOutdated
	}
	return made, err
}

// insertSummary stores a draft and activates it; errOutdated if the conversation has
// changed in a way that matters since it was planned.
func insertSummary(tx Tx, d *draft, by string) (*KeptSummary, error) {
	conv, err := tx.LockConversation(d.conv.ID)
	if err != nil {
		return nil, err
	}
	if err := d.holds(tx, conv); err != nil {
		return nil, err
	}
	made := d.plan.Summary(d.work, d.written)
	made.ID, made.At, made.Model = op.NewID(), tx.Now(), d.model
	attempt := summary.AttemptOf(d.lines, made)
	kept := &KeptSummary{
		Summary: made, ConversationID: conv.ID, MadeVersion: conv.Version + 1, HeadSeq: attempt.Seq, ViewLength: attempt.Length,
	}
	if err := tx.InsertSummary(kept); err != nil {
		return nil, err
	}
	conv.SummaryID = made.ID
	conv.Version++
	if err := tx.ChooseSummary(conv); err != nil {
		return nil, err
	}
	if err := d.followUp(tx); err != nil {
		return nil, err
	}
	return kept, tx.Emit(ConversationEvent(tx.UserID(), "chat.updated", by, conv), summaryEvent(tx, "created", by, kept))
}

// holds returns errOutdated unless the conversation has what the draft was made of: the
// same summary in force with the same words, and the same messages in the range.
func (d *draft) holds(tx Tx, conv *Conversation) error {
	if conv.SummaryID != d.conv.SummaryID {
		return errOutdated
	}
	if d.base != nil {
		now, err := tx.Summary(d.base.ID, 0)
		if err != nil {
			return err
		}
		if now.DeletedAt != nil || now.Text != d.base.Text || now.Method != d.base.Method {
			return errOutdated
		}
	}
	latest, err := tx.LatestGeneration(conv.ID)
	if err != nil {
		return err
	}
	r := d.plan.Range
	how, err := tx.Coverage(Covered{conv.ID, r.StartSeq, r.EndID, d.conv.Version}, conv.HeadID, 0)
	if err == nil && (how != CoverageIntact || latest >= d.plan.Generation) {
		return errOutdated
	}
	return err
}

// followUp enqueues another attempt if rules wrote the summary because a model failed.
func (d *draft) followUp(tx Tx) error {
	if d.written.Method != summary.MethodExtractive || !d.asked || d.order.Tries >= repairTries {
		return nil
	}
	later := summaryOrder{Rest: true, Tries: d.order.Tries + 1}
	return enqueueSummary(tx, d.conv.ID, later, tx.Now().Add(summaryRest<<d.order.Tries))
}

// summaryEvent reports a change of a summary.
func summaryEvent(tx Tx, method, by string, k *KeptSummary) *stream.Event {
	type span struct {
		Start int `json:"start"`
		End   int `json:"end"`
	}
	ev := op.Event(tx.UserID(), "memory.summary", cmp.Or(by, "server"), struct {
		Op        string         `json:"op"`
		SummaryID string         `json:"summaryId"`
		Range     span           `json:"range"`
		Method    summary.Method `json:"method"`
	}{method, k.ID, span{k.Range.Start, k.Range.End}, k.Method})
	ev.ConversationID = k.ConversationID
	return ev
}
