package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// TestForksSurviveKills kills the server while long chats are being copied. Every fork
// that was acknowledged is complete in the end, exists once, and is announced by one
// event.
func TestForksSurviveKills(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		if url != "" && scaled(t, 0, 1) == 0 {
			t.Skip("takes minutes on PostgreSQL: with NODEST_LONG=1 only")
		}
		const length = 6_000 // the job copies them in two batches
		rng := newRand(t)
		inst := newInstallation(t, url).fast(t)
		p := inst.start(t)
		var log strings.Builder
		log.WriteString(`{"chat_metadata":{},"user_name":"Mia","character_name":"Mira"}`)
		for i := range length {
			fmt.Fprintf(&log, "\n"+`{"name":"Mia","is_user":%t,"send_date":"2025-03-14T09:00:00.000Z","mes":"text %d","extra":{}}`, i%2 == 0, i)
		}
		var source, last cli.Item
		character := sampleCharacter(t, p.client)
		if err := p.client.Upload(t.Context(), "/api/v1/conversations/import", "log.jsonl", []byte(log.String()),
			map[string]string{"characterId": character}, &source); err != nil {
			t.Fatal(err)
		}
		forks := map[string]bool{}
		for range scaled(t, 3, 20) {
			if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+source.ID+"/fork", map[string]any{}, &last); err != nil {
				t.Fatal(err)
			}
			forks[last.ID] = false
			for range rng.IntN(100) { // let some time pass
				if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+source.ID, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			p.kill(t)
			p = inst.start(t)
		}
		eventually(t, "the forks", func() error {
			for id := range forks {
				err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+id, nil, nil)
				if fault.Is(err, fault.NotFound) {
					return errNotYet
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			return nil
		})
		list, err := cli.All[cli.Item](t.Context(), p.client, "/api/v1/conversations?characterId="+character)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != (len(forks) + 1) {
			t.Fatalf("list has %d, want %d: %+v", len(list), (len(forks) + 1), list)
		}
		created := createdEvents(t, p.client)
		for id := range forks {
			copied := history(t, p.client, id)
			if len(copied) != length {
				t.Fatalf("copied has %d, want %d: %+v", len(copied), length, copied)
			}
			for i, m := range copied {
				if want := fmt.Sprintf("text %d", i); m.Text != want {
					t.Fatalf("m.Text is %q, want %q", m.Text, want)
				}
			}
			if created[id] != 1 {
				t.Fatalf("events of fork %s: created[id] is %d, want %d", id, created[id], 1)
			}
		}
		verifyLog(t, p.client)
		p.stop(t)
	})
}

// createdEvents counts the events chat.created, by conversation.
func createdEvents(t *testing.T, c *cli.Client) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, f := range wholeLog(t, c) {
		if f.Ev == "chat.created" {
			counts[f.Conv]++
		}
	}
	return counts
}
