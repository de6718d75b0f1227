// Package id reads the form of ids, in one place for operations and for the columns of the database.
// It makes none: op does.
package id

import "github.com/google/uuid"

// Parse reads an id: a UUID of any version in 36 characters in lower case, and in no other spelling.
func Parse(text string) (id uuid.UUID, ok bool) {
	if len(text) != 36 {
		return uuid.Nil, false
	}
	for i := range len(text) {
		if text[i] >= 'A' && text[i] <= 'F' {
			return uuid.Nil, false
		}
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}
