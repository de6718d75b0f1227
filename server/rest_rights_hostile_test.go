package server

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// withRows is a file in which a column of all rows of a table has another value; SELF is the row's own id.
func withRows(t testing.TB, file []byte, table, column, value string) []byte {
	t.Helper()
	changed := 0
	edited := rezipped(t, file, func(name, text string) string {
		if !strings.HasSuffix(name, ".jsonl") {
			return text
		}
		var out bytes.Buffer
		for line := range strings.Lines(text) {
			var row map[string]map[string]json.RawMessage
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if members := row[table]; members != nil {
				changed++
				members[column] = json.RawMessage(value)
				if value == "SELF" {
					members[column] = members["id"]
				}
				edited, err := json.Marshal(row)
				if err != nil {
					t.Fatal(err)
				}
				line = string(edited) + "\n"
			}
			out.WriteString(line)
		}
		return out.String()
	})
	if changed == 0 {
		t.Fatalf("the file has no rows of %s", table)
	}
	return edited
}

// A file that somebody has written by hand is held to the rules of its subjects: what the operations refuse does not
// come in by a row, nor what would make pages fail or the server compute without end. It is refused as a whole.
func TestAHostileFileIsRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.everything()
	h.rest("PUT", "/circle/settings", `{"quietFrom":"22:30"}`).wants(t, 200)
	file := h.fileOf()
	h.token = h.newMember("victim")
	for _, tt := range []struct{ table, column, value, says string }{
		{"settings", "document", `{"temperature":99}`, "temperature"},
		{"settings", "document", `{"timeZone":"Nowhere/None"}`, "timeZone"},
		{"settings", "document", `[]`, "settings"},
		{"settings", "custom_setting", `{"depth":-1}`, "customSetting"},
		{"character_versions", "settings", `{"memory":{"summaryThreshold":1}}`, "memory.summaryThreshold"},
		{"character_versions", "settings", `{"circle":5}`, "settings"},
		{"character_versions", "role_card", `[1]`, "roleCard"},
		{"character_versions", "world_book", `[]`, "worldBook"},
		{"character_versions", "author_note", `{"injection_depth":-5}`, "authorNote"},
		{"character_versions", "dialect", `"klingon"`, "dialect"},
		{"character_versions", "name", `"` + strings.Repeat("x", 5000) + `"`, "character_versions.name"},
		{"resource_versions", "document", `5`, "resource_versions"},
		{"resource_versions", "name", `"a\u0000b"`, "resource_versions.name"},
		{"conversations", "settings", `{"topP":7}`, "topP"},
		{"conversations", "last_message", `[]`, "conversations.last_message"},
		{"conversations", "head_id", `"01a22e10-999c-76ee-8773-d9d690a3f44e"`, "conversations.head_id"},
		{"messages", "role", `"owner"`, "role"},
		{"messages", "status", `"admin"`, "status"},
		{"messages", "swipe_index", `1000000`, "messages.swipe_index"}, // pages were counted up to it
		{"messages", "parent_id", `SELF`, "messages.parent_id"},
		{"messages", "chain", `7`, "messages."},
		{"messages", "depth", `-1`, "messages"},
		{"messages", "created_at", `4611686018427387904`, "messages.created_at"},
		{"messages", "seq", `9223372036854775807`, "messages.seq"},
		{"generations", "timing", `[]`, "generations.timing"},
		{"revisions", "usage", `"\"x\""`, "revisions.usage"},
		{"knowledge_bases", "chunk_size", `1`, "chunkSize"},
		{"knowledge_bases", "name", `""`, "name"},
		{"knowledge_chunks", "idx", `549755813888`, "knowledge_chunks"}, // the server made a list of that length
		{"knowledge_chunks", "end_at", `100000`, "knowledge_chunks"},
		{"knowledge_texts", "part", `-1`, "part"},
		{"conversations", "version", `0`, "version"},
		{"knowledge_documents", "outline", `{}`, "knowledge_documents.outline"},
		{"memory_document_versions", "lines", `"5"`, "memory_document_versions.lines"},
		{"memory_document_versions", "lines", `null`, "memory_document_versions.lines"},
		{"summary_texts", "document", `[]`, "summary_texts.document"},
		{"circle_states", "settings", `{"callsPerDay":-1}`, "circle_states"},
		{"memories", "importance", `1e300`, "memories.importance"},
		{"memories", "evidence", `{}`, "memories.evidence"},
		{"characters", "role", `"owner"`, "unknown column"},
		{"characters", "user_id", `"01a22e10-999c-76ee-8773-d9d690a3f44e"`, "unknown column"},
	} {
		got := h.upload("POST", "/me/import", "a.zip", withRows(t, file, tt.table, tt.column, tt.value))
		got.refuses(t, 422, "invalid_import")
		if detail := got.object(t)["detail"].(string); !strings.Contains(detail, tt.says) || !strings.Contains(detail, "row ") && !strings.Contains(detail, tt.table) {
			t.Errorf("%s.%s = %s: %q does not name %s", tt.table, tt.column, tt.value, detail, tt.says)
		}
	}
	for name, line := range map[string]string{
		"users.jsonl":  `{"users":{"id":"01a22e10-999c-76ee-8773-d9d690a3f44e","role":"owner"}}`,
		"tokens.jsonl": `{"tokens":{"name":"mine"}}`,
		"knowledge_grants/01a22e10-999c-76ee-8773-d9d690a3f44e.jsonl": `{"knowledge_grants":{"role":"write"}}`,
		"model_servers.jsonl": `{"model_servers":{"name":"evil","base_url":"http://169.254.169.254/"}}`,
		"audit.jsonl":         `{"audit":{"action":"signin"}}`,
	} {
		h.upload("POST", "/me/import", "a.zip", withEntry(t, file, name, line+"\n")).refuses(t, 422, "invalid_import")
	}
	if n := len(entriesOf(t, h.fileOf())); n != 0 {
		t.Errorf("%d things were stored", n)
	}
	h.upload("POST", "/me/import", "a.zip", file).wants(t, 200)
}

// withEntry is a file with one entry more.
func withEntry(t testing.TB, file []byte, name, text string) []byte {
	t.Helper()
	edited := rezipped(t, file, func(_, text string) string { return text })
	old, err := zip.NewReader(bytes.NewReader(edited), int64(len(edited)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	w, err := out.Create(name)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	for _, f := range old.File {
		if err == nil {
			err = out.Copy(f)
		}
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
