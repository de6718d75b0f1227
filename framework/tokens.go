package framework

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// tokenizerEstimate is the name of the estimate that counts where a model's own
// tokenizer is not known.
const tokenizerEstimate = "estimate"

// MessageOverhead is what a message costs besides its text: role and delimiters, by
// OpenAI's own account; the estimate uses it too.
const MessageOverhead = 4

// openAI maps the beginnings of OpenAI's model names to tokenizers; the first
// that fits counts.
var openAI = []struct{ prefix, name string }{
	{"gpt-5", "o200k_base"}, {"gpt-4.5", "o200k_base"}, {"gpt-4.1", "o200k_base"}, {"gpt-4o", "o200k_base"},
	{"chatgpt-4o", "o200k_base"}, {"gpt-oss", "o200k_base"},
	{"o1", "o200k_base"}, {"o3", "o200k_base"}, {"o4", "o200k_base"},
	{"gpt-4", "cl100k_base"}, {"gpt-3.5", "cl100k_base"}, {"gpt-35", "cl100k_base"},
}

// TokenizerFor names the tokenizer that counts for a model: OpenAI's for its
// models, whichever provider serves them ("openai/gpt-4o"), else
// tokenizerEstimate.
func TokenizerFor(provider, model string) string {
	if provider == "gemini" || provider == "offline" {
		return tokenizerEstimate
	}
	model = strings.ToLower(model)
	model = strings.TrimPrefix(model, "openai/")
	model = strings.TrimPrefix(model, "ft:")
	for _, m := range openAI {
		rest, ok := strings.CutPrefix(model, m.prefix)
		if ok && (rest == "" || !isLetter(rest[0])) {
			return m.name
		}
	}
	return tokenizerEstimate
}

// The vocabularies are large: each is read when it is first needed. tokenizer.Get would link
// those of older models as well, 2.5 MB.
var encodings = map[string]func() *codec.Codec{
	"o200k_base":  sync.OnceValue(codec.NewO200kBase),
	"cl100k_base": sync.OnceValue(codec.NewCl100kBase),
}

type counter struct {
	name  string
	codec *codec.Codec // nil = the estimate
	cache *Cache
}

// newCounter returns the counter of that name, or the estimate for a name that
// is not known.
func newCounter(name string, cache *Cache) counter {
	if get, ok := encodings[name]; ok {
		return counter{name, get(), cache}
	}
	return counter{tokenizerEstimate, nil, cache}
}

// CountTokens counts the tokens of a text with the tokenizer of that name.
func CountTokens(tokenizerName, text string) int {
	c := newCounter(tokenizerName, nil)
	return c.count(text)
}

// count returns the tokens of text; from the cache where it has them.
func (c *counter) count(text string) int {
	if text == "" {
		return 0
	}
	return c.cache.tokens(c.name, text, c.measure)
}

func (c *counter) measure(text string) int {
	if c.codec == nil {
		return estimateTokens(text)
	}
	n := 0
	for text != "" {
		piece := text[:cut(text)]
		text = text[len(piece):]
		size, err := c.codec.Count(piece)
		if err != nil { // only for invalid UTF-8 in a mode that we do not use
			size = estimateTokens(piece)
		}
		n += size
	}
	return n
}

// longestPiece is the most that is given to a tokenizer at once, in bytes: its
// time grows with the square of the longest run without a break.
const longestPiece = 4 << 10

// cut returns the size of the piece of text to count next: it ends before white
// space, where a token would end as well, or else at a code point.
func cut(text string) int {
	if len(text) <= longestPiece {
		return len(text)
	}
	end := longestPiece
	for end > longestPiece/2 {
		if text[end] == ' ' && text[end-1] != ' ' || text[end-1] == '\n' && text[end] != '\n' {
			return end
		}
		end--
	}
	for end = longestPiece / 4; !utf8.RuneStart(text[end]); {
		end--
	}
	return end
}

// estimateTokens guesses the tokens of a text: a token for four ASCII characters,
// for two of other alphabets, and 0.9 for one of Chinese, Japanese or Korean.
// On ordinary prose o200k_base counts as much or up to a third less.
func estimateTokens(text string) int {
	twentieths := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			twentieths += 5
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r >= 0x2e80 && r < 0xfb00 || r >= 0xfe30 && r < 0xfff0 || r >= 0x10000 {
			twentieths += 18
		} else {
			twentieths += 10
		}
		i += size
	}
	return (twentieths + 19) / 20
}

func isLetter(c byte) bool { return c|32 >= 'a' && c|32 <= 'z' }
