package archive

import (
	"fmt"
	"slices"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
)

const tipsAtOnce = 20 // with all their swipes

// plan are the files of a conversation, the main one first: those that it came in, and then one for each
// branch that is in none of them.
func (w *logWriter) plan() ([]*log, error) {
	files, err := w.came()
	if err != nil {
		return nil, err
	}
	if w.conv.HeadID != "" {
		owner, goesOn, err := w.owner(files, w.conv.HeadID)
		if err != nil {
			return nil, err
		}
		if goesOn {
			owner.end = w.conv.HeadID
		}
	}
	tips, err := w.tips()
	if err != nil {
		return nil, err
	}
	var more []*log
	for _, tip := range tips {
		owner, goesOn, err := w.owner(files, tip.id)
		switch {
		case err != nil:
			return nil, err
		case goesOn && owner.end == "" && owner.anchor != "":
			owner.end = tip.id
		case owner.end != tip.id:
			more = append(more, &log{of: owner, end: tip.id, name: branchTime(tip.at)})
		}
	}
	for _, f := range files {
		if f.end == "" {
			f.end = f.head
		}
	}
	if len(more) > 0 {
		slices.Reverse(more)
		err = w.parting(more, len(tips))
	}
	return append(files, more...), err
}

// came are the files that a conversation came in; the main one also of one that came in none.
func (w *logWriter) came() ([]*log, error) {
	main := w.mainLog()
	main.name, main.end = w.own.Name, ""
	if main.name == "" {
		main.name = w.conv.Title
	}
	if w.own.Head > 0 {
		there, err := w.tx.Dump(w.conv.ID, w.own.Head-1, 1)
		if err != nil {
			return nil, err
		}
		if len(there) > 0 && there[0].Seq == w.own.Head {
			main.head = there[0].ID
		}
		if err := w.anchor(main); err != nil {
			return nil, err
		}
	}
	var files []*log
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := w.tx.Saves(w.conv.ID, false, cursor, savesAtOnce)
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			f, err := w.cameAs(s)
			if err != nil {
				return nil, err
			}
			if f != nil {
				files = append(files, f)
			}
		}
		cursor = next
	}
	slices.Reverse(files)
	return append([]*log{main}, files...), nil
}

// cameAs is the file that became a save point; nil = none did.
func (w *logWriter) cameAs(s *chat.Save) (*log, error) {
	x, err := importedWith(s)
	if err != nil || x.Log == nil {
		return nil, nil //nolint:nilerr // it is none of ours
	}
	f := &log{record: x.Log, name: x.Log.Name, head: s.HeadID, grows: x.Log.Grows}
	err = w.anchor(f)
	if fault.Is(err, fault.NotFound) { // it was removed for good
		return nil, nil
	}
	return f, err
}

// anchor finds the message behind which a file goes on: its head, or the last one before it that is not deleted.
func (w *logWriter) anchor(f *log) error {
	if f.head == "" {
		return nil
	}
	last, _, err := w.tx.Path(w.conv.ID, f.head, "", 1)
	if err == nil && len(last) > 0 {
		f.anchor, f.seq = last[0].ID, last[0].Seq
	}
	return err
}

// tip is the end of a branch.
type tip struct {
	id string
	at time.Time
}

// tips are the ends of all branches, the newest first.
func (w *logWriter) tips() ([]tip, error) {
	var tips []tip
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := w.tx.Tips(w.conv.ID, cursor, tipsAtOnce)
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			tips = append(tips, tip{m.ID, m.CreatedAt})
		}
		cursor = next
	}
	return tips, nil
}

// owner is the file that a message belongs to: the one that goes on last on its path. The others belong to the
// main file, which goes on in them if it came in no file.
func (w *logWriter) owner(files []*log, messageID string) (owner *log, goesOn bool, err error) {
	var anchors []string
	for _, f := range files {
		if f.grows && f.anchor != "" {
			anchors = append(anchors, f.anchor)
		}
	}
	owner, goesOn = files[0], files[0].head == ""
	if len(anchors) == 0 {
		return owner, goesOn, nil
	}
	on, err := w.tx.OnPath(w.conv.ID, messageID, anchors)
	last := int64(0)
	for _, f := range files {
		if f.grows && f.seq > last && slices.Contains(on, f.anchor) {
			owner, goesOn, last = f, true, f.seq
		}
	}
	return owner, goesOn, err
}

// runs are those of the tree of a conversation.
type runs struct {
	byID, byEnd map[string]*chat.Run
	head        *chat.RunPlace
}

// parting finds where branches part from the files that they belong to, and names them by that.
func (w *logWriter) parting(more []*log, tips int) error {
	tree, err := w.tx.Tree(w.conv.ID, 2*tips+1)
	if err != nil {
		return err
	}
	t := &runs{map[string]*chat.Run{}, map[string]*chat.Run{}, tree.Head}
	for _, r := range tree.Runs {
		t.byID[r.ID], t.byEnd[r.HeadID] = r, r
	}
	for _, f := range more {
		messageID, index := t.parting(f.of.end, f.end)
		f.name = fmt.Sprintf("Branch #%d - %s", index, f.name)
		if f.of.branches == nil {
			f.of.branches = map[string][]string{}
		}
		if messageID != "" {
			f.of.branches[messageID] = append(f.of.branches[messageID], f.name)
		}
	}
	return nil
}

// parting is the last message that two paths share, and its index in them; "" = they share none.
func (t *runs) parting(end, other string) (messageID string, index int) {
	last, length := t.byEnd[end], 0
	if last != nil {
		length = last.MessageCount
	} else if t.head != nil && t.head.MessageID == end {
		last, length = t.byID[t.head.RunID], t.head.Position
	}
	on := map[*chat.Run]bool{}
	for r := last; r != nil; r = t.byEnd[r.ParentID] {
		on[r] = true
	}
	r := t.byEnd[other]
	for r != nil && !on[r] {
		r = t.byEnd[r.ParentID]
	}
	if r == nil {
		return "", 0
	}
	messageID = end
	if r != last {
		messageID, length = r.HeadID, r.MessageCount
	}
	index = length - 1
	for up := t.byEnd[r.ParentID]; up != nil; up = t.byEnd[up.ParentID] {
		index += up.MessageCount
	}
	return messageID, index
}

// branchTime is a time as SillyTavern has it in names of files.
func branchTime(at time.Time) string {
	at = at.UTC()
	return fmt.Sprintf("%d-%d-%d@%02dh%02dm%02ds%dms", at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond()/1e6)
}

// name gives the files their names. Branches are named where they part.
func (w *logWriter) name(files []*log, sink LogSink) {
	for _, f := range files {
		wanted := f.name
		f.name = sink.Name(wanted)
		if f.record != nil {
			w.renamed[wanted] = f.name
		}
		if f.of == nil || f.name == wanted {
			continue
		}
		for _, names := range f.of.branches {
			if i := slices.Index(names, wanted); i >= 0 {
				names[i] = f.name
			}
		}
	}
}

// IsBranchFile reports whether a save point is a branch that came as a file, which WriteLogs writes.
func (svc *Service) IsBranchFile(s *chat.Save) bool {
	x, err := importedWith(s)
	return err == nil && x.Log != nil
}
