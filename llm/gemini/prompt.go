package gemini

import (
	"cmp"
	"strings"

	"google.golang.org/genai"

	"nodest/internal/fault"
	"nodest/llm"
)

// prompt is a request in the API's terms, before either SDK's types.
type prompt struct {
	model       string
	system      string
	contents    []content
	temperature *float32
	topP        *float32
	topK        *int
	maxTokens   int32 // 0 = up to the model
	stop        []string
	seed        *int32
	thoughts    bool // ask for them
	json        bool // the reply is JSON
	tools       []*genai.FunctionDeclaration
	unsaid      []string // parameters of tools that the model is not told the types of
	noCalls     bool
}

// content is one turn. Calls and results are only for the transport that knows them.
type content struct {
	role, text string
	images     []llm.Image
	calls      []*genai.Part // with the text and everything else that belongs to them
	results    []*genai.FunctionResponse
}

// The roles of the API. There is no third one.
const (
	roleUser  = "user"
	roleModel = "model"
)

// stopLimit is how many stop sequences the API takes.
const stopLimit = 5

// prompt translates a request. System messages at the start become the system instruction; later
// ones speak as the user, in their place. The other messages stay as they are, in number and order;
// only empty ones, which the API refuses, are left out.
func (p *Provider) prompt(req llm.Request) (prompt, error) {
	pr := prompt{
		model:     bare(cmp.Or(req.Model, p.def.Current())),
		maxTokens: int32(req.MaxTokens),
		stop:      req.Stop[:min(len(req.Stop), stopLimit)],
	}
	if strings.ContainsAny(pr.model, "?#:%& ") || strings.Contains(pr.model, "..") {
		return pr, fault.InvalidField("model", "format", "must be the name of a Gemini model")
	}
	pr.thoughts = thinks(pr.model)
	pr.json = req.JSON && takesJSON(pr.model)
	if req.Temperature != nil {
		pr.temperature = new(float32(*req.Temperature))
	}
	if req.TopP != nil {
		pr.topP = new(float32(*req.TopP))
	}
	if req.Seed != nil {
		pr.seed = new(int32(*req.Seed)) // the API takes 32 bits; the lower ones are as good
	}
	pr.topK = req.Sampling.TopK // the penalties are for a few models; the others refuse the request
	pr.tools, pr.unsaid = declarations(req.Tools)
	pr.noCalls = req.NoCalls
	pr.system, pr.contents = arrange(req.Messages, pr.model)
	if len(pr.contents) == 0 {
		return pr, fault.InvalidField("messages", "required", "the prompt has no messages")
	}
	return pr, nil
}

// arrange returns the system instruction and the turns. All results of one turn of the model
// are in one turn behind it.
func arrange(messages []llm.Message, model string) (system string, contents []content) {
	leading := takesSystem(model)
	var first []string
	for _, m := range messages {
		switch {
		case len(m.Calls) > 0:
			contents = append(contents, content{role: roleModel, text: m.Text, calls: callParts(m, model)})
			continue
		case m.Result != nil:
			contents = addResult(contents, m.Result)
			continue
		case m.Text == "" && len(m.Images) == 0:
			continue
		case m.Role == llm.System && leading:
			first = append(first, m.Text)
			continue
		}
		leading = false
		role := roleUser
		if m.Role == llm.Assistant {
			role = roleModel
		}
		contents = append(contents, content{role: role, text: m.Text, images: m.Images})
	}
	system = strings.Join(first, "\n\n")
	if len(contents) == 0 && system != "" {
		return "", []content{{role: roleUser, text: system}}
	}
	return system, contents
}
