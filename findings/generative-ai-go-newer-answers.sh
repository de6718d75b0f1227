#!/usr/bin/env bash
# google/generative-ai-go v0.20.1 (the last one), 2026-11.
# One would guess: an SDK over protocol buffers ignores what it does not know, so newer models lose
# nothing but the news. That holds for members beside a text. In fact three things differ:
# a part that has nothing but a newer member (the signature of a thought, which ends many replies) is
# an error, and the text before it in the same answer is lost; a thought is given out as text of the
# reply; and an error in a stream of status 200 is an answer without candidates, and no error.
# Here: the product gives this SDK the texts alone and reads all else itself.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module newer

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

func main() {
	fmt.Println("generative-ai-go v0.20.1")
	beside, err1 := read(answer(`{"text":"Good evening.","thoughtSignature":"AAAA"}`))
	fmt.Printf("a signature beside the text:  %q, error: %v\n", beside, err1)
	after, err2 := read(answer(`{"text":"Good evening."},{"thoughtSignature":"AAAA"}`))
	fmt.Printf("a signature in its own part:  %q, error: %v\n", after, err2)
	thought, err3 := read(answer(`{"text":"A guest.","thought":true},{"text":"Good evening."}`))
	fmt.Printf("a thought before the text:    %q, error: %v\n", thought, err3)
	limited, err4 := read(`[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]`)
	fmt.Printf("an error with the status 200: %q, error: %v\n", limited, err4)
	if beside != "Good evening." || err1 != nil || after != "" || err2 == nil ||
		thought != "A guest.Good evening." || err3 != nil || limited != "" || err4 != nil {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("A part that is new fails the answer, a thought is text, and an error is an empty reply.")
}

func answer(parts string) string {
	return `[{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}]}]`
}

// read is the text of a streamed answer.
func read(body string) (text string, err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	ctx := context.Background()
	client, err := genai.NewClient(ctx, option.WithAPIKey("none"), option.WithEndpoint(server.URL))
	if err != nil {
		return "", err
	}
	defer client.Close()
	answers := client.GenerativeModel("a-model").GenerateContentStream(ctx, genai.Text("Hello"))
	for {
		got, err := answers.Next()
		if errors.Is(err, iterator.Done) {
			return text, nil
		} else if err != nil {
			return text, err
		}
		for _, c := range got.Candidates {
			for _, p := range c.Content.Parts {
				text += fmt.Sprint(p)
			}
		}
	}
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get github.com/google/generative-ai-go@v0.20.1 google.golang.org/api@v0.278.0 2>/dev/null
go run .
