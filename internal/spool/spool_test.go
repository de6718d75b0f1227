package spool_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"nodest/internal/spool"
)

func TestASpoolGivesBackWhatItKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, size := range []int{0, 10, 3 << 20} {
		s := &spool.Spool{Dir: dir}
		want := bytes.Repeat([]byte("0123456789"), size/10)
		for part := want; len(part) > 0; {
			n := min(len(part), 100_000)
			if _, err := s.Write(part[:n]); err != nil {
				t.Fatal(err)
			}
			part = part[n:]
		}
		var got bytes.Buffer
		if err := s.CopyTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) || s.Size != int64(len(want)) {
			t.Errorf("%d bytes: %v, %d came back", size, err, got.Len())
		}
		if size > 0 {
			part, err := io.ReadAll(s.Part(3, 4))
			if err != nil || string(part) != "3456" {
				t.Errorf("a part of %d bytes is %q, %v", size, part, err)
			}
		}
		s.Drop()
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}
