package research

import (
	"fmt"
	"strings"

	"nodest/internal/op"
)

// Markdown is a run as a document: question, answer, sources, the report, and what was left out.
func Markdown(r *Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", oneLine(r.Plan.Question))
	result := r.Result
	if result == nil {
		fmt.Fprintf(&b, "There is no answer: the research is %s.\n", r.State)
		if r.Failure != nil {
			fmt.Fprintf(&b, "\n%s\n", r.Failure.Message)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(result.Answer))
	if len(result.References) > 0 {
		b.WriteString("\n")
	}
	for _, ref := range result.References { // markdown.Footnotes would change the quotes
		fmt.Fprintf(&b, "[^%d]: %s, <%s>: “%s”\n", ref.Marker, oneLine(ref.Title), ref.URL, oneLine(ref.ExactQuote))
	}
	rep := &result.Report
	fmt.Fprintf(&b, "\n## Report\n\n- Sentences with a source: %d of %d\n- Marks whose source supports the sentence: %d of %d\n", rep.Marked, rep.Sentences, rep.Supported, rep.Marks)
	if rep.ByModel > 0 {
		fmt.Fprintf(&b, "- Verdicts that the language model changed: %d\n", rep.ByModel)
	}
	list(&b, "\n## Numbers and names without a source\n\n", rep.Unsourced)
	list(&b, "\n## Left out\n\n", result.Left)
	list(&b, "\n## Pages read\n\n", result.ReadURLs)
	if r.FinishedAt != nil {
		fmt.Fprintf(&b, "\nFinished %s after %d steps and %d tokens.\n", op.Time(*r.FinishedAt), len(r.Steps), r.Cost.Tokens())
	}
	return b.String()
}

func list(b *strings.Builder, heading string, items []string) {
	if len(items) == 0 {
		return
	}
	b.WriteString(heading)
	for _, item := range items {
		fmt.Fprintf(b, "- %s\n", oneLine(item))
	}
}

// oneLine is a text without line breaks, which would end its place in the document.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
