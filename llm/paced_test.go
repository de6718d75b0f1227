package llm

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flowing has n streams of a pace with text.
func flowing(ctx context.Context, of *pace, n int) []*Paced {
	all := make([]*Paced, n)
	for i := range all {
		all[i] = &Paced{ctx: ctx, body: strings.NewReader("text"), pace: of, emptied: true}
		all[i].Flows()
		all[i].Flows() // counts once
	}
	return all
}

// read reads once and returns how long it took.
func read(t *testing.T, p *Paced) time.Duration {
	t.Helper()
	begun := time.Now()
	if n, err := p.Read(make([]byte, 9)); n != 4 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	return time.Since(begun)
}

func TestFewStreamsAreReadAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		for _, p := range flowing(t.Context(), &of, crowd-1) {
			if took := read(t, p); took != 0 {
				t.Errorf("waited %v", took)
			}
		}
	})
}

func TestACrowdIsReadAtCommonBeats(t *testing.T) {
	for streams, apart := range map[int]time.Duration{16: 48 * time.Millisecond, 32: 96 * time.Millisecond, 300: 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var of pace
			begun, reads := time.Now(), make(chan time.Duration, streams)
			for _, p := range flowing(t.Context(), &of, streams) {
				go func() {
					read(t, p)
					reads <- time.Since(begun)
				}()
			}
			for range streams {
				if at := <-reads; at != apart {
					t.Errorf("%d streams: read after %v, want %v", streams, at, apart)
				}
			}
			next := flowing(t.Context(), &of, 1)[0]
			if took := read(t, next); took < apart {
				t.Errorf("%d streams: the next beat came after %v", streams, took)
			}
		})
	}
}

// Each beat is that of the first 16 that wait.
func TestALargeCrowdIsReadInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		begun, reads := time.Now(), make(chan time.Duration, 32)
		for i, p := range flowing(t.Context(), &of, 32) {
			if i == 16 || i == 24 {
				synctest.Wait()
				time.Sleep(20 * time.Millisecond)
			}
			go func() {
				read(t, p)
				reads <- time.Since(begun)
			}()
		}
		for i := range 32 {
			want := 96 * time.Millisecond
			if i >= 16 {
				want += 20 * time.Millisecond
			}
			if at := <-reads; at != want {
				t.Errorf("read %d came after %v, want %v", i, at, want)
			}
		}
	})
}

func TestTheFirstWordDoesNotWaitInACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		flowing(t.Context(), &of, crowd)
		first := &Paced{ctx: t.Context(), body: strings.NewReader("text"), pace: &of, emptied: true}
		if took := read(t, first); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

func TestStreamsThatEndLeaveTheCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		all := flowing(t.Context(), &of, crowd)
		all[0].Close()
		all[0].Close() // counts once
		if took := read(t, all[1]); took != 0 {
			t.Errorf("waited %v", took)
		}
		flowing(t.Context(), &of, 1)
		if took := read(t, all[2]); took == 0 {
			t.Error("a crowd did not wait")
		}
	})
}

func TestAFastStreamIsNotSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		flowing(t.Context(), &of, crowd)
		fast := &Paced{ctx: t.Context(), body: strings.NewReader(strings.Repeat("text", 1<<20)), pace: &of}
		fast.Flows()
		begun := time.Now()
		for _, size := range []int{4096, 100, 4096, 2048, 9000} { // sizes of the reader's buffer: more is waiting
			if n, err := fast.Read(make([]byte, size)); n != size || err != nil {
				t.Errorf("read %d bytes, %v", n, err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

func TestACancelledStreamDoesNotWaitForTheBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of pace
		flowing(t.Context(), &of, crowd)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gone := &Paced{ctx: ctx, body: cancelledBody{ctx}, pace: &of, emptied: true}
		gone.Flows()
		begun := time.Now()
		if _, err := gone.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// cancelledBody is the body of a request whose context may have ended.
type cancelledBody struct{ ctx context.Context }

func (b cancelledBody) Read([]byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}
