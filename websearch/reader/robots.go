package reader

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/temoto/robotstxt"
)

const (
	robotsName  = "NodeST"
	robotsFresh = time.Hour
	maxRobots   = 100 << 10 // bytes of one robots.txt; the rest is ignored
	maxRules    = 4 << 20   // bytes of all that are kept
)

// rules are those of one host.
type rules struct {
	data    *robotstxt.RobotsData // nil = everything is allowed
	expires time.Time
}

// allowed reports whether the host of u lets robots read it. A host that cannot be asked
// does not forbid anything: the page itself will tell what is wrong.
func (r *Reader) allowed(ctx context.Context, u *url.URL) bool {
	host := u.Scheme + "://" + u.Host
	known, ok := r.robots.Get(host)
	if !ok || !r.now().Before(known.expires) {
		data, size := r.askRobots(ctx, host)
		if ctx.Err() != nil {
			return true
		}
		known = rules{data, r.now().Add(robotsFresh)}
		r.robots.Put(host, known, 1000+size)
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return known.data == nil || path == "/robots.txt" || known.data.TestAgent(path, robotsName)
}

func (r *Reader) askRobots(ctx context.Context, host string) (*robotstxt.RobotsData, int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/robots.txt", http.NoBody)
	if err != nil {
		return nil, 0
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	if err != nil {
		return nil, 0
	}
	data, err := robotstxt.FromStatusAndBytes(resp.StatusCode, body)
	if err != nil {
		return nil, 0
	}
	return data, len(body)
}
