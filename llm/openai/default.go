package openai

import (
	"regexp"
	"slices"

	"nodest/llm"
)

// aliases are the names that are tried while a server's list of models cannot be read, or if it has
// none: a server with a single model takes any name. OpenRouter's chooses a model itself.
var aliases = map[string][]string{
	OpenRouter: {auto},
	OpenAI:     {"gpt-5.4-mini"},
}

// aliasesOf are those of a flavour; any compatible server has those of OpenAI.
func aliasesOf(name string) []string {
	if name == OpenRouter {
		return aliases[OpenRouter]
	}
	return aliases[OpenAI]
}

// auto is OpenRouter's alias for a model that it chooses by the prompt and the price.
const auto = "openrouter/auto"

var (
	// small are OpenAI's stable fast models, by their version.
	small = regexp.MustCompile(`^(?:openai/)?gpt-(\d+(?:\.\d+)*)-mini$`)

	// noChat are models for something else than a chat.
	noChat = regexp.MustCompile(`(?i)embed|\bbge\b|rerank|whisper|tts|dall-e|image|audio|realtime|transcri|moderation|guard|search|davinci|babbage|codex|sora|computer-use|deep-research|\bocr\b`)

	// unstable are models that may end or change at any time, or that few requests may use.
	unstable = regexp.MustCompile(`(?i)preview|\bexp\b|experimental|\bbeta\b|\balpha\b|nightly|:free$`)
)

// choose picks the default of a server's list: OpenRouter's alias, OpenAI's newest stable mini
// model, else the newest model for chats, by its date where the server tells one, a stable one if
// there is any.
func choose(list []llm.Model) string {
	list = slices.DeleteFunc(slices.Clone(list), func(m llm.Model) bool { return !m.Generates || noChat.MatchString(m.ID) })
	best := func(fits func(string) bool, newer func(a, b llm.Model) bool) (found llm.Model) {
		for _, m := range list {
			if fits(m.ID) && (found.ID == "" || newer(m, found)) {
				found = m
			}
		}
		return found
	}
	byDate := func(a, b llm.Model) bool { return a.Created > b.Created }
	byVersion := func(a, b llm.Model) bool { return llm.CompareVersions(a.ID, b.ID) > 0 }
	for _, m := range []llm.Model{
		best(func(id string) bool { return id == auto }, byDate),
		best(small.MatchString, byVersion),
		best(func(id string) bool { return !unstable.MatchString(id) }, byDate),
		best(func(string) bool { return true }, byDate),
	} {
		if m.ID != "" {
			return m.ID
		}
	}
	return ""
}

// embeddingModel makes the vectors, as long as the server has it.
const embeddingModel = "text-embedding-3-small"

var stableEmbedding = regexp.MustCompile(`^text-embedding-\d+-small$`)

// chooseEmbedding is embeddingModel if the list has it, else OpenAI's newest small model for
// vectors.
func chooseEmbedding(list []llm.Model) string {
	return llm.ChooseEmbedding(list, embeddingModel, stableEmbedding)
}
