package chat

import (
	"time"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/llm"
)

// A summary is an overlay: in a prompt it replaces messages of the branch, which stay
// unchanged. The active summary is part of the state of a conversation. Texts of
// summaries are stored by versions of the conversation, as those of messages are, so
// that restoring a save point restores them.

// SummaryTx keeps the summaries of conversations.
type SummaryTx interface {
	// InsertSummary stores one. fault.Conflict when the conversation has one of its
	// generation.
	InsertSummary(k *KeptSummary) error
	// UpdateSummary stores text and method from a version of the conversation on. The
	// rest never changes.
	UpdateSummary(version int64, s *summary.Summary) error
	// Summary returns one as it was at a version of its conversation (0 = now),
	// deleted or not.
	Summary(id string, version int64) (*KeptSummary, error)
	// SummaryText is what one says from a version on, also in a deleted conversation.
	SummaryText(id string, version int64) (string, error)
	// Summaries lists those of a conversation that are not deleted, the highest generation
	// first: at most 200.
	Summaries(conversationID string) ([]*KeptSummary, error)
	// SummariesOn names those whose last message is on the branch that ends in
	// headID, the deleted ones too, the highest generation first.
	SummariesOn(conversationID, headID string) ([]SummaryRef, error)
	// DeleteSummary hides one; headSeq, of the newest message, becomes its HeadSeq.
	// It stays readable for save points.
	DeleteSummary(id string, headSeq int64) error
	// RestoreSummary restores the text of a version from the version next on, and undoes
	// its deletion.
	RestoreSummary(id string, version, next int64) error
	// LatestGeneration is the highest that the conversation ever had, 0 = none.
	LatestGeneration(conversationID string) (int, error)
	// Coverage reports what became of covered messages on the branch that ends in
	// headID, at a version (0 = now). It walks no branch.
	Coverage(c Covered, headID string, version int64) (Coverage, error)

	// DumpSummaries reads all that a conversation ever had, by generation.
	DumpSummaries(conversationID string) ([]*DumpedSummary, error)
	// LoadSummaries stores those of an archive for a conversation that was loaded.
	LoadSummaries(conversationID string, items []*DumpedSummary) error
}

// KeptSummary is a summary as it is stored.
type KeptSummary struct {
	*summary.Summary
	ConversationID string
	MadeVersion    int64 // version of the conversation that the summary is about; 0 = its messages were so in none
	HeadSeq        int64 // seq of the newest message when it was made
	ViewLength     int   // length of the part of the chat that was sent with it, in UTF-16 units
	DeletedAt      *time.Time
}

func (k *KeptSummary) covered() Covered {
	return Covered{k.ConversationID, k.Range.StartSeq, k.Range.EndID, k.MadeVersion}
}

// attempt is the last summary as planning reads it.
func (k *KeptSummary) attempt() *summary.Attempt {
	return &summary.Attempt{SummaryID: k.ID, Seq: k.HeadSeq, Length: k.ViewLength}
}

// SummaryRef names a summary.
type SummaryRef struct {
	ID      string
	Deleted bool
	HeadSeq int64
}

// DumpedSummary is a summary with all its texts, and the form of a summary in a file. See
// KeptSummary for its members.
type DumpedSummary struct {
	MadeVersion int64         `json:"madeVersion"`
	HeadSeq     int64         `json:"headSeq"`
	ViewLength  int           `json:"viewLength"`
	DeletedAt   *time.Time    `json:"deletedAt,omitempty"`
	Texts       []SummaryText `json:"texts"` // oldest first, at least one
}

// Newest is the current summary.
func (d *DumpedSummary) Newest() *summary.Summary { return d.Texts[len(d.Texts)-1].Summary }

// SummaryText is the text of a summary from a version of its conversation on.
type SummaryText struct {
	Version int64            `json:"version"`
	Summary *summary.Summary `json:"document"`
}

// Covered are messages of a branch, as they were at a version: those that end in
// EndID, from a seq on.
type Covered struct {
	ConversationID string
	StartSeq       int64
	EndID          string
	Since          int64 // 0 = they were so in no version: never CoverageIntact
}

// Coverage is the state of covered messages.
type Coverage uint8

// The states, the worst first.
const (
	CoverageOff     Coverage = iota // they are not on that branch
	CoverageBroken                  // one of them was deleted or hidden
	CoverageChanged                 // one of them shows another text, or is not hidden any more
	CoverageIntact
)

// ActiveSummary returns a summary if it applies to the branch that ends in head at a
// version of the conversation (0 = now), else nil: all its messages must be on the branch
// and none deleted.
func ActiveSummary(tx Tx, id, head string, version int64) (*KeptSummary, error) {
	if id == "" || head == "" {
		return nil, nil
	}
	k, err := tx.Summary(id, version)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	how, err := tx.Coverage(k.covered(), head, version)
	if err != nil || how < CoverageChanged {
		return nil, err
	}
	k.Stale = how == CoverageChanged
	return k, nil
}

// summaryFor is the newest summary that applies to a branch; nil = none. If the user has
// deleted the newest, it returns that one as deleted.
func summaryFor(tx Tx, conversationID, head string) (k *KeptSummary, deleted *SummaryRef, err error) {
	if head == "" {
		return nil, nil, nil
	}
	refs, err := tx.SummariesOn(conversationID, head)
	if err != nil {
		return nil, nil, err
	}
	for i := range refs {
		if refs[i].Deleted {
			return nil, &refs[i], nil
		}
		if k, err = ActiveSummary(tx, refs[i].ID, head, 0); k != nil || err != nil {
			return k, nil, err
		}
	}
	return nil, nil, nil
}

// ChooseSummary activates the newest summary that applies to the shown branch, after
// another branch was shown.
func ChooseSummary(tx Tx, conv *Conversation) error {
	k, _, err := summaryFor(tx, conv.ID, conv.HeadID)
	conv.SummaryID = ""
	if k != nil {
		conv.SummaryID = k.ID
	}
	return err
}

// LinesOf are messages as summaries count them: those that go into a prompt.
func LinesOf(path []*Message) []summary.ChatLine {
	shown := InPrompt(path)
	lines := make([]summary.ChatLine, len(shown))
	for i, m := range shown {
		lines[i] = lineOf(m)
	}
	return lines
}

func lineOf(m *Message) summary.ChatLine {
	s := m.Chosen()
	return summary.ChatLine{
		MessageID: m.ID, RevisionID: s.RevisionID, Seq: m.Seq, Role: llm.Role(m.Role), Name: m.Name,
		Text: framework.StripBlocks(s.Text), At: m.CreatedAt, Greeting: m.Greeting,
	}
}
