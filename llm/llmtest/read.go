package llmtest

import (
	"iter"
	"testing"

	"nodest/llm"
)

// Result is a reply that was read to its end.
type Result struct {
	Text, Reasoning string
	Last            llm.Chunk // the chunk with Last set
	Usage           *llm.Usage
	Err             error
	Chunks          int
}

// Read reads a reply to its end and checks the form of the sequence.
func Read(t testing.TB, seq iter.Seq2[llm.Chunk, error]) Result {
	t.Helper()
	var r Result
	for c, err := range seq {
		if r.Err != nil || r.Last.Last {
			t.Errorf("something follows the end of the reply: %+v, %v", c, err)
		}
		if err != nil {
			r.Err = err
			continue
		}
		r.Chunks++
		r.Text += c.Text
		r.Reasoning += c.Reasoning
		if c.Usage != nil {
			r.Usage = c.Usage
		}
		if c.Last {
			r.Last = c
		}
	}
	if r.Err == nil && !r.Last.Last {
		t.Error("the reply has neither a last chunk nor an error")
	}
	return r
}

// Ask is a small prompt.
func Ask(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Text: text}}}
}
