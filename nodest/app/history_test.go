package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/nodest/nodesttest"
	"nodest/store"
)

// readAppHistory is the history of "app-1" as an app reads it; greetings are marked
// with a star.
func (s *fixture) readAppHistory() string {
	s.T.Helper()
	got, err := s.Apps.History(s.T.Context(), s.Call(), app.HistoryRequest{ConversationID: "app-1", Action: app.ActionGet})
	s.Must(err)
	return describeHistory(s.T, got.History)
}

func describeHistory(t *testing.T, history json.RawMessage) string {
	t.Helper()
	var h struct {
		Name, Role, Identifier string
		Parts                  []goldenMessage
	}
	nodesttest.Must(t, json.Unmarshal(history, &h))
	if h.Name != "Chat History" || h.Role != "system" || h.Identifier != "chatHistory" {
		t.Errorf("the history is named %q, %q, %q", h.Name, h.Role, h.Identifier)
	}
	var said []string
	for _, p := range h.Parts {
		star := ""
		if p.FirstMes {
			star = "*"
		}
		said = append(said, fmt.Sprintf("%s%s: %s", p.Role, star, p.Parts[0].Text))
	}
	return strings.Join(said, " | ")
}

// changeAppHistory changes the history of "app-1".
func (s *fixture) changeAppHistory(in app.HistoryRequest) *app.HistoryAnswer {
	s.T.Helper()
	in.ConversationID = "app-1"
	got, err := s.Apps.History(s.T.Context(), s.Call(), in)
	s.Must(err)
	return got
}

// newAppChat is Ida's chat with two exchanges.
func newAppChat(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, nodest.Options{})
	s.createInApp(`,"chatHistory":{"parts":[{"role":"model","is_first_mes":true,"parts":[{"text":"Hi"}]},
		{"role":"user","parts":[{"text":"u1"}],"timestamp":1700000000000},{"role":"model","parts":[{"text":"a1"}]},
		{"role":"user","parts":[{"text":"u2"}]},{"role":"model","parts":[{"text":"a2"}]}]}`)
	return s
}

const appChatHistory = "model*: Hi | user: u1 | model: a1 | user: u2 | model: a2"

// messages returns the shown branch.
func (s *fixture) messages() []*chat.Message {
	s.T.Helper()
	chats, err := s.Chats.Conversations(s.T.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 1)
	s.Must(err)
	page, err := s.Chats.History(s.T.Context(), nodesttest.Ann, chats.Items[0].ID, "", 200)
	s.Must(err)
	return page.Items
}

func TestAppHistoryKeepsTheGivenTimes(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	got := s.changeAppHistory(app.HistoryRequest{Action: app.ActionGet})
	var h struct {
		Parts []struct {
			ID        string
			Timestamp int64
		}
	}
	nodesttest.Must(t, json.Unmarshal(got.History, &h))
	all := s.messages()
	if h.Parts[1].Timestamp != 1700000000000 || h.Parts[1].ID != all[1].ID || h.Parts[2].Timestamp != all[2].CreatedAt.UnixMilli() {
		t.Errorf("parts = %+v", h.Parts)
	}
}

func TestAnExchangeDeletedByIndexIsRestoredAsOne(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]app.HistoryRequest{
		"by its reply": {Action: app.ActionDeleteAI, Index: new(2)},
		"by the user":  {Action: app.ActionDeleteUser, Index: new(2)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAppChat(t)
			said := s.messages()[3]
			got := s.changeAppHistory(in)
			if want := "model*: Hi | user: u1 | model: a1"; !got.OK || describeHistory(t, got.History) != want {
				t.Errorf("history = %s (%v), want %s", describeHistory(t, got.History), got.OK, want)
			}
			back, err := s.Chats.RestoreMessage(t.Context(), s.Call(), said.ID)
			nodesttest.Must(t, err)
			if len(back.MessageIDs) != 2 || s.readAppHistory() != appChatHistory {
				t.Errorf("%d came back: %s", len(back.MessageIDs), s.readAppHistory())
			}
		})
	}
}

func TestAnIndexOutOfRangeChangesNothing(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	version := s.chatVersion()
	for _, in := range []app.HistoryRequest{
		{Action: app.ActionEditAI, Index: new(3), Text: "x"}, {Action: app.ActionEditAI, Index: new(0), Text: "x"},
		{Action: app.ActionEditUser, Index: new(3), Text: "x"}, {Action: app.ActionDeleteAI, Index: new(3)}, {Action: app.ActionDeleteAI, Index: new(-1)},
		{Action: app.ActionDeleteUser, Index: new(3)}, {Action: app.ActionRegenerate, Index: new(3)}, {Action: app.ActionRegenerate, Index: new(-1)},
	} {
		if got := s.changeAppHistory(in); got.OK || describeHistory(t, got.History) != appChatHistory {
			t.Errorf("%s %d: %v, %s", in.Action, *in.Index, got.OK, describeHistory(t, got.History))
		}
	}
	s.changeAppHistory(app.HistoryRequest{Action: app.ActionRestore, History: json.RawMessage(`{"parts":[]}`)})
	if got := s.changeAppHistory(app.HistoryRequest{Action: app.ActionRegenerate, Index: new(0)}); got.OK {
		t.Error("a missing greeting was reset")
	}
	if got := s.chatVersion(); got != version+1 {
		t.Errorf("version %d, want %d: only the restore has changed something", got, version+1)
	}
	if n := len(s.Model.AllRequests()); n != 0 {
		t.Errorf("the model received %d requests", n)
	}
}

func (s *fixture) chatVersion() int64 {
	s.T.Helper()
	chats, err := s.Chats.Conversations(s.T.Context(), nodesttest.Ann, chat.ConversationFilter{}, "", 1)
	s.Must(err)
	return chats.Items[0].Version
}

func TestAFailedRegenerateByIndexChangesNothing(t *testing.T) {
	t.Parallel()
	down := llm.Upstream("scripted", fault.UpstreamDown, 503, nil)
	for name, reply := range map[string]*nodesttest.ScriptedReply{"nothing came": nodesttest.Reply().Failing(down), "half a reply came": nodesttest.Reply("Half").Failing(down)} {
		for _, index := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, reply %d", name, index), func(t *testing.T) {
				s := newAppChat(t)
				s.Model.Enqueue(&nodesttest.ScriptedReply{Chunks: reply.Chunks, Err: reply.Err, Started: make(chan struct{}), Ended: make(chan struct{})})
				_, err := s.Apps.History(t.Context(), s.Call(), app.HistoryRequest{
					ConversationID: "app-1", Action: app.ActionRegenerate, Index: new(index), Text: "warmer",
				})
				if err == nil || fault.Public(err).Code == fault.Internal {
					t.Errorf("error = %v, want that of the provider", err)
				}
				if s.readAppHistory() != appChatHistory {
					t.Errorf("history = %s", s.readAppHistory())
				}
			})
		}
	}
}

func TestARegenerateByIndexKeepsTheOldBranch(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	end := s.messages()[4]
	got := s.changeAppHistory(app.HistoryRequest{Action: app.ActionRegenerate, Index: new(1), Text: "warmer"})
	want := "model*: Hi | user: u1\n\n【重写要求】warmer | model: Fine."
	if !got.OK || got.Response != "Fine." || describeHistory(t, got.History) != want {
		t.Errorf("%q, history %s\nwant %s", got.Response, describeHistory(t, got.History), want)
	}
	if text := s.messages()[1].Text(); text != "u1" {
		t.Errorf("the user's message became %q", text)
	}
	_, err := s.Chats.ChooseHead(t.Context(), s.Call(), end.ConversationID, end.ID)
	nodesttest.Must(t, err)
	if s.readAppHistory() != appChatHistory {
		t.Errorf("the old branch is %s", s.readAppHistory())
	}
}

func TestARestoreByTheAppKeepsTheOldBranch(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	end := s.messages()[4]
	got := s.changeAppHistory(app.HistoryRequest{Action: app.ActionRestore, History: json.RawMessage(
		`{"parts":[{"role":"user","parts":[{"text":"s1"}]},{"role":"system","parts":[{"text":"Night falls."}]}]}`)})
	if want := "user: s1 | system: Night falls."; !got.OK || describeHistory(t, got.History) != want {
		t.Errorf("history = %s, want %s", describeHistory(t, got.History), want)
	}
	s.sendInApp("Rain")
	if !strings.Contains(s.Model.LastRequest(), "Night falls.") || strings.Contains(s.Model.LastRequest(), "u1") {
		t.Errorf("the request:\n%s", s.Model.LastRequest())
	}
	_, err := s.Chats.ChooseHead(t.Context(), s.Call(), end.ConversationID, end.ID)
	nodesttest.Must(t, err)
	if s.readAppHistory() != appChatHistory {
		t.Errorf("the old branch is %s", s.readAppHistory())
	}
}

func TestARepeatedChangeByIndexHasOneEffect(t *testing.T) {
	t.Parallel()
	for n, in := range []app.HistoryRequest{
		{Action: app.ActionDeleteAI, Index: new(2)},
		{Action: app.ActionDeleteUser, Index: new(1)},
		{Action: app.ActionEditAI, Index: new(1), Text: "x"},
		{Action: app.ActionRegenerate, Index: new(0)},
		{Action: app.ActionRegenerate, Index: new(1)},
		{Action: app.ActionRegenerate, Index: new(2)},
		{Action: app.ActionRestore, History: json.RawMessage(`{"parts":[{"role":"user","parts":[{"text":"s1"}]}]}`)},
		{Action: app.ActionReset},
	} {
		t.Run(fmt.Sprint(in.Action, n), func(t *testing.T) {
			s := newAppChat(t)
			in.ConversationID = "app-1"
			c := s.Call()
			first, err := s.Apps.History(t.Context(), c, in)
			nodesttest.Must(t, err)
			version, asked := s.chatVersion(), len(s.Model.AllRequests())
			twice := nodesttest.RetryOf(c)
			second, err := s.Apps.History(t.Context(), twice, in)
			nodesttest.Must(t, err)
			if !twice.Replayed || second.OK != first.OK || second.Response != first.Response || string(second.History) != string(first.History) {
				t.Errorf("the second answer is %+v (replayed: %v), the first %+v", second, twice.Replayed, first)
			}
			if s.chatVersion() != version || len(s.Model.AllRequests()) != asked {
				t.Errorf("version %d, was %d; asked %d times, was %d", s.chatVersion(), version, len(s.Model.AllRequests()), asked)
			}
		})
	}
}

func TestChangesByIndexAreRefusedWhileAReplyIsWritten(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	slow := nodesttest.Reply("Slow").Gated()
	s.Model.Enqueue(slow)
	sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: s.messages()[0].ConversationID, Text: "u3"})
	nodesttest.Must(t, err)
	<-slow.Started
	for _, in := range []app.HistoryRequest{
		{Action: app.ActionEditAI, Index: new(1), Text: "x"}, {Action: app.ActionDeleteUser, Index: new(3)},
		{Action: app.ActionRegenerate, Index: new(0)}, {Action: app.ActionRegenerate, Index: new(1)},
		{Action: app.ActionRestore, History: json.RawMessage(`{"parts":[]}`)}, {Action: app.ActionReset},
	} {
		in.ConversationID = "app-1"
		_, err := s.Apps.History(t.Context(), s.Call(), in)
		s.WantCode(err, fault.Busy)
	}
	if want := appChatHistory + " | user: u3"; s.readAppHistory() != want {
		t.Errorf("history = %s", s.readAppHistory())
	}
	slow.Release()
	s.Await(sent.GenerationID)
	if want := appChatHistory + " | user: u3 | model: Slow"; s.readAppHistory() != want {
		t.Errorf("history = %s, want %s", s.readAppHistory(), want)
	}
}

// Indexes count the messages of a fork like those of its source.
func TestIndexesCountAllMessagesOfAFork(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	var parts []string
	for i := range 150 {
		parts = append(parts, fmt.Sprintf(`{"role":"user","parts":[{"text":"u%d"}]},{"role":"model","parts":[{"text":"a%d"}]}`, i+1, i+1))
	}
	made := s.createInApp(`,"chatHistory":{"parts":[` + strings.Join(parts, ",") + `]}`)
	fork, err := s.Chats.Fork(t.Context(), s.Call(), chat.ForkInput{ConversationID: made.ConversationID})
	nodesttest.Must(t, err)
	nodesttest.Must(t, nodesttest.RunFork(s.Engine, nodesttest.ClaimFork(t, s.DB, "p"))) // it has more messages than forkStep
	got, err := s.Apps.History(t.Context(), s.Call(), app.HistoryRequest{
		ConversationID: fork.ID, Action: app.ActionEditUser, Index: new(2), Text: "other words",
	})
	nodesttest.Must(t, err)
	said := strings.Split(describeHistory(t, got.History), " | ")
	if !got.OK || len(said) != 301 || said[3] != "user: other words" || said[300] != "model: a150" {
		t.Errorf("%v, %d messages: %.200v", got.OK, len(said), said)
	}
}

// insertStore notes how many messages a transaction stores at most.
type insertStore struct {
	*store.DB
	most int
}

func (s *insertStore) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return s.DB.Update(ctx, userID, func(tx nodest.Tx) error { return s.count(&tx.Chats, func() error { return fn(tx) }) })
}

func (s *insertStore) App() app.Store { return insertAppStore{s.DB.App(), s} }

type insertAppStore struct {
	app.Store
	inserted *insertStore
}

func (s insertAppStore) Update(ctx context.Context, userID string, fn func(app.Tx) error) error {
	return s.Store.Update(ctx, userID, func(tx app.Tx) error { return s.inserted.count(&tx.Chats, func() error { return fn(tx) }) })
}

func (s *insertStore) count(chats *chat.Tx, fn func() error) error {
	inserted := insertedMessages{MessageTx: chats.MessageTx, ArchiveTx: chats.ArchiveTx}
	chats.MessageTx, chats.ArchiveTx = &inserted, &inserted
	err := fn()
	s.most = max(s.most, inserted.n)
	return err
}

type insertedMessages struct {
	chat.MessageTx
	chat.ArchiveTx
	n int
}

func (c *insertedMessages) InsertMessage(messages ...*chat.Message) error {
	c.n += len(messages)
	return c.MessageTx.InsertMessage(messages...)
}

func (c *insertedMessages) Load(conversationID string, messages []*chat.DumpedMessage) error {
	c.n += len(messages)
	return c.ArchiveTx.Load(conversationID, messages)
}

// A long transaction would make all other writers wait.
func TestALongAppHistoryTakesManySmallTransactions(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	counted := &insertStore{DB: s.DB}
	apps := nodesttest.NewEngine(counted, s, s.Events, s.Options).Apps
	parts := make([]string, 600)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"role":"user","parts":[{"text":"u%d"}]}`, i)
	}
	call := s.Call()
	for range 2 { // the second is a repetition
		got, err := apps.History(t.Context(), call, app.HistoryRequest{
			ConversationID: "app-1", Action: app.ActionRestore, History: json.RawMessage(`{"parts":[` + strings.Join(parts, ",") + `]}`),
		})
		nodesttest.Must(t, err)
		said := strings.Split(describeHistory(t, got.History), " | ")
		if !got.OK || len(said) != 600 || said[599] != "user: u599" {
			t.Errorf("%v, %d messages", got.OK, len(said))
		}
	}
	if counted.most > 250 {
		t.Errorf("%d messages in one transaction", counted.most)
	}
}

// So does a new character with a long history. Nobody sees it before it is complete.
func TestANewCharacterWithALongHistoryTakesManySmallTransactions(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	counted := &insertStore{DB: s.DB}
	apps := nodesttest.NewEngine(counted, s, s.Events, s.Options).Apps
	parts := make([]string, 600)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"role":"user","parts":[{"text":"u%d"}]}`, i)
	}
	documents := appDocuments(`,"chatHistory":{"parts":[` + strings.Join(parts, ",") + `]}`)
	call := s.Call()
	for range 2 { // the second is a repetition
		got, err := apps.Chat(t.Context(), call, app.Request{
			ConversationID: "app-1", Status: app.StatusNewCharacter, CustomUserName: "Mo", JSONString: documents,
		})
		nodesttest.Must(t, err)
		said := strings.Split(s.readAppHistory(), " | ")
		if len(said) != 601 || said[0] != "model*: "+got.Response || said[600] != "user: u599" {
			t.Errorf("%d messages, %q to %q", len(said), said[0], said[len(said)-1])
		}
	}
	if characters, conversations := s.countObjects(); characters != 1 || conversations != 1 {
		t.Errorf("%d characters, %d conversations", characters, conversations)
	}
	if counted.most > 250 {
		t.Errorf("%d messages in one transaction", counted.most)
	}
}

func TestAppHistoryRefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	s := newAppChat(t)
	for _, tt := range []struct {
		name  string
		in    app.HistoryRequest
		code  fault.Code
		field string
	}{
		{"an unknown action", app.HistoryRequest{ConversationID: "app-1", Action: "x"}, fault.Invalid, "action"},
		{"a key like a path", app.HistoryRequest{ConversationID: "a/b", Action: app.ActionGet}, fault.Invalid, "conversationId"},
		{"an unknown key", app.HistoryRequest{ConversationID: "app-2", Action: app.ActionGet}, fault.NotFound, "conversationId"},
		{"an edit to nothing", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionEditAI, Index: new(1), Text: " "}, fault.Invalid, "text"},
		{"a long wish", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionRegenerate, Index: new(1), Text: strings.Repeat("x", 4001)}, fault.TooLarge, ""},
		{"a restore of nothing", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionRestore}, fault.Invalid, "history"},
		{"a restore of a list", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionRestore, History: json.RawMessage(`[]`)}, fault.Invalid, "history"},
		{"a restore without a list", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionRestore, History: json.RawMessage(`{}`)}, fault.Invalid, "history.parts"},
		{"a restore of too much", app.HistoryRequest{ConversationID: "app-1", Action: app.ActionRestore,
			History: json.RawMessage(`{"parts":[{}` + strings.Repeat(`,{}`, 10_000) + `]}`)}, fault.TooLarge, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Apps.History(t.Context(), s.Call(), tt.in)
			nodesttest.WantError(t, err, tt.code, tt.field)
		})
	}
	if s.readAppHistory() != appChatHistory {
		t.Errorf("history = %s", s.readAppHistory())
	}
}

// In the app's history a regenerate removes the old wish or replaces it by the new
// one.
func TestARegenerateReplacesTheWishInTheAppsHistory(t *testing.T) {
	t.Parallel()
	for wish, want := range map[string]string{"": "u1", "shorter": "u1\n\n【重写要求】shorter"} {
		s := newFixture(t, nodest.Options{})
		s.createInApp(`,"chatHistory":{"parts":[{"role":"model","parts":[{"text":"Hi"}],"is_first_mes":true},
			{"role":"user","parts":[{"text":"u1\n\n【重写要求】warmer"}]},{"role":"model","parts":[{"text":"a1"}]}]}`)
		if got := s.readAppHistory(); got != "model*: Hi | user: u1\n\n【重写要求】warmer | model: a1" {
			t.Errorf("before: %s", got)
		}
		got := s.changeAppHistory(app.HistoryRequest{Action: app.ActionRegenerate, Index: new(1), Text: wish})
		if shown := describeHistory(t, got.History); shown != "model*: Hi | user: "+want+" | model: Fine." {
			t.Errorf("wish %q: history %s", wish, shown)
		}
		if strings.Contains(s.Model.LastRequest(), "warmer") {
			t.Errorf("wish %q: sent\n%s", wish, s.Model.LastRequest())
		}
	}
}
