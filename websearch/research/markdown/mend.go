package markdown

import (
	"math"
	"strings"

	"nodest/internal/cite"
	"nodest/websearch/weburl"
)

// Mend repairs everything but the footnotes of an answer. known are pages whose titles links may get.
func Mend(answer string, known []weburl.Hit) string {
	return Tidy(Tables(FixLinks(IndentCode(unwrap(strings.TrimSpace(answer))), known)))
}

// Renumber gives the marks of an answer other numbers: numbers[n-1] is what [^n] becomes. Marks without one
// are removed.
func Renumber(answer string, numbers []int) string {
	kept, _ := upTo(len(numbers), pieces(answer))
	for i, p := range kept {
		if p.n > 0 {
			kept[i].n = numbers[p.n-1]
		}
	}
	return write(kept)
}

// LeadNotes leads the marks of an answer that ends with definitions of its own to the sources that these name:
// [^n] becomes the number of its source. Marks of other addresses are removed, and so are the definitions.
func LeadNotes(answer string, sources []cite.Source) string {
	body, notes := splitNotes(answer)
	refs, place := references(notes)
	if len(refs) == 0 {
		return answer
	}
	numbers := map[string]int{}
	for i, s := range sources {
		numbers[s.URL] = i + 1
	}
	all := pieces(body)
	for i, p := range all {
		if p.n == 0 {
			continue
		}
		all[i].n = math.MaxInt // a source that never exists
		if at := place[p.n]; at > 0 {
			url, err := weburl.Normalize(refs[at-1].URL, spelling)
			if n := numbers[url]; err == nil && n > 0 {
				all[i].n = n
			}
		}
	}
	kept, _ := upTo(len(sources), all)
	return strings.TrimSpace(write(kept))
}
