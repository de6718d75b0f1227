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
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/internal/cli"
)

// TestHistory lets two devices of one user do random operations on conversations, with
// requests sent twice and the server killed in between, and compares every response
// and every conversation with a simple model. In the end no text is lost, every save
// point gives the prompt of the time of saving, both devices know from events what the
// server knows, and memory search finds what is shown.
// NODEST_LONG=1 makes 12,000 steps.
func TestHistory(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, database string) {
		steps := scaled(t, 220, 12_000)
		if database != "" {
			steps = scaled(t, 100, 3_000)
		}
		g := newSimulation(t, database)
		defer g.reportFailure()
		for g.steps < steps {
			g.step()
		}
		g.finalChecks()
		t.Logf("%d steps, %d kills, %d conversations, %d save points, %d texts: %s",
			g.steps, g.kills, len(g.chats), len(g.saves), len(g.texts), tally(g.done))
	})
}

// simulation is one run: the server, the devices, and the model of the data.
type simulation struct {
	t         *testing.T
	rng       *rand.Rand
	inst      *installation
	shared    bool // PostgreSQL: a generation of a killed server ends only with its lease
	p         *process
	devices   [2]*device
	chats     []*chatModel
	saves     []*savePoint
	docs      documents
	memories  []*memoryModel
	texts     map[textKey]string         // all texts seen
	textsOf   map[string]map[string]bool // by message
	done      map[string]int             // count by operation
	log       []string                   // lines about operations
	keys      int
	steps     int
	kills     int
	sentences int // number of texts so far
}

// textKey identifies a text, which must never change.
type textKey struct {
	message, swipe string
	rev            int64 // revision of the message
}

func newSimulation(t *testing.T, database string) *simulation {
	g := &simulation{
		t: t, rng: newRand(t), shared: database != "", inst: newInstallation(t, database, "NODEST_GENERATIONS=16", "NODEST_OFFLINE_DELAY=0s"),
		texts: map[textKey]string{}, textsOf: map[string]map[string]bool{}, done: map[string]int{},
	}
	g.p = g.inst.start(t)
	for i := range g.devices {
		g.devices[i] = newDevice(g, fmt.Sprintf("device-%d", i))
	}
	g.docs.create(g)
	for range 3 {
		g.createChat()
	}
	for range 90 { // more than one page
		g.sendMessage(g.chats[0], "", false)
	}
	return g
}

// reportFailure logs the last operations after a failure; with -artifacts a file has
// all of them.
func (g *simulation) reportFailure() {
	if !g.t.Failed() {
		return
	}
	from := max(0, len(g.log)-40)
	g.t.Logf("step %d; the last operations:\n%s", g.steps, strings.Join(g.log[from:], "\n"))
	all := filepath.Join(g.t.ArtifactDir(), "operations.txt")
	if err := os.WriteFile(all, []byte(strings.Join(g.log, "\n")), 0o600); err != nil {
		g.t.Log(err)
	}
}

func (g *simulation) record(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	g.log = append(g.log, fmt.Sprintf("%5d %s", g.steps, line))
}

// tally lists counts by name.
func tally(counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s %d, ", name, counts[name])
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// chance is true once in n times.
func (g *simulation) chance(n int) bool { return g.rng.IntN(n) == 0 }

func pick[T any](g *simulation, items []T) T { return items[g.rng.IntN(len(items))] }

// restart kills the server and starts it again, sometimes with a slow model, so that
// there are generations to cancel and to kill.
func (g *simulation) restart() {
	g.t.Helper()
	g.p.kill(g.t)
	g.kills++
	g.startServer("killed")
}

func (g *simulation) startServer(after string) {
	g.t.Helper()
	delay := pick(g, []string{"0s", "0s", "2ms"})
	g.record("%s; the model's delay is %s now", after, delay)
	g.inst.env = append(g.inst.env, "NODEST_OFFLINE_DELAY="+delay)
	g.p = g.inst.start(g.t)
	for _, d := range g.devices {
		d.connect()
	}
}

// apiCall is a request that can be sent as a command or over REST.
type apiCall struct {
	cmd          string            // "" = REST only
	method, path string            // below /api/v1
	ids          map[string]string // fields of the command's data that are in the path
	query        map[string]string
	body         map[string]any
	wait         bool // for the end of the reply; REST only
}

// response is a response of either transport.
type response struct {
	data   json.RawMessage
	waited bool // for the end of the reply
	fault  *struct {
		Code    string
		Detail  string
		Details json.RawMessage
	}
}

func (r *response) into(g *simulation, out any) {
	g.t.Helper()
	if err := json.Unmarshal(r.data, out); err != nil {
		g.t.Fatalf("%s: %v", r.data, err)
	}
}

func (r *response) code() string {
	if r.fault == nil {
		return ""
	}
	return r.fault.Code
}

// do sends a request with a new key over a random transport. Sometimes it sends it
// twice, or first to a server that is killed meanwhile.
func (g *simulation) do(a apiCall) *response {
	g.t.Helper()
	g.keys++
	key := fmt.Sprintf("key-%d", g.keys)
	g.record("%s %s %v %v", a.method, a.path, a.query, a.body)
	var first *frame
	if a.cmd != "" && g.chance(150) && (!g.shared || !a.wait && g.chance(3)) {
		first = g.killDuring(a, key)
		a.wait = false // the reply may have been lost with the server
	}
	r := g.send(a, key)
	r.waited = a.wait
	if r.fault != nil {
		if first != nil {
			g.t.Fatalf("it was answered before: %s: first is %+v, want nil", r.fault.Detail, first)
		}
		return r
	}
	if first != nil {
		if got := cmp.Or(string(r.data), "{}"); !sameJSON([]byte(got), first.Data) {
			g.t.Fatalf("after the kill: got %s, want %s", got, first.Data)
		}
	}
	if g.chance(12) {
		again := g.send(a, key)
		if got := again.code(); got != "" {
			g.t.Fatalf("sent twice: again.code() is %q, want none", got)
		}
		if got, want := cmp.Or(string(again.data), "{}"), cmp.Or(string(r.data), "{}"); !sameJSON([]byte(got), []byte(want)) {
			g.t.Fatalf("sent twice: got %s, want %s", got, want)
		}
	}
	return r
}

// must is do for a request that must succeed.
func (g *simulation) must(a apiCall) *response {
	g.t.Helper()
	r := g.do(a)
	if r.fault != nil {
		g.t.Fatalf("%s %s %v: %s: %s", a.method, a.path, a.body, r.fault.Code, r.fault.Detail)
	}
	return r
}

// killDuring sends a command and kills the server at once or after the next frame. It
// returns that frame if it was the answer.
func (g *simulation) killDuring(a apiCall, key string) (answer *frame) {
	d := pick(g, g.devices[:])
	id := d.conn.send(a.cmd, key, a.data())
	if g.chance(2) {
		if f := d.read(); f != nil && f.ID == id && *f.OK {
			answer = f
		}
	}
	g.restart()
	return answer
}

// data returns the data of the command.
func (a *apiCall) data() map[string]any {
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

// send chooses the transport. The rate limit allows a connection about 20 commands.
func (g *simulation) send(a apiCall, key string) *response {
	g.t.Helper()
	if d := pick(g, g.devices[:]); a.cmd != "" && !a.wait && d.sent < 18 && g.chance(2) {
		return d.ask(a, key)
	}
	return g.rest(a, key)
}

func (g *simulation) rest(a apiCall, key string) *response {
	g.t.Helper()
	var content io.Reader = http.NoBody
	if a.method != http.MethodGet {
		text, err := json.Marshal(a.data())
		if len(a.ids) > 0 || a.cmd == "" {
			text, err = json.Marshal(a.body)
		}
		if err != nil {
			g.t.Fatal(err)
		}
		if a.body != nil {
			content = bytes.NewReader(text)
		}
	}
	return g.request(a, content, "application/json", key)
}

func (g *simulation) request(a apiCall, content io.Reader, contentType, key string) *response {
	g.t.Helper()
	query := url.Values{}
	for name, value := range a.query {
		query.Set(name, value)
	}
	path := a.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(g.t.Context(), a.method, g.p.client.Base+"/api/v1"+path, content)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+g.p.client.Token)
	if a.method != http.MethodGet {
		req.Header.Set("Idempotency-Key", key)
	}
	if !a.wait {
		req.Header.Set("Prefer", "respond-async")
	}
	res, err := g.p.client.HTTP.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	r := &response{data: bytes.TrimSpace(text)}
	if res.StatusCode >= 400 {
		r.setProblem(g, text)
	}
	return r
}

func (r *response) setProblem(g *simulation, problem []byte) {
	g.t.Helper()
	if err := json.Unmarshal(problem, &r.fault); err != nil {
		g.t.Fatalf("%s: %v", problem, err)
	}
	if r.fault.Code == "internal" {
		g.t.Fatalf("%s\n%s", problem, g.p.stderr)
	}
}

// get reads an object that must exist.
func (g *simulation) get(out any, path string, args ...any) {
	g.t.Helper()
	r := g.rest(apiCall{method: http.MethodGet, path: fmt.Sprintf(path, args...)}, "")
	if r.fault != nil {
		g.t.Fatalf("GET %s: %s: %s", fmt.Sprintf(path, args...), r.fault.Code, r.fault.Detail)
	}
	r.into(g, out)
}

// Objects as the API returns them.
type wireMessage struct {
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

func (c *wireChat) fields() chatFields {
	f := chatFields{persona: c.PersonaID, note: string(c.AuthorNote), settings: string(c.Settings)}
	if c.HeadID != nil {
		f.head = *c.HeadID
	}
	return f
}

// recordTexts remembers the texts of a message; a text that was seen must never change.
func (g *simulation) recordTexts(m *wireMessage) {
	g.t.Helper()
	for _, s := range m.Swipes {
		name := textKey{m.ID, s.ID, m.Rev}
		if was, ok := g.texts[name]; ok {
			if s.Text != was {
				g.t.Fatalf("the text of %v has changed: s.Text is %q, want %q", name, s.Text, was)
			}
		}
		g.texts[name] = s.Text
		if g.textsOf[m.ID] == nil {
			g.textsOf[m.ID] = map[string]bool{}
		}
		g.textsOf[m.ID][s.Text] = true
	}
}

// checkMessage compares a message with the model.
func (g *simulation) checkMessage(p *chatModel, m *wireMessage) {
	g.t.Helper()
	g.recordTexts(m)
	s := p.messages[m.ID]
	if s == nil {
		g.t.Fatalf("message %s is not in the model: s is nil, want a value", m.ID)
	}
	if p.active != nil && p.active.message == s {
		return // it is being written
	}
	if d := s.diff(m); d != "" {
		g.t.Fatal(d)
	}
	if m.Rev < s.rev {
		g.t.Fatalf("rev of message %s: m.Rev is %d, want at least %d", m.ID, m.Rev, s.rev)
	}
	s.rev = m.Rev
}

// checkChat compares the last page of a conversation, or its whole shown branch, with the
// model.
func (g *simulation) checkChat(p *chatModel, whole bool) {
	g.t.Helper()
	var c wireChat
	g.get(&c, "/conversations/%s", p.id)
	if p.active == nil {
		if got, want := c.fields(), p.now(); !reflect.DeepEqual(got, want) {
			g.t.Fatalf("conversation %s: c.fields() is %+v, want %+v", p.id, got, want)
		}
	}
	if c.Title != p.title {
		g.t.Fatalf("c.Title is %q, want %q", c.Title, p.title)
	}
	if p.active != nil && p.active.sibling {
		return // its end, which may be now, moves the head
	}
	path := p.shown()
	before := ""
	for {
		var page cli.PageOf[*wireMessage]
		g.get(&page, "/conversations/%s/messages?limit=50&before=%s", p.id, before)
		from := max(0, len(path)-50)
		var want, got []string
		for _, s := range path[from:] {
			want = append(want, s.id)
		}
		for _, m := range page.Items {
			got = append(got, m.ID)
			g.checkMessage(p, m)
		}
		if !reflect.DeepEqual(got, want) {
			g.t.Fatalf("the shown branch of %s: got is %q, want %q", p.id, got, want)
		}
		if got, want := page.NextCursor != nil, from > 0; got != want {
			g.t.Fatalf("more before the page: page.NextCursor != nil is %v, want %v", got, want)
		}
		path = path[:from]
		if !whole || from == 0 {
			return
		}
		before = *page.NextCursor
	}
}

// awaitGeneration waits for the end of the active generation and updates the model.
func (g *simulation) awaitGeneration(p *chatModel) {
	g.t.Helper()
	w := p.active
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
	g.record("generation of %s ended: %s, %q after %q", w.kind, got.Status, got.Text, w.base)
	g.done[got.Status]++
	if w.message == nil {
		p.active = nil
		return
	}
	r := g.rest(apiCall{method: http.MethodGet, path: "/messages/" + w.message.id}, "")
	var m wireMessage
	if r.fault == nil {
		r.into(g, &m)
	}
	for _, v := range m.Swipes { // the engine trims white space at the ends
		if v.ID == got.Generation.SwipeID && strings.TrimSpace(v.Text) == strings.TrimSpace(got.Text) {
			got.Text = v.Text
		}
	}
	p.endGeneration(got.Status, got.Text, got.Generation.SwipeID)
	if !w.message.exists() {
		if got := r.code(); got != "not_found" {
			g.t.Fatalf("a deleted message: r.code() is %q, want %q", got, "not_found")
		}
		return
	}
	if got := r.code(); got != "" {
		g.t.Fatalf("message %s: r.code() is %q, want none", w.message.id, got)
	}
	g.checkMessage(p, &m)
}

// step does one random operation.
func (g *simulation) step() {
	g.t.Helper()
	if len(g.chats) < 3 {
		g.createChat()
	}
	p := pick(g, g.chats)
	if g.chance(4) {
		p = g.chats[0]
	}
	if p.active != nil && g.chance(2) {
		g.awaitGeneration(p)
	}
	op := g.operation()
	if p.active != nil && !op.whileWriting {
		if g.chance(3) {
			g.cancel(p)
		}
		g.awaitGeneration(p)
	}
	if !op.do(g, p) {
		return // not possible now
	}
	g.steps++
	g.done[op.name]++
	if slices.Contains(g.chats, p) {
		g.checkChat(p, false)
	}
	if g.steps%25 == 0 {
		g.catchUp()
	}
	if g.steps%100 == 0 {
		g.checkEverything()
	}
	if g.steps%80 == 40 {
		if g.shared && !g.chance(10) {
			g.awaitAllGenerations()
		}
		if g.chance(4) {
			g.p.stop(g.t)
			g.startServer("stopped")
		} else {
			g.restart()
		}
	}
}

// operation returns a random operation, by weight.
func (g *simulation) operation() *operation {
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

func (g *simulation) awaitAllGenerations() {
	for _, p := range g.chats {
		g.awaitGeneration(p)
	}
}

// checkEverything compares everything with the model.
func (g *simulation) checkEverything() {
	g.t.Helper()
	g.awaitAllGenerations()
	for _, p := range g.chats {
		g.checkChat(p, true)
		g.compareArchive(p)
	}
	g.compareDevices()
}

// finalChecks compares the prompt of every save point before and after restoring it.
func (g *simulation) finalChecks() {
	g.t.Helper()
	g.checkEverything()
	for _, k := range slices.Clone(g.saves) {
		g.readSave(k)
		if k.prompt != "" {
			if got := g.prompt("/saves/" + k.id); got != k.prompt {
				g.t.Fatalf("the prompt of save point %s: got %q, want %q", k.id, got, k.prompt)
			}
		}
		g.restore(k)
	}
	g.opListMemories(nil)
	g.opSearchMemory(nil)
	g.checkEverything()
	verifyLog(g.t, g.p.client)
	g.p.stop(g.t)
}
