package nodest

import (
	"context"
)

func (e *Engine) CreateConversation(ctx context.Context, c *Call, in ConversationInput) (*Conversation, error) {
	return nil, errNotYet
}

func (e *Engine) Conversation(ctx context.Context, userID, id string) (*Conversation, error) {
	return nil, errNotYet
}

func (e *Engine) Conversations(ctx context.Context, userID string, f ConversationFilter, cursor string, limit int) (*Page[*Conversation], error) {
	return nil, errNotYet
}

func (e *Engine) UpdateConversation(ctx context.Context, c *Call, in ConversationPatch) (*Conversation, error) {
	return nil, errNotYet
}

func (e *Engine) DeleteConversation(ctx context.Context, c *Call, id string) error { return errNotYet }

func (e *Engine) ChooseHead(ctx context.Context, c *Call, conversationID, messageID string) (*Conversation, error) {
	return nil, errNotYet
}

func (e *Engine) History(ctx context.Context, userID, conversationID, before string, limit int) (*HistoryPage, error) {
	return nil, errNotYet
}
