package agent

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/cite"
	"nodest/llm"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

func TestKnowledgeHasTheTimeOfItsKind(t *testing.T) {
	at := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
	if got := Updated(time.Time{}); got != "" {
		t.Fatalf("Updated(time.Time{}) is %q, want none", got)
	}
	known := []Knowledge{
		{Question: "Q", Answer: "A", Kind: KindPage, Updated: Updated(at)},
		{Question: "Q", Answer: "A", Kind: KindAnswer, Updated: Updated(at)},
	}
	messages := Compose([]llm.Message{{Role: llm.User, Text: "hello"}}, known, "Why?", []string{"Add dates."})
	if len(messages) != 6 {
		t.Fatalf("messages has %d, want %d: %+v", len(messages), 6, messages)
	}
	if messages[1].Text != "<answer-datetime>\n2025-03-04 05:06:07\n</answer-datetime>\n\nA" {
		t.Fatalf("messages[1].Text is %q, want %q", messages[1].Text, "<answer-datetime>\n2025-03-04 05:06:07\n</answer-datetime>\n\nA")
	}
	if messages[3].Text != "A" {
		t.Fatalf("messages[3].Text is %q, want %q", messages[3].Text, "A")
	}
	if !strings.Contains(messages[5].Text, "<reviewer-1>\nAdd dates.\n</reviewer-1>") {
		t.Fatalf("messages[5].Text is %q, want it with %q", messages[5].Text, "<reviewer-1>\nAdd dates.\n</reviewer-1>")
	}
	if got := Texts(known)[1]; got != "<knowledge-2>\nQ\n\nA\n</knowledge-2>" {
		t.Fatalf("Texts(known)[1] is %q, want %q", got, "<knowledge-2>\nQ\n\nA\n</knowledge-2>")
	}
}

// visitPages visits with the options of the recorded pipeline.
func visitPages(ctx context.Context, read Read, emb llm.Embedder, pool *weburl.Pool, addresses []string, question string) Visited {
	return visitAll(ctx, pool, addresses, question, weburl.Options{}, func(ctx context.Context, address string) (seen, error) {
		page, err := read(ctx, address)
		if err != nil {
			return seen{}, err
		}
		return see(ctx, emb, page, address, question, weburl.Options{}, cite.PickOptions{})
	})
}

func TestVisitsReadTwoPagesOfAHostAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		read := func(_ context.Context, address string) (*reader.Page, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			<-time.After(time.Duration(10-len(address)%10) * time.Second) // the fake clock of synctest
			return &reader.Page{FinalURL: address, Canonical: strings.Replace(address, "/copy", "/one", 1), Markdown: "Text of " + address}, nil
		}
		addresses := []string{"https://a.org/one", "https://a.org/one/", "https://a.org/copy", "mailto:x", "https://a.org/three", "https://a.org/fourth", "https://a.org/5", "https://a.org/sixth"}
		got := visitPages(t.Context(), read, recorded{"hash256"}, &weburl.Pool{}, addresses, "Q?")
		if got := most.Load(); got != 2 {
			t.Fatalf("most.Load() is %d, want %d", got, 2)
		}
		if want := ([]string{"https://a.org/one", "https://a.org/copy", "https://a.org/three", "https://a.org/fourth", "https://a.org/5"}); !reflect.DeepEqual(got.URLs, want) {
			t.Fatalf("got.URLs is %q, want %q", got.URLs, want)
		}
		var pages []string
		for _, p := range got.Pages {
			pages = append(pages, p.URL)
		}
		if want := ([]string{"https://a.org/one", "https://a.org/three", "https://a.org/fourth", "https://a.org/5"}); !reflect.DeepEqual(pages, want) {
			t.Fatalf("pages is %q, want %q", pages, want)
		}
		if len(got.Knowledge) != 4 {
			t.Fatalf("got.Knowledge has %d, want %d: %+v", len(got.Knowledge), 4, got.Knowledge)
		}
	})
}

func TestACancelledVisitRecordsNothingUnread(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := func(ctx context.Context, _ string) (*reader.Page, error) { cancel(); return nil, ctx.Err() }
	got := visitPages(ctx, read, nil, &weburl.Pool{}, []string{"https://a.org/1", "https://a.org/2", "https://a.org/3"}, "Q?")
	if want := (Visited{}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got is %+v, want %+v", got, want)
	}
}

func TestFreshKeepsTheOrder(t *testing.T) {
	got := Fresh(t.Context(), recorded{"hash256"}, []string{"b c", "a", "c b"}, []string{"A"})
	if want := ([]string{"b c"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got is %q, want %q", got, want)
	}
}
