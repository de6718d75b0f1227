package api

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"nodest/card"
	"nodest/internal/op"
)

// memoryBytes bounds a file of memories.
const memoryBytes = 32 << 20

// Memories as files.
var (
	memoryUploads = []Upload{
		{Route: "POST /characters/:id/memories/import", Name: "memory.import", Types: lineTypes, Limit: memoryBytes, Run: importMemories},
	}
	memoryDownloads = []Download{
		{Route: "GET /characters/:id/memories/export", Run: exportMemories},
	}
)

// exportMemories writes JSON Lines.
func exportMemories(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error) {
	return "application/x-ndjson", "memories.jsonl", s.Memory.Export(ctx, userID, in.ID, out)
}

// lineTypes are the content types in use for JSON Lines.
var lineTypes = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json", "text/plain"}

// importMemories reads JSON Lines. Invalid lines are reported, and the rest is imported.
func importMemories(ctx context.Context, s *Services, call *op.Call, f File) (any, error) {
	got, err := s.Memory.Import(ctx, call, f.ID, bytes.NewReader(f.Data))
	if err != nil {
		return nil, err
	}
	result := map[string]any{"created": got.Created, "skipped": got.Skipped, "failed": OrEmpty(got.Failed)}
	var warnings []card.Warning
	for _, l := range got.LeftOut {
		warnings = append(warnings, card.Warning{Path: fmt.Sprintf("line %d", l.Line), Code: l.Code, Detail: l.Detail})
	}
	return imported{"memories", f.ID, result, warnings}, nil
}
