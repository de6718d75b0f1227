package op

import (
	"fmt"
	"slices"
	"strings"

	"nodest/internal/fault"
)

// Checks collects the invalid fields of a request, so that a caller learns all of them
// at once.
type Checks struct {
	Path   string // path of the object that has the fields; "" for the top level
	fields []fault.Field
}

// That notes a field unless ok.
func (c *Checks) That(ok bool, field, code, format string, args ...any) {
	if ok {
		return
	}
	if c.Path != "" {
		field = c.Path + "." + field
	}
	c.fields = append(c.fields, fault.Field{Field: field, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// Err is fault.Invalid with all fields that were noted; nil for none.
func (c *Checks) Err() error {
	if len(c.fields) == 0 {
		return nil
	}
	e := fault.New(fault.Invalid, "%s: %s", c.fields[0].Field, c.fields[0].Detail)
	e.Fields = c.fields
	return e
}

// OneOf checks that value is one of those known.
func OneOf[T ~string](c *Checks, field string, value T, known []T) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	c.That(slices.Contains(known, value), field, "value", "must be one of %s", strings.Join(words, ", "))
}

// Between checks a number where it is set; what is no number is refused too.
func Between[N int | float64](c *Checks, field string, n *N, low, high N) {
	c.That(n == nil || *n >= low && *n <= high, field, "range", "must be from %v to %v", low, high)
}
