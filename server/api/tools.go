package api

import (
	"context"

	"nodest/internal/fault"
	"nodest/internal/mcptool"
)

// toolOperations are about the tools that characters can be given. They are no commands: a
// server may take seconds to answer.
var toolOperations = []Operation{
	{Route: "GET /tools", Data: takes(toolServers)},
}

type wireToolServer struct {
	Name      string     `json:"name"`
	Reachable bool       `json:"reachable"`
	Reason    string     `json:"reason,omitempty"`
	Tools     []wireTool `json:"tools"`
}

type wireTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func toolServers(ctx context.Context, c *Call, _ struct{}) (any, error) {
	servers := []wireToolServer{}
	for _, o := range c.Tools.Offers(ctx) {
		servers = append(servers, toolServer(o))
	}
	return struct {
		Servers []wireToolServer `json:"servers"`
	}{servers}, nil
}

func toolServer(o mcptool.Offer) wireToolServer {
	w := wireToolServer{Name: o.Server, Reachable: o.Err == nil, Tools: []wireTool{}}
	if o.Err != nil {
		w.Reason = fault.Public(o.Err).Message
	}
	for _, t := range o.Tools {
		w.Tools = append(w.Tools, wireTool{t.Name, t.Description})
	}
	return w
}
