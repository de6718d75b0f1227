package store_test

import (
	"encoding/json"
	"errors"

	"nodest/nodest"
	"nodest/store"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// fillResearch inserts a run of a fixture, with a row of everything that a run has.
func fillResearch(tx nodest.Tx, x fixture) error {
	r := store.Research(tx)
	return errors.Join(
		r.AddResearch(&research.Run{ID: x.research, ConversationID: x.conversation, MessageID: x.message, State: research.Running, Plan: agent.Plan{Question: "private"}, CreatedAt: start}),
		r.PutResearchSteps(x.research, agent.Step{N: 1, Action: "search", Question: "private"}),
		r.PutResearchCall(x.research, &research.Call{Key: "0/1/step/0", Answer: json.RawMessage(`"private"`)}),
		r.PutResearchFiles(x.research, x.file),
		r.PutResearchMessages(x.research, x.message),
	)
}

func init() { addIntrusions(researchIntrusions) }

var researchIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"AddResearch": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).AddResearch(&research.Run{ID: id(), ConversationID: x.conversation, CreatedAt: start}))
	},
	"Research": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Research(tx).Research(x.research)
		return wantNotFound(e, err)
	},
	"ResearchSteps": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Research(tx).ResearchSteps(x.research)
		return wantNotFound(e, err)
	},
	"Researches": func(e *env, tx nodest.Tx, x fixture) error {
		of, _, err := store.Research(tx).Researches(x.conversation, "", 5)
		if wantEmpty(e, len(of) == 0, err) != nil {
			return err
		}
		all, _, err := store.Research(tx).Researches("", "", 5)
		return wantEmpty(e, len(all) == 0, err)
	},
	"ResearchOfMessage": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Research(tx).ResearchOfMessage(x.message)
		return wantNotFound(e, err)
	},
	"OpenResearches": func(e *env, tx nodest.Tx, x fixture) error {
		of, err := store.Research(tx).OpenResearches(x.conversation)
		if wantEmpty(e, of == 0, err) != nil {
			return err
		}
		all, err := store.Research(tx).OpenResearches("")
		return wantEmpty(e, all == 0, err)
	},
	"PutResearch": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PutResearch(&research.Run{ID: x.research, State: research.Cancelled}))
	},
	"PurgeResearch": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PurgeResearch(x.research))
	},
	"PutResearchSteps": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PutResearchSteps(x.research, agent.Step{N: 1}))
	},
	"PutResearchFiles": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PutResearchFiles(x.research, id()))
	},
	"PutResearchMessages": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PutResearchMessages(x.research, x.message))
	},
	"ResearchCalls": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Research(tx).ResearchCalls(x.research)
		return wantNotFound(e, err)
	},
	"PutResearchCall": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).PutResearchCall(x.research, &research.Call{Key: "0/1/step/0"}))
	},
	"DropResearchCalls": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Research(tx).DropResearchCalls(x.research))
	},
}
