package nodest

import (
	"cmp"
	"slices"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/nodest/tools"
)

// Ended is a reply whose end is being stored: Options.Ended. One that is ended for a process that has crashed is not told:
// only that one knew what it had looked up, so the text has no references either.
type Ended struct {
	Setup        *chat.Setup
	Conversation *chat.Conversation
	Message      *chat.Message // with the text
	Generation   *chat.Generation
	Lookups      []Lookup // the lookups that were made for it, in its order
}

// Lookup is a question, and of what it has found what the model was shown.
type Lookup struct {
	Query    string
	Sources  []cite.Source
	Memories []framework.Memory // memories of a recall
}

// lookups are those of the turn so far. sources are what the model was shown, by number. Of documents that were read
// only what no search has shown counts.
func (t *turn) lookups(sources []cite.Source) (all []Lookup) {
	shown := map[int]bool{}
	for _, l := range t.found.lookups {
		one := Lookup{Query: cmp.Or(l.Query, t.question.Text)}
		for _, n := range slices.Compact(slices.Sorted(slices.Values(l.Refs))) {
			isKnown := l.Query == "" && shown[n]
			shown[n] = true
			if !isKnown && n <= len(sources) && (sources[n-1].URL != "" || sources[n-1].FileID != "") {
				one.Sources = append(one.Sources, sources[n-1])
			}
		}
		if len(one.Sources) > 0 {
			all = append(all, one)
		}
	}
	if recalled := t.recalled(); len(recalled) > 0 {
		all = append(all, Lookup{Query: t.question.Text, Memories: recalled})
	}
	return all
}

// recalled are the memories in the prompt that were found for the message.
func (t *turn) recalled() []framework.Memory {
	in := map[string]bool{}
	for _, u := range t.used() {
		in[u.ID] = u.Recalled()
	}
	return slices.DeleteFunc(slices.Clone(t.input.Findings.Memories), func(m framework.Memory) bool { return !in[m.ID] })
}

// looked notes what a search has found, by numbers.
func (f *found) looked(query string, refs []int) {
	f.lookups = append(f.lookups, tools.Lookup{Query: query, Refs: refs})
}

// ended tells those that listen of a reply, in the transaction that stores it.
func (e *Engine) ended(tx Tx, t *task, written endedGeneration) error {
	g := written.gen
	if written.message == nil || written.chat == nil || !g.InMessage || g.Kind == chat.KindImpersonate {
		return nil
	}
	for _, tell := range e.opts.Ended {
		err := tell(tx, &Ended{t.setup.Setup, written.chat, written.message, g, t.shown.lookups})
		if err != nil {
			return err
		}
	}
	return nil
}
