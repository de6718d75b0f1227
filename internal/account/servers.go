package account

import (
	"bytes"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// MaxServers is how many model servers owners can add.
const MaxServers = 50

// ModelServer is an OpenAI-compatible server that an owner has added. All users can choose it as their
// provider, by its name.
type ModelServer struct {
	Name      string
	BaseURL   string // as CheckBaseURL returns it
	Model     string // for requests that name none; "" = one of the server's own list
	Sealed    []byte // its key, encrypted; nil = none
	UpdatedAt time.Time
}

// OpenServer is a server with its key, which no answer and no log has.
type OpenServer struct {
	ModelServer
	Key string
}

// ServerInput is what an owner gives for a server.
type ServerInput struct {
	BaseURL string
	Model   string
	Key     *string // "" = none; nil = the key that it has, which a server at another address does not get
}

var serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{1,30}$`)

// IsServerName reports whether a server can have a name.
func IsServerName(name string) bool { return serverName.MatchString(name) }

// ModelServers lists the servers for an owner, by name.
func (s *Service) ModelServers(ctx context.Context, by *User) ([]*ModelServer, error) {
	if err := s.ManagesServers(by); err != nil {
		return nil, err
	}
	return s.store.ModelServers(ctx)
}

// ManagesServers refuses everybody but owners.
func (s *Service) ManagesServers(by *User) error {
	if by.Role != RoleOwner {
		return fault.New(fault.Forbidden, "only an owner can manage the model servers")
	}
	return nil
}

// OpenServers lists the servers with their keys, for whoever asks them. A key that was sealed under another
// secret is left out and reported in the log.
func (s *Service) OpenServers(ctx context.Context) ([]*OpenServer, error) {
	rows, err := s.store.ModelServers(ctx)
	if err != nil {
		return nil, err
	}
	open := make([]*OpenServer, len(rows))
	for i, row := range rows {
		open[i] = &OpenServer{ModelServer: *row, Key: s.keyOfServer(ctx, row)}
	}
	return open, nil
}

func (s *Service) keyOfServer(ctx context.Context, row *ModelServer) string {
	if len(row.Sealed) == 0 {
		return ""
	}
	key, err := s.seal.open(row.Sealed, serverBound(row.Name))
	if err != nil {
		s.opts.Log.ErrorContext(ctx, "stored key of a model server cannot be decrypted; was NODEST_SECRET_KEY changed?", "server", row.Name)
	}
	return key
}

// KeyForServer returns the key for a request to baseURL: the one that is given, else that of the server of that
// name if it is at the same address.
func (s *Service) KeyForServer(ctx context.Context, name, baseURL string, given *string) (string, error) {
	if given != nil {
		key := strings.TrimSpace(*given)
		return key, checkKey(key)
	}
	rows, err := s.store.ModelServers(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(rows, func(row *ModelServer) bool { return row.Name == name && sameOrigin(row.BaseURL, baseURL) })
	if i < 0 {
		return "", nil
	}
	return s.keyOfServer(ctx, rows[i]), nil
}

// PutModelServer adds or changes a server. The users' own keys for it are removed when its host is another one:
// they were given for that host.
//
// Errors: Forbidden; InvalidField for what cannot be used; QuotaExceeded beyond MaxServers.
func (s *Service) PutModelServer(ctx context.Context, by *User, name string, in ServerInput) (*ModelServer, error) {
	if err := s.ManagesServers(by); err != nil {
		return nil, err
	}
	if err := s.checkServerName(name); err != nil {
		return nil, err
	}
	baseURL, err := CheckBaseURL(in.BaseURL)
	if err != nil {
		return nil, err
	}
	model := strings.TrimSpace(in.Model)
	if err := op.CheckLine("model", model, 256); err != nil {
		return nil, err
	}
	after := &ModelServer{Name: name, BaseURL: baseURL, Model: model, UpdatedAt: s.now()}
	sealed, err := s.sealForServer(name, in.Key)
	if err != nil {
		return nil, err
	}
	note := &audit.Entry{ActorID: by.ID, Object: name, Detail: op.Truncate(origin(baseURL), 200)}
	err = s.store.PutModelServer(ctx, after, func(before *ModelServer) (moved bool, err error) { // may be called again
		after.Sealed, note.Action = sealed, audit.ServerAdded
		if before == nil {
			return true, nil
		}
		note.Action, moved = audit.ServerChanged, !sameOrigin(before.BaseURL, baseURL)
		switch {
		case in.Key != nil || before.Sealed == nil:
		case moved:
			return false, fault.InvalidField("key", "required", "required: the stored key was given for another host; give the key again, or an empty one")
		default:
			after.Sealed = bytes.Clone(before.Sealed)
		}
		return moved, nil
	}, note)
	return after, err
}

// sealForServer encrypts the key that is given for a server; nil without one.
func (s *Service) sealForServer(name string, given *string) ([]byte, error) {
	if given == nil || strings.TrimSpace(*given) == "" {
		return nil, nil
	}
	key := strings.TrimSpace(*given)
	return s.seal.seal(key, serverBound(name)), checkKey(key)
}

// DeleteModelServer removes a server with the users' own keys for it. Chats that choose it say so when they are
// used. It returns fault.NotFound if there is none.
func (s *Service) DeleteModelServer(ctx context.Context, by *User, name string) error {
	if err := s.ManagesServers(by); err != nil {
		return err
	}
	return s.store.DeleteModelServer(ctx, name, &audit.Entry{Action: audit.ServerRemoved, ActorID: by.ID, Object: op.Truncate(name, 64)})
}

func (s *Service) checkServerName(name string) error {
	switch {
	case !IsServerName(name):
		return fault.InvalidField("name", "format", "must be 2 to 31 lower-case letters, digits and hyphens, beginning with a letter")
	case slices.Contains(s.opts.BuiltIn, name):
		return fault.InvalidField("name", "value", "%q is a built-in provider; choose another name", name)
	}
	return nil
}

// CheckBaseURL returns the address of an OpenAI-compatible server without blanks and slashes around it. Its errors
// do not quote it: it may hold a password. A query is refused, because it may hold a key, which is not shown.
func CheckBaseURL(text string) (string, error) {
	refuse := func(why string) (string, error) { return "", fault.InvalidField("baseUrl", "format", "%s", why) }
	text = strings.TrimSpace(text)
	if len(text) > 2048 {
		return "", fault.InvalidField("baseUrl", "range", "must have at most 2048 characters")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return refuse("must be an http or https address of printable ASCII characters without spaces")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || !isWeb(u):
		return refuse("must be an http or https address, such as http://127.0.0.1:11434/v1")
	case u.User != nil:
		return refuse("must not contain a user name or password; give the key instead")
	case strings.ContainsAny(text, "?#"):
		return refuse("must have no query and no fragment; give the key as the key")
	}
	if !hasPort(u) {
		return refuse("must have a port from 1 to 65535, or none")
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}

// isWeb reports whether an address is an http or https URL with a host.
func isWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Opaque == ""
}

// hasPort reports whether an address has a port that can be, or none.
func hasPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535
}

// origin is the scheme, host and port of an address.
func origin(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func sameOrigin(a, b string) bool { return strings.EqualFold(origin(a), origin(b)) }

// serverBound is authenticated with the key of a server. No user has such an id.
func serverBound(name string) string { return "server/" + name }

// OpensServer is Opens for the key of a server.
func OpensServer(secret []byte, name string, sealed []byte) bool {
	s, err := newSealer(secret)
	if err == nil {
		_, err = s.open(sealed, serverBound(name))
	}
	return err == nil
}
