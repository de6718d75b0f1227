package index

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
)

func TestIDsAreReadAsTheyWereWritten(t *testing.T) {
	made := func() string {
		id := uuid.Must(uuid.NewV7())
		clear(id[11:])
		return id.String()
	}
	uuids := make([]string, 100)
	for i := range uuids {
		uuids[i] = made()
	}
	mixed := append([]string{"", "a", "ab", "row-17", uuid.NewString(), uuid.Nil.String(), "A" + uuid.NewString()[1:], "01920000-0000-7000-8000-00000000000G"}, uuids...)
	for name, ids := range map[string][]string{"one": {"a"}, "one uuid": {made()}, "nil": {uuid.Nil.String()}, "uuids": uuids, "mixed": mixed} {
		part := readIDs(idsPart(ids))
		for i, id := range ids {
			if got := part.At(i); got != id {
				t.Errorf("%s: row %d is %q, want %q", name, i, got, id)
			}
			if at := part.Find(id); at != i {
				t.Errorf("%s: %q is at %d, want %d", name, id, at, i)
			}
		}
		for _, other := range []string{"b", made(), uuid.NewString(), ids[0] + "0", strconv.Itoa(1 << 60)} {
			if at := part.Find(other); at >= 0 {
				t.Errorf("%s: %q is at %d", name, other, at)
			}
		}
		if got := part.At(len(ids)); got != "" {
			t.Errorf("%s: there is a row more: %q", name, got)
		}
	}
	if size := len(idsPart(uuids)); size > 9*len(uuids)+20 {
		t.Errorf("%d bytes", size)
	}
}
