// Package meaning knows which words are related in meaning.
package meaning

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Related is a word that is near another one in meaning.
type Related struct {
	Word string
	Near float32
}

var tables = sync.OnceValue(func() map[string][]Related {
	m := map[string][]Related{}
	for _, l := range []string{"en", "zh"} {
		f, err := os.Open(os.Getenv("MEANING") + "/" + l + ".tsv")
		if err != nil {
			return m
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			f := strings.Split(strings.Trim(lines.Text(), "\t"), "\t")
			for _, r := range f[1:] {
				w, x, _ := strings.Cut(r, " ")
				n, _ := strconv.ParseFloat(x, 32)
				m[f[0]] = append(m[f[0]], Related{w, float32(n)})
			}
		}
		f.Close()
	}
	return m
})

// Near returns the words that are related to a word, the nearest first.
func Near(word string) []Related { return tables()[word] }
