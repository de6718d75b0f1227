package llm

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
)

// Keys holds the keys of one provider and switches between them. The first key is
// used as long as it works. A key that the provider refused (401, 403), limited
// (429) or failed with (5xx) cools down, and the request is sent again with the
// next one, each key once per request and only while nothing was delivered. After any
// other error the key stays: a bad request is as bad with every key.
//
// A cooling key is used only when all are cooling, the one that is ready first,
// and not at all before the time that the provider itself asked for (Retry-After):
// then the error says when to come back.
//
// Without keys (a local server) the request is sent with the zero Key.
//
// Keys is safe for concurrent use.
type Keys struct {
	provider string

	mu   sync.Mutex
	keys []keyState
}

// How long a key cools down.
const (
	restRefused = 10 * time.Minute // after 401 or 403
	restLimited = 15 * time.Second // after 429 without Retry-After, doubled per failure in a row
	restFailed  = 2 * time.Second  // after 5xx, doubled per failure in a row
	restLongest = time.Hour        // at most, even if the provider asks for more
)

type keyState struct {
	key      Key
	failures int       // in a row
	until    time.Time // cools down until then
	asked    bool      // the provider itself named that time
	code     fault.Code
}

// NewKeys holds keys for provider; zero keys among them are left out.
func NewKeys(provider string, keys []Key) *Keys {
	k := &Keys{provider: provider}
	for _, key := range keys {
		if !key.IsZero() {
			k.keys = append(k.keys, keyState{key: key})
		}
	}
	return k
}

// Stream is the body of an adapter's Stream: one sends the request with the key
// given and is called again with another key where that can help.
func (k *Keys) Stream(ctx context.Context, req Request, one func(context.Context, Key, Request) iter.Seq2[Chunk, error]) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		err := k.each(ctx, true, func(key Key) (repeatable bool, err error) {
			delivered := false
			for c, err := range one(ctx, key, req) {
				if err != nil {
					return !delivered, err
				}
				delivered = delivered || delivers(c)
				if !yield(c, nil) {
					return false, errBroken
				}
			}
			return false, nil
		})
		if err != nil && !errors.Is(err, errBroken) {
			yield(Chunk{}, err)
		}
	}
}

// delivers reports whether a reader sees something of c: from then on the request
// must not be repeated behind its back.
func delivers(c Chunk) bool { return c.Text != "" || c.Reasoning != "" }

// errBroken says that the reader of a sequence broke off its loop.
var errBroken = errors.New("reader broke off")

// Do calls one with a key, and with another where that can help. It is Stream for
// requests that answer in one piece.
func (k *Keys) Do(ctx context.Context, one func(context.Context, Key) error) error {
	return k.each(ctx, true, func(key Key) (bool, error) { return true, one(ctx, key) })
}

// Ask is Do for a question beside the work, such as the list of models: a failure says nothing
// about the keys.
func (k *Keys) Ask(ctx context.Context, one func(context.Context, Key) error) error {
	return k.each(ctx, false, func(key Key) (bool, error) { return true, one(ctx, key) })
}

// each calls send until it succeeds, fails in a way no key can cure, says that the request must not
// be repeated (false), or every key had its turn. With counts, each key's failures are noted.
func (k *Keys) each(ctx context.Context, counts bool, send func(Key) (repeatable bool, err error)) error {
	if len(k.keys) == 0 {
		_, err := send(Key{})
		return err
	}
	used := make([]bool, len(k.keys))
	var last error
	for {
		i, err := k.pick(used)
		switch {
		case last != nil && (err != nil || i < 0):
			return last
		case err != nil:
			return err
		}
		used[i] = true
		repeatable, err := send(k.keys[i].key)
		if errors.Is(err, errBroken) {
			k.report(i, nil)
			return err
		}
		if last = k.scrub(err); counts {
			k.report(i, last)
		}
		if last == nil || !repeatable || !curedByKey(last) || ctx.Err() != nil {
			return last
		}
	}
}

// pick returns the key to use next, -1 when every key was used, or an error when
// the provider told us to wait with all that remain.
func (k *Keys) pick(used []bool) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	best := -1
	for i, s := range k.keys {
		switch {
		case used[i]:
		case !s.until.After(now):
			return i, nil
		case best < 0 || s.readyBefore(k.keys[best]):
			best = i
		}
	}
	if best < 0 {
		return -1, nil
	}
	if s := k.keys[best]; s.asked {
		return -1, Upstream(k.provider, s.code, 0, errors.New("all keys are cooling down")).After(s.until.Sub(now))
	}
	return best, nil
}

// readyBefore orders cooling keys: those that rest by our own rule before those
// that the provider told to wait, then by time.
func (s keyState) readyBefore(other keyState) bool {
	if s.asked != other.asked {
		return other.asked
	}
	return s.until.Before(other.until)
}

// report notes how a request with key i ended.
func (k *Keys) report(i int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.keys[i]
	if err == nil {
		s.failures, s.code, s.until, s.asked = 0, "", time.Time{}, false
		return
	}
	if !curedByKey(err) {
		return
	}
	e := fault.Public(err)
	s.failures++
	s.code = e.Code
	asked := e.RetryAfter > 0
	rest := min(e.RetryAfter, restLongest)
	if !asked {
		rest = restAfter(e.Code, s.failures)
	}
	// A time that the provider names replaces one that we chose.
	if until := time.Now().Add(rest); asked && !s.asked || until.After(s.until) {
		s.until = until
	}
	s.asked = asked
}

func restAfter(code fault.Code, failures int) time.Duration {
	base := restFailed
	switch code {
	case fault.UpstreamAuth:
		return restRefused
	case fault.UpstreamRate, fault.UpstreamQuota:
		base = restLimited
	}
	return min(base<<min(failures-1, 16), restLongest)
}

// curedByKey reports whether another key may succeed where err happened.
func curedByKey(err error) bool {
	switch status := ProviderStatus(err); {
	case aboutTools(err):
		return false
	case fault.Is(err, fault.UpstreamAuth), fault.Is(err, fault.UpstreamRate):
		return true
	case fault.Is(err, fault.UpstreamQuota):
		return status != 402 // paid per account, not per key
	default:
		return status >= 500
	}
}

// scrub returns err, or a copy without the cause and with masks if the text of
// err holds one of the keys (a *url.Error quotes the address).
func (k *Keys) scrub(err error) error {
	if err == nil {
		return nil
	}
	text, public := err.Error(), fault.Public(err)
	clean := k.hide(text)
	message := k.hide(public.Message)
	if clean == text && message == public.Message {
		return err
	}
	e := fault.Retell(public.Code, message).Because(errors.New(clean))
	e.Details, e.RetryAfter = public.Details, public.RetryAfter
	return e
}

// shortestSecret is the length in bytes below which a key is a placeholder ("none"
// for a local server), whose letters may stand in any text.
const shortestSecret = 8

func (k *Keys) hide(text string) string {
	for i := range k.keys { // only the key itself, which never changes, so without the lock
		secret := k.keys[i].key.Reveal()
		if len(secret) < shortestSecret {
			continue
		}
		text = strings.ReplaceAll(text, secret, mask)
		text = strings.ReplaceAll(text, url.QueryEscape(secret), mask)
	}
	return text
}
