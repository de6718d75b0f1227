package search

import "slices"

// gather makes candidates of what words found.
func (s *searching) gather() {
	if s.byWords != nil {
		for i, h := range s.byWords.List {
			c := s.candidate(h.Ref)
			c.words, c.lexical = h.score, i+1
		}
	}
	for _, l := range s.more {
		for i, h := range l.List {
			if c := s.candidate(h.Ref); c.further == 0 || c.further > i+1 {
				c.further = i + 1
			}
		}
	}
}

// fuse joins what the legs found by their ranks.
func (s *searching) fuse() {
	if s.byVec != nil {
		for i, h := range s.byVec.List {
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
		c.score = s.fused(c)
		kept = append(kept, c)
	}
	s.list = kept
	s.sort()
}

// fused is the weighted mean of what the ranks say.
func (s *searching) fused(c *candidate) float64 {
	vector, weight := c.vector, s.q.VectorWeight
	switch {
	case s.byVec == nil:
		weight = 0
	case c.cosine == 0 && s.byWords != nil:
		vector = c.lexical // it has no vector yet: that must not count against it
	}
	words := 1.0
	if s.byWords == nil {
		words = 0
	}
	best := max(words*reciprocal(c.lexical), furtherWeight*reciprocal(c.further))
	return (best + weight*reciprocal(vector)) / max(words+weight, 1e-6)
}

// reciprocal is what a rank is worth in reciprocal rank fusion, from 0 to 1.
func reciprocal(rank int) float64 {
	if rank == 0 {
		return 0
	}
	return 61 / (60 + float64(rank))
}

// distinct drops chunks that share most of their text with a better one.
func (s *searching) distinct() {
	kept := s.list[:0]
	of := map[int][]*candidate{}
	for _, c := range s.list {
		if slices.ContainsFunc(of[c.File], func(better *candidate) bool { return s.shared(c, better) > 0.6 }) {
			continue
		}
		of[c.File] = append(of[c.File], c)
		kept = append(kept, c)
	}
	s.list = kept
}

// shared is the share of a chunk's text that another chunk of its file has too.
func (s *searching) shared(c, other *candidate) float64 {
	if c.File != other.File {
		return 0
	}
	all, both := 0, 0
	for i, terms := range c.windows {
		all += terms
		if w := int(c.first) + i - int(other.first); 0 <= w && w < len(other.windows) {
			both += terms
		}
	}
	return float64(both) / float64(max(1, all))
}

// similarities sets what users see: the cosine, also of chunks that only words found; in a
// search by words alone the share of the best score.
func (s *searching) similarities() {
	for _, c := range s.list {
		switch {
		case s.byVec != nil && s.byVec.probe != nil:
			c.similarity = float64(c.cosine)
		case s.byWords != nil && len(s.byWords.List) > 0:
			c.similarity = float64(c.words / s.byWords.List[0].score)
		}
	}
}

// relevance of a file: that of its best chunk, and the mean of its best three.
func (s *searching) relevance(file int, best *candidate) float64 {
	mean, weight := 0.0, 0.0
	if s.byWords != nil && len(s.byWords.List) > 0 {
		mean, weight = s.mean(&s.byWords.leg, file)/float64(s.byWords.List[0].score), 1
	}
	if s.byVec != nil {
		mean, weight = mean+s.q.VectorWeight*s.mean(&s.byVec.leg, file), weight+s.q.VectorWeight
	}
	mean /= max(weight, 1e-6)
	if !best.reranked {
		return mean
	}
	return bestShare*best.score + (1-bestShare)*mean
}

// mean of a file's best three scores, or of all if it has fewer chunks.
func (s *searching) mean(l *leg, file int) float64 {
	n := 3
	if chunks, ok := s.chunks[file]; ok {
		n = min(n, chunks)
	}
	sum := float32(0)
	for _, b := range l.best[file][:n] {
		sum += b
	}
	return float64(sum) / float64(max(1, n))
}
