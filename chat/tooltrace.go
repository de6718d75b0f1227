package chat

// ToolTrace says how the tools were used for a text.
type ToolTrace struct {
	Rounds   int          `json:"rounds"`   // requests to the model
	Searches []ToolSearch `json:"searches"` // in their order
	Reads    []string     `json:"reads"`    // ids of the files that were read
	Path     string       `json:"path"`     // "tools", or "inject": found before the request, for a model without tools
}

// ToolSearch is a search that the model has asked for.
type ToolSearch struct {
	Query    string `json:"query"` // at most 300 code points
	Hits     int    `json:"hits"`
	Repeated bool   `json:"repeated,omitempty"` // it was made before, and not again, or has shown nothing new
}
