package main

import (
	"context"
	"fmt"
	"log/slog"

	"nodest/internal/fault"
	"nodest/internal/mcptool"
	"nodest/internal/outbound"
	"nodest/internal/setup"
)

// newToolServers returns the MCP servers whose tools characters may call. public says whether
// errors may name their hosts.
func newToolServers(cfg *setup.Config, public bool, log *slog.Logger) (*mcptool.Service, error) {
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

// checkToolServers asks each MCP server for its tools.
func checkToolServers(ctx context.Context, cfg *setup.Config, network bool) (checks []check) {
	tools, err := newToolServers(cfg, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return []check{{"MCP servers", "misconfigured", oneLine(err)}}
	}
	defer func() { _ = tools.Close() }() // nothing is kept
	if names := tools.Names(); !network && len(names) > 0 {
		return []check{{name: "MCP servers", detail: fmt.Sprintf("%v, not contacted", names)}}
	} else if !network {
		return nil
	}
	for _, o := range tools.Offers(ctx) {
		c := check{name: "MCP server " + o.Server, detail: fmt.Sprintf("%d tools", len(o.Tools))}
		if o.Err != nil {
			c.detail, c.fix = "not usable", fault.Public(o.Err).Message
		}
		checks = append(checks, c)
	}
	return checks
}
