package nodest

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"nodest/chat"
	"nodest/cite"
	"nodest/framework"
	"nodest/llm"
)

// citeTime bounds the check of a reply's citations; what is not checked by then is
// compared by words.
const citeTime = 3 * time.Second

// citable are the sources that the prompt contains: there may have been no room for them.
func (t *turn) citable() []cite.Source {
	for _, en := range t.prompt.Entries {
		if en.Source == framework.SourceWeb {
			return t.sources
		}
	}
	return nil
}

// cite gives a reply its citations: it checks the marks that the model wrote against the
// sources in the prompt, removes those that are wrong, and adds some if there are none. What
// came of a reply that failed is shown too; for an interrupted one there is no time.
func (e *Engine) cite(t *task, g *chat.Generation, status string) {
	if len(t.sources) == 0 || !g.HasText() || status == chat.GenInterrupted {
		return
	}
	defer func() {
		if p := recover(); p != nil { // pages and models write anything; the reply stays without citations
			e.opts.Log.Error("citations not checked", "generation", g.ID, "err", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), citeTime)
	defer cancel()
	var embedder llm.Embedder
	if e.opts.Embedder != nil {
		var err error
		if embedder, err = e.opts.Embedder(ctx, t.userID); err != nil {
			e.opts.Log.WarnContext(ctx, "citations are checked by words alone", "generation", g.ID, "err", err)
		}
	}
	cited := cite.CheckMarks(ctx, embedder, g.Text, t.sources, cite.MarkOptions{Auto: cite.DefaultReferences(cite.BySentence)})
	g.Text = cited.Answer
	report := cite.NewReport(cited, t.sources)
	report.Unsourced = slices.DeleteFunc(report.Unsourced, t.isNameOfTheChat)
	g.Citations = &chat.Citations{References: cited.References, Report: &report}
}

// isNameOfTheChat reports whether a name is in the prompt: what the chat is about, and who
// takes part in it, needs no source. A number does.
func (t *task) isNameOfTheChat(fact string) bool {
	if strings.ContainsFunc(fact, unicode.IsDigit) {
		return false
	}
	return slices.ContainsFunc(t.request, func(m llm.Message) bool {
		return strings.Contains(strings.ToLower(m.Text), strings.ToLower(fact))
	})
}

// referencesData is what gen.references carries.
type referencesData struct {
	References []cite.Reference `json:"references"`
	Report     *cite.Report     `json:"report"`
}
