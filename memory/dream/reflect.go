package dream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Steps of a run.
const (
	stepReflect   = "reflect"
	stepIntegrate = "integrate"
)

// Sizes of what a reflection reads.
const (
	mostTraces   = 200
	textsAtOnce  = 300
	windowSize   = 12_000 // code points
	longestShown = 3000   // code points of one message
	mostNotes    = 20
	mostEvents   = 50
)

// window is what one reflection reads: messages up to To.
type window struct {
	Trace
	To     int64
	Turns  []memory.Turn
	Events []*cognition.Event
	Known  []*Document // that prompts may have had: what the character quotes of them is no evidence
}

// reflectOnce makes the next reflection; more reports whether there may be another one.
func (a *attempt) reflectOnce(ctx context.Context) (more bool, err error) {
	var w *window
	err = a.store.View(ctx, a.job.UserID, func(tx Tx) error {
		traces, err := tx.TracesBehind(a.run.CharacterID, mostTraces)
		w = nil
		for i := 0; err == nil && w == nil && i < len(traces); i++ {
			w, err = a.window(tx, a.behind(traces[i]))
		}
		return err
	})
	if err != nil || w == nil {
		return false, err
	}
	notes, err := a.notes(ctx, w)
	if err != nil {
		return false, err
	}
	r := &cognition.Reflection{SequenceRange: [2]int64{w.Reflected + 1, w.To}, Notes: notes}
	r.Summarise()
	e := cognition.New(w.ConversationID, r)
	if a.run.DryRun {
		a.dry = append(a.dry, e)
		return true, nil
	}
	return true, a.append(ctx, w, e, len(notes) == 0)
}

// append stores a reflection, and that its messages are read.
func (a *attempt) append(ctx context.Context, w *window, e *cognition.Event, empty bool) error {
	overtaken := false
	err := a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		overtaken = false
		if err := tx.SetReflected(w.ConversationID, w.Reflected, w.To); err != nil {
			overtaken = fault.Is(err, fault.PreconditionFailed) || fault.Is(err, fault.NotFound) // read, or deleted, meanwhile
			return err
		}
		stored := *e
		if empty {
			stored.Consume(tx.Now())
		}
		if err := tx.Log.AppendEvents(w.ConversationID, &stored); err != nil {
			return err
		}
		run := *a.run
		run.Reflections++
		if err := tx.Memory.Jobs.NoteJob(a.job, map[string]any{"reflections": run.Reflections}); err != nil {
			return err
		}
		return tx.PutDreamRun(&run)
	})
	if overtaken {
		return nil
	}
	if err == nil {
		a.run.Reflections++
	}
	return err
}

// behind is a trace as a dry run sees it, which notes nowhere how far it has read.
func (a *attempt) behind(t Trace) Trace {
	for _, e := range a.dry {
		if e.ConversationID == t.ConversationID {
			t.Reflected = max(t.Reflected, cognition.PlaceOf(e).To)
		}
	}
	return t
}

// window returns what is next in a conversation; nil = nothing yet.
func (a *attempt) window(tx Tx, t Trace) (*window, error) {
	if t.Reflected >= t.Newest {
		return nil, nil
	}
	texts, err := tx.Memory.Said(t.ConversationID, memory.SaidFilter{After: t.Reflected, Limit: textsAtOnce})
	if err != nil {
		return nil, err
	}
	full := len(texts) >= textsAtOnce
	last, now := int64(0), tx.Now()
	quiet := true // a message that has no text yet will get none
	for _, said := range texts {
		last, quiet = max(last, said.Seq), quiet && now.Sub(said.At) >= awayTime
	}
	end := last
	if !full && (quiet || last == 0) {
		end = t.Newest
	}
	if texts, err = shownTexts(tx, texts, a.run.CharacterID); err != nil {
		return nil, err
	}
	messages := make([]memory.Message, len(texts))
	for i, said := range texts {
		messages[i] = said.Message
		messages[i].At = lang.LocalTime(said.At, a.scene.Zone)
	}
	w := cut(t, end, memory.TurnsOf(messages), full)
	if w.To <= t.Reflected {
		return nil, nil
	}
	if w.Known, err = tx.MemoryDocuments(a.run.CharacterID); err != nil {
		return nil, err
	}
	w.Events, err = tx.EventsToReflect(t.ConversationID, mostEvents, cognition.TypeEvaluation, cognition.TypeCommitted)
	return w, err
}

// cut takes the first exchanges, as many as fit a window. If more is unread, the last one of them is not
// whole.
func cut(t Trace, end int64, turns []memory.Turn, more bool) *window {
	size := 0
	for i, turn := range turns {
		for _, m := range turn.Messages {
			size += min(utf8.RuneCountInString(m.Text), longestShown)
		}
		if i > 0 && (size > windowSize || more && i == len(turns)-1) {
			return &window{Trace: t, To: turn.From() - 1, Turns: turns[:i]}
		}
	}
	return &window{Trace: t, To: end, Turns: turns}
}

func shownTexts(tx Tx, texts []memory.Text, characterID string) (out []memory.Text, err error) {
	evidence := make([]memory.Evidence, len(texts))
	for i, t := range texts {
		evidence[i] = t.Evidence
	}
	shown, err := tx.Memory.Shown(nil, evidence)
	if err != nil {
		return nil, err
	}
	for i, t := range texts {
		if shown[i] && t.CharacterID == characterID {
			out = append(out, t)
		}
	}
	return out, nil
}

// notes returns what the messages of a window say that is worth keeping.
func (a *attempt) notes(ctx context.Context, w *window) ([]cognition.Note, error) {
	messages := w.messages()
	if !slices.ContainsFunc(messages, func(m memory.Message) bool { return m.Role == lang.RoleUser && !lang.OnlyAsks(m.Text) }) {
		return nil, nil
	}
	if a.model == nil {
		return extracted(messages, a.scene.Names), nil
	}
	var notes []cognition.Note
	err := a.ask(ctx, w.prompt(&a.scene), 2, func(reply string) (err error) {
		notes, err = readNotes(reply, messages, a.scene.Names, w.Known)
		return err
	})
	return notes, err
}

func (w *window) messages() (all []memory.Message) {
	for _, t := range w.Turns {
		all = append(all, t.Messages...)
	}
	return all
}

// extracted returns what rules find, where there is no model.
func extracted(messages []memory.Message, names lang.Names) (notes []cognition.Note) {
	all := names.StatementsIn(memory.Lines(messages))
	for i, m := range messages {
		for _, s := range all[i] {
			notes = append(notes, cognition.Note{Text: s.Text, Kind: string(s.Kind), Messages: []cognition.Message{messageOf(&m)}})
		}
	}
	return notes[:min(len(notes), mostNotes)]
}

func messageOf(m *memory.Message) cognition.Message {
	return cognition.Message{Sequence: m.Seq, MessageID: m.MessageID, RevisionID: m.RevisionID}
}

var errNotes = errors.New(`notes must be a list of objects with the members "text" and "seqs"`)

// readNotes reads the notes of a reply one by one. A note that its messages do not say is dropped, and so
// is one that the character said alone, of the user or out of documents.
func readNotes(reply string, messages []memory.Message, names lang.Names, known []*Document) ([]cognition.Note, error) {
	o, err := llm.ReadObject(reply, "notes")
	if err != nil {
		return nil, err
	}
	entries := o.List("notes")
	if entries == nil {
		return nil, errNotes
	}
	var notes []cognition.Note
	for _, doc := range entries {
		entry := llm.ObjectOf(string(doc), "text")
		if entry == nil {
			continue
		}
		n, sources := noteIn(entry, messages)
		fits := n.Text != "" && utf8.RuneCountInString(n.Text) <= longestLine && !lang.LooksLikeMarkup(n.Text)
		if fits && len(sources) > 0 && len(notes) < mostNotes && isEvidence(n.Text, sources, names, known) {
			notes = append(notes, n)
		}
	}
	return notes, nil
}

// noteIn reads a note, and the messages that it names.
func noteIn(entry llm.Object, messages []memory.Message) (n cognition.Note, sources []lang.Line) {
	n = cognition.Note{Text: plain(entry.Text("text")), Kind: entry.Text("kind")}
	if !slices.Contains(lang.Kinds, lang.Kind(n.Kind)) {
		n.Kind = string(lang.KindOther)
	}
	for _, seq := range entry.Integers("seqs") {
		for i := range messages {
			if messages[i].Seq == seq {
				n.Messages, sources = append(n.Messages, messageOf(&messages[i])), append(sources, messages[i].Line())
			}
		}
	}
	return n, sources
}

// enoughByUser is the part of a note that the user must have said.
const enoughByUser = 0.34

// isEvidence reports whether the sources of a note state it, and are more than the character's word for it.
// About itself, the character is believed where no document says so already: documents it only repeats.
func isEvidence(text string, sources []lang.Line, names lang.Names, known []*Document) bool {
	if lang.Unsupported(text, sources, names) != "" {
		return false
	}
	pieces := lang.PiecesOf(text)
	ofUser := slices.DeleteFunc(slices.Clone(sources), func(l lang.Line) bool { return l.Role != lang.RoleUser })
	if share, _ := lang.SaidIn(lang.Stated(ofUser)...).Share(pieces); share >= enoughByUser {
		return true
	}
	name := strings.ToLower(names.Character)
	if name == "" || !strings.HasPrefix(strings.ToLower(text), name) {
		return false
	}
	for _, d := range known {
		for i := range d.Lines {
			if share, _ := lang.SaidIn(d.Lines[i].Text).Share(pieces); share >= enoughKnown {
				return false
			}
		}
	}
	return true
}

// shownMessage is a message in a prompt.
type shownMessage struct {
	Seq  int64  `json:"seq"`
	Who  string `json:"who"`
	Name string `json:"name,omitempty"`
	At   string `json:"at,omitempty"`
	Text string `json:"text"`
}

func (w *window) prompt(scene *Scene) string {
	words := promptsIn(scene.Language)
	var b strings.Builder
	fmt.Fprintf(&b, words["reflect"], mostNotes)
	b.WriteString("\n\n" + words["messages"] + "\n")
	for _, m := range w.messages() {
		line := shownMessage{Seq: m.Seq, Who: "user", Name: scene.Names.Speaker(m.Line()), Text: lang.Truncate(m.Text, longestShown)}
		if m.Role == lang.RoleCharacter {
			line.Who = "character"
		}
		if !m.At.IsZero() {
			line.At = m.At.Format("2006-01-02 15:04 Mon")
		}
		b.WriteString(llm.JSONLine(line) + "\n")
	}
	if len(w.Events) > 0 {
		b.WriteString("\n" + words["events"] + "\n")
		for _, e := range w.Events {
			b.WriteString(lang.Truncate(string(e.Body), 300) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// dateOf writes a day in front of a line that was written without a model.
func dateOf(now time.Time, zone *time.Location) string { return now.In(zone).Format(time.DateOnly) }
