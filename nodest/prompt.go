package nodest

import (
	"context"

	"nodest/framework"
)

func (e *Engine) PreviewPrompt(ctx context.Context, userID string, in PreviewInput) (*framework.Prompt, error) {
	return nil, errNotYet
}

func (e *Engine) Prompt(ctx context.Context, userID, promptID string) (*SentPrompt, error) {
	return nil, errNotYet
}

func (e *Engine) DiffPrompts(ctx context.Context, userID, promptID, with string) (*framework.Difference, error) {
	return nil, errNotYet
}
