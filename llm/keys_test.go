package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

const secret = "sk-very+secret/0123="

func TestAKeyNeverPrints(t *testing.T) {
	key := llm.NewKey(secret)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%b", "%U", "%e"} {
		fmt.Fprintf(&out, verb+"\n", key)
		fmt.Fprintf(&out, verb+"\n", struct{ K llm.Key }{key})
		fmt.Fprintf(&out, verb+"\n", []llm.Key{key})
		fmt.Fprintf(&out, verb+"\n", struct{ k llm.Key }{key}) // unexported: methods are not called
	}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("x", "key", key, "in", struct{ K llm.Key }{key})
	}
	if err := json.NewEncoder(&out).Encode(map[string]any{"k": key, "s": struct{ K llm.Key }{key}}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&out, llm.NewKeys("test", []llm.Key{key}))
	text := out.String()
	for _, leak := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret)} {
		if strings.Contains(text, leak) {
			t.Errorf("the key leaks as %s", leak)
		}
	}
	if key.Reveal() != secret || (llm.Key{}).Reveal() != "" {
		t.Error("Reveal must give the secret")
	}
}

func TestParseKeys(t *testing.T) {
	for list, want := range map[string][]string{
		"":                nil,
		" , ,":            nil,
		"a":               {"a"},
		" a , b,a,123, c": {"a", "b", "c"},
	} {
		var got []string
		for _, k := range llm.ParseKeys(list) {
			got = append(got, k.Reveal())
		}
		if !slices.Equal(got, want) {
			t.Errorf("ParseKeys(%q) = %q, want %q", list, got, want)
		}
	}
}

// bench is a provider that answers each key as it was told and notes who came.
type bench struct {
	errs map[string]error // by key; nil = a reply
	came []string
}

func (b *bench) one(_ context.Context, key llm.Key, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		b.came = append(b.came, key.Reveal())
		if err := b.errs[key.Reveal()]; err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		_ = yield(llm.Chunk{Text: "hi from " + key.Reveal()}, nil) && yield(llm.Chunk{Last: true, Finish: llm.FinishStop}, nil)
	}
}

func TestKeysChangeOnlyWhereAKeyCanHelp(t *testing.T) {
	for name, c := range map[string]struct {
		err   error // key a's error
		moves bool
	}{
		"401":                     {status(401), true},
		"403":                     {status(403), true},
		"429":                     {status(429), true},
		"500":                     {status(500), true},
		"503":                     {status(503), true},
		"wrong key told with 400": {llm.Upstream("test", fault.UpstreamAuth, 400, nil), true},
		"quota told with 429":     {llm.Upstream("test", fault.UpstreamQuota, 429, nil), true},
		"400":                     {status(400), false},
		"402":                     {status(402), false},
		"404":                     {status(404), false},
		"408":                     {status(408), false},
		"413":                     {status(413), false},
		"no connection":           {llm.NetworkError(context.Background(), "test", errors.New("refused")), false},
		"blocked":                 {llm.BlockedError("test", llm.StagePrompt, ""), false},
		"broken protocol":         {llm.CutOff("test", nil), false},
		"cancelled":               {fault.New(fault.Cancelled, "cancelled"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{errs: map[string]error{"a": c.err}}
			keys := llm.NewKeys("test", llm.ParseKeys("a,b,c"))
			text, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one))
			if c.moves && (err != nil || text != "hi from b") {
				t.Errorf("%q, %v; want an answer with b", text, err)
			}
			if !c.moves && (!errors.Is(err, c.err) || len(b.came) != 1) {
				t.Errorf("%v after keys %v; want the error of a alone", err, b.came)
			}
		})
	}
}

func TestKeysCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{errs: map[string]error{"a": status(503)}}
		keys := llm.NewKeys("test", llm.ParseKeys("a,b"))
		ask := func(want ...string) {
			t.Helper()
			b.came = nil
			_, _, _ = read(keys.Stream(t.Context(), llm.Request{}, b.one))
			if !slices.Equal(b.came, want) {
				t.Errorf("came %v, want %v", b.came, want)
			}
		}
		ask("a", "b") // a fails and cools 2 s
		ask("b")
		time.Sleep(2 * time.Second)
		ask("a", "b") // again: 4 s
		time.Sleep(3 * time.Second)
		ask("b")
		time.Sleep(time.Second)
		b.errs = nil
		ask("a") // works again, and stays the first
		ask("a")
		b.errs = map[string]error{"a": status(401), "b": status(503)}
		ask("a", "b")
		ask("b", "a") // all cool: the one that is ready first
	})
}

func TestKeysDoNotHurryAProviderThatNamedATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{errs: map[string]error{"a": llm.StatusError("test", 429, 20*time.Second, nil)}}
		keys := llm.NewKeys("test", llm.ParseKeys("a"))
		for wait := range 2 {
			_, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one))
			wantCode(t, err, fault.UpstreamRate)
			if got, want := fault.Public(err).RetryAfter, time.Duration(20-5*wait)*time.Second; got != want {
				t.Errorf("RetryAfter = %v, want %v", got, want)
			}
			time.Sleep(5 * time.Second)
		}
		if len(b.came) != 1 {
			t.Errorf("the provider was asked %d times, want once", len(b.came))
		}
		time.Sleep(10 * time.Second)
		b.errs = nil
		if text, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one)); err != nil || text != "hi from a" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestATimeThatTheProviderNamesEndsALongerRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{errs: map[string]error{"a": status(401)}} // rests 10 min
		keys := llm.NewKeys("test", llm.ParseKeys("a"))
		_, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one))
		wantCode(t, err, fault.UpstreamAuth)
		b.errs = map[string]error{"a": llm.StatusError("test", 429, time.Second, nil)}
		_, _, err = read(keys.Stream(t.Context(), llm.Request{}, b.one))
		wantCode(t, err, fault.UpstreamRate)
		b.errs = nil
		time.Sleep(time.Second)
		if text, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one)); err != nil || text != "hi from a" {
			t.Errorf("%q, %v after the second that the provider asked for", text, err)
		}
	})
}

func TestNoKeyIsLostToASenselessRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{errs: map[string]error{"a": llm.StatusError("test", 429, 240*time.Hour, nil)}}
		keys := llm.NewKeys("test", llm.ParseKeys("a"))
		_, _, _ = read(keys.Stream(t.Context(), llm.Request{}, b.one))
		b.errs = nil
		time.Sleep(time.Hour)
		if _, _, err := read(keys.Stream(t.Context(), llm.Request{}, b.one)); err != nil {
			t.Errorf("error = %v after an hour", err)
		}
	})
}

func TestKeysDoNotRepeatWhatWasDelivered(t *testing.T) {
	asked := 0
	keys := llm.NewKeys("test", llm.ParseKeys("a,b"))
	text, _, err := read(keys.Stream(t.Context(), llm.Request{}, func(context.Context, llm.Key, llm.Request) iter.Seq2[llm.Chunk, error] {
		asked++
		return script([]step{say("one"), fail(status(503))}).Stream(t.Context(), llm.Request{})
	}))
	wantCode(t, err, fault.UpstreamDown)
	if text != "one" || asked != 1 {
		t.Errorf("%q after %d requests", text, asked)
	}
}

func TestKeysWorkWithoutAKey(t *testing.T) {
	b := &bench{}
	if text, _, err := read(llm.NewKeys("local", nil).Stream(t.Context(), llm.Request{}, b.one)); err != nil || text != "hi from " {
		t.Errorf("%q, %v", text, err)
	}
}

func TestErrorsLoseTheKeyOnTheirWay(t *testing.T) {
	cause := &url.Error{Op: "Post", URL: "https://x.test/v1?key=" + secret, Err: errors.New("refused")}
	for name, err := range map[string]error{
		"in the cause":   llm.NetworkError(context.Background(), "test", cause),
		"in the message": fault.New(fault.UpstreamAuth, "no such key %s", secret),
		"without a code": cause,
		"escaped":        &url.Error{Op: "Post", URL: "https://x.test/v1?key=" + url.QueryEscape(secret), Err: errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			keys := llm.NewKeys("test", []llm.Key{llm.NewKey(secret)})
			got := keys.Do(t.Context(), func(context.Context, llm.Key) error { return err })
			for e := got; e != nil; e = errors.Unwrap(e) {
				text := fmt.Sprintf("%v %+v %#v", e, e, e)
				if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
					t.Errorf("the key is in %T", e)
				}
			}
			if fault.Public(got).Code != fault.Public(err).Code {
				t.Errorf("code %s became %s", fault.Public(err).Code, fault.Public(got).Code)
			}
		})
	}
}

func TestKeysAreUsedByManyAtOnce(t *testing.T) {
	keys := llm.NewKeys("test", llm.ParseKeys("a,b,c"))
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for n := range 100 {
				_ = keys.Do(t.Context(), func(_ context.Context, key llm.Key) error {
					if (i+n)%3 == 0 {
						return llm.StatusError("test", []int{401, 429, 500}[n%3], 0, errors.New(key.Reveal()))
					}
					return nil
				})
			}
		})
	}
	group.Wait()
}
