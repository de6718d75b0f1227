package op

import (
	"nodest/fault"
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
