package index

// Together scores rows where terms of the query stand close to each other: for every
// two different ones with at most one term between them the lesser of their weights,
// by row number.
func (v View) Together(query []Term) []float32 {
	score := make([]float32, len(v.x.docs))
	weight := make(map[int32]float32, len(query))
	for _, q := range query {
		if t, ok := v.x.vocab[q.Text]; ok {
			weight[t] = v.x.idf(v.x.terms[t].rows) * q.Weight
		}
	}
	if len(weight) < 2 {
		return score
	}
	for t := range weight {
		for _, p := range v.x.terms[t].postings {
			d := &v.x.docs[p.doc]
			if d.group == nil {
				continue
			}
			for i, a := range d.terms {
				if a != t {
					continue
				}
				for _, b := range d.terms[i+1 : min(len(d.terms), i+3)] {
					if w, ok := weight[b]; ok && a != b {
						score[p.doc] += min(weight[a], w)
					}
				}
			}
		}
	}
	return score
}
