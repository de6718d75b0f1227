package knowledge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/knowledge"
	"nodest/knowledge/parse"
)

// One member beside another one.

// slowParser holds files called slow until it is released, and counts them.
type slowParser struct {
	mu      sync.Mutex
	running int
	most    int
	release chan struct{}
}

func (s *slowParser) parse(ctx context.Context, in parse.Input) (*parse.Document, error) {
	if strings.HasPrefix(in.Name, "slow") {
		s.note(1)
		defer s.note(-1)
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return parse.Parse(ctx, in)
}

func (s *slowParser) note(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
	s.most = max(s.most, s.running)
}

// While the slow documents of a member hold every place where files are parsed, small files of
// others become ready.
func TestSlowDocumentsDoNotHoldUpASmallFile(t *testing.T) {
	slow := &slowParser{release: make(chan struct{})}
	onPipes(t, func(o *knowledge.Options) { o.Parser = slow.parse }, func(p *pipe) {
		slow.release = make(chan struct{})
		runner := jobs.New(p.DB, jobs.Options{Poll: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		runner.Handle(p.Svc.Kinds()...)
		var slows []string
		for i := range 12 {
			slows = append(slows, p.Upload(fmt.Sprint("slow ", i, ".md"), harbour(append(places, fmt.Sprint("pier", i))...)).ID)
		}
		runner.Start()
		t.Cleanup(func() {
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_ = runner.Close(now)
		})
		eventually(t, "the member's documents are being parsed", func() bool {
			slow.mu.Lock()
			defer slow.mu.Unlock()
			return slow.running == 2
		})
		ready := func(f *fixture, id string) func() bool {
			return func() bool {
				file, err := f.Svc.File(context.Background(), f.User, id)
				f.Must(err)
				return file.State == knowledge.Ready
			}
		}
		other, third := p.other(), p.other()
		for i, f := range []*fixture{other, third, other} {
			f.Svc = p.Svc
			small := f.Upload("small.md", harbour("chapel", fmt.Sprint("mill", i)))
			eventually(t, "a small file beside slow ones is ready", ready(f, small.ID))
		}
		slow.mu.Lock()
		if slow.most != 2 {
			t.Fatalf("slow documents of one member at once: slow.most is %d, want %d", slow.most, 2)
		}
		slow.mu.Unlock()
		close(slow.release)
		for _, id := range slows {
			eventually(t, "a slow document is ready", ready(p.fixture, id))
		}
	})
}

// Searches that wait too long for others are refused with a time to try again; who runs none has a
// place beside somebody who runs many.
func TestSearchesAreSharedBetweenMembers(t *testing.T) {
	onPipes(t, nil, func(p *pipe) {
		p.Upload("places.md", harbour(places...))
		p.drain()
		other := p.other()
		other.Svc = p.Svc
		other.Upload("places.md", harbour(places...))
		p.drain()
		release := knowledge.HoldSearches(p.Svc, p.User)
		defer release()
		found, err := p.Svc.Search(context.Background(), other.User, knowledge.SearchRequest{Query: "chapel", FileOnly: true})
		p.Must(err)
		if len(found.Chunks) == 0 {
			t.Fatalf("a search beside those of another member: found.Chunks is %+v, want more", found.Chunks)
		}
		knowledge.WaitLess(p.Svc, func() {
			_, err = p.Svc.Search(context.Background(), p.User, knowledge.SearchRequest{Query: "chapel", FileOnly: true})
		})
		if !fault.Is(err, fault.RateLimited) {
			t.Fatalf("the error is %v", err)
		}
		if got := fault.Public(err).RetryAfter; got <= 0 {
			t.Fatalf("fault.Public(err).RetryAfter is %v, want more than 0", got)
		}
	})
}

// eventually waits until it holds, for a minute at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after a minute it is still not so that %s", what)
		}
	}
}
