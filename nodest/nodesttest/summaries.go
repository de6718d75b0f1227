package nodesttest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

// NewSummarisedChat is a conversation of 18 exchanges whose first 6,000 characters
// are summarised.
func NewSummarisedChat(t *testing.T) *Summaries {
	t.Helper()
	s := NewSummaries(t, "")
	s.InsertExchanges(14)
	s.ChatAndSummarise(4)
	if a := s.ActiveSummary(); a == nil || a.Generation != 1 || a.Stale || len(s.Summariser.Prompts) != 1 {
		t.Fatalf("active summary: %+v", a)
	}
	return s
}

// Covered returns a message by its position in the range of the active summary.
func (s *Summaries) Covered(at int) *chat.Message { return s.Path()[3+at] }

// RunIdleJobs lets the conversation become idle and runs the jobs that are due then.
func (s *Summaries) RunIdleJobs() int {
	s.Clock.Advance(time.Hour)
	return s.RunJobs()
}

// WantContains fails the test unless the prompt contains the texts.
func (s *Summaries) WantContains(prompt string, texts ...string) {
	s.T.Helper()
	for _, text := range texts {
		if !strings.Contains(prompt, text) {
			s.T.Errorf("%q is not in the request", text)
		}
	}
}

// WantNotContains fails the test if the prompt contains one of the texts.
func (s *Summaries) WantNotContains(prompt string, texts ...string) {
	s.T.Helper()
	for _, text := range texts {
		if strings.Contains(prompt, text) {
			s.T.Errorf("%q is in the request", text)
		}
	}
}

// EditText edits a message.
func (s *Summaries) EditText(m *chat.Message, text string) {
	s.T.Helper()
	_, err := s.Edit(s.T.Context(), s.Call(), chat.EditInput{MessageID: m.ID, Text: text})
	s.Must(err)
}

// summaryModel is a model that replies with 180 characters and writes summaries: a
// request of a single message asks for one. It counts both.
type summaryModel struct {
	mu        sync.Mutex
	Replies   int
	Prompts   []string                        // prompts that asked for a summary
	Err       error                           // returned instead of a summary
	Meanwhile func(ctx context.Context) error // called once, while the next summary is written; nil = none
	Gate      func()                          // called before each summary is returned; nil = none
}

// ClearMeanwhile makes the next summary come at once.
func (m *summaryModel) ClearMeanwhile() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Meanwhile = nil
}

// Stream writes a reply or a summary.
func (m *summaryModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		text, err := m.answer(ctx, req)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		_ = yield(llm.Chunk{Text: text}, nil) &&
			yield(llm.Chunk{Last: true, Finish: llm.FinishStop, Usage: &llm.Usage{PromptTokens: 7, CompletionTokens: 3}}, nil)
	}
}

func (m *summaryModel) answer(ctx context.Context, req llm.Request) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(req.Messages) > 1 {
		m.Replies++
		return replyLine(m.Replies), nil
	}
	m.Prompts = append(m.Prompts, req.Messages[0].Text)
	n := len(m.Prompts)
	if m.Err != nil {
		return "", m.Err
	}
	if meanwhile := m.Meanwhile; meanwhile != nil {
		m.Meanwhile = nil
		m.mu.Unlock()
		defer m.mu.Lock()
		if err := meanwhile(ctx); err != nil {
			return "", err
		}
	}
	if gate := m.Gate; gate != nil {
		m.mu.Unlock()
		defer m.mu.Lock()
		gate()
	}
	return fmt.Sprintf("Digest %d: they walked along the river and talked about many things on their way."+
		" They agreed to go on until the evening, to rest where the water is calm, and to look for the way back when it gets dark."+
		" Nothing was promised that is still open, and both of them are glad of the walk.", n), nil
}

// Summaries is a fixture whose model is a summaryModel and whose clock only
// moves when it is advanced.
type Summaries struct {
	*Fixture
	Summariser   *summaryModel
	Clock        *clock
	Conversation *chat.Conversation
	said         int
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// SeedThreshold are settings in which chats are summarised from 6,000 characters on, whatever the model.
const SeedThreshold = `{"memory":{"summaryThreshold":6000}}`

// NewSummaries starts a conversation with a character that has these settings, "" = SeedThreshold.
func NewSummaries(t *testing.T, settings string) *Summaries {
	t.Helper()
	return NewSummariesOn(t, settings, func(o store.Options) *store.DB { return database(t)(t, o) })
}

// NewSummariesOn is NewSummaries on a database that the test opens.
func NewSummariesOn(t *testing.T, settings string, open func(store.Options) *store.DB) *Summaries {
	t.Helper()
	s := &Summaries{Summariser: &summaryModel{}, Clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	s.Fixture = NewOn(t, nodest.Options{}, func(o store.Options) *store.DB {
		o.Now = s.Clock.Now
		return open(o)
	})
	s.Fixture.RealModel = &nodest.Model{Generator: s.Summariser, Provider: "summariser", Name: "summariser-1", ContextTokens: 100_000}
	s.Conversation = s.Fixture.Chat()
	_, _, err := s.Characters.PutSettings(t.Context(), s.Call(), s.Conversation.CharacterID, json.RawMessage(cmp.Or(settings, SeedThreshold)), 0)
	s.Must(err)
	return s
}

// ChatAndSummarise sends n messages, each exchange with about 400 characters, and
// runs the jobs after each.
func (s *Summaries) ChatAndSummarise(n int) {
	s.T.Helper()
	for range n {
		s.SendExchanges(1)
		s.RunJobs()
	}
}

// SendExchanges sends n messages and waits for their replies.
func (s *Summaries) SendExchanges(n int) {
	s.T.Helper()
	for range n {
		s.said++
		s.SayAndWait(s.Conversation, userLine(s.said))
	}
}

// InsertExchanges stores n such exchanges at once, without a summary.
func (s *Summaries) InsertExchanges(n int) {
	s.T.Helper()
	s.Must(s.DB.Update(s.T.Context(), Ann, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(s.Conversation.ID)
		if err != nil {
			return err
		}
		said := s.said
		for i := range 2 * n {
			m := &chat.Message{
				ID: uuid.Must(uuid.NewV7()).String(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser,
				Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: tx.Now()},
			}
			if i%2 == 0 {
				said++
			}
			text := userLine(said)
			if i%2 == 1 {
				m.Role, text = chat.RoleAssistant, replyLine(said)
			}
			m.Swipes = []chat.Swipe{{ID: m.ID, RevisionID: uuid.Must(uuid.NewV7()).String(), Rev: 1, Text: text, CreatedAt: tx.Now()}}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			conv.HeadID, conv.LastMessage = m.ID, m.Preview()
		}
		conv.Version++
		return tx.Chats.UpdateConversation(conv)
	}))
	s.said += n
	s.Summariser.Replies += n
}

func userLine(n int) string {
	return fmt.Sprintf("Line %d. %s", n, strings.Repeat("I walk along the bank and look. ", 6))
}

func replyLine(n int) string {
	return fmt.Sprintf("Reply %d. %s", n, strings.Repeat("The river was wide and slow. ", 6))
}

// RunJobs runs the summary jobs that are due and returns their number.
func (s *Summaries) RunJobs() (done int) {
	s.T.Helper()
	for {
		claimed := s.ClaimJobs()
		if len(claimed) == 0 {
			return done
		}
		for _, j := range claimed {
			done++
			s.Must(s.EndJob(j, s.RunJob(j)))
		}
	}
}

// ClaimJobs claims the summary jobs that are due.
func (s *Summaries) ClaimJobs() []*jobs.Job {
	s.T.Helper()
	claimed, err := s.DB.ClaimJobs(s.T.Context(), "test", time.Minute, []jobs.Want{{Kind: chat.JobSummarise, Free: 1, PerUser: 1}})
	s.Must(err)
	return claimed
}

// RunJob runs a job without ending it.
func (s *Summaries) RunJob(j *jobs.Job) error {
	return s.Chats.Kinds()[0].Run(s.T.Context(), j)
}

// EndJob ends a job as the runner does.
func (s *Summaries) EndJob(j *jobs.Job, err error) error {
	if err != nil {
		return err
	}
	err = s.DB.EndJob(s.T.Context(), j, jobs.Outcome{State: jobs.Done})
	if fault.Is(err, fault.Conflict) { // the job has ended itself
		return nil
	}
	return err
}

// AllSummaries returns the summaries of the conversation, the newest first.
func (s *Summaries) AllSummaries() []*chat.SummaryView {
	s.T.Helper()
	views, err := s.Chats.Summaries(s.T.Context(), Ann, s.Conversation.ID)
	s.Must(err)
	return views
}

// ActiveSummary returns the active summary; nil = none.
func (s *Summaries) ActiveSummary() *chat.SummaryView {
	s.T.Helper()
	for _, v := range s.AllSummaries() {
		if v.Active {
			return v
		}
	}
	return nil
}

// Request is what would be sent now, as one text.
func (s *Summaries) Request() string {
	s.T.Helper()
	p, err := s.PreviewPrompt(s.T.Context(), Ann, nodest.PreviewInput{ConversationID: s.Conversation.ID})
	s.Must(err)
	return PromptText(p.Messages)
}

// Path returns the shown branch.
func (s *Summaries) Path() []*chat.Message {
	s.T.Helper()
	var all []*chat.Message
	for before, more := "", true; more; before = all[0].ID {
		page, err := s.Chats.History(s.T.Context(), Ann, s.Conversation.ID, before, 200)
		s.Must(err)
		all, more = slices.Concat(page.Items, all), page.More
	}
	return all
}
