package fault

import "fmt"

// Size is a number of bytes for people, in units of 1024.
func Size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
}

// OverLimit says by how much a number of bytes exceeds its limit: "57 MB, limit 32 MB".
func OverLimit(n, limit int) string {
	size, most := Size(n), Size(limit)
	if size == most {
		size = "just over " + most
	}
	return size + ", limit " + most
}
