//go:build !linux

package parse

// residentMemory is known on Linux only; elsewhere the child limits itself.
func residentMemory(int) (int64, bool) { return 0, false }

func limitMemory(int64) {}
