package tavern

import (
	"nodest/card"
	"nodest/framework"
)

// builtInTexts are the texts of the built-in preset in a language.
type builtInTexts struct {
	main, personality, scenario, newExample, newChat, impersonation, nudge string
}

var builtInWords = map[framework.Language]builtInTexts{
	framework.English: {
		main:        "Write {{char}}'s next reply in a role-play with {{user}}.",
		personality: "{{char}}'s personality: {{personality}}",
		scenario:    "Scenario: {{scenario}}",
		newExample:  "[Example chat]", newChat: "[Start of the chat]",
		impersonation: "[Write the next message of {{user}}, in the style of what {{user}} wrote before. Do not write for {{char}}.]",
		nudge:         "[Continue your last message without repeating it.]",
	},
	framework.Chinese: {
		main:        "在与{{user}}的角色扮演中，写出{{char}}的下一条回复。",
		personality: "{{char}}的性格：{{personality}}",
		scenario:    "场景：{{scenario}}",
		newExample:  "[示例对话]", newChat: "[对话开始]",
		impersonation: "[以{{user}}之前的文风，写出{{user}}的下一条消息。不要替{{char}}说话。]",
		nudge:         "[接着你的上一条消息往下写，不要重复已有的内容。]",
	},
}

// builtIn is the preset of characters without one: plain words in the system role, in the order of
// SillyTavern.
func builtIn(l framework.Language) card.Preset {
	texts, ok := builtInWords[l]
	if !ok {
		texts = builtInWords[framework.English]
	}
	return card.Preset{
		BuiltIn: true, TavernOrder: builtInOrder,
		Prompts: []card.Prompt{
			{Identifier: idMain, Name: "Main Prompt", Content: texts.main, Enable: true, Role: "system", InjectionOrder: usualOrder},
			{Identifier: idPostHistory, Name: "Post-History Instructions", Enable: true, Role: "system", InjectionOrder: usualOrder},
		},
		Utility: card.Utility{
			Impersonation: texts.impersonation, NewChat: texts.newChat, NewExample: texts.newExample, ContinueNudge: texts.nudge,
			WorldInfoFormat: "{0}", ScenarioFormat: texts.scenario, PersonalityFormat: texts.personality,
		},
	}
}
