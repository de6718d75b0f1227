package nodest

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/llm"
	"nodest/nodest/tools"
)

// citeTime bounds the check of a reply's citations; what is not checked by then is
// compared by words.
const citeTime = 10 * time.Second

// citable are the sources that the model was shown, by their numbers; those for which the
// prompt had no room are empty. found reports whether some were found for this reply.
func (t *turn) citable() (list []cite.Source, found bool) {
	shown := tools.InAnswer
	documents := map[string]bool{}
	for _, en := range t.prompt.Entries {
		switch {
		case en.Source == framework.SourceWeb:
			shown |= tools.InWeb
		case en.Source == framework.SourceKnowledge && en.ID != "":
			documents[en.ID] = true
		case en.Source == framework.SourceKnowledge && en.Name == "": // not the block of documents
			shown |= tools.InPassages
		}
	}
	for _, d := range t.prompt.Dropped {
		if d.Source == framework.SourceKnowledge && d.Reason == framework.DropShortened {
			documents[d.ID] = false // its short form has no number
		}
	}
	some := false
	for source, places := range t.found.numbers.All() {
		switch {
		case places&shown != 0:
			some, found = true, true
		case places&tools.InBlock != 0 && documents[source.FileID]:
			some = true
		default:
			source = cite.Source{}
		}
		list = append(list, source)
	}
	if !some {
		return nil, false
	}
	return list, found
}

// cite gives a reply its citations: it checks the marks that the model wrote against the
// sources in the prompt, removes those that are wrong, and adds some if there are none. What
// came of a reply that failed is shown too; for an interrupted one there is no time.
//
// The setting of the character decides what is kept: with "hidden" the text has no marks,
// with "off" there are no references either.
func (e *Engine) cite(t *task, g *chat.Generation, status string) {
	if !g.HasText() || len(t.shown.sources) == 0 && !t.shown.ruled {
		return
	}
	if len(t.shown.sources) == 0 || g.Kind == chat.KindContinue {
		// There is nothing to cite, or no place for it: the marks of a longer text are counted from
		// its beginning.
		g.Text = cite.StripAll(g.Text, len(t.shown.sources))
		return
	}
	mode := t.setup.Docs.Settings.Knowledge.Citations
	if mode != character.CiteInline || status == chat.GenInterrupted { // without references, marks lead nowhere
		defer func() { g.Text = cite.StripAll(g.Text, len(t.shown.sources)) }()
	}
	if mode == character.CiteOff || status == chat.GenInterrupted {
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
	cited := cite.CheckMarks(ctx, embedder, g.Text, t.shown.sources, t.marking())
	e.opts.Log.DebugContext(ctx, "citations", "generation", g.ID, "kept", len(cited.References), "relevance", cited.Relevance)
	g.Text = cited.Answer
	if !t.shown.cites && len(cited.References) == 0 {
		return // it does not speak about the documents
	}
	report := cite.NewReport(cited, t.shown.sources)
	report.Unsourced = slices.DeleteFunc(report.Unsourced, t.isNameOfTheChat)
	g.Citations = &cite.Citations{References: cited.References, Report: &report, Hidden: mode == character.CiteHidden, ResearchID: t.shown.tells}
}

// marking says when marks are added that the model did not write.
func (t *task) marking() (o cite.MarkOptions) {
	if t.shown.cites {
		o.Auto = cite.DefaultReferences(cite.BySentence)
		if slices.ContainsFunc(t.shown.sources, func(s cite.Source) bool { return s.Kind == cite.KindKnowledge }) {
			o.Auto.MinOverlap = cite.DocumentOverlap
		}
	}
	return o
}

// isNameOfTheChat reports whether a name is in the prompt: what the chat is about, and who
// takes part in it, needs no source. A number does.
func (t *task) isNameOfTheChat(fact string) bool {
	if strings.ContainsFunc(fact, unicode.IsDigit) {
		return false
	}
	return slices.ContainsFunc(t.shown.request, func(m llm.Message) bool {
		return strings.Contains(strings.ToLower(m.Text), strings.ToLower(fact))
	})
}

// ReferencesData is what gen.references carries.
type ReferencesData struct {
	References []cite.Reference `json:"references"`
	Report     *cite.Report     `json:"report"`
}
