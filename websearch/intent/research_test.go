package intent_test

import (
	"testing"

	"nodest/websearch/intent"
)

func TestAResearchIsOnlyBegunByPlainWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Could you look into heat pumps for old houses?",
		"Please research the best way to store seed potatoes.",
		"Look into how coral reefs recover, would you?",
		"Do some deep research on the Hanseatic League!",
		"Look into that castle tour for me.",
		"帮我研究一下咖啡对睡眠的影响",
		"你能帮我深入调研电动车电池回收吗？",
		"電気自動車の寿命について徹底的に調べてほしい",
		"전기차 배터리 수명을 자세히 알아봐 줘",
	} {
		if !intent.Research(text, intent.Options{}) {
			t.Errorf("%q is no research", text)
		}
	}
	for _, text := range []string{
		"Look into my eyes.",
		"Would you look into the mirror?",
		"*looks into how the lock works*",
		"I used to research butterflies.",
		"She will look into it tomorrow.",
		"What is a heat pump?",
		"我研究这个很久了",
		"请研究这本魔法书",
		"他说要帮我研究一下这个案子",
		"昨日、苔を調べた",
	} {
		if intent.Research(text, intent.Options{}) {
			t.Errorf("%q is a research", text)
		}
	}
	if intent.Research("Could you look into Mira's past?", intent.Options{Names: []string{"Mira"}}) {
		t.Error("a research about somebody of the story")
	}
}

func TestTheTopicOfAResearchMayBeInTheChat(t *testing.T) {
	t.Parallel()
	for text, before := range map[string]bool{
		"Could you look into that?":             true,
		"Do some research on it for me, please": true,
		"帮我研究一下这个":                              true,
		"Could you look into that museum?":      false,
		"帮我研究一下咖啡对睡眠的影响":                        false,
	} {
		if intent.ResearchThat(text) != before {
			t.Errorf("%q: %v", text, !before)
		}
	}
}
