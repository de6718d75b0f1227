package store_test

import (
	"errors"

	"nodest/cognition"
	"nodest/nodest"
	"nodest/store"
)

// fillCognition inserts a row in every table of the log.
func fillCognition(tx nodest.Tx, x fixture) error {
	e := cognition.New(x.conversation, &cognition.Query{Sequence: 1, Query: "private", Sources: []cognition.Source{{ID: x.fact, Content: "private"}}})
	e.MessageID, e.GenerationID = x.message, x.generation
	g := &cognition.Goal{ID: x.goal, ConversationID: x.conversation, Kind: cognition.KindTopic, Description: "private", Status: cognition.GoalActive}
	return errors.Join(store.Cognition(tx).AppendEvents(x.conversation, e), store.Cognition(tx).InsertGoal(g))
}

func init() { addIntrusions(cognitionIntrusions) }

var cognitionIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"AppendEvents": func(e *env, tx nodest.Tx, x fixture) error {
		ev := cognition.New(x.conversation, &cognition.Reflection{SequenceRange: [2]int64{1, 2}, Summary: "intruder"})
		if err := wantNotFound(e, store.Cognition(tx).AppendEvents(x.conversation, ev)); err != nil {
			return err
		}
		return nil
	},
	"OpenQueries": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).OpenQueries(x.conversation, start, 10)
		return wantNotFound(e, err)
	},
	"ExtractionSources": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).ExtractionSources(x.conversation, "pending-1")
		return wantNotFound(e, err)
	},
	"ExtractionEvents": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).ExtractionEvents(x.conversation, "pending-1")
		return wantNotFound(e, err)
	},
	"SideState": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).SideState(x.conversation)
		return wantNotFound(e, err)
	},
	"NewestSequence": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).NewestSequence(x.conversation)
		return wantNotFound(e, err)
	},
	"LockSideState": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).LockSideState(x.conversation)
		return wantNotFound(e, err)
	},
	"PutSideState": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Cognition(tx).PutSideState(x.conversation, cognition.State{PendingEval: true}))
	},
	"InsertGoal": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Cognition(tx).InsertGoal(&cognition.Goal{ID: id(), ConversationID: x.conversation}))
	},
	"Goal": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).Goal(x.goal)
		return wantNotFound(e, err)
	},
	"UpdateGoal": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Cognition(tx).UpdateGoal(&cognition.Goal{ID: x.goal, Description: "intruder", Version: 2}))
	},
	"Goals": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := store.Cognition(tx).Goals(x.conversation, "", "", 10)
		return wantNotFound(e, err)
	},
	"Events": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).Events(x.conversation, 0, 10)
		return wantNotFound(e, err)
	},
	"OpenEvents": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Cognition(tx).OpenEvents(x.conversation, cognition.TypeQuery, 0, 10)
		return wantNotFound(e, err)
	},
}
