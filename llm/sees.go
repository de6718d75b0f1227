package llm

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Families of models that understand images, by the last part of their ids, and those
// members that do not.
var (
	seeing = regexp.MustCompile(`^(?:(?:chat)?gpt-(?:4o|4\.[15]|4-turbo|[5-9])|o[134](?:-|$)|claude-(?:[3-9]|opus|sonnet|haiku)|` +
		`gemini-(?:1\.5|[2-9]|flash|pro-(?:vision|latest))|gemma-?3[:-](?:4|12|27)b|llama-?4|(?:bak)?llava|pixtral|minicpm-v|moondream|internvl|` +
		`mistral-(?:small-?3\.[12]|medium-3)|grok-4|phi-?4-multimodal)|vision|-vl\b|qwen[\d.]*vl|qvq`)
	blind = regexp.MustCompile(`embed|audio|realtime|transcribe|tts|^o1-(?:mini|preview)|^o3-mini|^gpt-4-turbo-preview|^grok-4.*code`)
)

// KnownToSee says whether a model is of a family that is known to understand images. The
// provider's list of models knows better where it says anything: Model.Sees.
func KnownToSee(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return seeing.MatchString(name) && !blind.MatchString(name)
}

// WithoutImages sends every prompt without its images, unless sees says that the model
// understands them. sees is asked only about prompts with images.
func WithoutImages(gen Generator, sees func(context.Context) bool) Generator {
	has := func(m Message) bool { return len(m.Images) > 0 }
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		if slices.ContainsFunc(req.Messages, has) && !sees(ctx) {
			req.Messages = slices.Clone(req.Messages)
			for i := range req.Messages {
				req.Messages[i].Images = nil
			}
		}
		return gen.Stream(ctx, req)
	})
}
