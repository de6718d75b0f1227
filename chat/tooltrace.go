package chat

// ToolTrace says how the tools were used for a text.
type ToolTrace struct {
	Rounds   int          `json:"rounds"`          // requests to the model
	Searches []ToolSearch `json:"searches"`        // in their order
	Reads    []string     `json:"reads"`           // ids of the files that were read
	Calls    []ToolUse    `json:"calls,omitempty"` // calls of tools that neither search nor read, in their order
	Path     string       `json:"path"`            // "tools", or "inject": found before the request, for a model without tools
}

// ToolSearch is a search that the model has asked for.
type ToolSearch struct {
	Query    string `json:"query"` // at most 300 code points
	Hits     int    `json:"hits"`
	Repeated bool   `json:"repeated,omitempty"` // it was made before, and not again, or has shown nothing new
}

// ToolUse is a call of a tool that neither searches nor reads.
type ToolUse struct {
	Tool   string `json:"tool"`
	Chars  int    `json:"chars"` // length of its result, in code points
	Ms     int64  `json:"ms"`
	Failed bool   `json:"failed,omitempty"`
}
