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

// Transport tells which SDK serves a model. Single requests of a model of cardSDK
// still go through currentSDK where only that can express them: prompts that end
// with the character's text, seeds, and tools.
func (p *Provider) Transport(model string) string {
	model = bare(model)
	if p.opts.Prefer == currentSDK || !cardModel.MatchString(model) || newerKind.MatchString(model) {
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
	// cardModel are the families that generative-ai-go was made for. A model not
	// in this list goes through genai, which drops what it does not understand.
	cardModel = regexp.MustCompile(`^(gemini-(1\.0|1\.5|2\.0)-|gemini-pro$|gemini-pro-vision$)`)

	// newerKind are the exceptions among them.
	newerKind = regexp.MustCompile(`thinking|image|live|audio|tts`)

	// thinkers answer with thoughts when asked to.
	thinkers = regexp.MustCompile(`^gemini-(2\.5|[3-9]|(flash|pro|flash-lite)-latest)`)
)

func thinks(model string) bool {
	return thinkers.MatchString(model) && !newerKind.MatchString(model)
}

// takesSystem reports whether a model knows the system instruction.
func takesSystem(model string) bool { return !strings.HasPrefix(model, "gemma") }

// takesJSON reports whether a model has a mode for JSON.
func takesJSON(model string) bool { return takesSystem(model) && !olderKind.MatchString(model) }

// noTools are the models that refuse tools; the API's list does not tell.
var noTools = regexp.MustCompile(`^gemma-[1-3]|-(?:image|tts)\b|embedding`)

// olderKind are the first models, which have no mode for JSON.
var olderKind = regexp.MustCompile(`^gemini-(1\.0-|pro$|pro-vision$)`)

// jsonType is how the API is asked for JSON.
const jsonType = "application/json"

// bare removes the prefix models/ from a model's name; tuned models keep theirs.
func bare(model string) string { return strings.TrimPrefix(model, "models/") }
