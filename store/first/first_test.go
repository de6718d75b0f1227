package first

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/codec"
	"nodest/internal/index"
	"nodest/llm"
	"nodest/llm/offline"
)

// A vector of a memory is read in each of its codes. The bytes are those that the program wrote.
func TestVectorsAreReadInEveryCode(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string][]float32{
		"2df800":         {-127, 0, 0, 0, 0, 0, 0, 0, 0},
		"29061fc0":       {0, 0, 0, 0, 0, -65, 0, 127},
		"34c425e259fc":   {-41, -23, 0, -23, -23, -3, -23, -23, -41, 127},
		"3fddd9ffb75e69": {65, 65, 65, 23, 127, 3, 41, 65, 10, -65, 65, -23},
		"36a572ed858a":   {10, -41, -10, -127, 93, 65, -3, -41, -3, 10},
	} {
		b, err := hex.DecodeString(stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := whole(b); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", stored, got, want)
		}
		for n := range b { // damaged bytes give no vector, or some vector
			whole(b[:n])
		}
	}
}

// rowsOf returns the rows of a table of the backup of schema 1.
func rowsOf(t *testing.T, table string) (rows []Row) {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join("..", "testdata", "first", "backup.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it is only read
	read := func(name string) *json.Decoder {
		f, err := r.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return json.NewDecoder(f)
	}
	var m struct {
		Tables []struct {
			Name    string
			Columns []string
		}
	}
	if err := read("manifest.json").Decode(&m); err != nil {
		t.Fatal(err)
	}
	for _, listed := range m.Tables {
		if !Fits(listed.Name, listed.Columns) {
			t.Errorf("%s does not fit: %v", listed.Name, listed.Columns)
		}
		if listed.Name != table {
			continue
		}
		for lines := read("tables/" + table + ".jsonl"); lines.More(); {
			var values []any
			if err := lines.Decode(&values); err != nil {
				t.Fatal(err)
			}
			row := Row{}
			for i, c := range listed.Columns {
				name, kind, _ := strings.Cut(c, " ")
				row[name] = values[i]
				if text, ok := values[i].(string); ok && kind == "blob" {
					if row[name], err = base64.StdEncoding.DecodeString(text); err != nil {
						t.Fatal(err)
					}
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// The vector of a memory is near the one that the same model makes of its text.
func TestVectorsKeepTheirDirection(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, row := range rowsOf(t, "memories") {
		text := row["text"].(string)
		made, err := offline.Embedder{}.Embed(context.Background(), llm.Passage, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		err = Steps("memories")[0].Make(row, func(r Row) {
			stored, ok := r["vector"].([]byte)
			if !ok {
				return
			}
			compared++
			if near := index.Packed(stored).Cosine(index.Pack(made.Vectors[0])); near < 0.95 {
				t.Errorf("%q: the cosine is %.3f", text, near)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	if compared < 5 {
		t.Errorf("%d vectors were compared", compared)
	}
}

// A summary is JSON with whole ids.
func TestSummariesAreRead(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "summary_texts")
	for _, row := range rows {
		id := row["summary_id"]
		err := Steps("summary_texts")[0].Make(row, func(r Row) {
			var document struct{ ID, Summary string }
			text, err := codec.Unpack(r["document"].([]byte))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &document); err != nil || document.ID != id || document.Summary == "" {
				t.Errorf("%s: %+v, %v", text, document, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	if len(rows) < 3 {
		t.Errorf("%d summaries", len(rows))
	}
}

// Damaged bytes are an error, not a panic and not another text.
func TestDamagedBytesAreAnError(t *testing.T) {
	t.Parallel()
	for _, row := range rowsOf(t, "summary_texts") {
		document := row["document"].([]byte)
		for n := range len(document) - 1 {
			if text, err := inflate(document[:n]); err == nil {
				t.Fatalf("%d of %d bytes are %q", n, len(document), text)
			}
		}
		if text, err := inflate(append([]byte{9}, document[1:]...)); err == nil {
			t.Errorf("another dictionary: %q", text)
		}
	}
	for _, row := range rowsOf(t, "revisions") {
		stored, _ := row["uses"].([]byte)
		found, _ := row["memory_ids"].([]byte)
		ids, err := unitsOf(found)
		if err != nil {
			t.Fatal(err)
		}
		all, err := usesOf(stored, ids)
		if err != nil {
			t.Fatal(err)
		}
		for n := range stored {
			if some, err := usesOf(stored[:n], ids); err == nil && len(some) >= len(all) {
				t.Errorf("%d of %d bytes are %d units", n, len(stored), len(some))
			}
		}
		if _, err := usesOf(bytes.Repeat([]byte{255}, 20), ids); err == nil {
			t.Error("no error")
		}
	}
}
