package intent

import (
	"reflect"
	"testing"

	"nodest/internal/sharedtest"
)

// golden runs the vectors of one file through run.
func golden[In, Out any](t *testing.T, file string, run func(In) Out) {
	t.Helper()
	sharedtest.Replay(t, "nodest/"+file, func(t *testing.T, v sharedtest.Vector[In, Out]) {
		if got := run(v.Input); !reflect.DeepEqual(got, v.Output) {
			t.Errorf("got  %v\nwant %v", got, v.Output)
		}
	})
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
