package chat

import (
	"context"
	"slices"

	"nodest/internal/summary"
)

// readLines reads the shown branch without most of what the summary in force covers, or all of
// it where that one does not apply.
func (r *planning) readLines(ctx context.Context) error {
	if r.base == nil {
		return r.readAll(ctx, "", "")
	}
	if err := r.short(r.headSeq - r.base.Range.EndSeq); err != nil {
		return err
	}
	r.lines = nil
	aim := summary.Aim{Active: r.active(), Fold: true}
	if err := r.read(ctx, aim, "", r.base.Range.StartSeq, summary.KeepFirst+1); err != nil {
		return err
	}
	if err := r.read(ctx, aim, r.above, 0, FirstPage); err != nil {
		return err
	}
	last := func(l summary.ChatLine) bool { return l.MessageID == r.base.Range.EndID }
	if !slices.ContainsFunc(r.lines, last) { // it says nothing any more
		r.base = nil
		return r.readAll(ctx, "", "")
	}
	return nil
}

// readAll reads the whole shown branch, for a summary of the messages from one to another, if
// they are named.
func (r *planning) readAll(ctx context.Context, from, to string) error {
	r.lines = nil
	if r.conv.HeadID == "" {
		return nil
	}
	if err := r.short(r.headSeq); err != nil {
		return err
	}
	if err := r.read(ctx, summary.Aim{Active: r.active(), From: from, To: to}, "", 0, FirstPage); err != nil {
		return err
	}
	r.recount()
	return nil
}

// read adds the messages of the shown branch behind one ("" = from its beginning), up to a seq
// (0 = all). Each transaction reads a page, so that none is open for long; the first page has size
// messages.
func (r *planning) read(ctx context.Context, aim summary.Aim, after string, until int64, size int) error {
	f := promptFilter{}
	for more := true; more; size = min(2*size, largePage) {
		var page []*Message
		err := r.store.View(ctx, r.userID, func(tx Tx) (err error) {
			page, more, err = tx.PathAfter(r.conv.ID, r.conv.HeadID, after, size)
			return err
		})
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(page, func(m *Message) bool { return until > 0 && m.Seq >= until }); at >= 0 {
			page, more = page[:at], false
		}
		for _, m := range page {
			after = m.ID
			if sure := f.next(m); sure != nil {
				r.lines = append(r.lines, lineOf(sure))
			}
		}
		r.lines = aim.Thin(r.lines)
	}
	if f.held != nil {
		r.lines = append(r.lines, lineOf(f.held))
	}
	return nil
}

// short returns errLong if a turn waits, and there are too many messages to be read.
func (r *planning) short(messages int64) error {
	if r.order.atOnce && messages > mostAtOnce {
		return errLong
	}
	return nil
}

// recount makes the summary in force agree with a branch that was read whole: it is
// none where its last message says nothing any more.
func (d *draft) recount() {
	if d.base == nil {
		return
	}
	r := d.base.Range
	end := slices.IndexFunc(d.lines, func(l summary.ChatLine) bool { return l.MessageID == r.EndID })
	start := slices.IndexFunc(d.lines, func(l summary.ChatLine) bool { return l.Seq >= r.StartSeq })
	if end < 0 || start > end {
		d.base = nil
		return
	}
	known := *d.base.Summary
	known.Count = summary.Messages(d.lines[start : end+1])
	d.base.Summary = &known
}
