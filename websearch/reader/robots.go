package reader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nodest/internal/outbound"
)

const (
	robotsName  = "NodeST"
	robotsFresh = time.Hour
	robotsDown  = 5 * time.Minute // before a host whose server failed is asked again
	maxRobots   = 500 << 10       // bytes of one robots.txt; the rest is ignored
	maxRules    = 4 << 20         // bytes of all that are kept
)

// rules are those of one host for us.
type rules struct {
	list    []rule // nil = everything is allowed
	nothing bool   // nothing is allowed
	expires time.Time
}

// rule allows or forbids the paths that begin like its pattern.
type rule struct {
	allow  bool
	parts  []string // pieces of the pattern, between its asterisks
	whole  bool     // the pattern is for the whole path
	length int      // bytes of the pattern, as it is compared
}

// allowed reports whether the host of u lets robots read it (RFC 9309). A host that
// cannot be reached is asked no further: the error says why it cannot.
func (r *Reader) allowed(ctx context.Context, u *url.URL, h *hold) (bool, error) {
	host := u.Scheme + "://" + u.Host
	known, ok := r.robots.Get(host)
	if !ok || !r.now().Before(known.expires) {
		var size int
		var err error
		if known, size, err = r.askRobots(ctx, host, h); err != nil {
			return false, err
		}
		r.robots.Put(host, known, 1000+size)
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path == "/robots.txt" || known.allow(path), nil
}

func (r *Reader) askRobots(ctx context.Context, host string, h *hold) (found rules, size int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/robots.txt", http.NoBody)
	if err != nil {
		return rules{}, 0, err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := r.client.Do(req)
	switch {
	case errors.Is(err, outbound.ErrRedirects): // there is none
		return rules{expires: r.now().Add(robotsFresh)}, 0, nil
	case err != nil:
		return rules{}, 0, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return rules{nothing: true, expires: r.now().Add(robotsDown)}, 0, nil
	case resp.StatusCode > 299:
		return rules{expires: r.now().Add(robotsFresh)}, 0, nil
	}
	body, err := unpacked(resp, h)
	if err != nil {
		return rules{}, 0, err
	}
	text, err := collect(io.LimitReader(body, maxRobots+1), maxRobots+1, h)
	if err != nil {
		return rules{}, 0, err
	}
	if len(text) > maxRobots { // without the line that is not complete
		text = text[:bytes.LastIndexAny(text[:maxRobots], "\r\n")+1]
	}
	found = rules{list: robotsFor(string(text), robotsName), expires: r.now().Add(robotsFresh)}
	for _, line := range found.list {
		size += line.length + 16*len(line.parts) + 100
	}
	return found, size, nil
}

// robotsFor returns the rules of a robots.txt for a robot: those of all groups with its name, or
// else those of all groups for everybody. Lines that are not understood are left out.
func robotsFor(text, robot string) []rule {
	var own, general []rule
	named, forOwn, forAll := false, false, false // forOwn and forAll are the group's
	began := false                               // the group has rules: the next name begins another one
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok {
			continue
		}
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if began {
				began, forOwn, forAll = false, false, false
			}
			name := product(value)
			forOwn, forAll = forOwn || strings.EqualFold(name, robot), forAll || name == "*"
			named = named || forOwn
		case "allow", "disallow":
			began = true
			if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "*") { // also "Disallow:", which forbids nothing
				continue
			}
			r := newRule(key == "allow", value)
			if forOwn {
				own = append(own, r)
			}
			if forAll {
				general = append(general, r)
			}
		}
	}
	if named {
		return own
	}
	return general
}

// product is the name in a line such as "User-agent: NodeST/1.0", or "*".
func product(value string) string {
	if first, _, _ := strings.Cut(value, " "); first == "*" {
		return first
	}
	end := strings.IndexFunc(value, func(r rune) bool {
		return r != '-' && r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end >= 0 {
		return value[:end]
	}
	return value
}

func newRule(allow bool, pattern string) rule {
	r := rule{allow: allow}
	if strings.HasSuffix(pattern, "$") {
		r.whole, pattern, r.length = true, pattern[:len(pattern)-1], 1
	}
	for part := range strings.SplitSeq(pattern, "*") {
		r.parts = append(r.parts, spelled(part))
		r.length += len(r.parts[len(r.parts)-1]) + 1
	}
	return r
}

// spelled writes a path so that two spellings of it are the same bytes: letters,
// digits and -._~ as they are, other bytes than those of a path with upper-case
// percent signs. * and $ have a meaning in patterns only.
func spelled(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c, escaped := unescaped(path[i:])
		if escaped {
			i += 2
		}
		if isUnreserved(c) || !escaped && c > ' ' && c < 0x7F && c != '*' && c != '$' {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + hexDigits[c>>4:c>>4+1] + hexDigits[c&15:c&15+1])
	}
	return b.String()
}

// unescaped is the first byte of a path, or the one that is written there with a percent sign.
func unescaped(path string) (c byte, escaped bool) {
	if path[0] != '%' || len(path) < 3 {
		return path[0], false
	}
	high, low := strings.IndexByte(hexDigits, upper(path[1])), strings.IndexByte(hexDigits, upper(path[2]))
	if high < 0 || low < 0 {
		return path[0], false
	}
	return byte(high<<4 | low), true
}

const hexDigits = "0123456789ABCDEF"

func isUnreserved(c byte) bool {
	return strings.IndexByte("-._~", c) >= 0 || c >= '0' && c <= '9' || upper(c) >= 'A' && upper(c) <= 'Z'
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// allow reports whether a path may be read: the longest pattern decides, and of two that
// are as long, the one that allows.
func (r rules) allow(path string) bool {
	if r.nothing {
		return false
	}
	path = spelled(path)
	longest, allow := -1, true
	for _, one := range r.list {
		if (one.length > longest || one.length == longest && one.allow) && one.matches(path) {
			longest, allow = one.length, one.allow
		}
	}
	return allow
}

func (r *rule) matches(path string) bool {
	rest, ok := strings.CutPrefix(path, r.parts[0])
	if !ok || len(r.parts) == 1 {
		return ok && (!r.whole || rest == "")
	}
	last := len(r.parts) - 1
	for _, part := range r.parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	if r.whole {
		return strings.HasSuffix(rest, r.parts[last])
	}
	return strings.Contains(rest, r.parts[last])
}
