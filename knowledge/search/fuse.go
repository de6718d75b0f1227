package search

import "nodest/index"

// fuse joins what the legs found by their ranks.
func (s *searching) fuse() {
	if s.byWords != nil {
		for i, h := range s.byWords.top {
			c := s.candidate(h.Ref)
			c.words, c.lexical = h.score, i+1
		}
	}
	for _, l := range s.more {
		for i, h := range l.top {
			if c := s.candidate(h.Ref); c.further == 0 || c.further > i+1 {
				c.further = i + 1
			}
		}
	}
	if s.byVec != nil {
		for i, h := range s.byVec.top {
			c := s.candidate(h.Ref)
			c.cosine, c.vector = h.score, i+1
		}
	}
	s.similarities()
	kept := s.list[:0]
	for _, c := range s.list {
		if c.lexical == 0 && c.further == 0 && float64(c.cosine) < s.q.MinSimilarity {
			s.result.Dropped++
			continue
		}
		vector := c.vector
		if c.cosine == 0 {
			vector = c.lexical // it has no vector: that must not count against it
		}
		c.score = reciprocal(c.lexical) + reciprocal(vector) + furtherShare*reciprocal(c.further)
		kept = append(kept, c)
	}
	s.list = kept
	s.sort()
}

// reciprocal is what a rank adds to a fused score.
func reciprocal(rank int) float64 {
	if rank == 0 {
		return 0
	}
	return 1 / (60 + float64(rank))
}

// similarities sets what users see: the cosine, also of chunks that only words found; in a
// search by words alone the share of the best score.
func (s *searching) similarities() {
	probe := index.NewProbe(s.q.Vector)
	for _, c := range s.list {
		if s.byVec == nil || probe == nil {
			if s.byWords != nil && len(s.byWords.top) > 0 {
				c.similarity = float64(c.words / s.byWords.top[0].score)
			}
			continue
		}
		if c.vector == 0 {
			c.cosine, _ = s.files[c.File].Vectors.cosine(probe, c.Chunk)
		}
		c.similarity = float64(c.cosine)
	}
}

// relevance is the mean of a file's best three chunks.
func (s *searching) relevance(file int) float64 {
	mean := func(l *leg) float64 {
		n := 3
		if seg := s.files[file].Segment; seg != nil {
			n = min(n, len(seg.chunks))
		}
		sum := float32(0)
		for _, b := range l.best[file][:n] {
			sum += b
		}
		return float64(sum) / float64(max(1, n))
	}
	if s.byVec == nil {
		if s.byWords == nil || len(s.byWords.top) == 0 {
			return 0
		}
		return mean(s.byWords) / float64(s.byWords.top[0].score)
	}
	if s.byWords == nil || len(s.byWords.top) == 0 {
		return mean(s.byVec)
	}
	return mean(s.byWords)/float64(s.byWords.top[0].score)*weightFileWords + mean(s.byVec)*(1-weightFileWords)
}
