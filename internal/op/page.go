package op

import (
	"context"
	"nodest/internal/fault"
)

// Page is a part of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor"` // "" = the end
}

// CheckLimit reads the length of a page: 0 = 50.
func CheckLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return 50, nil
	case limit < 1 || limit > 200:
		return 0, fault.InvalidField("limit", "range", "must be from 1 to 200")
	}
	return limit, nil
}

// List reads a page of a list, in a View: read gets limit after CheckLimit.
func List[X Tx, T any](ctx context.Context, store Store[X], userID string, limit int, read func(tx X, limit int) (items []T, next string, err error)) (*Page[T], error) {
	limit, err := CheckLimit(limit)
	if err != nil {
		return nil, err
	}
	return Read(ctx, store, userID, func(tx X) (*Page[T], error) {
		items, next, err := read(tx, limit)
		return &Page[T]{items, next}, err
	})
}

// Write returns what write returns, in an Update. It may run more than once.
func Write[X Tx, T any](ctx context.Context, store Store[X], userID string, write func(tx X) (T, error)) (answer T, err error) {
	err = store.Update(ctx, userID, func(tx X) (err error) {
		answer, err = write(tx)
		return err
	})
	return answer, err
}

// Read returns what read returns, in a View.
func Read[X Tx, T any](ctx context.Context, store Store[X], userID string, read func(tx X) (T, error)) (answer T, err error) {
	err = store.View(ctx, userID, func(tx X) (err error) {
		answer, err = read(tx)
		return err
	})
	return answer, err
}
