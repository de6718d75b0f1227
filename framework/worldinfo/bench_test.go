package worldinfo_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
)

// benchBook is a book of n entries with three keys each, every tenth of which has a pattern, and
// its file. Some bring in others.
func benchBook(tb testing.TB, n int) (entries []card.Entry, file []byte) {
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
	file, err := json.Marshal(map[string]any{"entries": list})
	if err != nil {
		tb.Fatal(err)
	}
	book, err := card.ParseWorldBook(file, card.SillyTavern)
	if err != nil {
		tb.Fatal(err)
	}
	return book.Entries, file
}

func benchChat(n int) []worldinfo.Message {
	chat := make([]worldinfo.Message, n)
	for i := range chat {
		text := fmt.Sprintf("%d: We drift past the wreck and I count the lights again. ", i) +
			strings.Repeat("The corridor is cold, the engine hums, and nobody answers the radio. ", 3) + "我们继续往前走吧。"
		if i%17 == 0 {
			text += fmt.Sprintf(" Is that beacon %d?", i)
		}
		chat[i] = worldinfo.Message{Name: []string{"Sam", "Mara"}[i%2], Text: text, User: i%2 == 0}
	}
	return chat
}

func BenchmarkScan(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		entries, _ := benchBook(b, n)
		book := worldinfo.Compile(worldinfo.Source{Name: "lore", Origin: worldinfo.OfCharacter, Entries: entries})
		chat := benchChat(1002)
		for _, recursive := range []bool{false, true} {
			for _, depth := range []int{2, 1000} {
				in := worldinfo.Input{Messages: chat[:1000], Settings: worldinfo.DefaultSettings(), Context: 1_000_000}
				in.Settings.Depth, in.Settings.Recursive = depth, recursive
				name := fmt.Sprintf("%d_entries/depth_%d/recursive_%v", n, depth, recursive)
				scan := func(b *testing.B) {
					if _, err := book.Scan(b.Context(), &in); err != nil {
						b.Fatal(err)
					}
				}
				b.Run(name+"/cold", func(b *testing.B) {
					b.ReportAllocs()
					in.Cache = nil
					for b.Loop() {
						scan(b)
					}
				})
				b.Run(name+"/warm", func(b *testing.B) {
					b.ReportAllocs()
					in.Cache = framework.NewCache(0).Memo()
					for b.Loop() {
						scan(b)
					}
				})
			}
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		entries, file := benchBook(b, n)
		b.Run(fmt.Sprintf("%d_entries", n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			book := compiled(entries)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				compiled(entries)
			}
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(len(file)), "kept/byte")
			b.ReportMetric(float64(book.Size())/float64(len(file)), "size/byte")
			runtime.KeepAlive(book)
		})
	}
}

func compiled(entries []card.Entry) *worldinfo.Book {
	b := worldinfo.Compile(worldinfo.Source{Name: "lore", Origin: worldinfo.OfCharacter, Entries: entries})
	b.Size() // indexes the keys
	return b
}
