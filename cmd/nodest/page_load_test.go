package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// heavyPages are as large as a page may be.
var heavyPages = map[string]func() string{
	"paragraphs": func() string { return filled(3<<20, "<p>%s</p>\n") },
	"elements":   func() string { return filled(1<<20, "<p><b>%s</b>") },
	"deep":       func() string { return strings.Repeat("<div><ul><li>x", 100_000) + filled(1<<20, "<li>%s") },
	"words":      func() string { return filled(3<<20, "%s\n\n") },
	"rows":       func() string { return "<table>" + filled(3<<20, "<tr><td>one<td>%s") },
}

// filled repeats a piece with other words each time, up to a length in bytes.
func filled(length int, piece string) string {
	words := strings.Fields("mill bend river built two brothers could agree colour door water wheel ground rye barley six generations Sunday May high bakery loaves flour week visitors welcome")
	var b strings.Builder
	for i := 0; b.Len() < length-200; i++ {
		line := make([]string, 12)
		for j := range line {
			line[j] = words[(i*7+j*(i%5+1))%len(words)] + strconv.Itoa(i%97)
		}
		fmt.Fprintf(&b, piece, strings.Join(line, " ")+".")
	}
	return b.String()
}

// TestManyPagesReadAtOnce prints the memory of the server, and how long another user's messages take,
// while one user has 150 pages of the largest size read at once. It needs NODEST_MEASURE and a
// /proc; NODEST_PAGES names the kinds of pages.
func TestManyPagesReadAtOnce(t *testing.T) {
	if os.Getenv("NODEST_MEASURE") == "" || runtime.GOOS != "linux" {
		t.Skip("prints figures; NODEST_MEASURE=1 runs it")
	}
	kinds := []string{"paragraphs", "elements", "deep", "rows", "gzip-words", "plain-words"}
	if only := os.Getenv("NODEST_PAGES"); only != "" {
		kinds = strings.Split(only, ",")
	}
	pages := servePages(t, kinds...)
	defer pages.Close()
	at, err := url.Parse(pages.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		for _, route := range []string{"/api/v1/websearch/read", "/api/v1/files/web"} {
			if route == "/api/v1/files/web" && kind != kinds[0] {
				continue
			}
			inst := newInstallation(t, "", "NODEST_FETCH_ALLOW="+at.Hostname(), "NODEST_SEARCH=none").fast(t)
			p := inst.start(t)
			var signedIn struct{ Token string }
			account := map[string]any{"username": "mia", "password": "staple battery horse"}
			if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/users", account, nil); err != nil {
				t.Fatal(err)
			}
			if err := newTestClient(p.client.Base, "").Call(t.Context(), http.MethodPost, "/api/v1/auth/login", account, &signedIn); err != nil {
				t.Fatal(err)
			}
			other := newTestClient(p.client.Base, signedIn.Token)
			conversation := newConversation(t, other, sampleCharacter(t, other))
			alone := speak(t, other, conversation, nil, 40)
			rest := resident(t, p)
			done := make(chan struct{})
			outcomes := map[string]int{}
			started := time.Now()
			go func() {
				defer close(done)
				outcomes = readAll(t, p.client, route, pages.URL+"/"+kind, 150)
			}()
			most := make(chan int)
			go func() { most <- highest(t, p, done) }()
			beside := speak(t, other, conversation, done, 100_000)
			<-done
			t.Logf("%s %s: %d MiB above %d, %d messages beside p95 %v (alone %v), most %v, all in %.1f s: %v", route, kind,
				<-most-rest, rest, len(beside), percentile(beside, 0.95).Round(time.Millisecond), percentile(alone, 0.95).Round(time.Millisecond),
				slices.Max(beside).Round(time.Millisecond), time.Since(started).Seconds(), outcomes)
			p.stop(t)
		}
	}
}

// servePages answers with the page that the first folder of an address names; each is made once.
func servePages(t *testing.T, kinds ...string) *httptest.Server {
	bodies := map[string][]byte{}
	for _, kind := range kinds {
		text := []byte(heavyPages[kind[strings.Index(kind, "-")+1:]]())
		if strings.HasPrefix(kind, "gzip-") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, err := z.Write(text)
			if err := errors.Join(err, z.Close()); err != nil {
				t.Fatal(err)
			}
			text = b.Bytes()
		}
		bodies[kind] = text
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch {
		case strings.HasPrefix(kind, "plain-"):
			w.Header().Set("Content-Type", "text/plain")
		case strings.HasPrefix(kind, "gzip-"):
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = w.Write(bodies[kind])
	}))
}

// readAll has n different pages read at once and counts the answers by their codes.
func readAll(t *testing.T, c *cli.Client, route, base string, n int) map[string]int {
	var mu sync.Mutex
	outcomes := map[string]int{}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			code := "ok"
			res, err := c.Send(t.Context(), http.MethodPost, route, map[string]any{"url": fmt.Sprintf("%s/%d", base, i)}, "application/json")
			if err != nil {
				code = string(fault.Public(err).Code)
			} else {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[code]++
		})
	}
	group.Wait()
	return outcomes
}

// speak sends messages, at most n, until done is closed, and returns how long each took.
func speak(t *testing.T, c *cli.Client, conversation string, done <-chan struct{}, n int) (times []time.Duration) {
	for range n {
		select {
		case <-done:
			return times
		default:
		}
		started := time.Now()
		if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": "Good evening.", "reply": false}, nil); err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(started))
	}
	return times
}

var residentLine = regexp.MustCompile(`VmRSS:\s*(\d+) kB`)

// resident is the memory of a process, in MiB.
func resident(t *testing.T, p *process) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	kilobytes, err := strconv.Atoi(residentLine.FindStringSubmatch(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes >> 10
}

func highest(t *testing.T, p *process, done <-chan struct{}) (most int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, resident(t, p))
		select {
		case <-done:
			return most
		case <-tick.C:
		}
	}
}
