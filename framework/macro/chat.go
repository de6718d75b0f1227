package macro

import (
	"strconv"
	"strings"
)

func chatTable() []definition {
	return []definition{
		fixed("lastMessage", "the newest message", func(r *run) string { return text(r.env.Chat.last(anybody)) }),
		fixed("lastMessageId", "its index in the chat", func(r *run) string { return r.env.Chat.index(r.env.Chat.last(anybody)) }),
		fixed("lastUserMessage", "the newest message of the user", func(r *run) string {
			return text(r.env.Chat.last(func(m *Message) bool { return m.User && !m.Hidden }))
		}),
		fixed("lastCharMessage", "the newest message of a character", func(r *run) string {
			return text(r.env.Chat.last(func(m *Message) bool { return !m.User && !m.Hidden }))
		}),
		fixed("lastSwipeId", "how many swipes the newest message has", func(r *run) string {
			return r.env.Chat.swipes(func(m *Message) int { return m.Swipes })
		}),
		fixed("currentSwipeId", "which of them is shown, from 1", func(r *run) string {
			return r.env.Chat.swipes(func(m *Message) int { return m.Swipe + 1 })
		}),
		fixed("allChatRange", "indices of the first and the newest message", func(r *run) string {
			last := r.env.Chat.index(r.env.Chat.last(anybody))
			if last == "" {
				return ""
			}
			return "0-" + last
		}),
		fixed("firstIncludedMessageId", "index of the oldest message in the prompt", func(r *run) string {
			c := &r.env.Chat
			if c.Included < 0 || len(c.Messages) == 0 {
				return ""
			}
			return strconv.Itoa(c.Included)
		}),
		silent("firstDisplayedMessageId", "", "index of the oldest message on the screen", "", 0),
		fixed("input", "what the user is typing", func(r *run) string { return r.env.Input }),
	}
}

func anybody(*Message) bool { return true }

// last returns the index in Messages of the newest message that is wanted and not being
// written; -1 = there is none.
func (c *Chat) last(wanted func(*Message) bool) (*Message, int) {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		m := &c.Messages[i]
		if writing := m.Swipes > 0 && m.Swipe >= m.Swipes; !writing && wanted(m) {
			return m, i
		}
	}
	return nil, -1
}

func text(m *Message, _ int) string {
	if m == nil {
		return ""
	}
	return m.Text
}

func (c *Chat) index(m *Message, at int) string {
	if m == nil {
		return ""
	}
	return strconv.Itoa(c.Before + at)
}

func (c *Chat) swipes(count func(*Message) int) string {
	if n := len(c.Messages); n > 0 && c.Messages[n-1].Swipes > 0 {
		return strconv.Itoa(count(&c.Messages[n-1]))
	}
	return ""
}

func otherTable() []definition {
	size := func(name, about string, tokens func(m *Model) int, aliases ...string) definition {
		return fixed(name, about, func(r *run) string {
			if n := tokens(&r.env.Model); n > 0 {
				return strconv.Itoa(n)
			}
			return ""
		}, aliases...)
	}
	list := []definition{
		fixed("model", "name of the model", func(r *run) string { return r.env.Model.Name }),
		size("maxPrompt", "most tokens of a prompt", func(m *Model) int { return m.MaxContext - m.MaxReply }, "maxPromptTokens"),
		size("maxContext", "most tokens of a prompt with the reply", func(m *Model) int { return m.MaxContext }, "maxContextTokens"),
		size("maxResponse", "most tokens of a reply", func(m *Model) int { return m.MaxReply }, "maxResponseTokens"),
		fixed("lastGenerationType", "normal, continue, impersonate, swipe, regenerate or quiet", func(r *run) string { return r.env.Model.Generation }),
		{Info: Info{Name: "outlet", Args: "::name", About: "world info of an outlet"}, min: 1, max: 1, value: func(r *run, _ *call, args []string) (string, bool) {
			return r.env.Outlets[strings.TrimSpace(args[0])], true
		}},
		silent("isMobile", "", "whether the user has a phone", "false", 0),
		silent("hasExtension", "::name", "whether SillyTavern has an extension", "false", 1),
		silent("banned", ` "words"`, "words that a text-completion model must not use", "", 1),
	}
	for _, name := range strings.Fields(`instructStoryStringPrefix instructStoryStringSuffix instructUserPrefix instructUserSuffix
		instructAssistantPrefix instructAssistantSuffix instructSystemPrefix instructSystemSuffix instructFirstAssistantPrefix
		instructLastAssistantPrefix instructFirstUserPrefix instructLastUserPrefix instructSystemInstructionPrefix instructStop
		instructUserFiller instructInput instructOutput instructSeparator instructFirstInput instructLastInput instructFirstOutputPrefix
		instructLastOutputPrefix instructSystem systemPrompt defaultSystemPrompt chatStart chatSeparator exampleSeparator`) {
		list = append(list, silent(name, "", "part of a text-completion template", "", 0))
	}
	return list
}
