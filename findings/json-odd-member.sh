#!/usr/bin/env bash
# Go 1.26 encoding/json, and go-json-experiment/json v0.0.0-20260213210345 (its successor), 2026-11.
# One would guess: where a member of an object has the wrong type, both report an error, and what
# is read besides is alike; an optional number (*int) that cannot be read stays nil.
# In fact encoding/json reads on, and the pointer is set, to 0: "unknown" becomes a count of 0, an
# index of 0. The successor stops there: members behind the odd one are missing, so that whoever
# moves from one to the other and overlooks the error, as was safe before, loses text.
# Here: answers of model servers have odd members; llm/loose reads them with neither surprise.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module odd

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	successor "github.com/go-json-experiment/json"
)

type answer struct {
	Index *int   `json:"index"`
	Text  string `json:"text"`
}

func main() {
	doc := []byte(`{"index":"first","text":"hello"}`)
	var a, b answer
	errA, errB := json.Unmarshal(doc, &a), successor.Unmarshal(doc, &b)
	fmt.Println(runtime.Version(), "reads", string(doc))
	fmt.Printf("encoding/json: text %q, index set: %v, error: %v\n", a.Text, a.Index != nil, errA)
	fmt.Printf("successor:     text %q, error: %v\n", b.Text, errB)
	if errA == nil || errB == nil || a.Text != "hello" || a.Index == nil || *a.Index != 0 || b.Text != "" {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("The old decoder reads on and sets the pointer to 0; the new one stops before the text.")
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get github.com/go-json-experiment/json@v0.0.0-20260213210345-44df1a37e875 2>/dev/null
go run .
