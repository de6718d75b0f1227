package dream

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Sizes of what an integration reads.
const (
	mostReflections = 100
	notesSize       = 12_000 // code points of notes
)

// integrate works all reflections that wait into the documents. It writes documents, marks and the end of
// the run in one transaction, or nothing.
func (a *attempt) integrate(ctx context.Context) error {
	b, events, err := a.basis(ctx)
	if err != nil {
		return err
	}
	var updates []Update
	spent := false
	switch {
	case len(b.Notes) == 0:
	case a.model == nil:
		updates = b.reduced()
	default:
		err = a.ask(ctx, b.prompt(&a.scene), 0, func(reply string) (err error) {
			updates, err = readUpdates(reply, &b)
			return err
		})
		if spent = errors.Is(err, errSpent); err != nil && !spent {
			return err
		}
	}
	if spent {
		events = nil
	}
	plan := Apply(b, updates)
	return a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		if err := tx.Memory.LockMemory(a.run.CharacterID); err != nil {
			return err
		}
		run := *a.run
		run.State, run.Changes = Done, plan.Changes
		if spent {
			run.Failure = errSpent.Message
		}
		if !run.DryRun {
			run.Consumed = len(events)
			if err := a.write(tx, &b, plan, events); err != nil {
				return err
			}
		}
		return a.finish(tx, &run)
	})
}

// write stores the new versions, if nothing has changed since b was read, and consumes the reflections. A
// purge may have taken words away that the model has read.
func (a *attempt) write(tx Tx, b *Basis, plan Plan, events []*cognition.Event) error {
	now, _, err := a.read(tx)
	if err != nil {
		return err
	}
	unchanged := func(x, y *Document) bool { return x.Path == y.Path && x.Version == y.Version && x.Locked == y.Locked }
	if !slices.EqualFunc(now.Documents, b.Documents, unchanged) || !reflect.DeepEqual(now.Notes, b.Notes) || !reflect.DeepEqual(now.Tombstones, b.Tombstones) {
		return fault.New(fault.PreconditionFailed, "the memory was changed by another request")
	}
	if err := tx.ConsumeReflections(events...); err != nil {
		return err
	}
	for _, d := range plan.Documents {
		if err := tx.PutMemoryDocument(a.run.CharacterID, d); err != nil {
			return err
		}
		if err := emit(tx, "server", a.run.CharacterID, d.Path, wroteDocument, d.Version, ByDream); err != nil {
			return err
		}
	}
	return nil
}

// basis is read in a transaction of its own.
func (a *attempt) basis(ctx context.Context) (b Basis, events []*cognition.Event, err error) {
	err = a.store.View(ctx, a.job.UserID, func(tx Tx) error {
		b, events, err = a.read(tx)
		return err
	})
	return b, events, err
}

// read returns the documents, and the notes of the oldest reflections, as many as fit. Notes of messages
// that are not shown are left out.
func (a *attempt) read(tx Tx) (b Basis, events []*cognition.Event, err error) {
	b = Basis{Names: a.scene.Names, RunID: a.run.ID, Now: tx.Now()}
	if a.model == nil {
		b.Day = dateOf(b.Now, a.scene.Zone)
	}
	if b.Documents, err = tx.MemoryDocuments(a.run.CharacterID); err != nil {
		return b, nil, err
	}
	versions, err := tx.VersionsOfDocuments(a.run.CharacterID)
	if err != nil {
		return b, nil, err
	}
	b.Best = BestSizes(versions, b.Now)
	if b.Tombstones, err = tx.Memory.Tombstones(a.run.CharacterID); err != nil {
		return b, nil, err
	}
	open, err := tx.OpenReflections(a.run.CharacterID, mostReflections)
	if err != nil {
		return b, nil, err
	}
	size := 0
	for _, e := range append(open, a.dry...) {
		notes, err := shownNotes(tx, e)
		if err != nil {
			return b, nil, err
		}
		for _, n := range notes {
			size += utf8.RuneCountInString(n.Text)
		}
		if size > notesSize && len(events) > 0 {
			break
		}
		b.Notes, events = append(b.Notes, notes...), append(events, e)
	}
	return b, events, nil
}

func shownNotes(tx Tx, e *cognition.Event) (notes []Note, err error) {
	var r cognition.Reflection
	if cognition.Read(e, &r) != nil {
		r.Notes = nil // an imported one may have another form
	}
	var evidence []memory.Evidence
	for _, n := range r.Notes {
		note := Note{Text: n.Text, Kind: lang.Kind(n.Kind), At: e.Timestamp}
		for _, m := range n.Messages {
			note.Evidence = append(note.Evidence, memory.Evidence{ConversationID: e.ConversationID, MessageID: m.MessageID, RevisionID: m.RevisionID, Seq: m.Sequence})
		}
		notes, evidence = append(notes, note), append(evidence, note.Evidence...)
	}
	shown, err := tx.Memory.Shown(nil, evidence)
	if err != nil {
		return nil, err
	}
	at := 0
	return slices.DeleteFunc(notes, func(n Note) bool {
		gone := false
		for range n.Evidence {
			gone = gone || !shown[at]
			at++
		}
		return gone || len(n.Evidence) == 0
	}), nil
}

// reduced adds each note as a line with its day, where there is no model.
func (b *Basis) reduced() (updates []Update) {
	for i, n := range b.Notes {
		path := "user.md"
		if n.Kind == lang.KindPlan || n.Kind == lang.KindPromise {
			path = "threads.md"
		}
		updates = append(updates, Update{Path: path, Do: Add, Text: n.Text, Notes: []int{i}})
	}
	return updates
}

func (b *Basis) prompt(scene *Scene) string {
	words := promptsIn(scene.Language)
	var out strings.Builder
	out.WriteString(words["integrate"] + "\n\n" + words["documents"] + "\n")
	documents := slices.DeleteFunc(slices.Clone(b.Documents), func(d *Document) bool { return d.Path == Archive })
	for _, path := range Defaults {
		if !slices.ContainsFunc(documents, func(d *Document) bool { return d.Path == path }) {
			documents = append(documents, &Document{Path: path})
		}
	}
	ByOrder(documents)
	type shownLine struct {
		Path   string `json:"path"`
		Line   string `json:"line,omitempty"`
		Author Author `json:"author,omitempty"`
		Text   string `json:"text,omitempty"`
		Locked bool   `json:"locked,omitempty"`
	}
	for _, d := range documents {
		out.WriteString(llm.JSONLine(shownLine{Path: d.Path, Locked: d.Locked}) + "\n")
		for i := range d.Lines {
			if l := &d.Lines[i]; !l.isStructure() {
				out.WriteString(llm.JSONLine(shownLine{Path: d.Path, Line: l.ID, Author: l.Author, Text: l.Text}) + "\n")
			}
		}
	}
	out.WriteString("\n" + words["notes"] + "\n")
	for i, n := range b.Notes {
		out.WriteString(llm.JSONLine(map[string]any{"note": i + 1, "text": n.Text}) + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

var errUpdates = errors.New(`updates must be a list of objects with the members "path", "do", "line", "text" and "notes"`)

// readUpdates reads the updates of a reply one by one. One with new_content is the difference to the
// document.
func readUpdates(reply string, b *Basis) (updates []Update, err error) {
	o, err := llm.ReadObject(reply, "updates")
	if err != nil {
		return nil, err
	}
	entries := o.List("updates")
	if entries == nil {
		return nil, errUpdates
	}
	for _, doc := range entries {
		entry := llm.ObjectOf(string(doc), "path")
		if entry == nil {
			continue
		}
		path := entry.Text("path")
		if _, whole := entry["new_content"]; whole {
			updates = append(updates, b.difference(path, entry.Text("new_content"))...)
			continue
		}
		u := Update{Path: path, Do: Do(entry.Text("do")), Line: entry.Text("line"), Text: entry.Text("text")}
		for _, n := range entry.Integers("notes") {
			u.Notes = append(u.Notes, int(n)-1)
		}
		updates = append(updates, u)
	}
	return updates[:min(len(updates), 2*mostUpdates)], nil
}

// enoughAlike is the part of the words of a line that another one has which takes its place.
const enoughAlike = 0.5

// difference returns how a whole text differs from a document. Headings and blank lines say nothing. A new
// line takes the place of the one that is most like it.
func (b *Basis) difference(path, content string) (updates []Update) {
	var gone []Line
	if at := slices.IndexFunc(b.Documents, func(d *Document) bool { return d.Path == path }); at >= 0 {
		gone = slices.DeleteFunc(slices.Clone(b.Documents[at].Lines), func(l Line) bool { return l.isStructure() })
	}
	var added []string
	for text := range strings.SplitSeq(content, "\n") {
		l := Line{Text: plain(text)}
		if l.isStructure() {
			continue
		}
		hash := lang.ContentHash(l.Text)
		if at := slices.IndexFunc(gone, func(o Line) bool { return lang.ContentHash(plain(o.Text)) == hash }); at >= 0 {
			gone = slices.Delete(gone, at, at+1)
		} else if len(added) < mostUpdates {
			added = append(added, l.Text)
		}
	}
	for _, text := range added {
		u := Update{Path: path, Do: Add, Text: text, Notes: b.supporting(text)}
		best, alike := -1, enoughAlike
		for i := range gone {
			if share, _ := lang.SaidIn(text).Share(lang.PiecesOf(gone[i].Text)); share >= alike {
				best, alike = i, share
			}
		}
		if best >= 0 {
			u.Do, u.Line = Modify, gone[best].ID
			gone = slices.Delete(gone, best, best+1)
		}
		updates = append(updates, u)
	}
	for _, l := range gone {
		updates = append(updates, Update{Path: path, Do: Remove, Line: l.ID})
	}
	return updates
}

// supporting returns the notes that share words with a text, the best three.
func (b *Basis) supporting(text string) (notes []int) {
	pieces := lang.PiecesOf(text)
	share := map[int]float64{}
	for i, n := range b.Notes {
		if s, weight := lang.SaidIn(n.Text).Share(pieces); weight > 0 && s >= enoughAlike {
			share[i], notes = s, append(notes, i)
		}
	}
	slices.SortStableFunc(notes, func(x, y int) int {
		switch {
		case share[x] > share[y]:
			return -1
		case share[x] < share[y]:
			return 1
		}
		return 0
	})
	return notes[:min(len(notes), 3)]
}
