package nodest

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest/record"
	"nodest/nodest/tools"
)

// Source finds what a reply should know. The sources of an engine are asked side by
// side, after the chat is read and before the request is built. None of them fails a
// turn: it goes on without what could not be found, and its prompt has a warning.
type Source struct {
	Name    string            // the stage that clients see while it is asked
	Limit   time.Duration     // after which the turn goes on without it
	Warning framework.Warning // the warning in a prompt that has to do without it
	// Wanted says whether a turn asks it.
	Wanted func(q *Question) bool
	// Find returns what it finds. It ends soon after ctx does; what it returns with an
	// error is used too.
	Find func(ctx context.Context, q *Question) (Findings, error)
	// Stored is told that a reply is stored, and must not wait for anything; nil = it is not told.
	Stored func(userID string, s *chat.Setup)
}

// Question is what a turn asks its sources. They read it and change nothing.
type Question struct {
	UserID string
	Setup  *chat.Setup
	Here   memory.Place // the branch that is written
	Text   string       // the user's last message; "" = none
	Before []string     // the turns before it, the newest first: of each the user's message and the reply
	Now    time.Time    // in the user's time zone

	// Unasked is the id of the message that is written, if it may be one that answers nothing: the
	// character writes first, or writes a message anew. "" = the user's last message is answered.
	Unasked string
	// Retold is the research whose result the message tells that is written anew; "" = none.
	Retold string

	// Context is how many tokens request and reply may have together; Tokenizer counts them
	// (framework.CountTokens).
	Context   int
	Tokenizer string

	shown   []*chat.Message // messages in the prompt, oldest first
	extra   string          // a text in the prompt that is no message of the chat; "" = none
	summary string          // summary of the messages before them; "" = none
	room    int             // for the chat, in tokens
	task    llm.Task
	preview bool // nothing is sent to the model
	mayCall func(context.Context) bool
}

// MayCall reports whether the model of the turn is given tools. It may ask the provider, which
// takes seconds at most and ends with ctx.
func (q *Question) MayCall(ctx context.Context) bool { return q.mayCall(ctx) }

// Answers reports whether the model of the turn is asked to answer: the turn is no preview, and no
// continue or impersonation.
func (q *Question) Answers() bool { return q.task == llm.Reply && !q.preview }

// Findings are what a source has found.
type Findings struct {
	Memories []framework.Memory // best first
	Recalled []record.Recalled  // texts of the chat that Memories have pieces of
	Profile  framework.Profile
	Notes    framework.Notes
	Uses     []memory.Use  // the memories of Memories and Profile, best first
	Sources  []cite.Source // that the reply may cite, by the numbers that Web gives them
	Search   []Search      // searches of the web
	Lore     []string      // ids of world-book entries that fit by their meaning, for the SillyTavern dialect

	Warnings []framework.Warning // warnings of the prompt: what was searched only in part

	// Instruction says how the message is to be written; "" = as usual.
	Instruction string
	// ResearchID is the research whose result the message tells; "" = none.
	ResearchID string

	// Web writes entries for the block of the web: the n-th of Sources has the number
	// first+n-1, like the n-th page of Search. Nil = there are none.
	Web func(first int) string
}

// Search is a search of the web for a reply.
type Search struct {
	Query    string       `json:"query"`
	Provider string       `json:"provider"`
	Cached   bool         `json:"cached"`
	Ms       int64        `json:"ms"` // for searching and reading
	Results  int          `json:"results"`
	Pages    []SearchPage `json:"pages"` // in the prompt
}

// SearchPage is a page that was found.
type SearchPage struct {
	Marker   int    `json:"marker"` // its number in the prompt
	URL      string `json:"url"`
	Title    string `json:"title"`
	Evidence string `json:"evidence"` // "page" or "snippet"

	Factor float64 `json:"factor,omitempty"` // by which evaluations of its host moved it; 0 = they did not
	Closed string  `json:"closed,omitempty"` // kind of wall that hid the page, see reader.Kind; "" = none
}

// found is what the sources of a turn have found, as Findings has it.
type found struct {
	uses     []memory.Use
	recalled []record.Recalled
	numbers  tools.Numbers // numbers of the sources that may be cited
	lookups  []tools.Lookup
	search   []Search
	lore     map[string]bool // ids of Findings.Lore
	warnings []framework.Warning

	instruction, research string // Findings.Instruction, Findings.ResearchID
}

// noteQuestion sets the question of a turn: the branch, the user's last message and the
// time. text is a message after the branch that is not stored, "" = none.
func (t *turn) noteQuestion(now time.Time, text string) {
	now, path := now.In(t.setup.Zone), t.past.messages
	o := &t.input.Options
	o.Now, o.LastUserAt = now, userSpokeAt(path, text != "")
	q := &Question{
		Context: o.Context, Tokenizer: o.Tokenizer, UserID: t.gen.UserID, Setup: t.setup.Setup, Here: t.past.place,
		Text: text, Now: now, shown: path, extra: text, room: o.Context - o.Reserve, task: t.task, preview: t.gen.ID == "",
	}
	if t.past.summary != nil {
		q.summary = t.past.summary.Text
	}
	at := len(path) - 1
	for ; at >= 0 && q.Text == ""; at-- {
		if path[at].Role == chat.RoleUser && !path[at].Hidden {
			q.Text = memory.Clean(lang.RoleUser, path[at].Text())
		}
	}
	q.Before = sceneBefore(path[:at+1])
	t.question = q
}

// Newest returns the texts of the newest messages in the prompt, at most n, the newest first, as memory reads
// them. The user's message that is answered is one of them.
func (q *Question) Newest(n int) (texts []string) {
	add := func(role lang.Role, text string) {
		if text = strings.TrimSpace(memory.Clean(role, text)); text != "" && len(texts) < n {
			texts = append(texts, text)
		}
	}
	add(lang.RoleUser, q.extra)
	for _, m := range slices.Backward(q.shown) {
		switch {
		case len(texts) == n:
			return texts
		case m.Hidden:
		case m.Role == chat.RoleUser:
			add(lang.RoleUser, m.Text())
		case m.Role == chat.RoleAssistant:
			add(lang.RoleCharacter, m.Text())
		}
	}
	return texts
}

// turnsBefore is how many turns before a message belong to its scene.
const turnsBefore = 3

// sceneBefore returns the last texts of the user in path, each with the reply to it, the newest first, as
// memory reads them. Without the one or the other it is "".
func sceneBefore(path []*chat.Message) (texts []string) {
	reply := ""
	for i := len(path) - 1; i >= 0 && len(texts) < 2*turnsBefore; i-- {
		switch m := path[i]; {
		case m.Hidden:
		case m.Role == chat.RoleUser:
			texts = append(texts, memory.Clean(lang.RoleUser, m.Text()), reply)
			reply = ""
		case m.Role == chat.RoleAssistant && reply == "":
			reply = memory.Clean(lang.RoleCharacter, m.Text())
		}
	}
	if len(texts) == 0 {
		texts = []string{"", reply}
	}
	return texts
}

// userSpokeAt is when the user wrote last before the newest message, which is the
// last one of path unless something newer is known.
func userSpokeAt(path []*chat.Message, newer bool) time.Time {
	for _, m := range slices.Backward(path) {
		switch {
		case m.Hidden || strings.TrimSpace(m.Text()) == "":
		case newer && m.Role == chat.RoleUser:
			return m.CreatedAt
		default:
			newer = true
		}
	}
	return time.Time{}
}

// stageTools is the stage in which tools are called, or searched with before the request.
const stageTools = "tools"

// askSources adds the findings of the sources, and what the toolboxes offer, to the input of
// the build. It calls asked with the name of each source that is asked, and what that
// returns when it has answered.
func (e *Engine) askSources(ctx context.Context, t *turn, asked func(name string) (answered func())) {
	q := t.question
	q.mayCall = e.mayCall(t)
	wanted := slices.DeleteFunc(slices.Clone(e.opts.Sources), func(s Source) bool { return !s.Wanted(q) })
	boxes := slices.DeleteFunc(slices.Clone(e.opts.Tools), func(b Toolbox) bool { return !b.Wanted(q) })
	found, failed := make([]Findings, len(wanted)), make([]error, len(wanted))
	kits := make([]opened, len(boxes))
	var work []func()
	for i, box := range boxes {
		work = append(work, func() { kits[i] = box.open(ctx, q, asked) })
	}
	for i, s := range wanted {
		answered := asked(s.Name)
		work = append(work, func() {
			defer answered()
			found[i], failed[i] = s.find(ctx, q)
		})
	}
	sideBySide(work)
	rest := t.addKits(kits)
	for i, s := range wanted {
		t.add(found[i])
		e.missing(ctx, t, s.Name, s.Warning, failed[i])
	}
	rest()
	for i, box := range boxes {
		e.missing(ctx, t, box.Name, box.Warning, kits[i].err)
	}
}

// sideBySide does work, mostly one part, for which no goroutine has to begin.
func sideBySide(work []func()) {
	var group sync.WaitGroup
	for i, do := range work {
		if i < len(work)-1 {
			group.Go(do)
		} else {
			do()
		}
	}
	group.Wait()
}

// missing notes that a turn has to do without a source or toolbox, unless err is nil.
func (e *Engine) missing(ctx context.Context, t *turn, name string, w framework.Warning, err error) {
	if err == nil || ctx.Err() != nil { // or the turn does not go on
		return
	}
	e.opts.Log.WarnContext(ctx, "turn continues without a source", "source", name, "conversation", t.setup.Conversation.ID, "err", err)
	t.found.warnings = append(t.found.warnings, w)
}

// find is Find within the limit; a panic is an error.
func (s Source) find(ctx context.Context, q *Question) (f Findings, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("source %s: panic: %v\n%s", s.Name, p, debug.Stack())
		}
	}()
	return s.Find(ctx, q)
}

func (t *turn) add(f Findings) {
	in, place := &t.input.Findings, tools.InWeb
	in.Memories = append(in.Memories, f.Memories...)
	if first := t.found.numbers.Len() + 1; f.Web != nil {
		if text := f.Web(first); f.Instruction != "" && t.question.Text == "" { // there is no message that it could stand behind
			f.Instruction, place = f.Instruction+"\n\n<websearch>\n"+plainText(text)+"\n</websearch>", tools.InAnswer
		} else {
			in.Web = strings.TrimSpace(in.Web + "\n" + text)
		}
		for i := range f.Search {
			var refs []int
			for j := range f.Search[i].Pages {
				f.Search[i].Pages[j].Marker += first - 1
				refs = append(refs, f.Search[i].Pages[j].Marker)
			}
			t.found.looked(f.Search[i].Query, refs)
		}
	}
	t.found.instruction, t.found.research = cmp.Or(t.found.instruction, f.Instruction), cmp.Or(t.found.research, f.ResearchID)
	t.instructFound()
	if len(f.Profile.Facts) > 0 {
		t.input.Profile = f.Profile
	}
	if len(f.Notes.Documents) > 0 {
		t.input.Notes = f.Notes
	}
	for _, id := range f.Lore {
		if t.found.lore == nil {
			t.found.lore = map[string]bool{}
		}
		t.found.lore[id] = true
	}
	for _, source := range f.Sources {
		t.found.numbers.Add(source, place)
	}
	t.found.recalled, t.found.uses = append(t.found.recalled, f.Recalled...), append(t.found.uses, f.Uses...)
	t.found.search, t.found.warnings = append(t.found.search, f.Search...), append(t.found.warnings, f.Warnings...)
}

// plainText is text from outside as an instruction may have it: it ends no block, and has no macros.
func plainText(text string) string { return strings.ReplaceAll(framework.Defuse(text), "{{", "{ {") }
