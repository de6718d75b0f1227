package taverntest

import (
	"maps"
	"slices"
)

func sortedNames(f Files) []string { return slices.Sorted(maps.Keys(f)) }
