package memory

import (
	"fmt"
	"strings"
	"testing"

	"nodest/internal/fault"
)

// The versions of one memory are stored in the same batch.
func TestImportBatchesKeepVersionsTogether(t *testing.T) {
	t.Parallel()
	var parsed []Memory
	for i := range 1000 {
		parsed = append(parsed, Memory{RootID: fmt.Sprint(i % 7), Version: i, Text: "x"}, Memory{Text: "plain"})
	}
	long := strings.Repeat("x", 2000)
	for range 100 {
		parsed = append(parsed, Memory{Text: long})
	}
	where, lines := map[string]int{}, 0
	for n, piece := range pieces(parsed) {
		size := 0
		for i := range piece {
			root := piece[i].RootID
			if at, known := where[root]; root != "" && known && at != n {
				t.Fatalf("the versions of %s are in the pieces %d and %d", root, at, n)
			}
			where[root] = n
			size += len(piece[i].Text)
		}
		if len(piece) > 250 || size > 70_000 {
			t.Errorf("piece %d has %d lines and %d bytes", n, len(piece), size)
		}
		lines += len(piece)
	}
	if lines != len(parsed) {
		t.Errorf("%d lines of %d", lines, len(parsed))
	}
	if n := len(pieces(nil)); n != 1 {
		t.Errorf("nothing is %d pieces", n)
	}
	many := strings.Repeat(`{"rootId":"r","text":"x"}`+"\n", 1001)
	if _, err := parseImport(strings.NewReader(many)); !fault.Is(err, fault.InvalidImport) {
		t.Errorf("1,001 versions: %v", err)
	}
}

// A file in which every line is wrong is refused with the first error. The file of an
// empty memory is accepted, and so is one with a single good line.
func TestAFileWithoutAnyMemory(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"name,text\nMia,sails\n":                             "line 1: the line is not a JSON object",
		"\n\n{\"mes\":\"Hello.\"}\n[1]":                      "line 3: text: required",
		`{"type":"header","format":"memory-export"}` + "\nx": "line 2: the line is not a JSON object",
	} {
		if _, err := parseImport(strings.NewReader(file)); !fault.Is(err, fault.InvalidImport) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
	for _, file := range []string{"", `{"type":"header","format":"memory-export"}`, "\ufeff" + `{"text":"x"}` + "\nx"} {
		if _, err := parseImport(strings.NewReader(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}
