package knowledge

import (
	"context"

	"nodest/jobs"
)

// PurgeKind is the kind of the job that removes what its user has deleted.
const PurgeKind = "knowledge.purge"

func (s *Service) purgeKind() jobs.Kind {
	return jobs.Kind{Name: PurgeKind, Run: func(context.Context, *jobs.Job) error { return errTodo }}
}
