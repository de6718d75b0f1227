package gemini

import (
	"cmp"
	"regexp"
	"slices"

	"nodest/llm"
)

// aliases are names that Google keeps for its newest models. They serve while its list of models
// cannot be read.
var aliases = []string{"gemini-flash-latest", "gemini-flash-lite-latest"}

// kinds are the models that a chat can have by default, the preferred ones first: fast and cheap,
// then cheaper, then good.
var kinds = []string{"flash", "flash-lite", "pro"}

// stable are names of released models: a version, a kind, perhaps a revision, and nothing else. So
// previews, experiments and models for images, speech or live talk are none.
var stable = regexp.MustCompile(`^gemini-(\d+(?:\.\d+)*)-(flash|flash-lite|pro)(-\d{3})?$`)

// choose picks the default of Google's list: of each kind the alias for the newest, else the newest
// stable version. If there is none, it is the first model of the family that writes text, else any.
func choose(list []llm.Model) string {
	list = slices.DeleteFunc(slices.Clone(list), func(m llm.Model) bool { return !m.Generates })
	for _, kind := range kinds {
		alias := "gemini-" + kind + "-latest"
		if slices.ContainsFunc(list, func(m llm.Model) bool { return m.ID == alias }) {
			return alias
		}
		if id := newest(list, stable, kind); id != "" {
			return id
		}
	}
	writes := func(m llm.Model) bool { return textModel.MatchString(m.ID) && !otherKind.MatchString(m.ID) }
	if i := slices.IndexFunc(list, writes); i >= 0 {
		return list[i].ID
	}
	if len(list) > 0 {
		return list[0].ID
	}
	return ""
}

// newest is the model with the highest version among those of a kind: of the same version the one
// without a revision, which is the latest.
func newest(list []llm.Model, name *regexp.Regexp, kind string) (best string) {
	var version, revision string
	for _, m := range list {
		parts := name.FindStringSubmatch(m.ID)
		if parts == nil || parts[2] != kind {
			continue
		}
		newer := cmp.Or(llm.CompareVersions(parts[1], version), revisionOrder(parts[3], revision))
		if best == "" || newer > 0 {
			best, version, revision = m.ID, parts[1], parts[3]
		}
	}
	return best
}

func revisionOrder(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return llm.CompareVersions(a, b)
}

// embeddingModel makes the vectors, as long as Google has it.
const embeddingModel = "gemini-embedding-001"

var stableEmbedding = regexp.MustCompile(`^gemini-(embedding)-(\d+)$`)

// chooseEmbedding is embeddingModel if the list has it, else the newest stable model for vectors.
func chooseEmbedding(list []llm.Model) string {
	return llm.ChooseEmbedding(list, embeddingModel, stableEmbedding)
}
