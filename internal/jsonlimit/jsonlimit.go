// Package jsonlimit checks untrusted JSON against limits before it is decoded: a small document
// can take much memory and many rows.
package jsonlimit

import (
	"encoding/json"
	"strings"

	"nodest/internal/fault"
)

// Limits bounds a document.
type Limits struct {
	Depth  int        // how deep objects and arrays may be nested
	Deep   fault.Code // the code that refuses a document that is nested deeper
	Values int        // values in all, objects and arrays included
	// Lists bounds arrays by their member name: how many elements all arrays of that
	// name may have together. The name "" is for all other arrays together.
	// Names are compared without regard to case, as encoding/json does with fields.
	Lists map[string]int
}

// Check is Count without the number.
func Check(data []byte, l Limits) error {
	_, err := Count(data, l)
	return err
}

// Count reads data once and stops at the first limit that it exceeds. It returns the number of
// values and builds nothing. data need not be valid JSON: the counts of what a decoder refuses
// may be wrong.
//
// Errors: TooLarge with the limit; l.Deep.
func Count(data []byte, l Limits) (values int, err error) {
	s := scanner{data: data, limits: l, values: 1, elements: make(map[string]int, len(l.Lists))}
	for i := 0; i < len(data); i++ {
		if err := s.read(&i); err != nil {
			return 0, err
		}
	}
	return s.values, nil
}

// scanner is the state of a Count.
type scanner struct {
	data     []byte
	limits   Limits
	open     []container
	name     []byte // the last string, with its quotes: where an array begins, its name
	values   int
	elements map[string]int // so far, by the names of Limits.Lists
}

// container is an object or array that is still open.
type container struct {
	list  string // whose elements are counted
	array bool
	empty bool // nothing in it has been read yet
}

// read counts what begins at data[*i], and moves *i to its last byte.
func (s *scanner) read(i *int) error {
	c := s.data[*i]
	switch c {
	case ' ', '\t', '\r', '\n', ':':
		return nil
	case '}', ']':
		s.open = s.open[:max(0, len(s.open)-1)]
		return nil
	case ',':
		return s.value()
	}
	if top := len(s.open) - 1; top >= 0 && s.open[top].empty {
		s.open[top].empty = false
		if err := s.value(); err != nil {
			return err
		}
	}
	switch c {
	case '{', '[':
		return s.enter(c == '[')
	case '"':
		begin := *i
		for *i++; *i < len(s.data) && s.data[*i] != '"'; *i++ {
			if s.data[*i] == '\\' {
				*i++
			}
		}
		s.name = s.data[begin:min(*i+1, len(s.data))]
	}
	return nil
}

// value counts a value of the innermost object or array.
func (s *scanner) value() error {
	if s.values++; s.values > s.limits.Values {
		return tooLarge(s.limits.Values, "values")
	}
	top := len(s.open) - 1
	if top < 0 || !s.open[top].array {
		return nil
	}
	list := s.open[top].list
	limit, ok := s.limits.Lists[list]
	if !ok {
		return nil
	}
	if s.elements[list]++; s.elements[list] <= limit {
		return nil
	}
	if list == "" {
		return tooLarge(limit, "elements in its other lists")
	}
	return tooLarge(limit, "elements in its lists "+list)
}

func tooLarge(limit int, what string) error {
	return fault.New(fault.TooLarge, "the JSON has more than %d %s", limit, what).With("limit", limit)
}

// enter begins an object or an array. An array in an array belongs to the same list.
func (s *scanner) enter(array bool) error {
	if len(s.open) == s.limits.Depth {
		return fault.New(s.limits.Deep, "the JSON is nested more than %d levels deep", s.limits.Depth)
	}
	c := container{array: array, empty: true}
	if top := len(s.open) - 1; array && top >= 0 {
		if s.open[top].array {
			c.list = s.open[top].list
		} else {
			c.list = s.limits.listOf(s.name)
		}
	}
	s.open = append(s.open, c)
	return nil
}

// listOf is the list that a member with that name, in quotes, belongs to.
func (l Limits) listOf(quoted []byte) string {
	if len(l.Lists) == 0 || len(quoted) < 2 {
		return ""
	}
	var name string
	if json.Unmarshal(quoted, &name) != nil {
		return ""
	}
	for list := range l.Lists {
		if strings.EqualFold(list, name) {
			return list
		}
	}
	return ""
}
