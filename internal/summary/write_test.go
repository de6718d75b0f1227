package summary_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/llm"
)

// goodSummary is an acceptable summary of n code points.
func goodSummary(n int) string {
	return strings.Repeat("They met at the mill and talked about the ferry. ", n/49+1)[:n-1] + "."
}

func upstream(code fault.Code) error { return llm.Upstream("test", code, 0, nil) }

// scriptedModel answers with its entries, or fails with those that are errors, and
// records the prompts.
type scriptedModel struct {
	answers []any
	prompts []string
}

func (s *scriptedModel) Ask(_ context.Context, p llm.Prompt) (string, error) {
	s.prompts = append(s.prompts, p.Text)
	if len(s.prompts) > len(s.answers) {
		return "", errors.New("asked once too often")
	}
	switch a := s.answers[len(s.prompts)-1].(type) {
	case error:
		return "", a
	case string:
		return a, nil
	}
	panic("a script holds texts and errors")
}

func TestWriteSummary(t *testing.T) {
	fine, fair := goodSummary(400), goodSummary(1300)
	chinese := strings.Repeat("他们在磨坊见面，谈到了渡船。", 20)
	invented := strings.Repeat("Priscilla Vane gave 5000 dollars to Mr Dorset. ", 9)
	const refusal = "I'm sorry, but I can't help with that request. Is there something else that I could do for you?"
	tests := []struct {
		name    string
		answers []any
		want    string // empty = by rule
		cause   fault.Code
		took    time.Duration
	}{
		{name: "a good answer", answers: []any{fine}, want: fine},
		{name: "three tenths too long are let pass", answers: []any{fair}, want: fair},
		{name: "too long: asked to shorten it", answers: []any{goodSummary(1301), fine}, want: fine},
		{name: "still too long: cut at the end of a sentence", answers: []any{goodSummary(3000), goodSummary(1400)}, want: goodSummary(1400)[:979]},
		{name: "nothing shorter comes: the first one is cut", answers: []any{goodSummary(3000), refusal}, want: goodSummary(3000)[:979]},
		{name: "shortening fails: the first one is cut", answers: []any{goodSummary(3000), upstream(fault.UpstreamAuth)}, want: goodSummary(3000)[:979]},
		{name: "thoughts and fences are taken off", answers: []any{"<think>let me see</think>\n```\n" + fine + "\n```"}, want: fine},
		{name: "thoughts that the prompt has opened are taken off", answers: []any{"let me see</think>\n" + fine}, want: fine},
		{name: "the markers are taken off", answers: []any{"--- CONVERSATION SUMMARY (AI-GENERATED, NOT VISIBLE TO USER) ---\n" + fine + "\n--- END OF SUMMARY ---"}, want: fine},
		{name: "empty, then good", answers: []any{"", fine}, want: fine},
		{name: "refused, then good", answers: []any{refusal, fine}, want: fine},
		{name: "blocked by a filter, then good", answers: []any{upstream(fault.Blocked), fine}, want: fine},
		{name: "refused twice", answers: []any{refusal, refusal}},
		{name: "empty twice", answers: []any{upstream(fault.EmptyReply), upstream(fault.EmptyReply)}},
		{name: "in another language, then right", answers: []any{chinese, fine}, want: fine},
		{name: "in another language twice", answers: []any{chinese, chinese}},
		{name: "a name that nobody said, then right", answers: []any{"Then Priscilla left. " + fine, fine}, want: fine},
		{name: "a name that nobody said twice: without its sentence", answers: []any{"Then Priscilla left. " + fine, fine + " They owe 5000 dollars."}, want: fine},
		{name: "hardly anything but such names", answers: []any{invented, invented}},
		{name: "a broken reply passes", answers: []any{llm.CutOff("test", errors.New("gone")), fine}, want: fine, took: time.Second},
		{name: "the provider says how long to wait", answers: []any{llm.StatusError("test", 429, 7*time.Second, nil), fine}, want: fine, took: 7 * time.Second},
		{name: "empty, then too long, then shortened", answers: []any{upstream(fault.EmptyReply), goodSummary(2000), fine}, want: fine},
		{name: "the limit of the provider passes", answers: []any{upstream(fault.UpstreamRate), fine}, want: fine, took: time.Second},
		{name: "after the second wait, too", answers: []any{upstream(fault.UpstreamDown), upstream(fault.UpstreamTimeout), fine}, want: fine, took: 5 * time.Second},
		{name: "but no third", answers: []any{upstream(fault.UpstreamDown), upstream(fault.UpstreamDown), upstream(fault.UpstreamDown)}, cause: fault.UpstreamDown, took: 5 * time.Second},
		{name: "a refused key is not tried again", answers: []any{upstream(fault.UpstreamAuth)}, cause: fault.UpstreamAuth},
		{name: "too much for the model", answers: []any{upstream(fault.ContextTooLarge)}, cause: fault.ContextTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, start := &scriptedModel{answers: tt.answers}, time.Now()
				draft, err := summary.Write(t.Context(), model, summary.Work{Lines: eventfulChat(12), Rebuild: true})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if len(model.prompts) > 1 && draft.Cause == nil && tt.took == 0 && model.prompts[0] == model.prompts[1] {
					t.Error("the second prompt does not say what was wrong with the answer")
				}
				if len(model.prompts) != len(tt.answers) {
					t.Errorf("%d calls, want %d", len(model.prompts), len(tt.answers))
				}
				if tt.want != "" {
					if draft.Text != tt.want || draft.Method != summary.MethodModel || draft.Cause != nil {
						t.Errorf("draft = %+v, want %q", draft, tt.want)
					}
					return
				}
				if draft.Text == "" || draft.Method != summary.MethodExtractive || draft.Cause == nil {
					t.Errorf("draft = %+v, want one by rule", draft)
				}
				if tt.cause != "" && !fault.Is(draft.Cause, tt.cause) {
					t.Errorf("cause = %v, want %s", draft.Cause, tt.cause)
				}
			})
		})
	}
}

// eventfulChat is a chat in which something happens in each message.
func eventfulChat(n int) []summary.ChatLine {
	lines := chatLines(n, "")
	for i := range lines {
		lines[i].Text = fmt.Sprintf("On day %d we crossed the river near the old mill. I promise to bring %d apples to Anna tomorrow. It rained all night and nobody slept well.", i+1, i+2)
	}
	return lines
}

func TestSummaryWithoutAModelIsMadeByRule(t *testing.T) {
	w := summary.Work{Lines: eventfulChat(12), Rebuild: true}
	draft, err := summary.Write(t.Context(), nil, w)
	if err != nil || draft.Method != summary.MethodExtractive || draft.Cause != nil || draft.Text != summary.ExtractSummary(w) {
		t.Errorf("draft = %+v, %v", draft, err)
	}
}

func TestSummaryIsAbandonedWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the conversation was deleted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(gone) })
		model := &scriptedModel{answers: []any{upstream(fault.UpstreamDown)}}
		draft, err := summary.Write(ctx, model, summary.Work{Lines: eventfulChat(12), Rebuild: true})
		if !errors.Is(err, gone) || draft.Text != "" || len(model.prompts) != 1 {
			t.Errorf("draft = %+v, %v after %d calls", draft, err, len(model.prompts))
		}
	})
}

func TestLongTranscriptsAreSummarisedInParts(t *testing.T) {
	lines := chatLines(50, strings.Repeat("Something happened at the mill. ", 28)) // 44,800 characters, four parts
	for i := range lines {
		lines[i].Text = fmt.Sprintf("Message %d. %s", i, lines[i].Text)
		lines[i].At = time.Date(2025, 3, 1, 0, i, 0, 0, time.UTC)
	}
	parts := []any{"Part one. " + goodSummary(300), "Part two. " + goodSummary(300), "Part three. " + goodSummary(300), goodSummary(500)}
	model := &scriptedModel{answers: parts}
	draft, err := summary.Write(t.Context(), model, summary.Work{Lines: lines, Rebuild: true})
	if err != nil || draft.Method != summary.MethodModel || len(model.prompts) != 4 {
		t.Fatalf("draft = %+v, %v; want one of four calls", draft, err)
	}
	seen := strings.Join(model.prompts, "\n")
	for i := range lines {
		if n := strings.Count(seen, fmt.Sprintf("Message %d. ", i)); n != 1 {
			t.Errorf("message %d was read %d times", i, n)
		}
	}
	final := model.prompts[3]
	one, two, three := strings.Index(final, "Part one."), strings.Index(final, "Part two."), strings.Index(final, "Part three.")
	if one < 0 || two < one || three < two || strings.Index(final, "Message 49.") < three {
		t.Errorf("the last call does not see the parts in their order:\n%.600s", final)
	}
	for i, p := range model.prompts {
		if len(p) > 16_000 {
			t.Errorf("prompt %d has %d characters", i, len(p))
		}
		if strings.Count(p, "<transcript>\n=== 2025-03-01 ===\n") != 1 || strings.Count(p, "=== 2025-03-01") != 1 {
			t.Errorf("prompt %d does not say once which day it is", i)
		}
	}
}

func TestARefusedPartIsSummarisedByRule(t *testing.T) {
	lines := chatLines(24, strings.Repeat("Something happened at the mill. ", 28))
	const refusal = "抱歉，我无法总结这些内容。如果你有其他问题，我很乐意继续为你提供帮助，请随时告诉我你的想法和需要，谢谢你的理解与支持。"
	model := &scriptedModel{answers: []any{refusal, refusal, goodSummary(300)}}
	draft, err := summary.Write(t.Context(), model, summary.Work{Lines: lines, Rebuild: true})
	if err != nil || draft.Method != summary.MethodModel || draft.Text != goodSummary(300) {
		t.Fatalf("draft = %+v, %v", draft, err)
	}
	if !strings.Contains(model.prompts[2], "<earlier>\nBen: Something happened at the mill.") {
		t.Errorf("last prompt:\n%.2000s", model.prompts[2])
	}
}

// Even if a chat is so long that the summaries of its parts have to be summarised
// again, each prompt has a bounded size.
func TestPromptsHaveABoundedSizeAtAnyLength(t *testing.T) {
	lines := chatLines(160, strings.Repeat("字", 2000))
	longest, calls := 0, 0
	model := llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
		calls++
		longest = max(longest, len([]rune(p.Text)))
		return strings.Repeat("他们在磨坊见面。", 250), nil
	})
	draft, err := summary.Write(t.Context(), model, summary.Work{Lines: lines, Rebuild: true, Length: 2000})
	if err != nil || draft.Method != summary.MethodModel {
		t.Fatal(draft.Method, err)
	}
	if longest > 26_000 || calls > 45 {
		t.Errorf("%d calls, the longest with %d characters", calls, longest)
	}
	t.Logf("%d calls, the longest with %d characters", calls, longest)
}

// An imported chat of years costs the calls of its last messages.
func TestOfAVeryLongTranscriptTheEndIsRead(t *testing.T) {
	lines := chatLines(2000, strings.Repeat("Something happened at the mill. ", 28))
	for i := range lines {
		lines[i].Text = fmt.Sprintf("Message %d. %s", i, lines[i].Text)
	}
	calls, seen := 0, ""
	model := llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
		calls++
		seen += p.Text
		return goodSummary(300), nil
	})
	draft, err := summary.Write(t.Context(), model, summary.Work{Lines: lines, Rebuild: true})
	if err != nil || draft.Method != summary.MethodModel || calls > 25 {
		t.Fatalf("%v, %v after %d calls", draft.Method, err, calls)
	}
	if !strings.Contains(seen, "Message 1999. ") || strings.Contains(seen, "Message 1500. ") {
		t.Error("other messages were read than the last ones")
	}
}

func TestAccept(t *testing.T) {
	message := "Yesterday I went down to the harbour and counted every boat that was tied up there, all forty of them."
	lines := []summary.ChatLine{{Text: message}, {Text: "I cannot come, Mara, I am so sorry. Will you wait for me, Ben?"}, {Text: "短"}}
	letter := []summary.ChatLine{{Text: "米拉：很抱歉，我无法按时赶到港口。"}, {Text: "本：我等到星期天，灯塔下见，船票我来买。"}}
	long := "The boats were counted down at the harbour. "
	tests := []struct {
		name, output string
		want         summary.Verdict
	}{
		{"fifty characters", repeatTo(long, 50), summary.Accepted},
		{"forty-nine", repeatTo(long, 49), summary.TooShort},
		{"nothing", " \n ", summary.TooShort},
		{"only thoughts", "<think>" + long + long + "</think>", summary.TooShort},
		{"at the limit", repeatTo(long, 650), summary.Accepted},
		{"above it", repeatTo(long, 651), summary.TooLong},
		{"one of the messages", message, summary.Copied},
		{"with its speaker", "Ben: " + message, summary.Copied},
		{"a piece of one", message[:70], summary.Copied},
		{"a message inside of a longer text", message + " " + strings.Repeat("Mara laughed and did not believe a word of it. ", 3), summary.Accepted},
		{"a refusal", "I’m sorry, but I can’t assist with summarizing this conversation.", summary.Refused},
		{"as a model", "As an AI language model, I do not keep notes about chats of this kind, whatever they hold.", summary.Refused},
		{"without being sorry", "I cannot provide a summary of this content because it goes against what I am allowed to do.", summary.Refused},
		{"a Chinese one", "很抱歉，这段内容我无法总结。", summary.Refused},
		{"another", "我无法为您总结这段对话，因为其中的内容不符合使用规范，请换一个话题再试一次，感谢您的理解和支持，祝您一切顺利，生活愉快。", summary.Refused},
		{"as a Chinese model", "作为一个人工智能语言模型，我不会对这样的内容作出总结，请理解。我们可以聊聊其他的话题，例如天气、旅行、美食或者电影，你想聊什么呢？", summary.Refused},
		{"somebody who is sorry", "Mara is sorry that she cannot come to the harbour. Ben promised to wait for her until Sunday.", summary.Accepted},
		{"in another language", "他们在港口数了船，一共四十条，后来又说好了第二天再去数一遍，两个人都很高兴，约好在老地方见面，然后各自回家去了，一路上没有下雨。", summary.Foreign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := summary.Accept(tt.output, lines, 500); got != tt.want {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
	refuses := "米拉在信里说，很抱歉，她无法按时赶到港口。本答应等到星期天，两人约好在灯塔下见面，之后一起坐船去看她的母亲，船票由本来买。"
	if _, got := summary.Accept(refuses, letter, 500); got != summary.Accepted {
		t.Errorf("somebody who refuses in Chinese: %q", got)
	}
}

// repeatTo repeats a text up to n code points.
func repeatTo(text string, n int) string {
	return string([]rune(strings.Repeat(text, n/len([]rune(text))+1))[:n-1]) + "."
}
