package openai

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"nodest/llm"
)

// chatRequest is the body of a chat completion: what all servers know, then what only
// OpenRouter gets.
type chatRequest struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	Temperature         *float64  `json:"temperature,omitempty"`
	TopP                *float64  `json:"top_p,omitempty"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	Stop                []string  `json:"stop,omitempty"`
	Seed                *int64    `json:"seed,omitempty"`
	Stream              bool      `json:"stream"`
	sampling

	Tools      []tool `json:"tools,omitempty"`
	ToolChoice string `json:"tool_choice,omitempty"` // empty = the model decides

	StreamOptions  *streamOptions  `json:"stream_options,omitempty"`
	ResponseFormat *responseFormat `json:"response_format,omitempty"`

	Models   []string `json:"models,omitempty"`
	Provider Routing  `json:"provider,omitzero"`

	begun bool // the last message begins the reply
}

func (r chatRequest) texts() []string {
	texts := make([]string, 0, len(r.Messages))
	for _, m := range r.Messages {
		texts = append(texts, m.Content.text)
		for _, c := range m.ToolCalls {
			texts = append(texts, c.Function.Arguments)
		}
	}
	return texts
}

type message struct {
	Role       string  `json:"role"`
	Content    content `json:"content"`
	ToolCalls  []call  `json:"tool_calls,omitempty"`
	ToolCallID string  `json:"tool_call_id,omitempty"`

	echo json.RawMessage // in place of all that, if it is set
}

// MarshalJSON sends back unchanged what came from the server.
func (m message) MarshalJSON() ([]byte, error) {
	if m.echo != nil {
		return m.echo, nil
	}
	type plain message
	return []byte(llm.JSONLine(plain(m))), nil
}

// content is a text, which is sent as a string, or images with a text, which are sent as
// parts: many servers understand strings only.
type content struct {
	text   string
	images []llm.Image
	none   bool // a message of nothing but calls
}

// part is a text or an image of a message.
type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func (c content) MarshalJSON() ([]byte, error) {
	if c.none {
		return []byte("null"), nil
	}
	if len(c.images) == 0 {
		return []byte(llm.JSONLine(c.text)), nil
	}
	var parts []part
	for _, img := range c.images {
		url := "data:" + img.ContentType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
		parts = append(parts, part{Type: "image_url", ImageURL: &imageURL{url}})
	}
	if c.text != "" {
		parts = append(parts, part{Type: "text", Text: c.text})
	}
	return []byte(llm.JSONLine(parts)), nil
}

type responseFormat struct {
	Type string `json:"type"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// stopLimit is how many stop sequences the interface takes.
const stopLimit = 4

// body makes the request with only those members that are set. Every call starts from an
// empty one, so that no prompt of another conversation can slip in.
func (c *Client) body(req llm.Request) chatRequest {
	b := chatRequest{
		Model: req.Model, Messages: c.messages(req.Messages), Tools: tools(req.Tools),
		Temperature: req.Temperature, TopP: req.TopP, MaxTokens: req.MaxTokens, Seed: req.Seed,
		Stop:   req.Stop[:min(len(req.Stop), stopLimit)],
		Stream: true,
	}
	if c.base.Hostname() != "api.mistral.ai" { // which rejects stream_options and reports the usage anyway
		b.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if len(b.Tools) > 0 && req.NoCalls {
		b.ToolChoice = "none"
	}
	if b.Model == "" {
		b.Model = c.def.Current()
	}
	if n := len(b.Messages); req.Begun && n > 1 {
		if _, refuses := c.noBegun.Load(b.Model); refuses {
			b.Messages = b.Messages[:n-1]
		} else {
			b.begun = true
		}
	}
	if _, refuses := c.noSampling.Load(b.Model); !refuses {
		b.sampling = c.samplingOf(b.Model, &req.Sampling)
	}
	if c.opts.Name == OpenAI && c.base.Host == openAIHost && thinks(b.Model) {
		// OpenAI's own reasoning models refuse the usual members.
		b.Temperature, b.TopP = nil, nil
		b.MaxCompletionTokens, b.MaxTokens = b.MaxTokens, 0
	}
	if _, refuses := c.noJSON.Load(b.Model); req.JSON && !refuses {
		b.ResponseFormat = &responseFormat{"json_object"}
	}
	if c.opts.Name == OpenRouter {
		b.Provider = c.opts.Routing
		b.Models, b.Provider.Backups = b.Provider.Backups, nil
	}
	return b
}

// openAIHost is OpenAI's own server, which refuses members that it does not know.
const openAIHost = "api.openai.com"

var thinkingModel = regexp.MustCompile(`^(o[1-9]|gpt-[5-9])`)

func thinks(model string) bool {
	return thinkingModel.MatchString(model) && !strings.Contains(model, "-chat")
}

// messages translates a prompt. Order and number stay; names of speakers are left
// out, because Mistral, Groq and others refuse them.
func (c *Client) messages(in []llm.Message) []message {
	out := make([]message, len(in))
	for i, m := range in {
		out[i] = message{
			Role: string(m.Role), Content: content{text: m.Text, images: m.Images, none: m.Text == "" && len(m.Calls) > 0},
			ToolCalls: calls(m.Calls), echo: m.EchoFor(c.opts.Name),
		}
		if r := m.Result; r != nil {
			out[i].Content.text, out[i].ToolCallID = r.Text, r.CallID
		}
	}
	return out
}
