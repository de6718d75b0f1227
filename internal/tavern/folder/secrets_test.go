package folder_test

import (
	"testing"

	"nodest/internal/tavern/folder"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{ "a": 1.0, "proxy_password": "" }`: `{ "a": 1.0, "proxy_password": "" }`,
		`not JSON`:                           `not JSON`,
		`{"n":12345678901234567890,"proxies":[{"name":"<x>","password":"p"}],"api_key_openai":"sk"}`: "{\n    \"n\": 12345678901234567890,\n    \"proxies\": [\n        {\n            \"name\": \"<x>\"\n        }\n    ]\n}",
	} {
		got, had := folder.WithoutSecrets([]byte(in))
		if string(got) != want || had != (in != want) {
			t.Errorf("%s: %v %s", in, had, got)
		}
	}
}
