package nodest

import (
	"fmt"
	"slices"
	"time"

	"nodest/memory"
)

// archivedSummary is a summary in an archive: what it ever said, and what it was
// made of. Archives that were written before there were any have none.
type archivedSummary struct {
	ID          string                `json:"id"`
	MadeVersion int64                 `json:"madeVersion"`
	HeadSeq     int64                 `json:"headSeq"`
	ViewLength  int                   `json:"viewLength"`
	DeletedAt   *time.Time            `json:"deletedAt,omitempty"`
	Texts       []archivedSummaryText `json:"texts"` // oldest first
}

// archivedSummaryText is what a summary says from a version of the conversation on.
type archivedSummaryText struct {
	Version  int64           `json:"version"`
	Document *memory.Summary `json:"document"`
}

func (x *exporter) readSummaries(tx Tx) error {
	x.summaries = []*archivedSummary{}
	dumped, err := tx.DumpSummaries(x.id)
	if err != nil {
		return err
	}
	for _, d := range dumped {
		if !x.messages[d.Range.StartID] || !x.messages[d.Range.EndID] {
			continue // what it stands for was deleted and is gone
		}
		out := &archivedSummary{ID: d.ID, MadeVersion: d.MadeVersion, HeadSeq: d.HeadSeq, ViewLength: d.ViewLength, DeletedAt: d.DeletedAt}
		for _, said := range d.Texts {
			out.Texts = append(out.Texts, archivedSummaryText{said.Version, said.Summary})
		}
		x.summaries = append(x.summaries, out)
	}
	return nil
}

// addSummaries takes in the summaries of an archive. It comes before the states,
// which name them.
func (l *loadable) addSummaries(in []*archivedSummary, newest int64) error {
	generation := 0
	for i, s := range in {
		path := fmt.Sprintf("summaries[%d]", i)
		switch {
		case s == nil || s.ID == "" || l.summaryIDs[s.ID] != "":
			return damaged(path+".id", "must be present and unique")
		case s.MadeVersion < 0 || s.MadeVersion > newest:
			return damaged(path+".madeVersion", "must be from 0 to the conversation's version")
		case len(s.Texts) == 0:
			return damaged(path+".texts", "must not be empty")
		}
		d := &DumpedSummary{KeptSummary: KeptSummary{
			MadeVersion: s.MadeVersion, HeadSeq: s.HeadSeq, ViewLength: s.ViewLength, DeletedAt: s.DeletedAt,
		}}
		l.summaryIDs[s.ID] = newID()
		last := int64(0)
		for j, said := range s.Texts {
			at := fmt.Sprintf("%s.texts[%d]", path, j)
			if said.Version <= last || said.Version > newest {
				return damaged(at+".version", "must be ascending and at most the conversation's version")
			}
			last = said.Version
			doc, err := l.summary(at+".document", s.ID, said.Document)
			if err != nil {
				return err
			}
			d.Texts = append(d.Texts, SummaryText{said.Version, doc})
			d.Summary = doc
		}
		if d.Generation <= generation {
			return damaged(path, "generation must be greater than that of the summary before")
		}
		generation = d.Generation
		l.summaries = append(l.summaries, d)
	}
	return nil
}

var summaryMethods = []memory.Method{memory.MethodModel, memory.MethodExtractive, memory.MethodUser}

// summary checks one document, and names everything in it by its new id.
func (l *loadable) summary(path, id string, in *memory.Summary) (*memory.Summary, error) {
	if in == nil {
		return nil, damaged(path, "required")
	}
	first, last := l.ids[in.Range.StartID], l.ids[in.Range.EndID]
	switch {
	case !slices.Contains(summaryMethods, in.Method):
		return nil, damaged(path+".method", "must be one of %v", summaryMethods)
	case first == nil || last == nil || first.Seq > last.Seq:
		return nil, damaged(path+".messageIds", "must be ids of messages in the file, in order")
	case in.Generation < 1 || in.Generation > maxCounted || in.Count < 1:
		return nil, damaged(path, "generation and count must be at least 1")
	}
	out := *in
	out.ID, out.BaseID, out.Text = l.summaryIDs[id], l.summaryIDs[in.BaseID], clean(in.Text)
	out.Range.StartID, out.Range.StartSeq = first.ID, first.Seq
	out.Range.EndID, out.Range.EndSeq = last.ID, last.Seq
	if err := out.Validate(memory.SummarySettings{Length: maxCounted / 2}); err != nil {
		return nil, damagedBy(path, err)
	}
	return &out, nil
}
