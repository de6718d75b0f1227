package summary

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/lang"
)

// ChatLine is a message of the shown branch: the chosen text, without the blocks added to it.
// Failed and empty messages, and what a prompt inserts, are no lines.
type ChatLine struct {
	MessageID  string
	RevisionID string // names this exact text
	Seq        int64  // place in the conversation; grows along a branch
	Role       llm.Role
	Name       string // who speaks; empty = by role
	Text       string
	At         time.Time
	Greeting   bool // the character began the chat with it

	Run *Run // this message and those after it, without their texts (Aim.Thin); nil = it has its own
}

func (l *ChatLine) speaker() string {
	if name := lang.Tidy(l.Name); name != "" {
		return name
	}
	switch l.Role {
	case llm.User:
		return "User"
	case llm.Assistant:
		return "Character"
	}
	return "Narrator"
}

// Settings say when a conversation is summarised; the memory settings of a character have them.
type Settings struct {
	Enabled          bool  `json:"enabled"`          // default true
	Threshold        int   `json:"summaryThreshold"` // effective length that triggers, in UTF-16 units; 3000 to 1,000,000, default 6000
	Length           int   `json:"summaryLength"`    // length of a summary at most, in code points; 500 to 2000, default 1000
	LastSummarizedAt int64 `json:"lastSummarizedAt"` // ms since 1970; 0 = never
}

// DefaultSettings are those of a new character.
func DefaultSettings() Settings {
	return Settings{Enabled: true, Threshold: 6000, Length: 1000}
}

// UnmarshalJSON fills in defaults. Unknown members belong to the owner of the document.
func (s *Settings) UnmarshalJSON(data []byte) error {
	type plain Settings
	p := plain(DefaultSettings())
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*s = Settings(p)
	return nil
}

// Validate returns fault.Invalid with every invalid member.
func (s Settings) Validate() error {
	var c op.Checks
	c.That(s.Threshold >= 3000 && s.Threshold <= 1_000_000, "summaryThreshold", "range", "must be from 3000 to 1000000")
	c.That(s.Length >= 500 && s.Length <= 2000, "summaryLength", "range", "must be from 500 to 2000")
	return c.Err()
}

// Method says who wrote a summary.
type Method string

const (
	MethodModel      Method = "llm"
	MethodExtractive Method = "extractive" // sentences of the chat, chosen by rule
	MethodUser       Method = "user"       // written or changed by the user
)

// Range names the messages that a summary covers, both ends included. The ids count; positions
// are informational and shift when earlier messages are deleted.
type Range struct {
	Start, End       int // positions on the branch, from 0
	StartID, EndID   string
	StartSeq, EndSeq int64
}

// Summary is an overlay: it replaces the messages of its range in prompts and changes none of
// them. A conversation has at most one active summary.
type Summary struct {
	ID         string    `json:"-"`
	Text       string    `json:"-"`
	At         time.Time `json:"-"`
	Range      Range     `json:"-"`
	Count      int       `json:"count,omitempty"`      // messages of the range
	Generation int       `json:"generation,omitempty"` // grows with every summary of the conversation, from 1
	Method     Method    `json:"method,omitempty"`
	Model      string    `json:"model,omitempty"`  // that wrote it, where known
	BaseID     string    `json:"baseId,omitempty"` // the summary that it replaced; empty = none
	Digest     string    `json:"digest,omitempty"` // digest of the texts of the range (ExtendDigest)
	Stale      bool      `json:"stale,omitempty"`  // one of its messages shows another text now
	Since      int64     `json:"-"`                // the version of the conversation that it says this from; 0 = it is not stored
}

// document is the app's document, with our additional members.
type document struct {
	Summary         string `json:"summary"`
	IsMemorySummary bool   `json:"isMemorySummary"`
	Timestamp       int64  `json:"timestamp"`
	OriginalRange   struct {
		Start int `json:"start"`
		End   int `json:"end"`
	} `json:"originalMessagesRange"`

	ID         string        `json:"id,omitempty"`
	MessageIDs *messageRange `json:"messageIds,omitempty"`
	*plain
}

// plain is a Summary as encoding/json writes it.
type plain Summary

type messageRange struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	StartSeq int64  `json:"startSeq"`
	EndSeq   int64  `json:"endSeq"`
}

// MarshalJSON writes the app's SummaryData document, with our additional members.
func (s *Summary) MarshalJSON() ([]byte, error) {
	d := document{Summary: s.Text, IsMemorySummary: true, ID: s.ID, plain: (*plain)(s)}
	d.OriginalRange.Start, d.OriginalRange.End = s.Range.Start, s.Range.End
	if !s.At.IsZero() {
		d.Timestamp = s.At.UnixMilli()
	}
	if s.Range.EndID != "" {
		d.MessageIDs = &messageRange{s.Range.StartID, s.Range.EndID, s.Range.StartSeq, s.Range.EndSeq}
	}
	return json.Marshal(d)
}

// UnmarshalJSON reads what MarshalJSON writes, and the app's own document without message ids.
func (s *Summary) UnmarshalJSON(data []byte) error {
	d := document{plain: &plain{}}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	*s = Summary(*d.plain)
	s.ID, s.Text, s.Range.Start, s.Range.End = d.ID, d.Summary, d.OriginalRange.Start, d.OriginalRange.End
	if d.Timestamp != 0 {
		s.At = time.UnixMilli(d.Timestamp).UTC()
	}
	if m := d.MessageIDs; m != nil {
		s.Range.StartID, s.Range.EndID, s.Range.StartSeq, s.Range.EndSeq = m.Start, m.End, m.StartSeq, m.EndSeq
	}
	if s.Count == 0 {
		s.Count = s.Range.End - s.Range.Start + 1
	}
	return nil
}

// Validate returns fault.Invalid for a blank text, or one of more than twice settings.Length.
func (s *Summary) Validate(settings Settings) error {
	n := utf8.RuneCountInString(s.Text)
	switch {
	case !strings.ContainsFunc(s.Text, lang.IsVisible):
		return fault.InvalidField("summary", "required", "must not be blank")
	case n > 2*settings.Length:
		return fault.InvalidField("summary", "range", "must have at most %d characters", 2*settings.Length)
	}
	return nil
}

// ExtendDigest continues the digest of a range ("" = empty) with the texts of further lines. A run
// knows what the digest has become behind it.
// Ranges with the same digest have the same texts.
func ExtendDigest(digest string, lines []ChatLine) string {
	for i := range lines {
		if run := lines[i].Run; run != nil {
			digest = run.Digest
			continue
		}
		sum := sha256.Sum256([]byte(digest + "\n" + lines[i].Text))
		digest = hex.EncodeToString(sum[:16])
	}
	return digest
}

// span returns the covered messages of path: path[from:to]. path is a branch from its first
// message; any covered messages but the last may be missing. ok is false on a branch that left
// before it, and without a summary.
func (s *Summary) span(path []ChatLine) (from, to int, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	for to = len(path); to > 0; to-- {
		if path[to-1].MessageID == s.Range.EndID {
			from = slices.IndexFunc(path, func(l ChatLine) bool { return l.Seq >= s.Range.StartSeq })
			return from, to, from >= 0 && from < to
		}
	}
	return 0, 0, false
}
