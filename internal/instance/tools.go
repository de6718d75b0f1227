package instance

import (
	"log/slog"

	"nodest/internal/fault"
	"nodest/internal/mcptool"
	"nodest/internal/outbound"
	"nodest/internal/setup"
)

// NewToolServers returns the MCP servers whose tools characters may call. public says whether
// errors may name their hosts.
func NewToolServers(cfg *setup.Config, public bool, log *slog.Logger) (*mcptool.Service, error) {
	servers, err := mcptool.Parse(cfg.Get("NODEST_MCP_SERVERS"), cfg.Get("NODEST_MCP_KEYS"))
	if err != nil {
		return nil, err
	}
	allow := setup.Split(cfg.Get("NODEST_FETCH_ALLOW"))
	for _, s := range servers { // the operator's choice may be private
		allow = append(allow, s.Host())
	}
	guard, err := outbound.New(outbound.Options{Allow: allow})
	if err != nil {
		return nil, fault.InvalidField("NODEST_MCP_SERVERS", "format", "%s", err)
	}
	return mcptool.New(mcptool.Options{Servers: servers, Client: guard.Client(outbound.Use{Patient: true}), Public: public, Log: log}), nil
}
