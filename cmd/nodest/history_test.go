package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHistory lets two devices of one user do whatever can be done with
// conversations, in a random order, with calls sent twice and the server killed
// in between, and compares each answer and what is shown with a simple model of
// it. In the end no text is lost, every save point gives the prompt that it was
// made with, and both devices have from their events what the server has. What is
// remembered follows what is shown.
// NODEST_LONG=1 makes 12,000 steps.
func TestHistory(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, database string) {
		steps := long(t, 220, 12_000)
		if database != "" {
			steps = long(t, 100, 3_000)
		}
		g := newGame(t, database)
		defer g.tell()
		for g.steps < steps {
			g.step()
		}
		g.end()
		t.Logf("%d steps, %d kills, %d conversations, %d save points, %d texts: %s",
			g.steps, g.kills, len(g.chats), len(g.saves), len(g.said), g.tally())
	})
}

// game is one run: the server, the devices, and what the test believes.
type game struct {
	t       *testing.T
	rng     *rand.Rand
	inst    *installation
	shared  bool // PostgreSQL: what a killed server was writing ends when its lease is over
	p       *process
	devices [2]*device
	chats   []*plain
	saves   []*kept
	docs    documents
	memos   []*memo
	said    map[wording]string         // every text that was seen
	words   map[string]map[string]bool // by message
	done    map[string]int             // by operation
	story   []string                   // the last operations
	keys    int
	steps   int
	kills   int
	talking int // sentences that were said
}

// wording names a text for ever.
type wording struct {
	message, swipe string
	rev            int64 // of the message
}

func newGame(t *testing.T, database string) *game {
	g := &game{
		t: t, rng: seeded(t), shared: database != "", inst: newInstallation(t, database, "NODEST_GENERATIONS=16", "NODEST_OFFLINE_DELAY=0s"),
		said: map[wording]string{}, words: map[string]map[string]bool{}, done: map[string]int{},
	}
	g.p = g.inst.start(t)
	for i := range g.devices {
		g.devices[i] = newDevice(g, fmt.Sprintf("device-%d", i))
	}
	g.docs.make(g)
	for range 3 {
		g.begin()
	}
	for range 90 { // more than a page
		g.says(g.chats[0], "", false)
	}
	return g
}

// tell says after a failure what was done last; with -artifacts there is a file
// with all of it.
func (g *game) tell() {
	if !g.t.Failed() {
		return
	}
	from := max(0, len(g.story)-40)
	g.t.Logf("step %d; the last operations:\n%s", g.steps, strings.Join(g.story[from:], "\n"))
	all := filepath.Join(g.t.ArtifactDir(), "operations.txt")
	if err := os.WriteFile(all, []byte(strings.Join(g.story, "\n")), 0o600); err != nil {
		g.t.Log(err)
	}
}

func (g *game) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	g.story = append(g.story, fmt.Sprintf("%5d %s", g.steps, line))
}

func (g *game) tally() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.done)) {
		fmt.Fprintf(&b, "%s %d, ", name, g.done[name])
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// chance is true once in n times.
func (g *game) chance(n int) bool { return g.rng.IntN(n) == 0 }

func pick[T any](g *game, items []T) T { return items[g.rng.IntN(len(items))] }

// restart kills the server and starts it again. Every third time its model takes
// its time then, so that there is something to stop and to kill.
func (g *game) restart() {
	g.t.Helper()
	g.p.kill(g.t)
	g.kills++
	g.startAgain("killed")
}

func (g *game) startAgain(after string) {
	g.t.Helper()
	delay := pick(g, []string{"0s", "0s", "2ms"})
	g.note("%s; the model's delay is %s now", after, delay)
	g.inst.env = append(g.inst.env, "NODEST_OFFLINE_DELAY="+delay)
	g.p = g.inst.start(g.t)
	for _, d := range g.devices {
		d.connect()
	}
}

// act is one operation: a command and its route.
type act struct {
	cmd          string            // "" = REST alone
	method, path string            // below /api/v1
	ids          map[string]string // members of the command's data that stand in the path
	query        map[string]string
	body         map[string]any
	wait         bool // for the reply; over REST only
}

// reply is the answer to it.
type reply struct {
	data   json.RawMessage
	waited bool // for what was written
	fault  *struct {
		Code    string
		Detail  string
		Details json.RawMessage
	}
}

func (r *reply) into(g *game, out any) {
	g.t.Helper()
	require.NoError(g.t, json.Unmarshal(r.data, out), "%s", r.data)
}

func (r *reply) code() string {
	if r.fault == nil {
		return ""
	}
	return r.fault.Code
}

// do sends an operation under a key of its own through some transport, and sometimes
// once more, or to a server that is killed meanwhile.
func (g *game) do(a act) *reply {
	g.t.Helper()
	g.keys++
	key := fmt.Sprintf("key-%d", g.keys)
	g.note("%s %s %v %v", a.method, a.path, a.query, a.body)
	var first *frame
	if a.cmd != "" && g.chance(150) && (!g.shared || !a.wait && g.chance(3)) {
		first = g.killDuring(a, key)
		a.wait = false // what was being written may be gone again
	}
	r := g.send(a, key)
	r.waited = a.wait
	if r.fault != nil {
		require.Nil(g.t, first, "it was answered before: %s", r.fault.Detail)
		return r
	}
	if first != nil {
		require.JSONEq(g.t, string(first.Data), cmp.Or(string(r.data), "{}"), "after the kill")
	}
	if g.chance(12) {
		again := g.send(a, key)
		require.Empty(g.t, again.code(), "sent twice")
		require.JSONEq(g.t, cmp.Or(string(r.data), "{}"), cmp.Or(string(again.data), "{}"), "sent twice")
	}
	return r
}

// must is do for what cannot fail.
func (g *game) must(a act) *reply {
	g.t.Helper()
	r := g.do(a)
	if r.fault != nil {
		g.t.Fatalf("%s %s %v: %s: %s", a.method, a.path, a.body, r.fault.Code, r.fault.Detail)
	}
	return r
}

// killDuring sends a command and kills the server, at once or when something has
// come back; it returns the answer if that was it.
func (g *game) killDuring(a act, key string) (answer *frame) {
	d := pick(g, g.devices[:])
	id := d.phone.send(a.cmd, key, a.data())
	if g.chance(2) {
		if f := d.read(); f != nil && f.ID == id && *f.OK {
			answer = f
		}
	}
	g.restart()
	return answer
}

// data is what a command carries.
func (a *act) data() map[string]any {
	data := maps.Clone(a.body)
	if data == nil {
		data = map[string]any{}
	}
	for name, id := range a.ids {
		data[name] = id
	}
	for name, value := range a.query {
		data[name] = value
	}
	return data
}

// send chooses the transport. A connection takes 20 commands at once and not many more.
func (g *game) send(a act, key string) *reply {
	g.t.Helper()
	if d := pick(g, g.devices[:]); a.cmd != "" && !a.wait && d.sent < 18 && g.chance(2) {
		return d.ask(a, key)
	}
	return g.rest(a, key)
}

func (g *game) rest(a act, key string) *reply {
	g.t.Helper()
	var content io.Reader = http.NoBody
	if a.method != http.MethodGet {
		text, err := json.Marshal(a.data())
		if len(a.ids) > 0 || a.cmd == "" {
			text, err = json.Marshal(a.body)
		}
		require.NoError(g.t, err)
		if a.body != nil {
			content = bytes.NewReader(text)
		}
	}
	return g.request(a, content, "application/json", key)
}

func (g *game) request(a act, content io.Reader, contentType, key string) *reply {
	g.t.Helper()
	query := url.Values{}
	for name, value := range a.query {
		query.Set(name, value)
	}
	path := a.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(g.t.Context(), a.method, g.p.client.base+"/api/v1"+path, content)
	require.NoError(g.t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+g.p.client.token)
	if a.method != http.MethodGet {
		req.Header.Set("Idempotency-Key", key)
	}
	if !a.wait {
		req.Header.Set("Prefer", "respond-async")
	}
	res, err := g.p.client.http.Do(req)
	require.NoError(g.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(g.t, err)
	r := &reply{data: bytes.TrimSpace(text)}
	if res.StatusCode >= 400 {
		r.refused(g, text)
	}
	return r
}

func (r *reply) refused(g *game, problem []byte) {
	g.t.Helper()
	require.NoError(g.t, json.Unmarshal(problem, &r.fault), "%s", problem)
	if r.fault.Code == "internal" {
		g.t.Fatalf("%s\n%s", problem, g.p.errors)
	}
}

// get reads; what it reads must be there.
func (g *game) get(out any, path string, args ...any) {
	g.t.Helper()
	r := g.rest(act{method: http.MethodGet, path: fmt.Sprintf(path, args...)}, "")
	if r.fault != nil {
		g.t.Fatalf("GET %s: %s: %s", fmt.Sprintf(path, args...), r.fault.Code, r.fault.Detail)
	}
	r.into(g, out)
}

// The objects as the test reads them.
type wireSpot struct {
	ID           string
	ParentID     *string
	Conversation string `json:"conversationId"`
	Seq          int64
	Role         string
	Greeting     bool
	Text         string
	Swipes       []wireSwipe
	SwipeIndex   int
	Rev          int64
	Status       string
	GenerationID string
}

type wireSwipe struct {
	ID, Text, Finish string
}

type wireChat struct {
	ID, CharacterID, Title, PersonaID string
	HeadID                            *string
	AuthorNote, Settings              json.RawMessage
	Copying                           bool
	Version                           int64
}

func (c *wireChat) frame() setup {
	f := setup{persona: c.PersonaID, note: string(c.AuthorNote), settings: string(c.Settings)}
	if c.HeadID != nil {
		f.head = *c.HeadID
	}
	return f
}

// witness keeps the texts of a message. One that was seen never changes.
func (g *game) witness(m *wireSpot) {
	g.t.Helper()
	for _, s := range m.Swipes {
		name := wording{m.ID, s.ID, m.Rev}
		if was, ok := g.said[name]; ok {
			require.Equal(g.t, was, s.Text, "the text of %v has changed", name)
		}
		g.said[name] = s.Text
		if g.words[m.ID] == nil {
			g.words[m.ID] = map[string]bool{}
		}
		g.words[m.ID][s.Text] = true
	}
}

// agree compares a message with what is believed of it.
func (g *game) agree(p *plain, m *wireSpot) {
	g.t.Helper()
	g.witness(m)
	s := p.spots[m.ID]
	require.NotNil(g.t, s, "nobody knows message %s", m.ID)
	if p.writing != nil && p.writing.spot == s {
		return // it changes by itself
	}
	if d := s.differs(m); d != "" {
		g.t.Fatal(d)
	}
	require.GreaterOrEqual(g.t, m.Rev, s.rev, "rev of message %s", m.ID)
	s.rev = m.Rev
}

// look compares the end of a conversation, or all of its shown branch.
func (g *game) look(p *plain, whole bool) {
	g.t.Helper()
	var c wireChat
	g.get(&c, "/conversations/%s", p.id)
	if p.writing == nil {
		require.Equal(g.t, p.now(), c.frame(), "conversation %s", p.id)
	}
	require.Equal(g.t, p.title, c.Title)
	if p.writing != nil && p.writing.sibling {
		return // the head moves at its end, which may be now
	}
	path := p.shown()
	before := ""
	for {
		var page pageOf[*wireSpot]
		g.get(&page, "/conversations/%s/messages?limit=50&before=%s", p.id, before)
		from := max(0, len(path)-50)
		var want, got []string
		for _, s := range path[from:] {
			want = append(want, s.id)
		}
		for _, m := range page.Items {
			got = append(got, m.ID)
			g.agree(p, m)
		}
		require.Equal(g.t, want, got, "the shown branch of %s", p.id)
		require.Equal(g.t, from > 0, page.NextCursor != nil, "more before the page")
		path = path[:from]
		if !whole || from == 0 {
			return
		}
		before = *page.NextCursor
	}
}

// settle waits for the end of what is being written and takes it in.
func (g *game) settle(p *plain) {
	g.t.Helper()
	w := p.writing
	if w == nil {
		return
	}
	d := g.devices[0]
	for !d.ended[w.gen] {
		d.read()
	}
	var got struct {
		Generation struct {
			SwipeID string
		}
		Status, Text string
	}
	g.get(&got, "/generations/%s?off=0", w.gen)
	g.note("generation of %s ended: %s, %q after %q", w.kind, got.Status, got.Text, w.base)
	g.done[got.Status]++
	if w.spot == nil {
		p.writing = nil
		return
	}
	r := g.rest(act{method: http.MethodGet, path: "/messages/" + w.spot.id}, "")
	var m wireSpot
	if r.fault == nil {
		r.into(g, &m)
	}
	for _, v := range m.Swipes { // blanks at the ends are the engine's business
		if v.ID == got.Generation.SwipeID && strings.TrimSpace(v.Text) == strings.TrimSpace(got.Text) {
			got.Text = v.Text
		}
	}
	p.land(got.Status, got.Text, got.Generation.SwipeID)
	if !w.spot.living() {
		require.Equal(g.t, "not_found", r.code(), "a deleted message")
		return
	}
	require.Empty(g.t, r.code(), "message %s", w.spot.id)
	g.agree(p, &m)
}

// step does one operation.
func (g *game) step() {
	g.t.Helper()
	if len(g.chats) < 3 {
		g.begin()
	}
	p := pick(g, g.chats)
	if g.chance(4) {
		p = g.chats[0]
	}
	if p.writing != nil && g.chance(2) {
		g.settle(p)
	}
	op := g.operation()
	if p.writing != nil && !op.besides {
		if g.chance(3) {
			g.stop(p)
		}
		g.settle(p)
	}
	if !op.do(g, p) {
		return // there is nothing to do it with
	}
	g.steps++
	g.done[op.name]++
	if slices.Contains(g.chats, p) {
		g.look(p, false)
	}
	if g.steps%25 == 0 {
		g.catchUp()
	}
	if g.steps%100 == 0 {
		g.inspect()
	}
	if g.steps%80 == 40 {
		if g.shared && !g.chance(10) {
			g.settleAll()
		}
		if g.chance(4) {
			g.p.stop(g.t)
			g.startAgain("stopped")
		} else {
			g.restart()
		}
	}
}

// operation draws one by its weight.
func (g *game) operation() *operation {
	total := 0
	for i := range operations {
		total += operations[i].weight
	}
	n := g.rng.IntN(total)
	for i := range operations {
		if n -= operations[i].weight; n < 0 {
			return &operations[i]
		}
	}
	return nil
}

func (g *game) settleAll() {
	for _, p := range g.chats {
		g.settle(p)
	}
}

// inspect looks at everything.
func (g *game) inspect() {
	g.t.Helper()
	g.settleAll()
	for _, p := range g.chats {
		g.look(p, true)
		g.compareArchive(p)
	}
	g.compareDevices()
}

// end checks what must hold after all: of each save point the prompt as it is
// kept, and as it is after restoring it.
func (g *game) end() {
	g.t.Helper()
	g.inspect()
	for _, k := range slices.Clone(g.saves) {
		g.readSave(k)
		if k.prompt != "" {
			require.Equal(g.t, k.prompt, g.prompt("/saves/"+k.id), "the prompt of save point %s", k.id)
		}
		g.restore(k)
	}
	g.opListMemories(nil)
	g.opSearchMemory(nil)
	g.inspect()
	verifyLog(g.t, g.p.client)
	g.p.stop(g.t)
}
