package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"nodest/circle"
	"nodest/internal/fault"
	"nodest/llm/llmtest"
	"nodest/store"
)

// slowCircle has reactions come late from the first day on, so that none comes between.
func (i *installation) slowCircle(t *testing.T) {
	t.Helper()
	db, err := store.Open(t.Context(), i.options())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	users, err := db.Users(t.Context())
	if err != nil || len(users) != 1 {
		t.Fatalf("%d users, %v", len(users), err)
	}
	if err := db.Circle().Update(t.Context(), users[0].ID, func(tx circle.Tx) error {
		s, err := tx.CircleState()
		if err != nil {
			return err
		}
		s.UpdatedAt = tx.Now()
		return tx.PutCircleSettings(s)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestCircleCommands uses the circle from a terminal: a member joins, posts are written,
// commented, liked and deleted, and what they cost is shown.
func TestCircleCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	_, _, err := inst.command(t, nil, "circle", "post", "Hello.", "--as", "Mira")
	if err == nil || !strings.Contains(err.Error(), "does not take part in the circle") {
		t.Fatalf("got error %v, want one with %q", err, "does not take part in the circle")
	}
	inst.mustRun(t, "circle", "enable", "Mira")
	inst.slowCircle(t)

	inst.mustRun(t, "circle", "post", "The", "first", "snow!", "--image", pictureFile(t, color.White))
	inst.mustRun(t, "circle", "post", "The lamp burned all night.", "--as", "mira")
	_, _, err = inst.command(t, nil, "circle", "post")
	if err == nil || !strings.Contains(err.Error(), "a post needs a TEXT or an --image") {
		t.Fatalf("got error %v, want one with %q", err, "a post needs a TEXT or an --image")
	}
	_, _, err = inst.command(t, nil, "circle", "post", "x", "--image", tempFile(t, "a.png", "no image"))
	if err := fault.Public(err); err == nil || !strings.Contains(err.Error(), "a.png: not a PNG") {
		t.Fatalf("got error %v, want one with %q", err, "a.png: not a PNG")
	}

	var comment struct{ ID string }
	if err := json.Unmarshal([]byte(inst.mustRun(t, "circle", "comment", "The lamp", "I", "saw it.", "--json")), &comment); err != nil {
		t.Fatal(err)
	}
	inst.mustRun(t, "circle", "comment", "The lamp", "It was bright.")
	inst.mustRun(t, "circle", "comment", "The lamp", "From the pier.", "--reply-to", comment.ID)
	if got := inst.mustRun(t, "circle", "show", "The lamp"); !regexp.MustCompile(`you: I saw it\.\n {10}\S+  you: From the pier\.\n {8}\S+  you: It was bright\.`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `you: I saw it\.\n {10}\S+  you: From the pier\.\n {8}\S+  you: It was bright\.`)
	}
	inst.mustRun(t, "circle", "like", "The lamp")
	feed := inst.mustRun(t, "circle")
	if !regexp.MustCompile(`(?m)^[0-9a-f-]{36}  .* Mira \(likes: 1, comments: 3\)$`).MatchString(feed) {
		t.Fatalf("got %q, want a match of %s", feed, `(?m)^[0-9a-f-]{36}  .* Mira \(likes: 1, comments: 3\)$`)
	}
	if !regexp.MustCompile(`(?m)^[0-9a-f-]{36}  .* you \(likes: 0, comments: 0\)\n    The first snow!\n    \[image: face.png\]$`).MatchString(feed) {
		t.Fatalf("got %q, want a match of %s", feed, `(?m)^[0-9a-f-]{36}  .* you \(likes: 0, comments: 0\)\n    The first snow!\n    \[image: face.png\]$`)
	}
	if !strings.Contains(feed, "        "+comment.ID+"  you: I saw it.\n") {
		t.Fatalf("feed is %q, want it with %q", feed, "        "+comment.ID+"  you: I saw it.\n")
	}
	if got := strings.Index(feed, "The lamp"); got >= strings.Index(feed, "The first snow!") {
		t.Fatalf("the newest first: got %d, want less than %d", got, strings.Index(feed, "The first snow!"))
	}
	if got := inst.mustRun(t, "circle", "--author", "me"); strings.Contains(got, "The lamp") {
		t.Fatalf("got %q, want it without %q", got, "The lamp")
	}
	if got := inst.mustRun(t, "circle", "--author", "Mira"); strings.Contains(got, "snow") {
		t.Fatalf("got %q, want it without %q", got, "snow")
	}
	inst.mustRun(t, "circle", "like", "The lamp", "--undo")
	if got := inst.mustRun(t, "circle", "show", "The lamp"); !strings.Contains(got, "(likes: 0, comments: 3)") {
		t.Fatalf("got %q, want it with %q", got, "(likes: 0, comments: 3)")
	}
	_, _, err = inst.command(t, nil, "circle", "like", "The")
	if err == nil || !strings.Contains(err.Error(), `"The" is ambiguous (2 matches)`) {
		t.Fatalf("got error %v, want one with %q", err, `"The" is ambiguous (2 matches)`)
	}

	_, _, err = inst.command(t, strings.NewReader(""), "circle", "delete", "The first snow!")
	if err == nil || !strings.Contains(err.Error(), "add --yes to confirm") {
		t.Fatalf("got error %v, want one with %q", err, "add --yes to confirm")
	}
	_, _, err = inst.command(t, nil, "circle", "delete", "The first", "--yes")
	if err == nil {
		t.Fatal("deleting requires the whole text: got no error, want one")
	}
	inst.mustRun(t, "circle", "delete", "The first snow!", "--yes")
	if got := inst.mustRun(t, "circle"); strings.Contains(got, "snow") {
		t.Fatalf("got %q, want it without %q", got, "snow")
	}
	inst.mustRun(t, "circle", "delete", "The lamp burned all night.", "--comment", comment.ID, "--yes")
	if got := inst.mustRun(t, "circle"); !strings.Contains(got, "(deleted)") {
		t.Fatalf("got %q, want it with %q", got, "(deleted)")
	}

	if got := inst.mustRun(t, "circle", "relationships"); !regexp.MustCompile(`^MEMBER +ABOUT +STRENGTH +TYPE`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `^MEMBER +ABOUT +STRENGTH +TYPE`)
	}
	if got := inst.mustRun(t, "circle", "turns"); !regexp.MustCompile(`^WHEN +CHARACTER +WHAT +STATE +WHY\n`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `^WHEN +CHARACTER +WHAT +STATE +WHY\n`)
	}
	if got := inst.mustRun(t, "circle", "turns", "--state", "failed"); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	if got := inst.mustRun(t, "circle", "cost"); !strings.Contains(got, "limits per day: 200 calls, 400000 tokens\n") {
		t.Fatalf("got %q, want it with %q", got, "limits per day: 200 calls, 400000 tokens\n")
	}
	inst.mustRun(t, "circle", "disable", "Mira")
	_, _, err = inst.command(t, nil, "circle", "post", "Hello.", "--as", "Mira")
	if err == nil || !strings.Contains(err.Error(), "does not take part in the circle") {
		t.Fatalf("got error %v, want one with %q", err, "does not take part in the circle")
	}
}

// TestACharacterReactsThroughAKilledServer posts from a terminal and kills the server. The
// next one lets the character react once, and answer the user; both are seen in the
// terminal.
func TestACharacterReactsThroughAKilledServer(t *testing.T) {
	t.Parallel()
	provider := llmtest.NewOpenAI(t)
	provider.Always(func(r llmtest.Request) llmtest.Reply {
		comment := "Snow on the lamp, at last."
		if strings.Contains(fmt.Sprint(r.Messages), "Who sweeps it off?") {
			comment = "The wind does."
		}
		return llmtest.Say(`{"thoughts":"Cold.","action":{"like":false,"comment":"` + comment + `"}}`)
	})
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "OPENAI_BASE_URL="+provider.URL)
	p := inst.start(t)
	here := inst.withAddrOf(p)
	mira := importedID(t, here.mustRun(t, "import", tempFile(t, "mira.json", miraCard)))
	here.mustRun(t, "circle", "enable", "Mira")
	put := func(path string, body any) {
		t.Helper()
		if err := p.client.Call(t.Context(), http.MethodPut, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	put("/api/v1/characters/"+mira+"/settings", map[string]any{"circle": map[string]any{"enabled": true, "postsPerDay": 0}})
	put(circlePath+"/settings", map[string]any{"quick": true, "quietFrom": "00:00", "quietUntil": "00:00"})
	here.mustRun(t, "circle", "post", "Mira, the first snow!")
	p.kill(t)

	p = inst.start(t)
	here = inst.withAddrOf(p)
	var post circlePost
	wrote := func(text string) {
		t.Helper()
		eventually(t, "Mira writes", func() error {
			if err := json.Unmarshal([]byte(here.mustRun(t, "circle", "show", "Mira, the first", "--json")), &post); err != nil {
				t.Fatal(err)
			}
			if n := len(post.Comments); n == 0 || post.Comments[n-1].Text != text {
				return errNotYet
			}
			return nil
		})
	}
	wrote("Snow on the lamp, at last.")
	here.mustRun(t, "circle", "comment", "Mira, the first", "Who sweeps it off?", "--reply-to", post.Comments[0].ID)
	wrote("The wind does.")
	if len(post.Comments) != 3 {
		t.Fatalf("each reaction once: post.Comments has %d, want %d: %+v", len(post.Comments), 3, post.Comments)
	}
	if got := here.mustRun(t, "circle", "relationships"); !regexp.MustCompile(`(?m)^Mira +you +3 +stranger`).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `(?m)^Mira +you +3 +stranger`)
	}
	if got := here.mustRun(t, "circle", "cost"); !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d +[23] `).MatchString(got) {
		t.Fatalf("got %q, want a match of %s", got, `(?m)^\d{4}-\d\d-\d\d +[23] `)
	}
	p.stop(t)
}
