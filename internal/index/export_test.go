package index

// Held returns the data of row n if the row is in memory.
func (v View) Held(n int) any {
	if s, local := v.x.at(n); s.held != nil && local < s.Rows {
		return s.held.rows[local].data
	}
	return nil
}

// Len returns the number of rows.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// ReadIDs reads a part of ids.
var ReadIDs = readIDs
