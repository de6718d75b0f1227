package card_test

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"
)

// rawAsText compares documents as text, so that a difference can be read.
var rawAsText = cmp.Transformer("text", func(doc json.RawMessage) string { return string(doc) })
