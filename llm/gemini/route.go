package gemini

import (
	"regexp"
	"slices"
	"strings"

	"nodest/llm"
)

// The words for the two SDKs, as doctor and the list of providers show them.
const (
	cardSDK    = "generative-ai-go"
	currentSDK = "genai"
)

// Transport tells which SDK serves the plain turns of a model: requests without tools and without
// a seed that end with the user. Everything else of it goes through currentSDK.
func (p *Provider) Transport(model string) string {
	model = bare(model)
	if p.opts.Prefer == currentSDK || !textModel.MatchString(model) || otherKind.MatchString(model) {
		return currentSDK
	}
	return cardSDK
}

// transportFor is Transport for one request.
func (p *Provider) transportFor(model string, req llm.Request) string {
	// generative-ai-go knows no seed, always ends with the user, and loses the signatures of calls.
	if req.Seed != nil || endsWithModel(req.Messages) || usesTools(req) {
		return currentSDK
	}
	return p.Transport(model)
}

func usesTools(req llm.Request) bool {
	return len(req.Tools) > 0 || slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return len(m.Calls) > 0 || m.Result != nil })
}

func endsWithModel(messages []llm.Message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Result != nil {
			return false
		}
		if messages[i].Text != "" || len(messages[i].Images) > 0 {
			return messages[i].Role == llm.Assistant
		}
	}
	return false
}

var (
	// textModel is the family that generative-ai-go serves, aliases included: a plain turn has
	// nothing in it that is newer than that SDK, and the cleaner keeps from it what is new in an
	// answer. Models of another family go through genai, which knows more.
	textModel = regexp.MustCompile(`^gemini-`)

	// otherKind are the models of the family whose answers are more than text, or that need more
	// than a plain request.
	otherKind = regexp.MustCompile(`image|live|audio|tts|embedding|robotics|computer-use|deep-research`)

	// thinkers answer with thoughts when asked to, which only genai can do.
	thinkers = regexp.MustCompile(`^gemini-(2\.5|[3-9]|\d\d|(flash|pro|flash-lite)-latest)`)
)

func thinks(model string) bool {
	return thinkers.MatchString(model) && !otherKind.MatchString(model)
}

// takesSystem reports whether a model knows the system instruction.
func takesSystem(model string) bool { return !strings.HasPrefix(model, "gemma") }

// takesJSON reports whether a model has a mode for JSON.
func takesJSON(model string) bool { return takesSystem(model) }

// noTools are the models that refuse tools; the API's list does not tell.
var noTools = regexp.MustCompile(`^gemma-[1-3]|-(?:image|tts)\b|embedding`)

// jsonType is how the API is asked for JSON.
const jsonType = "application/json"

// bare removes the prefix models/ from a model's name; tuned models keep theirs.
func bare(model string) string { return strings.TrimPrefix(model, "models/") }
