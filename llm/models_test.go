package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestModelsAreKeptForMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ModelList
		asked, down := 0, false
		ask := func(want string, requests int) {
			t.Helper()
			list, err := l.Get(t.Context(), func(context.Context) ([]Model, error) {
				asked++
				if down {
					return nil, errors.New("down")
				}
				return []Model{{ID: fmt.Sprint("model-", asked)}}, nil
			})
			switch {
			case asked != requests:
				t.Fatalf("%d requests, want %d", asked, requests)
			case want == "" && err == nil, want != "" && (len(list) != 1 || list[0].ID != want):
				t.Fatalf("%v, %v; want %q", list, err, want)
			case want != "":
				list[0].ID = "the caller's own copy"
			}
		}
		ask("model-1", 1)
		time.Sleep(modelsAge - time.Second)
		ask("model-1", 1)
		time.Sleep(time.Second)
		ask("model-2", 2)
		time.Sleep(modelsAge)
		down = true
		ask("", 3) // an old list would hide that the provider is down
		ask("", 4)
		down = false
		ask("model-5", 5)
	})
}

func TestListsOfModelsAreBounded(t *testing.T) {
	odd := []Model{{}, {ID: strings.Repeat("x", longModel+1)}, {ID: "named", Name: "a\nline\u2028" + strings.Repeat("界", longCalled)}}
	for i := range 2 * maxModels {
		odd = append(odd, Model{ID: fmt.Sprint(i)})
	}
	list := boundedModels(odd)
	if len(list) != maxModels || list[0].ID != "named" || len(list[0].Name) > longCalled+3 || !strings.HasPrefix(list[0].Name, "a line 界") {
		t.Errorf("%d models, the first is %+v", len(list), list[0])
	}
}

// A list that many ask for at once is fetched once or twice, and each of the others gets it too.
func TestAListOfModelsIsFetchedByFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ModelList
		var asked atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				list, err := l.Get(t.Context(), func(context.Context) ([]Model, error) {
					asked.Add(1)
					time.Sleep(time.Second) // virtual
					return []Model{{ID: "model"}}, nil
				})
				if err != nil || len(list) != 1 {
					t.Errorf("%v, %v", list, err)
				}
			})
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Get(gone, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait any more gets %v", err)
		}
		all.Wait()
		if n := asked.Load(); n != fetchedAtOnce {
			t.Errorf("it was fetched %d times", n)
		}
	})
}
