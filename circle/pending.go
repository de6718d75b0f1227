package circle

import "nodest/jobs"

// Replan and Looked belong to the schedule.
func Replan(tx jobs.Tx) error { return nil }

// Looked notes that the user has looked at the feed.
func (svc *Service) Looked(tx Tx) error { return nil }
