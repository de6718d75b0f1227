package nodesttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
)

// NewChat starts a conversation, adds n messages, alternately the user's and the
// character's, and returns all messages including the greeting.
func (s *Fixture) NewChat(t *testing.T, n int) (*chat.Conversation, []*chat.Message) {
	t.Helper()
	ch := s.Character(Alice)
	conv, err := s.Chats.CreateConversation(t.Context(), s.Call(), chat.ConversationInput{CharacterID: ch.ID})
	Must(t, err)
	for i := range n {
		conv = s.AddMessage(t, conv.ID, conv.HeadID, "text "+strconv.Itoa(i+1))
	}
	page, err := s.Chats.History(t.Context(), Ann, conv.ID, "", 200)
	Must(t, err)
	return conv, page.Items
}

// AddMessage stores a message below a parent and makes it the head, as a turn does.
func (s *Fixture) AddMessage(t *testing.T, conversationID, parentID string, texts ...string) *chat.Conversation {
	t.Helper()
	var conv *chat.Conversation
	Must(t, s.DB.Update(t.Context(), Ann, func(tx nodest.Tx) error {
		var err error
		if conv, err = tx.Chats.LockConversation(conversationID); err != nil {
			return err
		}
		parent, err := tx.Chats.Message(parentID)
		if err != nil {
			return err
		}
		m := &chat.Message{
			ID: NewID(tx), ConversationID: conversationID, ParentID: parentID, Role: chat.RoleUser, Name: "User",
			Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: tx.Now()},
		}
		if parent.Role == chat.RoleUser {
			m.Role, m.Name = chat.RoleAssistant, "Alice"
		}
		for _, text := range texts {
			m.Swipes = append(m.Swipes, chat.Swipe{Text: text, Rev: 1, Finish: "stop"})
		}
		conv.HeadID, conv.Version = m.ID, conv.Version+1
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		return tx.Chats.UpdateConversation(conv)
	}))
	return conv
}

// MarkAsWriting marks a message as being written by a generation of another process.
func (s *Fixture) MarkAsWriting(t *testing.T, m *chat.Message) (end func()) {
	t.Helper()
	g := &chat.Generation{UserID: Ann, ConversationID: m.ConversationID, MessageID: m.ID, Kind: chat.KindReply,
		Status: chat.GenStreaming, Lease: chat.Lease{LeaseOwner: "other", LeaseUntil: time.Now().Add(time.Hour)}}
	Must(t, s.DB.Update(t.Context(), Ann, func(tx nodest.Tx) error {
		g.ID = NewID(tx)
		return tx.InsertGeneration(g)
	}))
	return func() {
		Must(t, s.DB.Update(t.Context(), Ann, func(tx nodest.Tx) error {
			g.Status = chat.GenDone
			return tx.UpdateGeneration(g)
		}))
	}
}

var (
	idMu   sync.Mutex
	nextID int
)

// NewID makes ids that are short in failure messages, unique in the process, and
// sorted by creation, like those of the engine.
func NewID(nodest.Tx) string {
	idMu.Lock()
	defer idMu.Unlock()
	nextID++
	return fmt.Sprintf("%08d-%04d-7000-8000-000000000000", nextID/10_000, nextID%10_000)
}

// PNGOfSize is a PNG of the given size.
func PNGOfSize(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	Must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// SmallArchive has two messages, a state, a rewind and a save point.
const SmallArchive = `{"format":"nodest.conversation","formatVersion":1,"character":{"id":"c","name":"Alice"},
"conversation":{"id":"v","title":"Small","headId":"m2","version":9,"settings":{},"createdAt":"2026-01-02T03:04:05Z"},
"messages":[
{"id":"m1","seq":1,"role":"assistant","name":"Alice","swipeIndex":0,"rev":2,"status":"complete","createdAt":"2026-01-02T03:04:05Z",
 "swipes":[{"id":"s1","createdAt":"2026-01-02T03:04:05Z"}],
 "texts":[{"revisionId":"t1","id":"s1","rev":1,"text":"Hi","storedAt":"2026-01-02T03:04:05Z"},{"revisionId":"t2","id":"s1","rev":2,"text":"Hello","storedAt":"2026-01-02T03:04:06Z"}],
 "states":[{"version":1,"rev":1,"revisionId":"t1","status":"complete"},{"version":5,"rev":2,"revisionId":"t2","status":"complete"}]},
{"id":"m2","parentId":"m1","clientMsgId":"k1","seq":3,"role":"user","name":"Mia","swipeIndex":0,"rev":1,"status":"complete","createdAt":"2026-01-02T03:04:05Z",
 "swipes":[{"id":"s2","createdAt":"2026-01-02T03:04:05Z"}],
 "texts":[{"revisionId":"t3","id":"s2","rev":1,"text":"Hey","storedAt":"2026-01-02T03:04:05Z"}],
 "states":[{"version":4,"rev":1,"revisionId":"t3","status":"complete"}]}],
"states":[{"version":4,"headId":"m2","settings":{}}],
"rewinds":[{"at":7,"to":4}],
"saves":[{"id":"p1","version":4,"headId":"m2","description":"d","previewText":"p","messageCount":2,"createdAt":"2026-01-02T03:04:07Z"}]}`

// SmallLog is a chat log of three messages with swipes, a note and a hidden line.
const SmallLog = `{"chat_metadata":{"note_prompt":"It rains.","note_position":1,"note_depth":3,"note_role":1,"mine":{"b":1,"a":2}},"user_name":"unused","character_name":"unused"}
{"name":"Alice","is_user":false,"is_system":false,"send_date":"2025-03-14T09:00:00.000Z","mes":"Hi","swipes":["Hey","Hi"],"swipe_id":1,"swipe_info":[{"extra":{"model":"m1"}},{"extra":{"model":"m2","odd":true}}],"extra":{"model":"m2","odd":true}}
{"name":"Mia","is_user":true,"is_system":false,"send_date":"2025-03-14T09:01:00.000Z","mes":"Hello","extra":{"mine":1}}
{"name":"Alice","is_user":false,"is_system":true,"send_date":"2025-03-14T09:02:00.000Z","mes":"hidden","extra":{}}
`

// MessageIDs returns the ids of messages.
func MessageIDs(messages []*chat.Message) []string {
	ids := []string{}
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// BranchTexts returns the texts of the shown branch.
func (s *Fixture) BranchTexts(conversationID string) []string {
	s.T.Helper()
	page, err := s.Chats.History(s.T.Context(), Ann, conversationID, "", 200)
	s.Must(err)
	texts := []string{}
	for _, m := range page.Items {
		texts = append(texts, m.Text())
	}
	return texts
}

// Written is the file that an export writes.
func Written(ctx context.Context, export func(context.Context, string, string, io.Writer) (string, error), userID, id string) (data []byte, filename string, err error) {
	var out bytes.Buffer
	filename, err = export(ctx, userID, id, &out)
	return out.Bytes(), filename, err
}

// ReadAll returns the shown branch, read page by page as clients do.
func (s *Fixture) ReadAll(t *testing.T, conversationID string, pageLength int) []*chat.Message {
	t.Helper()
	var all []*chat.Message
	for before, more := "", true; more; {
		page, err := s.Chats.History(t.Context(), Ann, conversationID, before, pageLength)
		Must(t, err)
		all = slices.Concat(page.Items, all)
		if more = page.More; more {
			before = page.Items[0].ID
		}
	}
	return all
}

// DescribeMessages renders what users see of messages, without ids.
func DescribeMessages(t *testing.T, messages []*chat.Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range messages {
		texts := []string{}
		for _, s := range m.Swipes {
			texts = append(texts, s.Text+"/"+strconv.FormatBool(s.Deleted))
		}
		line, err := json.Marshal([]any{m.Seq, m.Role, m.Name, m.Hidden, m.Greeting, m.Status, m.SwipeIndex, texts, m.CreatedAt, m.EditedAt})
		Must(t, err)
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// SameMessages checks that two branches show the same messages.
func SameMessages(t *testing.T, what string, got, want []*chat.Message) {
	t.Helper()
	a, b := strings.Split(DescribeMessages(t, got), "\n"), strings.Split(DescribeMessages(t, want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s shows at %d\n%s\nwant\n%s", what, i, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s has %d messages, want %d", what, len(a)-1, len(b)-1)
	}
}

// ClaimFork claims the job of a fork for a process.
func ClaimFork(t *testing.T, db *store.DB, process string) *jobs.Job {
	t.Helper()
	claimed, err := db.ClaimJobs(t.Context(), process, time.Minute, []jobs.Want{{Kind: chat.JobFork, Free: 5, PerUser: 5}})
	Must(t, err)
	if len(claimed) != 1 {
		t.Fatalf("%d jobs, want the one of the fork", len(claimed))
	}
	return claimed[0]
}

// RunFork runs the job of a fork.
func RunFork(e *Engine, j *jobs.Job) error {
	return e.Chats.Kinds()[1].Run(context.Background(), j)
}

// Kinds are the kinds of resources.
var Kinds = []character.ResourceKind{character.WorldBook, character.Preset, character.RegexScript, character.Persona}

// Documents has a document of each kind.
var Documents = map[character.ResourceKind]json.RawMessage{
	character.WorldBook:   json.RawMessage(`{"name":"Tea","entries":{"9":{"content":"x"},"1":{"mine":[1]}}}`),
	character.Preset:      json.RawMessage(`{"name":"Plain","prompts":[{"identifier":"main","content":"x"}]}`),
	character.RegexScript: json.RawMessage(`[{"scriptName":"shout","findRegex":"a"}]`),
	character.Persona:     json.RawMessage(`{"name":"Mia","description":"A pilot.","mine":1}`),
}

// LongArchive is an archive of n messages in one branch.
func LongArchive(n int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"format":"nodest.conversation","formatVersion":1,"character":{"id":"x","name":"Alice"},
		"conversation":{"title":"Long","version":1,"headId":"m%d","createdAt":"2026-01-02T03:04:05Z"},"messages":[`, n-1)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		parent, role := "", "user"
		if i > 0 {
			parent = fmt.Sprintf("m%d", i-1)
		}
		if i%2 == 1 {
			role = "assistant"
		}
		fmt.Fprintf(&b, `{"id":"m%d","parentId":%q,"seq":%d,"role":%q,"name":"N","swipeIndex":0,"rev":1,"status":"complete",
			"createdAt":"2026-01-02T03:04:05Z","swipes":[{"id":"s","createdAt":"2026-01-02T03:04:05Z"}],
			"texts":[{"revisionId":"t%d","id":"s","rev":1,"text":"This is number %d of the story; 茶 was served in the Straße.","storedAt":"2026-01-02T03:04:05Z"}],
			"states":[{"version":1,"rev":1,"revisionId":"t%d","status":"complete"}]}`, i, parent, i+1, role, i, i, i)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// ImportLongChat imports a conversation of n messages.
func (s *Fixture) ImportLongChat(t *testing.T, characterID string, n int) *chat.Conversation {
	t.Helper()
	conv, err := s.Archives.ImportArchive(t.Context(), s.Call(), characterID, LongArchive(n))
	Must(t, err)
	return conv
}
