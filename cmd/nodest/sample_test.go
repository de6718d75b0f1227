package main

import (
	"strings"
	"testing"
)

// The sample speaks the language of the terminal, as it does that of the page.
func TestTheSampleSpeaksTheLanguageOfTheTerminal(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	for _, tt := range []struct{ env, has string }{
		{"LANG=en_GB.UTF-8", "Wren Halloway"},
		{"LANG=zh_CN.UTF-8", "江鹂"},
		{"LANG=", "Wren Halloway"},
	} {
		here := *inst
		here.env = append(append([]string{}, inst.env...), tt.env)
		if out := here.mustRun(t, "import", "--sample"); !strings.Contains(out, tt.has) {
			t.Errorf("%s: %q, want %s", tt.env, out, tt.has)
		}
	}
}

func TestLanguageOfATerminal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "en"},
		{map[string]string{"LANG": "zh_TW.UTF-8"}, "zh"},
		{map[string]string{"LANG": "zh"}, "zh"},
		{map[string]string{"LANG": "ZH-Hans"}, "zh"},
		{map[string]string{"LANG": "zha_CN"}, "en"}, // Zhuang
		{map[string]string{"LANG": "C.UTF-8"}, "en"},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"},
	} {
		if got := languageOf(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.env, got, tt.want)
		}
	}
}
