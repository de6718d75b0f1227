package cli

import (
	"context"
	"net/http"
	"os"
	"strings"
	_ "time/tzdata" // so that time zones are known in a container without them

	"nodest/internal/fault"
)

// zoneFile leads to the rules of the machine's time zone.
const zoneFile = "/etc/localtime"

// localZone is the IANA name of the machine's time zone, "" if unknown.
func localZone() string {
	path := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if path == "" {
		path, _ = os.Readlink(zoneFile) // no link: the name is not known
	}
	if _, name, ok := strings.Cut(path, "zoneinfo/"); ok {
		return name
	}
	return path
}

// TellZone reports the time zone of this machine to the server.
func (c *Client) TellZone(ctx context.Context) error {
	zone := localZone()
	if zone == "" {
		return nil
	}
	err := c.Call(ctx, http.MethodPut, "/api/v1/settings/device-time-zone", map[string]string{"timeZone": zone}, nil)
	if fault.Is(err, fault.Invalid) { // not an IANA name, such as the rule "CET-1CEST"
		return nil
	}
	return err
}
