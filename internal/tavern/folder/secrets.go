package folder

import (
	"bytes"
	"encoding/json"
	"strings"
)

// WithoutSecrets is a document without the passwords and keys in it. It is the same, byte for byte, where it has none.
func WithoutSecrets(data []byte) (clean []byte, had bool) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	dec.UseNumber()
	var doc any
	if dec.Decode(&doc) != nil || !dropSecrets(doc) {
		return data, false
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if enc.Encode(doc) != nil {
		return nil, true
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), true
}

func dropSecrets(v any) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			found = dropSecrets(element) || found
		}
	case map[string]any:
		for name, value := range v {
			if text, ok := value.(string); ok && text != "" && isSecret(name) {
				delete(v, name)
				found = true
				continue
			}
			found = dropSecrets(value) || found
		}
	}
	return found
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "api_key", "apikey", "secret", "access_token", "auth_token"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
