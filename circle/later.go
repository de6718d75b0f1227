package circle

import "nodest/jobs"

func Replan(tx jobs.Tx) error { return nil }

func (svc *Service) Looked(tx Tx) error {
	s, err := tx.CircleState()
	if err != nil {
		return err
	}
	s.LookedAt = tx.Now()
	return tx.PutCircleState(s)
}
