package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Bounds of a YAML file.
const (
	maxYAML      = 1 << 20
	maxYAMLDepth = 32
)

var (
	yamlName  = regexp.MustCompile(`(?m)^(?:char_)?name:`)
	yamlOther = regexp.MustCompile(`(?m)^(?:greeting|context|char_persona|char_greeting):`)
)

// IsYAML reports whether a text looks like a character of text-generation-webui in YAML.
func IsYAML(data []byte) bool {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return len(data) <= maxYAML && utf8.Valid(data) && yamlName.Match(data) && yamlOther.Match(data)
}

var errYAML = errors.New("no YAML object, or one with aliases or too many levels")

// FromYAML returns a YAML object as JSON. Members that JSON has no form for are left out.
func FromYAML(data []byte) (json.RawMessage, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode || !plain(&root, maxYAMLDepth) {
		return nil, errYAML
	}
	d := Doc{}
	for i, members := 0, root.Content[0].Content; i+1 < len(members); i += 2 {
		var value any
		if members[i+1].Decode(&value) != nil {
			continue
		}
		if doc, err := json.Marshal(value); err == nil {
			d[members[i].Value] = doc
		}
	}
	return json.Marshal(d)
}

// plain reports whether a node has no aliases, which can multiply what it holds, and at most so many levels.
func plain(n *yaml.Node, levels int) bool {
	if n.Kind == yaml.AliasNode || levels == 0 {
		return false
	}
	for _, child := range n.Content {
		if !plain(child, levels-1) {
			return false
		}
	}
	return true
}
