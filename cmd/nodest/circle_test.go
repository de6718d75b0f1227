package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/fault"

	"nodest/llm/llmtest"
)

// TestCircleCommands uses the circle from a terminal: a member joins, posts are written,
// commented, liked and deleted, and what they cost is shown.
func TestCircleCommands(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	_, _, err := inst.command(t, nil, "circle", "post", "Hello.", "--as", "Mira")
	require.ErrorContains(t, err, "does not take part in the circle")
	inst.mustRun(t, "circle", "enable", "Mira")

	inst.mustRun(t, "circle", "post", "The", "first", "snow!", "--image", pictureFile(t, color.White))
	inst.mustRun(t, "circle", "post", "The lamp burned all night.", "--as", "mira")
	_, _, err = inst.command(t, nil, "circle", "post")
	require.ErrorContains(t, err, "a post needs a TEXT or an --image")
	_, _, err = inst.command(t, nil, "circle", "post", "x", "--image", tempFile(t, "a.png", "no image"))
	require.ErrorContains(t, fault.Public(err), "a.png: not a PNG")

	var comment struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(inst.mustRun(t, "circle", "comment", "The lamp", "I", "saw it.", "--json")), &comment))
	inst.mustRun(t, "circle", "comment", "The lamp", "It was bright.")
	inst.mustRun(t, "circle", "comment", "The lamp", "From the pier.", "--reply-to", comment.ID)
	require.Regexp(t, `you: I saw it\.\n {10}\S+  you: From the pier\.\n {8}\S+  you: It was bright\.`, inst.mustRun(t, "circle", "show", "The lamp"))
	inst.mustRun(t, "circle", "like", "The lamp")
	feed := inst.mustRun(t, "circle")
	require.Regexp(t, `(?m)^[0-9a-f-]{36}  .* Mira \(likes: 1, comments: 3\)$`, feed)
	require.Regexp(t, `(?m)^[0-9a-f-]{36}  .* you \(likes: 0, comments: 0\)\n    The first snow!\n    \[image: face.png\]$`, feed)
	require.Contains(t, feed, "        "+comment.ID+"  you: I saw it.\n")
	require.Less(t, strings.Index(feed, "The lamp"), strings.Index(feed, "The first snow!"), "the newest first")
	require.NotContains(t, inst.mustRun(t, "circle", "--author", "me"), "The lamp")
	require.NotContains(t, inst.mustRun(t, "circle", "--author", "Mira"), "snow")
	inst.mustRun(t, "circle", "like", "The lamp", "--undo")
	require.Contains(t, inst.mustRun(t, "circle", "show", "The lamp"), "(likes: 0, comments: 3)")
	_, _, err = inst.command(t, nil, "circle", "like", "The")
	require.ErrorContains(t, err, `"The" is ambiguous (2 matches)`)

	_, _, err = inst.command(t, strings.NewReader(""), "circle", "delete", "The first snow!")
	require.ErrorContains(t, err, "add --yes to confirm")
	_, _, err = inst.command(t, nil, "circle", "delete", "The first", "--yes")
	require.Error(t, err, "deleting requires the whole text")
	inst.mustRun(t, "circle", "delete", "The first snow!", "--yes")
	require.NotContains(t, inst.mustRun(t, "circle"), "snow")
	inst.mustRun(t, "circle", "delete", "The lamp burned all night.", "--comment", comment.ID, "--yes")
	require.Contains(t, inst.mustRun(t, "circle"), "(deleted)")

	require.Regexp(t, `^MEMBER +ABOUT +STRENGTH +TYPE`, inst.mustRun(t, "circle", "relationships"))
	require.Regexp(t, `^WHEN +CHARACTER +WHAT +STATE +WHY\n`, inst.mustRun(t, "circle", "turns"))
	require.Empty(t, inst.mustRun(t, "circle", "turns", "--state", "failed"))
	require.Contains(t, inst.mustRun(t, "circle", "cost"), "limits per day: 200 calls, 400000 tokens\n")
	inst.mustRun(t, "circle", "disable", "Mira")
	_, _, err = inst.command(t, nil, "circle", "post", "Hello.", "--as", "Mira")
	require.ErrorContains(t, err, "does not take part in the circle")
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
		require.NoError(t, p.client.Call(t.Context(), http.MethodPut, path, body, nil))
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
			require.NoError(t, json.Unmarshal([]byte(here.mustRun(t, "circle", "show", "Mira, the first", "--json")), &post))
			if n := len(post.Comments); n == 0 || post.Comments[n-1].Text != text {
				return errNotYet
			}
			return nil
		})
	}
	wrote("Snow on the lamp, at last.")
	here.mustRun(t, "circle", "comment", "Mira, the first", "Who sweeps it off?", "--reply-to", post.Comments[0].ID)
	wrote("The wind does.")
	require.Len(t, post.Comments, 3, "each reaction once")
	require.Regexp(t, `(?m)^Mira +you +3 +stranger`, here.mustRun(t, "circle", "relationships"))
	require.Regexp(t, `(?m)^\d{4}-\d\d-\d\d +[23] `, here.mustRun(t, "circle", "cost"))
	p.stop(t)
}
