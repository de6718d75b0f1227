package dream

import (
	"context"
	"fmt"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// Service has the operations on documents. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
}

// Options tune a Service. The zero value has documents and no runs.
type Options struct {
	// Scenes returns the settings of a character's documents.
	Scenes func(ctx context.Context, userID, characterID string) (Scene, error)
	// Facts returns the facts that may be in the profile, as they count; nil = there is no profile.
	Facts func(ctx context.Context, userID, characterID string) ([]memory.Memory, error)
	// Model returns the model that dreams for a user; nil = there is none but rules.
	Model func(ctx context.Context, userID, characterID string) (llm.Asker, error)
}

// New returns a Service.
func New(store Store, o Options) *Service { return &Service{store, o} }

// Shown is a document, and which of its lines count: those that rest on nothing, or on a message
// that is shown.
type Shown struct {
	*Document
	Counts []bool
}

// Documents returns the documents of a memory, in their order, the profile first.
func (s *Service) Documents(ctx context.Context, userID, characterID string) ([]*Document, error) {
	all, err := op.Read(ctx, s.store, userID, func(tx Tx) ([]*Document, error) { return tx.MemoryDocuments(characterID) })
	if err != nil {
		return nil, err
	}
	p, err := s.profile(ctx, userID, characterID)
	if p != nil {
		all = append(all, p)
	}
	ByOrder(all)
	return all, err
}

// Document returns a document in a version, 0 = the one in force.
func (s *Service) Document(ctx context.Context, userID, characterID, path string, version int64) (*Shown, error) {
	if path == Profile {
		return s.profileIn(ctx, userID, characterID, version)
	}
	return op.Read(ctx, s.store, userID, func(tx Tx) (*Shown, error) {
		d, err := tx.MemoryDocument(characterID, path, version)
		if err != nil {
			return nil, err
		}
		counts, err := linesShown(tx, nil, d)
		if err != nil {
			return nil, err
		}
		return &Shown{d, counts[0]}, nil
	})
}

// linesShown reports for each line of documents whether it counts on a branch; nil = the shown one.
func linesShown(tx Tx, here *memory.Place, documents ...*Document) ([][]bool, error) {
	var evidence []memory.Evidence
	for _, d := range documents {
		for _, l := range d.Lines {
			evidence = append(evidence, l.Evidence...)
		}
	}
	shown, err := tx.Memory.Shown(here, evidence)
	if err != nil {
		return nil, fmt.Errorf("read which lines are shown: %w", err)
	}
	counts := make([][]bool, len(documents))
	at := 0
	for i, d := range documents {
		for _, l := range d.Lines {
			count := len(l.Evidence) == 0
			for range l.Evidence {
				count = count || shown[at]
				at++
			}
			counts[i] = append(counts[i], count)
		}
	}
	return counts, nil
}

// Edit is what a user changes of a document; nil = as it is.
type Edit struct {
	Text      *string `json:"text,omitempty"`
	Locked    *bool   `json:"locked,omitempty"`
	IfVersion int64   `json:"ifVersion,omitempty"` // that the user has seen; 0 = any
}

// named is the answer that is stored of a change: a repeat reads the document as it is then.
type named struct {
	Path    string `json:"path"`
	Version int64  `json:"version"`
}

// Put writes a document, which it makes if it is not there. Lines that the user did not touch keep
// their author.
//
// Errors: Invalid with the field; TooLarge; Conflict if there are too many documents;
// PreconditionFailed if the version in force is not e.IfVersion.
func (s *Service) Put(ctx context.Context, c *op.Call, characterID, path string, e Edit) (*Shown, error) {
	if err := e.check(path); err != nil {
		return nil, err
	}
	_, err := op.LastWins(ctx, s.store, c, e.IfVersion, func(tx Tx) (*named, error) {
		d, err := lockedDocument(tx, characterID, path, e.IfVersion)
		if err != nil {
			return nil, err
		}
		if d.Newest == 0 {
			if err := hasRoom(tx, characterID, path); err != nil {
				return nil, err
			}
		}
		if e.Text != nil {
			next := d.edited(*e.Text, tx.Now())
			if d.Newest == 0 || !same(next.Lines, d.Lines) {
				if err := tx.PutMemoryDocument(characterID, next); err != nil {
					return nil, err
				}
				d = next
			}
		}
		if e.Locked != nil && *e.Locked != d.Locked {
			if err := tx.LockMemoryDocument(characterID, path, *e.Locked); err != nil {
				return nil, err
			}
		}
		return &named{path, d.Version}, emit(tx, c.By(), characterID, path, wroteDocument, d.Version, ByUser)
	})
	if err != nil {
		return nil, err
	}
	return s.Document(ctx, c.UserID, characterID, path, 0)
}

func (e *Edit) check(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if e.Text == nil {
		if e.Locked == nil {
			return fault.InvalidField("text", "required", "name text or locked")
		}
		return nil
	}
	if err := op.CheckLength("text", *e.Text, MaxText); err != nil {
		return err
	}
	if strings.Count(*e.Text, "\n") >= maxLines {
		return fault.InvalidField("text", "range", "must have at most %d lines", maxLines)
	}
	return nil
}

// lockedDocument returns a document that nobody else changes until the transaction ends; one that
// is not there has no lines.
func lockedDocument(tx Tx, characterID, path string, ifVersion int64) (*Document, error) {
	if err := tx.Memory.LockMemory(characterID); err != nil {
		return nil, err
	}
	d, err := tx.MemoryDocument(characterID, path, 0)
	if fault.Is(err, fault.NotFound) {
		d, err = &Document{Path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	return d, op.CheckVersion(ifVersion, d.Newest)
}

func hasRoom(tx Tx, characterID, path string) error {
	all, err := tx.MemoryDocuments(characterID)
	if err != nil {
		return err
	}
	if !roomFor(path, all) {
		return fault.New(fault.Conflict, "a memory has at most %d documents besides %s; delete one first", MaxOthers, strings.Join(Defaults, ", ")).With("limit", MaxOthers)
	}
	return nil
}

// Rollback makes the lines of an earlier version the newest version, which is the user's.
//
// Errors: Invalid; NotFound; PreconditionFailed.
func (s *Service) Rollback(ctx context.Context, c *op.Call, characterID, path string, version, ifVersion int64) (*Shown, error) {
	if version < 1 {
		return nil, fault.InvalidField("version", "range", "must be a version of the document, from 1")
	}
	if path == Archive || path == Profile {
		return nil, checkPath(path)
	}
	_, err := op.Once(ctx, s.store, c, func(tx Tx) (*named, error) {
		d, err := lockedDocument(tx, characterID, path, ifVersion)
		if err != nil {
			return nil, err
		}
		old, err := tx.MemoryDocument(characterID, path, version)
		if err != nil {
			return nil, err
		}
		d.Lines, d.Author, d.RunID = old.Lines, ByUser, ""
		if err := tx.PutMemoryDocument(characterID, d); err != nil {
			return nil, err
		}
		return &named{path, d.Version}, emit(tx, c.By(), characterID, path, wroteDocument, d.Version, ByUser)
	})
	if err != nil {
		return nil, err
	}
	return s.Document(ctx, c.UserID, characterID, path, 0)
}

// Delete removes a document with all its versions.
func (s *Service) Delete(ctx context.Context, c *op.Call, characterID, path string, ifVersion int64) error {
	if path == Profile {
		return checkPath(path)
	}
	_, err := op.Once(ctx, s.store, c, func(tx Tx) (*named, error) {
		d, err := lockedDocument(tx, characterID, path, ifVersion)
		if err != nil {
			return nil, err
		}
		if err := tx.DeleteMemoryDocument(characterID, path); err != nil {
			return nil, err
		}
		return &named{path, d.Version}, emit(tx, c.By(), characterID, path, deletedDocument, d.Version, ByUser)
	})
	return err
}

// Versions lists the versions of a document, newest first.
func (s *Service) Versions(ctx context.Context, userID, characterID, path, cursor string, limit int) (*op.Page[Version], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]Version, string, error) {
		if _, err := tx.MemoryDocument(characterID, path, 0); err != nil {
			return nil, "", err
		}
		return tx.DocumentVersions(characterID, path, cursor, limit)
	})
}

// Values of op in an event memory.document.
const (
	wroteDocument   = "written"
	deletedDocument = "deleted"
)

func emit(tx Tx, by, characterID, path, done string, version int64, author Author) error {
	return memory.Emit(tx.Memory, by, "memory.document", "", map[string]any{
		"op": done, "characterId": characterID, "path": path, "version": version, "author": author,
	})
}
