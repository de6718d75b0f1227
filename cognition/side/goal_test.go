package side_test

import (
	"fmt"
	"sync"
	"testing"

	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/fault"
)

// Who names no version changes what is there; who names an old one is refused.
func TestAGoalIsChangedBySeveralAtOnce(t *testing.T) {
	eachDesk(t, func(d *desk) {
		goal := d.goal("Find the light.")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				text := fmt.Sprintf("Find the light, %d.", i)
				if _, err := d.svc.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Description: &text}); err != nil {
					d.Error(err)
				}
			})
		}
		all.Wait()
		status := cognition.GoalCompleted
		if _, err := d.svc.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Status: &status, IfVersion: 8}); !fault.Is(err, fault.PreconditionFailed) {
			d.Errorf("an old version: %v", err)
		}
		g, err := d.svc.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Status: &status, IfVersion: 9})
		if err != nil || g.Version != 10 || g.Status != status {
			d.Errorf("%+v, %v", g, err)
		}
		if g, err = d.svc.ChangeGoal(d.Context(), d.call(), goal, side.GoalPatch{Status: &status}); err != nil || g.Version != 10 {
			d.Errorf("without a change: %+v, %v", g, err)
		}
	})
}
