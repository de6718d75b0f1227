package intent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// golden runs the vectors of one file through run.
func golden[In, Out any](t *testing.T, file string, run func(In) Out) {
	t.Helper()
	dir := os.Getenv("NODEST_GOLDEN")
	if dir == "" {
		dir = "../shared/golden"
	}
	if !filepath.IsAbs(dir) { // from the project's root
		dir = filepath.Join("../..", dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, "nodest", file))
	if err != nil {
		t.Skipf("no golden vectors here (NODEST_GOLDEN names their folder): %v", err)
	}
	var vectors []struct {
		Name       string
		Input      In
		Output     Out
		SpecOutput *Out `json:"spec_output"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, v := range vectors {
		ok := t.Run(v.Name, func(t *testing.T) {
			want := v.Output
			if v.SpecOutput != nil {
				want = *v.SpecOutput
			}
			if got := run(v.Input); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
		if !ok {
			failed++
		}
	}
	t.Logf("%s: %d passed, %d failed, 0 skipped", file, len(vectors)-failed, failed)
}

func TestGoldenSearchIntent(t *testing.T) {
	golden(t, "search_intent.json", func(in struct{ Text string }) bool { return Seed(in.Text) })
}

func TestGoldenLocalQuery(t *testing.T) {
	golden(t, "local_query.json", func(in struct{ Query string }) bool { return Place(in.Query) })
}

func TestGoldenFormatSearch(t *testing.T) {
	golden(t, "format_search.json", func(in struct{ Result Places }) string { return FormatPlaces(in.Result, "zh") })
}
