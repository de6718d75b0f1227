package index

// Held returns the data of row n if the row is in memory.
func (v View) Held(n int) any {
	if n < v.x.base {
		return nil
	}
	return v.x.docs[n-v.x.base].data
}

// Len returns the number of rows.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// ReadIDs reads a part of ids.
var ReadIDs = readIDs
