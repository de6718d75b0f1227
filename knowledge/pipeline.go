package knowledge

import (
	"context"

	"nodest/jobs"
	"nodest/op"
)

// engine is the state of the pipeline in this process.
type engine struct{}

// IngestKind is the kind of the job that makes a file searchable; its subject is the file.
const IngestKind = "knowledge.ingest"

// ingest makes a file searchable, in the transaction that stores it.
func ingest(tx Tx, fileID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: IngestKind, UserID: tx.UserID(), Subject: fileID})
}

func (s *Service) Text(ctx context.Context, userID, id string) (*Text, error) { return nil, errTodo }

func (s *Service) Chunks(ctx context.Context, userID, id, cursor string, limit int) (op.Page[*Chunk], error) {
	return op.Page[*Chunk]{}, errTodo
}

func (s *Service) Search(ctx context.Context, userID string, in SearchRequest) (*SearchResult, error) {
	return nil, errTodo
}

func (s *Service) Reindexing(ctx context.Context, userID, baseID string) (*Reindexing, error) {
	return nil, errTodo
}

func (s *Service) Reindex(ctx context.Context, c *op.Call, baseID string) (*Reindexing, error) {
	return nil, errTodo
}

func (s *Service) CancelReindex(ctx context.Context, c *op.Call, baseID string) error { return errTodo }

// Ask has the user's model answer a question from the documents.
func (s *Service) Ask(ctx context.Context, c *op.Call, in AskRequest) (*Answer, error) {
	return nil, errTodo
}

// Kinds are the background jobs.
func (s *Service) Kinds() []jobs.Kind { return []jobs.Kind{s.purgeKind()} }

// Sweep enqueues what a change of the embedding model, or a crash, has left to do.
func (s *Service) Sweep(ctx context.Context) error { return errTodo }
