package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/memory/lang"
)

// Draft is a memory that a user writes.
type Draft struct {
	Text       string       `json:"text"`
	Subject    lang.Subject `json:"subject"`    // default user
	Kind       lang.Kind    `json:"kind"`       // default other
	Importance *float64     `json:"importance"` // default 0.5
	EventTime  *time.Time   `json:"eventTime"`
	Pinned     bool         `json:"pinned"`
	Locked     bool         `json:"locked"`
	Shareable  bool         `json:"shareable"`
}

// Patch changes a memory where it is not nil. A text makes a new, locked version of origin user.
type Patch struct {
	Text       *string       `json:"text,omitempty"`
	Subject    *lang.Subject `json:"subject,omitempty"`
	Kind       *lang.Kind    `json:"kind,omitempty"`
	Importance *float64      `json:"importance,omitempty"`
	EventTime  *time.Time    `json:"eventTime,omitempty"`
	Pinned     *bool         `json:"pinned,omitempty"`
	Locked     *bool         `json:"locked,omitempty"`
	Shareable  *bool         `json:"shareable,omitempty"`
	IfVersion  int64         `json:"ifVersion,omitempty"` // number of the newest version; 0 = any
}

// create stores a memory of origin user. An active one with the same words is returned instead,
// with its count raised. Forgotten words may be written again.
func create(tx Tx, by, characterID string, d Draft) (*Memory, error) {
	return createBy(tx, by, characterID, d, ByUser)
}

// Keep stores knowledge that the user has approved, like create. It rests on evidence, of which it needs every text.
func Keep(tx Tx, by, characterID, text string, evidence ...Evidence) (*Memory, error) {
	return createBy(tx, by, characterID, Draft{Text: text, Subject: lang.AboutWorld}, ByExtraction, evidence...)
}

func createBy(tx Tx, by, characterID string, d Draft, origin Origin, evidence ...Evidence) (*Memory, error) {
	now := tx.Now()
	m := &Memory{
		ID: op.NewID(), Version: 1, Text: strings.TrimSpace(d.Text), Subject: d.Subject, Kind: d.Kind, Importance: DefaultImportance,
		EventTime: d.EventTime, Evidence: append([]Evidence{}, evidence...), Origin: origin, Rights: Rights{Pinned: d.Pinned, Locked: d.Locked, Shareable: d.Shareable},
		Standing: Standing{Status: Active}, Sightings: Sightings{SeenCount: 1, LastSeenAt: now}, CreatedAt: now, UpdatedAt: now,
	}
	fill(&m.Subject, lang.AboutUser)
	fill(&m.Kind, lang.KindOther)
	set(&m.Importance, d.Importance)
	m.RootID, m.ContentHash = m.ID, lang.ContentHash(m.Text)
	if len(evidence) > 0 {
		m.ConversationID = evidence[0].ConversationID
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := tx.LockMemory(characterID); err != nil {
		return nil, err
	}
	same, err := activeWith(tx, characterID, m.ContentHash)
	if err != nil {
		return nil, err
	}
	if same == nil {
		if err := tx.InsertFacts(characterID, m); err != nil {
			return nil, err
		}
		return m, EmitWritten(tx, by, characterID, WroteAdded, m.ID)
	}
	same.Evidence, _ = WithSighting(same.Evidence, evidence)
	same.SeenCount++
	same.LastSeenAt, same.UpdatedAt = now, now
	if err := tx.UpdateFact(characterID, same); err != nil {
		return nil, err
	}
	return same, EmitWritten(tx, by, characterID, WroteUpdated, same.ID)
}

// edit changes a memory. Attributes change in its newest version; pinned, locked and shareable in
// all of them. A new text makes a version that counts wherever the newest one and the one named by
// id did.
//
// Errors: Invalid; PreconditionFailed if there is a newer version than p.IfVersion;
// Conflict if the memory is retired, or if another one says the same (details.current is
// its id).
func edit(tx Tx, by, characterID, id string, p Patch) (*Memory, error) {
	versions, named, err := lockedVersions(tx, characterID, id)
	if err != nil {
		return nil, err
	}
	newest := &versions[len(versions)-1]
	if err := op.CheckVersion(p.IfVersion, int64(newest.Version)); err != nil {
		return nil, err
	}
	if err := share(tx, characterID, versions, p.Shareable); err != nil {
		return nil, err
	}
	m := *newest
	p.apply(&m)
	if p.Text != nil && strings.TrimSpace(*p.Text) != newest.Text {
		if newest.Status == Retired {
			return nil, fault.New(fault.Conflict, "the memory is archived (retired); restore it first")
		}
		m.Text, m.Origin, m.Evidence, m.Locked = strings.TrimSpace(*p.Text), ByUser, bothEvidence(newest, named), true
		if p.Locked != nil {
			m.Locked = *p.Locked
		}
		return follow(tx, by, characterID, versions, m)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	m.UpdatedAt = tx.Now()
	*newest = m
	for i := range versions {
		v := &versions[i]
		if v != newest && v.Pinned == m.Pinned && v.Locked == m.Locked {
			continue
		}
		v.Pinned, v.Locked = m.Pinned, m.Locked
		if err := tx.UpdateFact(characterID, v); err != nil {
			return nil, err
		}
	}
	return newest, EmitWritten(tx, by, characterID, WroteUpdated, newest.ID)
}

// share sets whether versions may be told in the circle; nil = as before.
func share(tx Tx, characterID string, versions []Memory, shareable *bool) error {
	for i := range versions {
		v := &versions[i]
		if shareable == nil || v.Shareable == *shareable {
			continue
		}
		v.Shareable = *shareable
		if err := tx.UpdateFact(characterID, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *Patch) apply(m *Memory) {
	set(&m.Subject, p.Subject)
	set(&m.Kind, p.Kind)
	set(&m.Importance, p.Importance)
	set(&m.Pinned, p.Pinned)
	set(&m.Locked, p.Locked)
	if p.EventTime != nil {
		m.EventTime = p.EventTime
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// bothEvidence joins the evidence of two versions, so that a new one counts where either did.
func bothEvidence(a, b *Memory) []Evidence {
	if len(a.Evidence) == 0 || len(b.Evidence) == 0 || a.ID == b.ID {
		return a.Evidence
	}
	joined := a.Evidence
	for sighting := range maxSighting {
		var texts []Evidence
		for _, e := range b.Evidence {
			if e.Sighting == sighting {
				texts = append(texts, e)
			}
		}
		if len(texts) > 0 {
			joined, _ = WithSighting(joined, texts)
		}
	}
	return joined
}

// follow stores m as the next version after the newest one, which it supersedes.
func follow(tx Tx, by, characterID string, versions []Memory, m Memory) (*Memory, error) {
	newest := &versions[len(versions)-1]
	now := tx.Now()
	m.ID, m.RootID, m.Version = op.NewID(), newest.RootID, newest.Version+1
	m.Status, m.SupersededBy, m.EndedBy, m.LastUsedAt = Active, "", nil, nil
	m.ContentHash, m.CreatedAt, m.UpdatedAt = lang.ContentHash(m.Text), now, now
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := unsaid(tx, characterID, &m); err != nil {
		return nil, err
	}
	newest.Status, newest.SupersededBy, newest.EndedBy, newest.UpdatedAt = Superseded, m.ID, nil, now
	if err := tx.UpdateFact(characterID, newest); err != nil {
		return nil, err
	}
	if err := tx.InsertFacts(characterID, &m); err != nil {
		return nil, err
	}
	if err := WantVectors(tx, characterID); err != nil {
		return nil, err
	}
	return &m, EmitWritten(tx, by, characterID, WroteUpdated, m.ID)
}

// retire hides a memory on all branches until it is restored.
func retire(tx Tx, by, characterID, id string) error {
	versions, _, err := lockedVersions(tx, characterID, id)
	if err != nil {
		return err
	}
	newest := &versions[len(versions)-1]
	if newest.Status == Retired && len(newest.EndedBy) == 0 {
		return nil
	}
	newest.Status, newest.EndedBy, newest.UpdatedAt = Retired, nil, tx.Now()
	if err := tx.UpdateFact(characterID, newest); err != nil {
		return err
	}
	return EmitWritten(tx, by, characterID, WroteRetired, newest.ID)
}

// lockedVersions is versionsOf for whoever changes them.
func lockedVersions(tx Tx, characterID, id string) (all []Memory, named *Memory, err error) {
	if err := tx.LockMemory(characterID); err != nil {
		return nil, nil, err
	}
	return versionsOf(tx, characterID, id)
}

// restore makes a version count again: the newest one if it is retired; an older one as a new,
// locked version with its text. A version that counts is returned unchanged.
//
// Errors: Conflict if another memory says the same (details.current is its id).
func restore(tx Tx, by, characterID, id string) (*Memory, error) {
	versions, named, err := lockedVersions(tx, characterID, id)
	if err != nil {
		return nil, err
	}
	newest := &versions[len(versions)-1]
	if named.ID != newest.ID {
		m := *named
		m.Evidence, m.Origin, m.Locked, m.Pinned = bothEvidence(named, newest), ByUser, true, newest.Pinned
		return follow(tx, by, characterID, versions, m)
	}
	if newest.Status == Active {
		return newest, nil
	}
	if err := unsaid(tx, characterID, newest); err != nil {
		return nil, err
	}
	newest.Status, newest.SupersededBy, newest.EndedBy, newest.UpdatedAt = Active, "", nil, tx.Now()
	if err := tx.UpdateFact(characterID, newest); err != nil {
		return nil, err
	}
	return newest, EmitWritten(tx, by, characterID, opRestored, newest.ID)
}

// listedVersions bounds a list of versions, which has no pages.
const listedVersions = 1000

func history(tx Tx, characterID, id string) ([]Memory, error) {
	versions, _, err := versionsOf(tx, characterID, id)
	return versions[max(0, len(versions)-listedVersions):], err
}

// The decisions of a user about a suggestion.
const (
	AcceptSuggestion = "accept"
	RejectSuggestion = "reject"
)

// decide accepts or rejects a suggestion. Accepting acts as the user: an update makes a locked
// version of origin user, with the suggestion's evidence.
//
// Errors: Invalid for another decision; Conflict if it was decided otherwise before, or cannot
// be carried out any more.
func decide(tx Tx, by, characterID, id, decision string) (*Suggested, error) {
	if decision != AcceptSuggestion && decision != RejectSuggestion {
		return nil, fault.InvalidField("decision", "value", "must be %q or %q", AcceptSuggestion, RejectSuggestion)
	}
	if err := tx.LockMemory(characterID); err != nil {
		return nil, err
	}
	s, err := tx.Suggestion(characterID, id)
	if err != nil {
		return nil, err
	}
	state := map[string]string{AcceptSuggestion: SuggestionAccepted, RejectSuggestion: SuggestionRejected}[decision]
	switch s.State {
	case state:
		return s, nil
	case SuggestionOpen:
	default:
		return nil, fault.New(fault.Conflict, "the suggestion was already %s", s.State)
	}
	if decision == AcceptSuggestion {
		if err := carryOut(tx, by, characterID, &s.Suggestion); err != nil {
			return nil, err
		}
	}
	s.State = state
	if err := tx.UpdateSuggestion(characterID, s); err != nil {
		return nil, err
	}
	return s, nil
}

func carryOut(tx Tx, by, characterID string, s *Suggestion) error {
	if s.Event == EventAdd {
		return addSuggested(tx, by, characterID, s)
	}
	versions, _, err := versionsOf(tx, characterID, s.MemoryID)
	if err != nil {
		return err
	}
	if s.Event == EventDelete {
		err = retire(tx, by, characterID, s.MemoryID)
		return err
	}
	m := versions[len(versions)-1]
	m.Text, m.Origin, m.Locked, m.SeenCount = s.Text, ByUser, true, m.SeenCount+1
	m.Shareable = false                             // the user allowed that for another text
	if len(m.Evidence) > 0 && len(s.Evidence) > 0 { // a text that the user wrote rests on no message
		m.Evidence = s.Evidence
		if m.LastSeenAt, err = lastSeen(tx, characterID, s.Evidence, m.LastSeenAt); err != nil {
			return err
		}
	}
	_, err = follow(tx, by, characterID, versions, m)
	return err
}

// addSuggested stores a statement of a run that was held for review.
func addSuggested(tx Tx, by, characterID string, s *Suggestion) error {
	m, err := create(tx, by, characterID, Draft{Text: s.Text, Locked: true})
	if err != nil || len(s.Evidence) == 0 || len(m.Evidence) > 0 || m.SeenCount > 1 {
		return err
	}
	m.Evidence, m.ConversationID = s.Evidence, s.Evidence[0].ConversationID
	if m.LastSeenAt, err = lastSeen(tx, characterID, s.Evidence, m.LastSeenAt); err != nil {
		return err
	}
	return tx.UpdateFact(characterID, m)
}

// lastSeen is the time of the newest supporting text, or known without any.
func lastSeen(tx Tx, characterID string, evidence []Evidence, known time.Time) (time.Time, error) {
	said, err := saidIn(tx, characterID, evidence)
	if err != nil || len(said) == 0 {
		return known, err
	}
	return LastSaid(said), nil
}

// versionsOf returns all versions of a memory, oldest first, and the one with this id.
func versionsOf(tx Tx, characterID, id string) (versions []Memory, named *Memory, err error) {
	m, err := tx.Fact(characterID, id)
	if err != nil {
		return nil, nil, err
	}
	versions, err = tx.FactVersions(characterID, m.RootID)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(versions, func(v Memory) bool { return v.ID == id })
	if at < 0 {
		return nil, nil, fmt.Errorf("memory %s is not among the versions of %s", id, m.RootID)
	}
	return versions, &versions[at], nil
}

// unsaid returns fault.Conflict if another active memory says the same as m.
func unsaid(tx Tx, characterID string, m *Memory) error {
	same, err := activeWith(tx, characterID, m.ContentHash)
	if err == nil && same != nil && same.RootID != m.RootID {
		err = fault.New(fault.Conflict, "another memory already says this").With("current", same.ID)
	}
	return err
}

func activeWith(tx Tx, characterID, hash string) (*Memory, error) {
	var same *Memory
	err := EachFact(tx, characterID, Filter{ContentHash: hash}, func(m *Memory) bool {
		if HashOf(m) == hash {
			same = m
		}
		return same == nil
	})
	return same, err
}

// PageOfFacts is the page size of reads.
const PageOfFacts = 500

// EachFact calls use with the versions that f selects, newest first, until it returns false.
func EachFact(tx Tx, characterID string, f Filter, use func(*Memory) bool) error {
	for cursor := ""; ; {
		page, next, err := tx.Facts(characterID, f, cursor, PageOfFacts)
		if err != nil {
			return fmt.Errorf("read facts: %w", err)
		}
		for i := range page {
			if !use(&page[i]) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
}

// Values of op in an event memory.written.
const (
	WroteAdded   = "added"
	WroteUpdated = "updated"
	WroteRetired = "retired"
	opRestored   = "restored"
	opPurged     = "purged"
)

const idsPerEvent = 200

// EmitWritten emits what was done to memories; new ones get vectors.
func EmitWritten(tx Tx, by, characterID, op string, ids ...string) error {
	for some := range slices.Chunk(ids, idsPerEvent) {
		if err := emitWritten(tx, by, characterID, op, some); err != nil {
			return err
		}
	}
	if op == WroteAdded && len(ids) > 0 {
		return WantVectors(tx, characterID)
	}
	return nil
}

func emitWritten(tx Tx, by, characterID, op string, ids []string) error {
	return Emit(tx, by, "memory.written", "", map[string]any{"op": op, "characterId": characterID, "memoryIds": ids})
}

func Emit(tx Tx, by, kind, conversationID string, data map[string]any) error {
	doc, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	return tx.Emit(&stream.Event{Type: kind, ConversationID: conversationID, By: by, Data: doc})
}

func LastSaid(texts []Text) time.Time {
	return slices.MaxFunc(texts, func(a, b Text) int { return a.At.Compare(b.At) }).At
}
