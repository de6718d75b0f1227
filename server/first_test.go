package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/store"
	"nodest/store/storetest"
)

// first is where the data of schema 1 is; its README says how it was made.
var first = filepath.Join("..", "store", "testdata", "first")

// firstAnswer is a line of answers.jsonl.gz: what the API of that program answered.
type firstAnswer struct {
	As, Path   string
	Status     int
	Text, Data string
}

// firstAnswers returns the tokens of the users, by name, and the answers.
func firstAnswers(t *testing.T) (tokens map[string]string, all []firstAnswer) {
	t.Helper()
	f, err := os.Open(filepath.Join(first, "answers.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(r)
	var head struct{ Tokens map[string]string }
	if err := lines.Decode(&head); err != nil {
		t.Fatal(err)
	}
	for {
		var a firstAnswer
		if err := lines.Decode(&a); err == io.EOF {
			return head.Tokens, all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
}

// changing are parts of answers that are not as they were stored: when an export was made, quotas,
// which a restore counts anew, and sums of floating-point numbers, which are added in any order.
var changing = regexp.MustCompile(`"exportedAt":"[^"]*"|"quotas":{.*}}|\d\.\d{5,}`)

// dropped are settings that programs of schema 1 had and that never had an effect.
var dropped = strings.NewReplacer(`"shareAcrossCharacters":false,`, "",
	`,"dream":{"enabled":true,"at":"04:00"}`, "")

// added are members that answers did not have then, with the values of what was never set or judged; and that a reply used the profile.
var added = strings.NewReplacer(`,"usdPerMonth":0`, "", `"includeCircle":true,"feedback":true`, `"includeCircle":true`, `,"dream":{"mode":"full","at":"04:00","newMessages":20}`, "",
	`,"feedback":0}`, "}", `"goals":false,"extract":false,`, "",
	`,"pinExamples":false,"cardSystemPrompt":true,"cardPostHistory":true`, "", `"variables":{},"timedWorldInfo":{},`, "",
	`"worldInfo":{"depth":2,"budget":25,"budgetCap":0,"minActivations":0,"minActivationsDepth":0,"maxRecursionSteps":0,"recursive":true,`+
		`"includeNames":true,"caseSensitive":false,"matchWholeWords":true,"useGroupScoring":false,"strategy":"character"},`, "",
	`"scripts":{"card":true,"preset":false},`, "", `"scripts":{"card":false,"preset":false},`, "",
	`"summaryShare":50,"summaryTokens":32000,`, "", `,"unfit":{}`, "", `,"usedProfile":true`, "")

// asStored is an answer without what changes.
func asStored(text string) string {
	return changing.ReplaceAllStringFunc(added.Replace(dropped.Replace(text)), func(part string) string {
		number, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return ""
		}
		return strconv.FormatFloat(number, 'g', 4, 64)
	})
}

// ofOthers are exports of cards in the formats of other programs. They have members now that they
// did not have; the documents of the cards, and the exports in our own format, are compared.
var ofOthers = regexp.MustCompile(`^/characters/[^/]*/export(\?format=charx)?$`)

// After a backup of schema 1 was restored, the API answers what the program that made it answered:
// every character with its documents, chat, message, save point, memory, summary, document and post,
// and the exports of all of them, byte for byte.
func TestABackupOfTheFirstSchemaIsRestored(t *testing.T) {
	t.Parallel()
	o := store.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if onPostgres(t) {
		o.URL = storetest.PostgresURL(t)
	} else {
		storetest.NeedSQLite(t)
	}
	backup, err := store.OpenBackup(context.Background(), filepath.Join(first, "backup.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(context.Background(), o, backup, store.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	at := backup.Manifest.CreatedAt // later things, such as a due job, were not there yet
	if err := backup.Close(); err != nil {
		t.Fatal(err)
	}
	h := newTestServerOf(t, parts{now: func() time.Time { return at }, data: &o}, nil)
	tokens, answers := firstAnswers(t)
	compared := 0
	for _, want := range answers {
		if ofOthers.MatchString(want.Path) {
			continue
		}
		h.token = tokens[want.As]
		got := h.rest("GET", want.Path, "")
		switch {
		case got.status != want.Status:
			t.Errorf("%s: %d %s, want %d", want.Path, got.status, got.body, want.Status)
		case want.Status != http.StatusOK:
		case want.Data != "":
			if data, err := base64.StdEncoding.DecodeString(want.Data); err != nil || !bytes.Equal(got.body, data) {
				t.Errorf("%s: %d other bytes, %v", want.Path, len(got.body), err)
			}
		case asStored(string(got.body)) != asStored(want.Text):
			t.Errorf("%s\n%s\nwant\n%s", want.Path, got.body, want.Text)
		}
		compared++
	}
	if compared < 300 {
		t.Errorf("%d answers were compared", compared)
	}
}
