package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/tavern"
	"nodest/framework/worldinfo"
)

// worldInfoEntries are the sizes of the books that FrameworkSillyTavern scans with. SillyTavern itself
// needs 384 ms for 1,000 messages and 500 entries.
var worldInfoEntries = []int{500, 10_000}

// FrameworkSillyTavern is Framework for the SillyTavern dialect.
func FrameworkSillyTavern(ctx context.Context, out io.Writer) error {
	if err := measureWorldInfo(ctx, out, frameworkMessages, worldInfoEntries, 300*time.Millisecond); err != nil {
		return err
	}
	return measureTavern(ctx, out, frameworkMessages, worldInfoEntries[0], 300*time.Millisecond)
}

// measureTavern measures whole prompts of the SillyTavern dialect with the built-in preset. SillyTavern needs
// 586 ms, and 8.4 s for a chat whose tokens it has not counted yet.
func measureTavern(ctx context.Context, out io.Writer, messages, entries int, each time.Duration) error {
	fmt.Fprintf(out, "whole prompts: %d messages, %d entries, recursion\n", messages, entries)
	_, list, err := worldInfoBook(entries)
	if err != nil {
		return err
	}
	f := newFrameworkChat(messages)
	compiled := tavern.Compile(tavern.Sources{
		Card: f.sources.Card, Books: []worldinfo.Source{{Name: "lore", Origin: worldinfo.OfCharacter, Entries: list}},
	})
	t := &table{ctx: ctx, out: out, each: each}
	build := func(in framework.Input, play tavern.Play) {
		if _, _, err := tavern.Build(ctx, &in, &play); err != nil && t.err == nil {
			t.err = err
		}
	}
	for _, depth := range []int{2, messages} {
		set := worldinfo.DefaultSettings()
		set.Depth = depth
		play := tavern.Play{Compiled: compiled, WorldInfo: &set}
		in := f.input(nil)
		name := fmt.Sprintf("whole prompt, keys in the last %d messages", depth)
		t.row(name+", estimated tokens, nothing cached", func() { build(in, play) })
		in.Options.Context, in.Options.Tokenizer, in.Cache = 64_000, "o200k_base", framework.NewCache(0)
		t.row(name+", o200k_base, cached", func() { build(in, play) })
		inputs := make([]framework.Input, 100)
		for i := range inputs {
			in.History = append(slices.Clip(in.History), frameworkMessage(len(in.History)), frameworkMessage(len(in.History)+1))
			inputs[i] = in
		}
		t.measure("a further turn, "+fmt.Sprintf("keys in the last %d messages", depth)+", o200k_base", len(inputs), func(i int) { build(inputs[i], play) })
	}
	return t.err
}

// measureWorldInfo measures scans of a chat of another length with books of other sizes.
func measureWorldInfo(ctx context.Context, out io.Writer, messages int, sizes []int, each time.Duration) error {
	chat := worldInfoChat(messages + 200)
	for _, n := range sizes {
		fmt.Fprintf(out, "world info: %d messages, %d entries of three keys, every tenth with a pattern too\n", messages, n)
		file, entries, err := worldInfoBook(n)
		if err != nil {
			return err
		}
		t := &table{ctx: ctx, out: out, each: each}
		compile := func() *worldinfo.Book {
			b := worldinfo.Compile(worldinfo.Source{Name: "lore", Origin: worldinfo.OfCharacter, Entries: entries})
			b.Size() // indexes the keys
			return b
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		book := compile()
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		fmt.Fprintf(out, "%-68s %10.2f × its JSON of %d B\n", "memory of the compiled book", float64(kept)/float64(len(file)), len(file))
		t.row("compile the book (once per version)", func() { compile() })
		in := worldinfo.Input{Messages: chat[:messages], Settings: worldinfo.DefaultSettings(), Context: 128_000, Forced: map[string]bool{}}
		scan := func(in worldinfo.Input) {
			if _, err := book.Scan(ctx, &in); err != nil && t.err == nil {
				t.err = err
			}
		}
		for _, c := range []struct {
			name      string
			depth     int
			recursive bool
			explain   bool
		}{
			{"last 2 messages", 2, false, false}, {"all messages", messages, false, false}, {"all messages, recursion", messages, true, false},
			{"all messages, recursion, explained", messages, true, true},
		} {
			in.Settings.Depth, in.Settings.Recursive, in.Explain, in.Cache = c.depth, c.recursive, c.explain, nil
			t.row("scan of "+c.name+", nothing cached", func() { scan(in) })
			warm := in
			warm.Cache = framework.NewCache(0).Memo()
			scan(warm)
			turns := min(100, len(chat)-messages)
			t.measure("a further turn, "+c.name, turns, func(i int) {
				next := warm
				next.Messages = chat[:messages+i+1]
				scan(next)
			})
		}
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// worldInfoBook is a book as SillyTavern exports it. The text of each entry has a key of another one.
func worldInfoBook(n int) (file []byte, entries []card.Entry, err error) {
	list := map[string]any{}
	for i := range n {
		keys := []string{fmt.Sprintf("beacon %d", i), fmt.Sprintf("灯塔%d号", i), fmt.Sprintf("keeper%d", i)}
		if i%10 == 5 {
			keys = append(keys, fmt.Sprintf(`/keeper of (?:the )?beacon ?%d\b/i`, i))
		}
		list[fmt.Sprint(i)] = map[string]any{
			"uid": i, "key": keys, "keysecondary": []string{}, "comment": fmt.Sprintf("lore %d", i), "order": 100 + i%10, "position": i % 5,
			"depth": i % 12, "constant": i%50 == 0, "selective": true, "selectiveLogic": 0, "probability": 100, "useProbability": true,
			"group": "", "groupWeight": 100, "scanDepth": nil, "caseSensitive": nil, "matchWholeWords": nil, "disable": false,
			"content": strings.Repeat(fmt.Sprintf("The beacon of keeper%d stands on the moon of {{char}}. ", (i*7+13)%n), 4),
		}
	}
	if file, err = json.Marshal(map[string]any{"entries": list}); err != nil {
		return nil, nil, err
	}
	book, err := card.ParseWorldBook(file, card.SillyTavern)
	return file, book.Entries, err
}

// worldInfoChat is the chat of Framework.
func worldInfoChat(n int) []worldinfo.Message {
	chat := make([]worldinfo.Message, n)
	for i := range chat {
		m := frameworkMessage(i)
		chat[i] = worldinfo.Message{Name: "Sam", Text: m.Text, User: m.Role == "user"}
		if !chat[i].User {
			chat[i].Name = "Mara"
		}
	}
	return chat
}
