package framework_test

import (
	"testing"

	"nodest/framework"
)

func TestLanguageOf(t *testing.T) {
	for text, want := range map[string]framework.Language{
		"":                    framework.English,
		"We met at the mill.": framework.English,
		"我们在磨坊见面。":            framework.Chinese,
		"我在Google上班，用Kubernetes写后台服务，你呢？": framework.Chinese,
		"He said 你好 and left at once.":    framework.English,
		"昨日は水車小屋で会いました。":                  framework.English, // asked for in English, written in its own language
	} {
		if got := framework.LanguageOf(text); got != want {
			t.Errorf("LanguageOf(%q) = %s, want %s", text, got, want)
		}
	}
}
