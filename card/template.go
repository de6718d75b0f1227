package card

import (
	"bytes"
	"slices"

	"nodest/internal/fault"
)

// Templates of SillyTavern for text completion. The system prompt is used: it becomes a
// preset. The others are kept as they came.
const (
	templateSystemPrompt = "system prompt"
	templateContext      = "context"
	templateInstruct     = "instruct"
	templateReasoning    = "reasoning"
	templateSampler      = "sampler"
	templateAll          = "all" // several of them in one file
)

// templateReasons say why the templates that are kept have no effect.
var templateReasons = map[string]string{
	templateContext:   "a context template is kept, without effect: the preset decides the order of a prompt",
	templateInstruct:  "an instruct template is kept, without effect: model servers put messages into the model's own template",
	templateReasoning: "a reasoning template is kept, without effect: a model's thoughts are told from its reply without it",
	templateSampler:   "samplers for text completion are kept, without effect: set temperature and the like in a preset, or in the settings",
	templateAll:       "templates for text completion are kept, without effect; export the system prompt as a file of its own to use it",
}

// templateName recognises SillyTavern's templates for text completion; "" for
// anything else.
func templateName(o *object) string {
	hasAll := func(keys ...string) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return !o.has(key) })
	}
	switch {
	case o.has("prompts"), o.has("name") && o.has("first_mes"):
		return ""
	case hasAll("input_sequence", "output_sequence"):
		return templateInstruct
	case o.has("story_string"):
		return templateContext
	case hasAll("prefix", "suffix", "separator"):
		return templateReasoning
	case hasAll("temp", "rep_pen"), hasAll("temperature", "tail_free_sampling"):
		return templateSampler
	case hasAll("content", "post_history"):
		return templateSystemPrompt
	case o.object("instruct") != nil && o.object("context") != nil:
		return templateAll
	}
	return ""
}

// ImportTemplate reads a template for text completion, which is kept as it came: servers
// for chat completion have no use for it. A warning says so.
//
// Errors: TooLarge; InvalidImport, also for the template of a system prompt, which is a
// preset.
func ImportTemplate(data []byte, filename string, limits Limits) (*Resource, error) {
	im := newImporter(filename, limits)
	doc, err := im.resource(data, fault.InvalidImport)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(doc)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidImport, "a template must be a JSON object")
	}
	name := templateName(o)
	reason := templateReasons[name]
	if reason == "" {
		return nil, fault.New(fault.InvalidImport, "not a template for text completion")
	}
	if len(im.warnings) == 0 { // nothing in it had to be mended
		doc = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	title := o.text("name", "")
	for _, part := range []string{templateContext, templateInstruct} { // a file of several is called after one of them
		if name == templateAll && title == "" {
			title = o.object(part).text("name", "")
		}
	}
	code := "unused_template"
	if name == templateSampler {
		code = "unused_sampler"
	}
	im.warn("", code, "%s", reason)
	return &Resource{Name: im.name(title), Format: "sillytavern", Dialect: SillyTavern, Doc: doc, Warnings: im.warnings}, nil
}
