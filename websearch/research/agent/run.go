package agent

import (
	"context"
	"errors"
)

// Run plays a run, from its beginning or, with the answers of rec, from where it was. It returns an
// error only if ctx ends, if rec fails, or if nothing at all could be found out because every call has failed.
func Run(ctx context.Context, p Plan, o Outside, rec Recorder) (*Result, error) {
	return nil, errors.New("the loop is being built")
}
