package mcptool

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"nodest/internal/fault"
	"nodest/llm"
)

// Server is an MCP server that the operator has named.
type Server struct {
	Name    string  // a letter, then at most 31 letters and digits, in lower case
	Address string  // http or https
	Key     llm.Key // bearer token; zero = none
}

// Host is the host of the address, without a port.
func (s Server) Host() string {
	u, err := url.Parse(s.Address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Most is how many servers there may be.
const Most = 16

// serverName has no underscore: the first one in the name of a tool ends that of its server.
var serverName = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

// Parse reads a list of servers (name=https://host/mcp, separated by commas) and a list of
// their keys (name=token).
//
// Errors: Invalid with the setting; it does not show a key.
func Parse(list, keys string) ([]Server, error) {
	invalid := func(format string, args ...any) error {
		return fault.InvalidField("NODEST_MCP_SERVERS", "format", format, args...)
	}
	var servers []Server
	for name, address := range pairs(list) {
		u, err := url.Parse(address)
		switch {
		case !serverName.MatchString(name):
			return nil, invalid("%q is not a name; entries look like weather=https://host/mcp, names have at most 32 letters a to z and digits, and begin with a letter", name)
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return nil, invalid("the address of %s must be a URL such as https://host/mcp", name)
		case u.User != nil:
			return nil, invalid("the address of %s must have no user name; set its key in NODEST_MCP_KEYS", name)
		case slices.ContainsFunc(servers, func(s Server) bool { return s.Name == name }):
			return nil, invalid("there are two servers %s", name)
		}
		servers = append(servers, Server{Name: name, Address: address})
	}
	if len(servers) > Most {
		return nil, invalid("must have at most %d servers", Most)
	}
	for name, key := range pairs(keys) {
		i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name })
		if i < 0 || key == "" {
			return nil, fault.InvalidField("NODEST_MCP_KEYS", "format", "entries look like name=token, with a name of NODEST_MCP_SERVERS")
		}
		servers[i].Key = llm.NewKey(key)
	}
	return servers, nil
}

// pairs are the entries of a list such as a=1,b=2, in their order.
func pairs(list string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for entry := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
			if name+value != "" && !yield(strings.TrimSpace(name), strings.TrimSpace(value)) {
				return
			}
		}
	}
}
