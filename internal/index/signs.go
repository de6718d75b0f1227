package index

// mostBits is how many signs are kept of a vector.
const mostBits = 1024

// signsOf returns the signs of a vector of signed bytes after a fixed rotation: in how many of
// them two vectors differ tells the angle between them. The rotation (random signs and a
// Hadamard transform) spreads what stands in few numbers over all of them.
func signsOf(vector []byte) []uint64 {
	n := 64
	for n < len(vector) {
		n *= 2
	}
	values := make([]int32, n)
	for i, b := range vector {
		values[i] = int32(int8(b))
		if uint32(i)*2_654_435_761 < 1<<31 { // Fibonacci hashing
			values[i] = -values[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		for from := 0; from < n; from += 2 * half {
			a, b := values[from:from+half], values[from+half:from+2*half]
			for i := range a {
				a[i], b[i] = a[i]+b[i], a[i]-b[i]
			}
		}
	}
	bits := make([]uint64, min(n, mostBits)/64)
	for i := range bits {
		for j, v := range values[64*i : 64*i+64] {
			if v > 0 {
				bits[i] |= 1 << j
			}
		}
	}
	return bits
}
