package memory

import "errors"

var errNotBuilt = errors.New("memory: not built yet")
