package nodest

import (
	"nodest/fault"
)

var errNotYet = fault.New(fault.Internal, "not yet")
