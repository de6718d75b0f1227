package llm

import (
	"fmt"
	"io"
	"strings"
)

// Key is a provider's secret. It prints, logs and marshals as a mask whatever the
// verb; Reveal is the one way to read it, for the adapter that sets the header.
type Key struct {
	// A pointer, so that even verbs which bypass Format (%p) print an address.
	secret *string
}

const mask = "[key]"

// NewKey hides secret; blanks around it are dropped.
func NewKey(secret string) Key {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return Key{}
	}
	return Key{&secret}
}

// Reveal returns the secret; "" for the zero Key.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return *k.secret
}

// IsZero reports whether there is no secret.
func (k Key) IsZero() bool { return k.secret == nil }

// Format prints a mask for every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalText encodes a mask, so that a configuration can be logged or shown as JSON.
func (Key) MarshalText() ([]byte, error) { return []byte(mask), nil }

// ParseKeys splits a comma list of keys. Empty entries, repeated ones and "123"
// (a placeholder of the original app) are left out.
func ParseKeys(list string) []Key {
	var keys []Key
	seen := map[string]bool{"": true, "123": true}
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if !seen[s] {
			seen[s] = true
			keys = append(keys, NewKey(s))
		}
	}
	return keys
}
