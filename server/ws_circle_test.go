package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/llm/llmtest"
)

// feeds are what two users read in their feeds: posts with likes and comments.
func (h *testServer) feeds(tokens ...string) string {
	h.t.Helper()
	var all strings.Builder
	for _, token := range tokens {
		all.Write(h.rest("GET", "/circle/posts", "", "Authorization: Bearer "+token).body)
	}
	return all.String()
}

// Objects that belong to another user do not exist for commands either, and a refused command
// stores nothing for anybody.
func TestBadCommandsToTheCircleStoreNothing(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	theirs, owner := h.newFixtures(), h.token
	h.join(theirs.character)
	h.token = h.newMember("stranger")
	mine := h.newFixtures()
	h.join(mine.character)
	gone := stringAt(h.rest("POST", "/circle/posts/"+mine.post+"/comments", `{"text":"x"}`).wants(t, 201), "id")
	h.rest("DELETE", "/circle/posts/"+mine.post+"/comments/"+gone, "").wants(t, 204)
	before := h.feeds(owner, h.token)
	p, _ := h.connect(nil)
	for _, c := range []struct {
		name, command string
		data          object
	}{
		{"a post by a character of another user", "circle.post", object{"text": "x", "authorId": theirs.character}},
		{"a post with an image of another user", "circle.post", object{"text": "x", "images": []string{theirs.attachment}}},
		{"a comment on a post of another user", "circle.comment", object{"postId": theirs.post, "text": "x"}},
		{"an answer to a comment of another user", "circle.comment", object{"postId": mine.post, "text": "x", "replyTo": theirs.comment}},
		{"an answer to a deleted comment", "circle.comment", object{"postId": mine.post, "text": "x", "replyTo": gone}},
		{"a like of a post of another user", "circle.like", object{"postId": theirs.post}},
		{"a like withdrawn from a post of another user", "circle.unlike", object{"postId": theirs.post}},
		{"a post of another user forwarded", "circle.forward", object{"postId": theirs.post, "characterId": mine.character}},
		{"a post forwarded to a character of another user", "circle.forward", object{"postId": mine.post, "characterId": theirs.character}},
		{"a post of another user deleted", "circle.delete", object{"postId": theirs.post}},
		{"a comment of another user deleted", "circle.delete", object{"postId": mine.post, "commentId": theirs.comment}},
	} {
		t.Run(c.name, func(t *testing.T) { p.fails("not_found", c.command, h.newKey(), c.data) })
	}
	p.send("circle.comment", h.newKey(), object{"postId": mine.post, "text": strings.Repeat("a", 1<<20)})
	p.wantClose(closeTooBig)
	if after := h.feeds(owner, h.token); after != before {
		t.Errorf("the feeds were %s\nand are %s", before, after)
	}
}

// A model's answer in a wrong form counts as what it means, or as nothing.
func TestAnswersInAWrongFormStoreNothingWrong(t *testing.T) {
	t.Parallel()
	const ice = "The ice sings."
	for name, c := range map[string]struct {
		answer                  string
		state, comment, emotion string
		likes                   bool
	}{
		`a like that is the word "false"`: {`{"action":{"like":"false","comment":""}}`, "nothing", "", "", false},
		`"false" with a comment`:          {`{"action":{"like":"false","comment":"` + ice + `"}}`, "done", ice, "", false},
		"a comment that is a list":        {`{"action":{"like":"true","comment":["a"]}}`, "done", "", "", true},
		"an unknown emotion":              {`{"action":{"comment":"` + ice + `"},"emotion":{"type":"ecstatic","intensity":"much"}}`, "done", ice, "neutral 0.5", false},
		"an emotion beyond measure":       {`{"action":{"comment":"` + ice + `"},"emotion":{"type":"NEGATIVE","intensity":9e9}}`, "done", ice, "negative 1", false},
		"evidence that was not shown":     {`{"action":{"comment":"` + ice + `"},"evidence":["c7","../../etc"]}`, "done", ice, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, model := newProvider(t, func(r llmtest.Request) llmtest.Reply {
				if strings.Contains(asked(r), "You are Mira.") {
					return llmtest.Say(c.answer)
				}
				return llmtest.Say(`{"action":{}}`)
			})
			s := newStory(t, model)
			mira := s.cast["Mira"]
			post := stringAt(s.rest("POST", "/circle/posts", `{"text":"Mira, the harbour is frozen."}`).wants(t, 201), "id")
			turns := s.unfold(post)
			if i := slices.Index(stringsAt(turns, "characterId"), mira); i < 0 || turns[i]["state"] != c.state {
				t.Errorf("the turns are %v", turns)
			}
			comment, emotion := "", ""
			for _, made := range s.comments(post) {
				if stringAt(made, "author.id") != mira {
					continue
				}
				comment = stringAt(made, "text")
				if e, ok := made["emotion"].(object); ok {
					emotion = fmt.Sprint(e["type"], " ", e["intensity"])
				}
				if made["evidence"] != nil {
					t.Errorf("the evidence is %v", made["evidence"])
				}
			}
			likes := strings.Contains(fmt.Sprint(s.rest("GET", "/circle/posts/"+post, "").wants(t, 200)["likes"]), mira)
			if comment != c.comment || emotion != c.emotion || likes != c.likes {
				t.Errorf("likes: %v, comment %q, emotion %q", likes, comment, emotion)
			}
			if edges := s.rest("GET", "/circle/relationships", "").wants(t, 200)["edges"].([]any); len(edges) != 0 {
				t.Errorf("relationships: %v", edges)
			}
		})
	}
}
