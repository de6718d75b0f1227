#!/usr/bin/env bash
# google.golang.org/genai v1.77.0, 2026-11.
# One would guess: a client of server-sent events skips lines that begin with a colon. They are
# comments, and servers and proxies send them so that a silent connection stays open. In fact the
# reader of streams knows lines with "data:" alone. A comment is an "invalid stream chunk": the text
# before it arrives, then an error, and the rest of the reply is never read.
# The Gemini API sends none; gateways in front of it (NODEST_GEMINI_BASE_URL) do.
# Here: the product reads the stream itself and gives the SDK nothing but data lines.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module comment

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"google.golang.org/genai"
)

const (
	begin   = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Good "}]}}]}` + "\n\n"
	comment = ": keep-alive\n\n"
	end     = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"evening."}]},"finishReason":"STOP"}]}` + "\n\n"
)

func main() {
	fmt.Println("google.golang.org/genai v1.77.0")
	plain, err := read(begin + end)
	fmt.Printf("two answers:                 %q, error: %v\n", plain, err)
	cut, cutErr := read(begin + comment + end)
	fmt.Printf("with a comment between them: %q, error: %v\n", cut, cutErr)
	if plain != "Good evening." || err != nil || cut != "Good " || cutErr == nil {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("A comment ends the reply with an error.")
}

// read is the text of a stream until its first error.
func read(stream string) (text string, err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}))
	defer server.Close()
	ctx := context.Background()
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	})
	if err != nil {
		return "", err
	}
	for answer, err := range client.Models.GenerateContentStream(ctx, "a-model", genai.Text("Hello"), nil) {
		if err != nil {
			return text, err
		}
		text += answer.Text()
	}
	return text, nil
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get google.golang.org/genai@v1.77.0 2>/dev/null
go run .
