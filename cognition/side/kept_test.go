package side_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"nodest/cognition/side"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/store/storetest"
)

// fullFacts takes no more facts.
type fullFacts struct{ memory.FactTx }

func (fullFacts) InsertFacts(string, ...*memory.Memory) error {
	return fault.New(fault.QuotaExceeded, "the memory is full")
}

// Proposals of an automatic commit that cannot be kept are approved and wait for a commit, and the log says so.
func TestProposalsThatCannotBeKeptWaitForACommit(t *testing.T) {
	eachTalk(t, commits, func(k *talk) {
		k.reply(extractions("The ferry sails at nine."))
		full := storetest.Mortal[side.Tx]{Store: k.db.Side(), Life: &storetest.Life{}, Writes: func(tx side.Tx, _ *storetest.Life) side.Tx {
			tx.Memory.FactTx = fullFacts{tx.Memory.FactTx}
			return tx
		}}
		var log strings.Builder
		svc := side.New(full, side.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Model: func(context.Context, string) (llm.Asker, string, error) {
			return k.model, "judge", nil
		}})
		svc.BeforeSummary(k.Context(), k.user, k.chat)
		if got := k.states(); !slices.Equal(got, []string{"The ferry sails at nine. approved"}) || !strings.Contains(log.String(), "proposals are approved and wait for a commit") {
			k.Errorf("states %q, log:\n%s", got, log.String())
		}
		if report := k.commits(); len(report.Committed) != 1 || !slices.Equal(k.memories(), []string{"The ferry sails at nine."}) {
			k.Errorf("the report is %+v, memories %q", report, k.memories())
		}
	})
}
