package cite

import (
	"testing"
	"unicode/utf8"

	"nodest/llm"
)

// hard are texts with everything that marks must not touch.
var hard = []string{
	"",
	"# 标题。\r\n\r\n人工智能是计算机科学的一个分支[^3]。机器学习是AI的重要组成部分。🙂 It was built in 1868![1]\r\n",
	"* The tower has 201 steps. Dr. J. Smith said so.\n* [Read. More](http://a.test/x.y) `a. b` https://b.test/c.d\n\n```go\nx[1] = 2. // y.\n```\n| a | b |\n| --- | :-: |\n| The lamp burned oil. | 1,120 blocks. |\n",
	"He said “It is 38.5 metres.” Then 【2】 left… [^1, ^2][3] [2024] [0, 1]\n\n[^1]: a note\n[^2]: another",
	"~~~\n[^1]\n", "[^[^1]1]", "``[^1]`", "[^1", "\xff[^1]\xfe.\n", "|.|\n|-|\n|x.|", "a.)\"*_ b!?！？", "[](.)", "![^1](x)",
	"二〇一九年有三百一十二位读者。万一下雨，千万别来。一百万一千", "٣.٤ 3,4 3,456.7 12,34 1.2.3",
}

func fuzzSources(page string) []Source {
	var sources []Source
	for i, text := range []string{page, hard[1], "The tower has 201 steps.", hard[2]} {
		sources = append(sources, Source{URL: "https://" + string(rune('a'+i)) + ".test", Title: "T", Chunks: append(lines(text, 1), Chunk{Text: text})})
	}
	return sources
}

func FuzzBuildReferences(f *testing.F) {
	for i, answer := range hard {
		f.Add(answer, hard[(i+1)%len(hard)], i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, answer, page string, sentences, byWords bool) {
		o := ReferenceOptions{MinChunkLength: 3, MaxRef: 5, MinRelScore: 0.1}
		if sentences {
			o.Mode = BySentence
		}
		var emb llm.Embedder = &recorded{kind: "hash256"}
		if byWords {
			emb = nil
		}
		got := BuildReferences(t.Context(), emb, answer, fuzzSources(page), o)
		checkCited(t, answer, fuzzSources(page), got)
		NewReport(got, fuzzSources(page))
	})
}

func FuzzVerify(f *testing.F) {
	for i, answer := range hard {
		f.Add(answer, hard[(i+1)%len(hard)], i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, answer, page string, remove bool) {
		o := VerifyOptions{Doubtful: Mark}
		if remove {
			o.Doubtful = Remove
		}
		got := Verify(t.Context(), nil, answer, fuzzSources(page), o)
		checkNumbers(t, Cited{Answer: got.Answer, References: got.References})
		kept := Verify(t.Context(), nil, answer, fuzzSources(page), VerifyOptions{})
		clean, _ := readMarks(withoutDoubts(answer), 4)
		checkReferences(t, clean, fuzzSources(page), kept.References)
		if got.Report.Claims < got.Report.Doubtful || len(got.Report.Verdicts) != got.Report.Sentences {
			t.Fatalf("got.Report is %+v", got.Report)
		}
		if utf8.ValidString(answer) && !utf8.ValidString(got.Answer) {
			t.Fatal("the answer is no UTF-8")
		}
	})
}

func FuzzCheckMarks(f *testing.F) {
	for i, reply := range hard {
		f.Add(reply, hard[(i+1)%len(hard)])
	}
	f.Fuzz(func(t *testing.T, reply, page string) {
		got := CheckMarks(t.Context(), nil, reply, fuzzSources(page), MarkOptions{Auto: DefaultReferences("")})
		checkNumbers(t, got)
		clean, _ := readMarks(reply, 4)
		if len(got.References) > 0 && !got.References[0].Auto {
			checkReferences(t, clean, fuzzSources(page), got.References)
		}
		if utf8.ValidString(reply) {
			if !utf8.ValidString(got.Answer) {
				t.Fatal("utf8.ValidString(got.Answer) is false, want true")
			}
		}
	})
}

func FuzzChunkText(f *testing.F) {
	for i, text := range hard {
		f.Add(text, []string{"", ByPunctuation, ByCharacters, ByRegex}[i%4], `(\W)+`, i)
	}
	f.Fuzz(func(t *testing.T, text, by, pattern string, size int) {
		chunks, err := ChunkText(text, ChunkOptions{By: by, Size: size, Pattern: pattern, MinLength: 1})
		if err == nil {
			checkChunks(t, text, chunks)
		}
	})
}

func FuzzPickAndPassages(f *testing.F) {
	for i, text := range hard {
		f.Add("How many steps has the tower?", text, 7+i, 3)
	}
	f.Fuzz(func(t *testing.T, question, page string, size, count int) {
		size, count = 1+max(size, -size)%50, 1+max(count, -count)%5
		var emb llm.Embedder
		if size%2 == 0 {
			emb = &recorded{kind: "hash256"}
		}
		picked := CherryPick(t.Context(), emb, question, page, PickOptions{size, count, 1 + size/3})
		checkChunks(t, page, picked.Snippets)
		for _, p := range Passages(t.Context(), emb, question, page, PassageOptions{size, count}) {
			checkChunks(t, page, []Chunk{p.Chunk})
		}
	})
}
