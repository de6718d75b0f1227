package chat

import (
	"context"

	"nodest/internal/op"
)

const maxRuns = 1000

// Tree returns the tree of a conversation as runs, with its save points.
func (svc *Service) Tree(ctx context.Context, userID, conversationID string) (*Tree, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Tree, error) { return tx.Tree(conversationID, maxRuns) })
}

type wireTree struct {
	Items     []wireRun    `json:"items"`
	Head      *RunPlace    `json:"head"`
	Saves     []PlacedSave `json:"saves"`
	Truncated bool         `json:"truncated"`
}

type wireRun struct {
	ID           string  `json:"id"`
	ParentID     *string `json:"parentId"`
	HeadID       string  `json:"headId"`
	LeafID       string  `json:"leafId"`
	MessageCount int     `json:"messageCount"`
	Shown        bool    `json:"shown"`
	Role         string  `json:"role"`
	FirstText    string  `json:"firstText"`
	LastText     string  `json:"lastText"`
	CreatedAt    op.Time `json:"createdAt"`
	LastAt       op.Time `json:"lastAt"`
}

// WireTree is t as clients see it.
func WireTree(t *Tree) any {
	w := wireTree{Items: make([]wireRun, len(t.Runs)), Head: t.Head, Saves: t.Saves, Truncated: t.Truncated}
	for i, r := range t.Runs {
		w.Items[i] = wireRun{
			ID: r.ID, HeadID: r.HeadID, LeafID: r.LeafID, MessageCount: r.MessageCount, Shown: r.Shown, Role: r.First.Role,
			FirstText: r.First.Text, LastText: r.Last.Text, CreatedAt: op.Time(r.First.CreatedAt), LastAt: op.Time(r.Last.CreatedAt),
		}
		if r.ParentID != "" {
			w.Items[i].ParentID = &r.ParentID
		}
	}
	return w
}
