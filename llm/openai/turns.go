package openai

import (
	"slices"
	"strings"
)

// Hosts whose models take messages of one role in a row and system messages anywhere. Of others it
// is not known: a server with a chat template may refuse them, or drop all but one.
var looseHosts = []string{
	"api.openai.com", ".openai.azure.com", "api.x.ai", "generativelanguage.googleapis.com", "api.anthropic.com",
}

// Families of models behind OpenRouter of which the same is known.
var looseModels = []string{"openai/", "anthropic/", "google/gemini", "x-ai/"}

// TakesLooseTurns reports whether a model, with its backups, is known to take prompts in
// which user and assistant do not speak in turn.
func (c *Client) TakesLooseTurns(model string) bool {
	if c.opts.Name == OpenRouter {
		return isLoose(model) && !slices.ContainsFunc(c.opts.Routing.Backups, func(m string) bool { return !isLoose(m) })
	}
	return slices.ContainsFunc(looseHosts, func(host string) bool {
		return c.base.Hostname() == host || host[0] == '.' && strings.HasSuffix(c.base.Hostname(), host)
	})
}

// TakesBeginnings reports whether a model goes on with a message of its own at the end of a prompt: SillyTavern begins the
// replies of Claude alone. Newer ones refuse it, which is known once one has done so.
func (c *Client) TakesBeginnings(model string) bool {
	_, refuses := c.noBegun.Load(model)
	return !refuses && strings.Contains(strings.ToLower(model), "claude")
}

func isLoose(model string) bool {
	family := func(prefix string) bool { return strings.HasPrefix(model, prefix) }
	return slices.ContainsFunc(looseModels, family) && !strings.HasPrefix(model, "openai/gpt-oss")
}
