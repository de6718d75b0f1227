package nodest_test

import (
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
	"nodest/fault"
	"nodest/jobs"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

// newSummarisedChat is a conversation of 18 exchanges whose first 6,000 characters
// are summarised.
func newSummarisedChat(t *testing.T) *summaryFixture {
	t.Helper()
	s := newSummaryFixture(t, "")
	s.insertExchanges(14)
	s.chatAndSummarise(4)
	if a := s.active(); a == nil || a.Generation != 1 || a.Stale || len(s.summaryModel.prompts) != 1 {
		t.Fatalf("active summary: %+v", a)
	}
	return s
}

// covered returns a message by its position in the range of the active summary.
func (s *summaryFixture) covered(at int) *chat.Message { return s.path()[3+at] }

// runIdleJobs lets the conversation become idle and runs the jobs that are due then.
func (s *summaryFixture) runIdleJobs() int {
	s.clock.advance(time.Hour)
	return s.runJobs()
}

// wantContains fails the test unless the prompt contains the texts.
func (s *summaryFixture) wantContains(prompt string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(prompt, text) {
			s.t.Errorf("%q is not in the request", text)
		}
	}
}

func (s *summaryFixture) wantNotContains(prompt string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(prompt, text) {
			s.t.Errorf("%q is in the request", text)
		}
	}
}

func (s *summaryFixture) edit(m *chat.Message, text string) {
	s.t.Helper()
	_, err := s.Edit(s.t.Context(), s.call(), chat.EditInput{MessageID: m.ID, Text: text})
	s.must(err)
}

// summaryModel is a model that replies with 180 characters and writes summaries: a
// request of a single message asks for one. It counts both.
type summaryModel struct {
	mu        sync.Mutex
	replies   int
	prompts   []string                        // prompts that asked for a summary
	err       error                           // returned instead of a summary
	meanwhile func(ctx context.Context) error // called once, while the next summary is written; nil = none
	gate      func()                          // called before each summary is returned; nil = none
}

// clearMeanwhile makes the next summary come at once.
func (m *summaryModel) clearMeanwhile() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meanwhile = nil
}

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
		m.replies++
		return replyLine(m.replies), nil
	}
	m.prompts = append(m.prompts, req.Messages[0].Text)
	n := len(m.prompts)
	if m.err != nil {
		return "", m.err
	}
	if meanwhile := m.meanwhile; meanwhile != nil {
		m.meanwhile = nil
		m.mu.Unlock()
		defer m.mu.Lock()
		if err := meanwhile(ctx); err != nil {
			return "", err
		}
	}
	if gate := m.gate; gate != nil {
		m.mu.Unlock()
		defer m.mu.Lock()
		gate()
	}
	return fmt.Sprintf("Digest %d: they walked along the river and talked about many things on their way."+
		" They agreed to go on until the evening, to rest where the water is calm, and to look for the way back when it gets dark."+
		" Nothing was promised that is still open, and both of them are glad of the walk.", n), nil
}

// summaryFixture is a fixture whose model is a summaryModel and whose clock only
// moves when it is advanced.
type summaryFixture struct {
	*fixture
	summaryModel *summaryModel
	clock        *clock
	chat         *chat.Conversation
	said         int
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newSummaryFixture starts a conversation with a character that has these settings.
func newSummaryFixture(t *testing.T, settings string) *summaryFixture {
	t.Helper()
	return newSummaryFixtureOn(t, settings, func(o store.Options) *store.DB { return database(t)(t, o) })
}

// newSummaryFixtureOn is newSummaryFixture on a database that the test opens.
func newSummaryFixtureOn(t *testing.T, settings string, open func(store.Options) *store.DB) *summaryFixture {
	t.Helper()
	s := &summaryFixture{summaryModel: &summaryModel{}, clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	s.fixture = newFixtureOn(t, nodest.Options{}, func(o store.Options) *store.DB {
		o.Now = s.clock.Now
		return open(o)
	})
	s.fixture.realModel = &nodest.Model{Generator: s.summaryModel, Provider: "summariser", Name: "summariser-1", ContextTokens: 100_000}
	s.chat = s.fixture.chat()
	if settings != "" {
		_, _, err := s.Characters.PutSettings(t.Context(), s.call(), s.chat.CharacterID, json.RawMessage(settings), 0)
		s.must(err)
	}
	return s
}

// chatAndSummarise sends n messages, each exchange with about 400 characters, and
// runs the jobs after each.
func (s *summaryFixture) chatAndSummarise(n int) {
	s.t.Helper()
	for range n {
		s.sendExchanges(1)
		s.runJobs()
	}
}

func (s *summaryFixture) sendExchanges(n int) {
	s.t.Helper()
	for range n {
		s.said++
		s.sendAndWait(s.chat, userLine(s.said))
	}
}

// insertExchanges stores n such exchanges at once, without a summary.
func (s *summaryFixture) insertExchanges(n int) {
	s.t.Helper()
	s.must(s.db.Update(s.t.Context(), ann, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(s.chat.ID)
		if err != nil {
			return err
		}
		said := s.said
		for i := range 2 * n {
			m := &chat.Message{
				ID: uuid.Must(uuid.NewV7()).String(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser,
				Rev: 1, Status: chat.StatusComplete, CreatedAt: tx.Now(),
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
	s.summaryModel.replies += n
}

func userLine(n int) string {
	return fmt.Sprintf("Line %d. %s", n, strings.Repeat("I walk along the bank and look. ", 6))
}

func replyLine(n int) string {
	return fmt.Sprintf("Reply %d. %s", n, strings.Repeat("The river was wide and slow. ", 6))
}

// runJobs runs the summary jobs that are due and returns their number.
func (s *summaryFixture) runJobs() (done int) {
	s.t.Helper()
	for {
		claimed := s.claimJobs()
		if len(claimed) == 0 {
			return done
		}
		for _, j := range claimed {
			done++
			s.must(s.endJob(j, s.runJob(j)))
		}
	}
}

func (s *summaryFixture) claimJobs() []*jobs.Job {
	s.t.Helper()
	claimed, err := s.db.ClaimJobs(s.t.Context(), "test", time.Minute, []jobs.Want{{Kind: chat.JobSummarise, Free: 1, PerUser: 1}})
	s.must(err)
	return claimed
}

func (s *summaryFixture) runJob(j *jobs.Job) error {
	return s.Chats.Kinds()[0].Run(s.t.Context(), j)
}

// endJob ends a job as the runner does.
func (s *summaryFixture) endJob(j *jobs.Job, err error) error {
	if err != nil {
		return err
	}
	err = s.db.EndJob(s.t.Context(), j, jobs.Outcome{State: jobs.Done})
	if fault.Is(err, fault.Conflict) { // the job has ended itself
		return nil
	}
	return err
}

func (s *summaryFixture) summaries() []*chat.SummaryView {
	s.t.Helper()
	views, err := s.Chats.Summaries(s.t.Context(), ann, s.chat.ID)
	s.must(err)
	return views
}

// active returns the active summary; nil = none.
func (s *summaryFixture) active() *chat.SummaryView {
	s.t.Helper()
	for _, v := range s.summaries() {
		if v.Active {
			return v
		}
	}
	return nil
}

// prompt is what would be sent now, as one text.
func (s *summaryFixture) prompt() string {
	s.t.Helper()
	p, err := s.PreviewPrompt(s.t.Context(), ann, nodest.PreviewInput{ConversationID: s.chat.ID})
	s.must(err)
	return promptText(p.Messages)
}

// path returns the shown branch.
func (s *summaryFixture) path() []*chat.Message {
	s.t.Helper()
	var all []*chat.Message
	for before, more := "", true; more; before = all[0].ID {
		page, err := s.Chats.History(s.t.Context(), ann, s.chat.ID, before, 200)
		s.must(err)
		all, more = slices.Concat(page.Items, all), page.More
	}
	return all
}
