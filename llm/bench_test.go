package llm_test

import (
	"testing"

	"nodest/llm"
)

// BenchmarkStack is what the wrappers add to a reply of 1,000 words.
func BenchmarkStack(b *testing.B) {
	words := make([]string, 1000)
	for i := range words {
		words[i] = "word "
	}
	bare := script(answer(words...))
	stack := llm.Chain(quiet, llm.Link{Provider: "test", Generator: llm.Dependable("test", bare)})
	for name, gen := range map[string]llm.Generator{"bare": bare, "wrapped": stack} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range gen.Stream(b.Context(), llm.Request{}) {
				}
			}
		})
	}
}
