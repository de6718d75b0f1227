package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/op"
	"nodest/internal/op/id"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// Origin says who wrote a memory.
type Origin string

const (
	ByModel  Origin = "llm"
	ByRule   Origin = "rule"
	ByUser   Origin = "user"
	ByImport Origin = "import"
	ByCircle Origin = "circle" // something that happened in the social circle
	// ByExtraction is knowledge that the user has approved: a committed extraction of a log.
	ByExtraction Origin = "extraction"
)

type Status string

// Only an active memory is searched. A superseded one has a newer version, a retired one can be
// restored; of a deleted one only a Tombstone is left.
const (
	Active     Status = "active"
	Superseded Status = "superseded"
	Retired    Status = "retired"
	Deleted    Status = "deleted"
)

// Limits of a memory.
const (
	maxText     = 2000 // code points
	MaxEvidence = 64   // entries
	maxSighting = 8    // sightings whose evidence is kept
)

// Memory is one version of a fact. Versions of one fact share RootID; a change makes a new
// version and never modifies the text of an old one.
type Memory struct {
	ID             string       `json:"id"`
	RootID         string       `json:"rootId"` // ID of the first version
	Version        int          `json:"version"`
	ConversationID string       `json:"conversationId,omitempty"` // where it was learned
	Text           string       `json:"text"`                     // in the language of its source; at most maxText code points
	Subject        lang.Subject `json:"subject"`
	Kind           lang.Kind    `json:"kind"`
	Importance     float64      `json:"importance"` // 0 to 1
	EventTime      *time.Time   `json:"eventTime,omitempty"`
	Evidence       []Evidence   `json:"evidence"`
	Origin         Origin       `json:"origin"`
	Rights
	Source string `json:"source,omitempty"` // id of the post or comment of the circle that it was made of
	Standing
	Sightings
	ContentHash string    `json:"-"` // ContentHash of Text
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

// Rights are what the user has said about a memory: who may change it, and who may be told it.
type Rights struct {
	Pinned    bool `json:"pinned"`
	Locked    bool `json:"locked"`
	Shareable bool `json:"shareable"` // may be told in the circle
}

// Standing says whether a memory is searched, and if not, why.
type Standing struct {
	Status       Status     `json:"status"`
	SupersededBy string     `json:"supersededBy,omitempty"` // ID
	EndedBy      []Evidence `json:"-"`                      // why a run retired it; empty = nobody but the user did
}

// Sightings count how often a memory was said, and when it was said and used last.
type Sightings struct {
	SeenCount  int        `json:"seenCount"`
	LastSeenAt time.Time  `json:"lastSeenAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
}

// Evidence names a text that supports a memory. Entries of one sighting belong together: a
// question and the "yes" that answers it.
type Evidence struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId"`
	RevisionID     string `json:"revisionId"`
	Seq            int64  `json:"seq"`                // place in the conversation, from 1
	Sighting       int    `json:"sighting,omitempty"` // 0 = the first time it was said
}

// at is the time of the event, else when it was last said.
func (m *Memory) at() time.Time {
	if m.EventTime != nil {
		return *m.EventTime
	}
	return m.LastSeenAt
}

// Guarded reports whether only the user may change m; extraction makes suggestions.
func (m *Memory) Guarded() bool { return m.Pinned || m.Locked || m.Origin == ByUser }

// unit is a fact as a unit, without its terms.
func (m *Memory) unit() recall.Unit {
	return recall.Unit{
		ID: m.ID, Layer: recall.Fact, Text: m.Text, Hash: m.ContentHash, At: m.at(), Importance: m.Importance, Pinned: m.Pinned,
		Claim: recall.Claim{
			Root: m.RootID, ByRule: m.Origin == ByRule, Circle: m.Origin == ByCircle, Public: IsPublic(m.Origin, m.Shareable),
			Sources: SourcesOf(m.Evidence),
		},
	}
}

// IsPublic reports whether a fact may be told in the circle: it happened there, or is shareable.
func IsPublic(by Origin, shareable bool) bool { return by == ByCircle || shareable }

// SourcesOf returns the texts of each sighting, each once.
func SourcesOf(evidence []Evidence) []recall.Source {
	var sources []recall.Source
	at := map[int]int{} // the place of a sighting
	for _, e := range evidence {
		i, known := at[e.Sighting]
		if !known {
			i = len(sources)
			at[e.Sighting], sources = i, append(sources, nil)
		}
		if !slices.Contains(sources[i], e.RevisionID) {
			sources[i] = append(sources[i], e.RevisionID)
		}
	}
	return sources
}

// Holds reports whether shown texts support m.
func (m *Memory) Holds(shown func(Evidence) bool) bool { return holds(m.Evidence, shown) }

// holds reports whether evidence supports a memory: all texts of at least one sighting are
// shown. Without evidence (written by the user, imported) it always does.
func holds(evidence []Evidence, shown func(Evidence) bool) bool {
	if len(evidence) == 0 {
		return true
	}
	missing := map[int]bool{}
	for _, e := range evidence {
		missing[e.Sighting] = missing[e.Sighting] || !shown(e)
	}
	for _, gone := range missing {
		if !gone {
			return true
		}
	}
	return false
}

// Current returns the version of a fact that counts if only some texts are shown; versions are
// those of one RootID, oldest first. It is the newest that holds, so a fact that was corrected
// on another branch is unchanged here; nil if none holds, or if it was retired by shown texts.
// What the user retired counts nowhere.
func Current(versions []Memory, shown func(Evidence) bool) *Memory {
	for i := len(versions) - 1; i >= 0; i-- {
		m := &versions[i]
		if last := i == len(versions)-1; last && m.Status == Retired && len(m.EndedBy) == 0 {
			return nil
		}
		switch {
		case m.Status == Deleted || !holds(m.Evidence, shown):
			continue
		case m.Status == Retired && holds(m.EndedBy, shown):
			return nil
		}
		return m
	}
	return nil
}

// Validate returns fault.Invalid with every invalid field.
func (m *Memory) Validate() error {
	var c op.Checks
	checkText(&c, "text", m.Text)
	op.OneOf(&c, "subject", m.Subject, lang.Subjects)
	op.OneOf(&c, "kind", m.Kind, lang.Kinds)
	op.OneOf(&c, "origin", m.Origin, origins)
	op.OneOf(&c, "status", m.Status, statuses)
	_, isID := id.Parse(m.Source)
	c.That(m.Source == "" || isID, "source", "value", "must be an id")
	c.That(m.Importance >= 0 && m.Importance <= 1, "importance", "range", "must be from 0 to 1")
	c.That(m.Version >= 1, "version", "range", "must be at least 1")
	c.That(m.SeenCount >= 0, "seenCount", "range", "must not be negative")
	c.That(m.EventTime == nil || lang.IsPlausible(*m.EventTime), "eventTime", "range", "must be in the years 1 to 9999")
	c.That(len(m.Evidence) <= MaxEvidence, "evidence", "range", "must have at most %d entries", MaxEvidence)
	for i, e := range m.Evidence {
		field := fmt.Sprintf("evidence[%d]", i)
		c.That(e.ConversationID != "", field+".conversationId", "required", "must not be empty")
		c.That(e.MessageID != "", field+".messageId", "required", "must not be empty")
		c.That(e.RevisionID != "", field+".revisionId", "required", "must not be empty")
		c.That(e.Seq >= 1, field+".seq", "range", "must be at least 1")
	}
	return c.Err()
}

var (
	origins  = []Origin{ByModel, ByRule, ByUser, ByImport, ByCircle, ByExtraction}
	statuses = []Status{Active, Superseded, Retired, Deleted}
)

func checkText(c *op.Checks, field, text string) {
	c.That(strings.ContainsFunc(text, lang.IsVisible), field, "required", "must not be blank")
	c.That(utf8.ValidString(text) && !strings.ContainsRune(text, 0), field, "value", "must be valid UTF-8 without the NUL character")
	c.That(utf8.RuneCountInString(text) <= maxText, field, "range", "must have at most %d characters", maxText)
}

// CanSay reports whether a memory can have a text.
func CanSay(text string) bool { return CheckText("text", text) == nil }

// CheckText refuses a text that a memory cannot have.
func CheckText(field, text string) error {
	var c op.Checks
	checkText(&c, field, text)
	return c.Err()
}

// ClampImportance reads a number from a model: 1 to 10 count as tenths, invalid ones as 0.5.
func ClampImportance(n float64) float64 {
	switch {
	case math.IsNaN(n) || n < 0:
		return DefaultImportance
	case n > 1 && n <= 10:
		return n / 10
	}
	return min(n, 1)
}

const DefaultImportance = 0.5
