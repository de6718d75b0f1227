package offline

import (
	"cmp"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// finding is a sentence of a search result, with the number of that result.
type finding struct {
	number, title, text string
}

// source is the first line of a search result: "[n] title — host (date)".
var source = regexp.MustCompile(`^\[(\d{1,3})\] (.+?)(?: — \S+)?(?: \(\d{4}-\d\d-\d\d\))?$`)

// longestFinding is how much of a sentence is quoted, in code points; shorter ones than
// shortestFinding are rarely an answer.
const longestFinding, shortestFinding = 300, 4

// findingsOf returns the sentences of the search results in a block, those first that
// have most of what is asked for. A word counts the less the more sentences have it.
func findingsOf(block, asked string) []finding {
	type ranked struct {
		finding
		has   map[string]bool // its terms
		score float64
	}
	var list []ranked
	common := map[string]int{}
	for f := range readFindings(block) {
		has := map[string]bool{}
		for t := range terms(f.text) {
			if !has[t] {
				has[t] = true
				common[t]++
			}
		}
		list = append(list, ranked{finding: f, has: has})
	}
	wanted := slices.Compact(slices.Sorted(terms(asked)))
	for i := range list {
		for _, t := range wanted {
			if list[i].has[t] {
				list[i].score += 1 / float64(common[t])
			}
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	var out []finding
	for _, r := range list {
		out = append(out, r.finding)
	}
	return out
}

// readFindings yields the sentences of a block in their order.
func readFindings(block string) iter.Seq[finding] {
	return func(yield func(finding) bool) {
		var f finding
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if m := source.FindStringSubmatch(line); m != nil {
				f.number, f.title = m[1], m[2]
				continue
			}
			if f.number == "" || strings.HasPrefix(line, "#") {
				continue
			}
			for found := range sentencesBelow(f, line) {
				if !yield(found) {
					return
				}
			}
		}
	}
}

// plain is a line of Markdown without its marks: a row of a table becomes a list.
func plain(line string) string {
	line = markup.ReplaceAllString(line, "$1")
	if strings.HasPrefix(line, "|") {
		if strings.Trim(line, "|-: ") == "" { // the rule below the heads
			return ""
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		return strings.Join(cells, ", ")
	}
	return strings.TrimLeft(line, "-*> ")
}
