package rules

import (
	"encoding/json"
	"reflect"
	"testing"

	"nodest/internal/sharedtest"
)

// golden runs the vectors of one file through run, which returns the product's result
// for an input. Objects are compared without regard to key order; an absent member
// equals null. skip names the vectors that are wrong, with the reason.
func golden(t *testing.T, file string, skip map[string]string, run func(t *testing.T, input json.RawMessage) any) {
	t.Helper()
	sharedtest.Replay(t, "nodest/"+file, func(t *testing.T, v sharedtest.Vector[json.RawMessage, json.RawMessage]) {
		if why := skip[v.Name]; why != "" {
			t.Skip(why)
		}
		got, err := json.Marshal(run(t, v.Input))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(parsed(t, got), parsed(t, v.Output)) {
			t.Errorf("got  %s\nwant %s", got, v.Output)
		}
	})
}

func parsed(t *testing.T, doc []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return withoutNulls(v)
}

// withoutNulls also removes what the vectors do not ask to match: members of an emotion
// that it does not have, and what goes with a failure.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil || k == "detail" || v["success"] == false && k != "success" {
				delete(v, k)
			} else {
				v[k] = withoutNulls(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

func read[T any](t *testing.T, doc json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGoldenCircleParse(t *testing.T) {
	golden(t, "circle_parse.json", map[string]string{
		"text around nested": "it has the original's error with three levels of braces, which a vector below corrects",
	}, func(t *testing.T, input json.RawMessage) any {
		return ReadAnswer(read[struct{ Response string }](t, input).Response, nil)
	})
}

func TestGoldenCircleRelationship(t *testing.T) {
	golden(t, "circle_relationship.json", nil, func(t *testing.T, input json.RawMessage) any {
		return ReadReview(read[struct{ Response string }](t, input).Response)
	})
}

func TestGoldenRelationshipType(t *testing.T) {
	golden(t, "relationship_type.json", nil, func(t *testing.T, input json.RawMessage) any {
		return TypeOf(read[struct{ Strength int }](t, input).Strength)
	})
}

func TestGoldenInteractionLimits(t *testing.T) {
	golden(t, "interaction_limits.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Frequency string
			Events    []struct{ Target, Type string }
		}](t, input)
		var done []Interaction
		allowed := []bool{}
		for _, e := range in.Events {
			next := Interaction{Author: e.Target}
			if e.Type == "comment" {
				next.Thread = e.Target
			}
			ok := Allowed(in.Frequency, done, next)
			if allowed = append(allowed, ok); ok {
				done = append(done, next)
			}
		}
		return map[string]any{"allowed": allowed}
	})
}
