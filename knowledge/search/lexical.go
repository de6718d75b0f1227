package search

import (
	"cmp"
	"context"
	"slices"

	"nodest/internal/index"
)

// Bounds of the terms of a question: a long one is searched by those that it repeats, then by
// its first ones.
const (
	mostTerms = 128
	mostLone  = 4 // when all are single characters, for which dictionaries are read as a whole
)

// wordsOf returns the terms of a question, each once.
func wordsOf(question string) *index.Question {
	q, counts, most := &index.Question{Lone: true, Best: weightWindow, Cover: weightCover}, map[string]int{}, mostLone
	for _, t := range index.DocumentTerms(question) {
		if counts[t]++; counts[t] > 1 {
			continue
		}
		q.Terms = append(q.Terms, index.Term{Text: t, Weight: functionWeight(t)})
		if index.Key(t) == t { // it finds what is meant
			q.Lone, most = false, mostTerms
		}
	}
	if len(q.Terms) > most {
		slices.SortStableFunc(q.Terms, func(a, b index.Term) int { return cmp.Compare(counts[b.Text], counts[a.Text]) })
		q.Terms = q.Terms[:most]
	}
	return q
}

// lexicalLeg is a search by words.
type lexicalLeg struct {
	leg
	words *index.Question
	found []index.Places // by file, while what the files have fits into the memory
	match []bool         // files that have a term
}

// count finds the terms in a group of files and counts the chunks that have them.
func (l *lexicalLeg) count(ctx context.Context, files []int, segments []*Segment) error {
	found, having := make([]index.Places, len(files)), make([][]int, len(files))
	err := inParallel(ctx, len(files), func(i int) {
		if segments[i] != nil {
			found[i] = l.words.Find(segments[i])
			having[i] = segments[i].Having(found[i])
		}
	})
	if err != nil {
		return err
	}
	for i, s := range segments {
		if s == nil {
			continue
		}
		l.words.Count(s, having[i])
		l.match[files[i]] = found[i] != nil
		if l.found != nil {
			l.found[files[i]] = found[i]
		}
	}
	return nil
}

// rank scores the chunks of a group of files.
func (l *lexicalLeg) rank(ctx context.Context, files []int, segments []*Segment) error {
	return l.collect(ctx, len(files), func(t *index.Top[scored]) func(int) {
		x := &index.Scorer{}
		return func(i int) {
			file, s := files[i], segments[i]
			if s == nil || !l.match[file] {
				return
			}
			var places index.Places
			if l.found != nil {
				places = l.found[file]
			} else {
				places = l.words.Find(s)
			}
			x.Score(s, l.words, places, func(chunk int, score float32) {
				three(&l.best[file], score)
				t.Add(scored{Ref{file, chunk}, score})
			})
		}
	})
}
