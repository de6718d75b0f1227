package loretool

import (
	"context"
	"slices"
	"time"

	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/llm"
)

// Limits of the vectors of a book.
const (
	mostEmbedded = 2000        // entries; words find the others
	embedBatch   = 64          // entries of a call
	embedText    = 4000        // code points of an entry that are embedded: more than models take
	embedFaults  = 16          // refused calls that are allowed while looking for the texts at fault
	embedTime    = time.Minute // for a call
)

// embedding makes the vectors that a book lacks.
type embedding struct {
	e       llm.Embedder
	entries []worldinfo.VectorizedEntry
	vectors []vector // by entry
	made    int
	faults  int
}

func newEmbedding(e llm.Embedder, entries []worldinfo.VectorizedEntry, known []vector) *embedding {
	return &embedding{e: e, entries: entries, vectors: slices.Clone(known)}
}

// run asks for the vectors in batches, one after the other. After an error, those that were made stay.
func (w *embedding) run(ctx context.Context) error {
	var lacking []int
	for n, v := range w.vectors[:min(len(w.vectors), mostEmbedded)] {
		if v.missing() {
			lacking = append(lacking, n)
		}
	}
	for batch := range slices.Chunk(lacking, embedBatch) {
		if err := w.part(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// part embeds some entries, in halves to find what the provider refuses.
func (w *embedding) part(ctx context.Context, batch []int) error {
	err := w.call(ctx, batch)
	if err == nil || !refusal(err) || w.faults == embedFaults {
		return err
	}
	w.faults++
	if len(batch) == 1 {
		w.vectors[batch[0]].refused = true
		return nil
	}
	half := len(batch) / 2
	if err := w.part(ctx, batch[:half]); err != nil {
		return err
	}
	return w.part(ctx, batch[half:])
}

func (w *embedding) call(ctx context.Context, batch []int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, embedTime, errEmbedderSlow)
	defer cancel()
	texts := make([]string, len(batch))
	for i, n := range batch {
		texts[i] = op.Truncate(plain(w.entries[n].Text), embedText)
	}
	found, err := w.e.Embed(ctx, llm.Passage, texts)
	if err != nil {
		return err
	}
	for i, n := range batch {
		v := &w.vectors[n]
		v.model, v.packed = found.Model, index.Pack(found.Vectors[i])
		v.refused = v.packed == nil
	}
	w.made += len(batch)
	return nil
}

// refusal reports whether an error may be due to a text.
func refusal(err error) bool {
	return fault.Is(err, fault.UpstreamBadAnswer) || fault.Is(err, fault.ContextTooLarge) || fault.Is(err, fault.Blocked)
}
