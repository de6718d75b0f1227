package server

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// inCircle runs fn in a transaction of the circle.
func (h *testServer) inCircle(fn func(tx circle.Tx) error) {
	h.t.Helper()
	h.must(h.db.Circle().Update(context.Background(), h.userOfToken(), fn))
}

// userOfToken is the user that requests are made for.
func (h *testServer) userOfToken() string {
	h.t.Helper()
	who, err := h.accounts.Authenticate(context.Background(), h.token)
	h.must(err)
	return who.User.ID
}

// makeAction lets a character offer the user a gift, as a review does.
func (h *testServer) makeAction(character string) string {
	h.t.Helper()
	id := op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		return tx.InsertAction(&circle.Action{
			ID: id, CharacterID: character, Type: "gift", Text: "a shell", State: "pending", ExpiresAt: tx.Now().Add(time.Hour), CreatedAt: tx.Now(),
		})
	})
	return id
}

// makeTurn plans a reaction to a post, due at once.
func (h *testServer) makeTurn(character, post string) string {
	h.t.Helper()
	id := op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		_, err := tx.InsertTurn(&circle.Turn{
			ID: id, CharacterID: character, PostID: post, Reason: rules.Mentioned, State: circle.TurnPlanned, DueAt: tx.Now(), CreatedAt: tx.Now(),
		})
		return err
	})
	return id
}

// join makes a character take part in the circle without posts of its own.
func (h *testServer) join(character string) {
	h.t.Helper()
	h.rest("PUT", "/characters/"+character+"/settings", `{"circle":{"enabled":true,"postsPerDay":0}}`).wants(h.t, 200)
}

// useCircle makes every event of the circle happen.
func (h *testServer) useCircle(p *wsClient, e *fixtures) {
	h.t.Helper()
	post := "/circle/posts/" + e.post
	h.join(e.character)
	h.rest("PUT", post+"/like", "").wants(h.t, 200)
	h.rest("DELETE", post+"/like", "").wants(h.t, 200)
	h.rest("PATCH", "/circle/relationships/"+e.character+"/"+h.user.ID, `{"strength":42}`).wants(h.t, 200)
	h.rest("POST", "/circle/actions/"+e.action, `{"decision":"accept"}`).wants(h.t, 200)
	h.rest("PUT", "/circle/settings", `{"quietFrom":"00:00","quietUntil":"00:00"}`).wants(h.t, 200)
	h.model.enqueue(&script{fails: fault.New(fault.Blocked, "no")})
	h.inCircle(func(tx circle.Tx) error { return tx.Jobs.Enqueue(jobs.Spec{Kind: circle.JobReact, Subject: e.turn}) })
	p.event("circle.failed", "")
	h.rest("DELETE", post+"/comments/"+e.comment, "").wants(h.t, 204)
	h.rest("DELETE", post, "").wants(h.t, 204)
	p.event("circle.post.deleted", "")
}

func TestTheFeedHasTheLatestCommentsOfEachPost(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := func(a *restResponse) string { return stringAt(a.wants(t, 201), "id") }
	alice := h.newCharacter()
	h.join(alice)
	first := id(h.rest("POST", "/circle/posts", `{"text":"Who goes sailing?"}`))
	second := id(h.rest("POST", "/circle/posts", `{"text":"The lamp burns.","authorId":"`+alice+`"}`))
	var comments []string
	for _, text := range []string{"one", "two", "three", "four"} {
		comments = append(comments, id(h.rest("POST", "/circle/posts/"+first+"/comments", `{"text":"`+text+`"}`)))
	}
	reply := h.rest("POST", "/circle/posts/"+first+"/comments", `{"text":"five","replyTo":"`+comments[0]+`"}`).wants(t, 201)
	if reply["thread"] != comments[0] || reply["depth"] != 2.0 || reply["replyTo"] != comments[0] {
		t.Errorf("the reply is %v", reply)
	}
	posts := h.rest("GET", "/circle/posts", "").items(t)
	if len(posts) != 2 || posts[0]["id"] != second || posts[1]["commentCount"] != 5.0 || len(posts[1]["comments"].([]any)) != 3 {
		t.Fatalf("the feed is %v", posts)
	}
	author := posts[0]["author"].(map[string]any)
	if author["id"] != alice || author["name"] != "Alice" || author["isUser"] != false {
		t.Errorf("the author is %v", author)
	}
	if me := posts[1]["author"].(map[string]any); me["id"] != h.user.ID || me["isUser"] != true {
		t.Errorf("the user is %v", me)
	}
	whole := h.rest("GET", "/circle/posts/"+first, "").wants(t, 200)
	if got := whole["comments"].([]any); len(got) != 5 || got[0].(map[string]any)["text"] != "one" {
		t.Errorf("the post has the comments %v", got)
	}
	h.rest("DELETE", "/circle/posts/"+first+"/comments/"+comments[0], "").wants(t, 204)
	gap := h.rest("GET", "/circle/posts/"+first, "").wants(t, 200)["comments"].([]any)[0].(map[string]any)
	if gap["deleted"] != true || gap["text"] != "" {
		t.Errorf("a deleted comment with replies is %v", gap)
	}
	for query, want := range map[string]string{"authorId=" + alice: second, "authorId=" + h.user.ID: first} {
		if got := h.rest("GET", "/circle/posts?"+query, "").items(t); len(got) != 1 || got[0]["id"] != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	page := h.rest("GET", "/circle/posts?limit=1", "").wants(t, 200)
	if rest := h.rest("GET", "/circle/posts?cursor="+stringAt(page, "nextCursor"), "").items(t); len(rest) != 1 || rest[0]["id"] != first {
		t.Errorf("the second page is %v", rest)
	}
}

func TestThoughtsAreShownOnRequestOnly(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice, id := h.newCharacter(), op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		p := &circle.Post{ID: id, AuthorID: alice, AuthorName: "Alice", Text: "All is well.", Thoughts: "It is not.", CreatedAt: tx.Now()}
		if err := tx.InsertPost(p); err != nil {
			return err
		}
		if _, err := tx.PutLike(&circle.Like{PostID: id, AuthorID: circle.Me, AuthorName: "User", Thoughts: "It is not.", CreatedAt: tx.Now()}); err != nil {
			return err
		}
		return tx.InsertComment(&circle.Comment{
			ID: op.NewID(), PostID: id, AuthorID: alice, AuthorName: "Alice", Thread: id, Depth: 1, Text: "Truly.", Thoughts: "It is not.", CreatedAt: tx.Now(),
		})
	})
	for _, path := range []string{"/circle/posts", "/circle/posts/" + id} {
		if a := h.rest("GET", path, ""); strings.Contains(string(a.body), "It is not.") || strings.Count(string(a.body), `"hasThoughts":true`) != 3 {
			t.Errorf("%s: %s", path, a.body)
		}
		if a := h.rest("GET", path+"?thoughts=true", ""); strings.Count(string(a.body), "It is not.") != 3 {
			t.Errorf("%s with thoughts: %s", path, a.body)
		}
	}
}

func TestWhatThePostIsToTheUserIsStored(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	post := "/circle/posts/" + stringAt(h.rest("POST", "/circle/posts", `{"text":"Ahoy"}`).wants(t, 201), "id")
	h.rest("PUT", post+"/like", "").wants(t, 200)
	liked := h.rest("PUT", post+"/like", "").wants(t, 200)
	if liked["liked"] != true || len(liked["likes"].([]any)) != 1 {
		t.Errorf("liked twice, the post is %v", liked)
	}
	if got := h.rest("DELETE", post+"/like", "").wants(t, 200); got["liked"] != false || len(got["likes"].([]any)) != 0 {
		t.Errorf("no longer liked, the post is %v", got)
	}
	h.rest("PUT", post+"/favorite", "").wants(t, 200)
	if got := h.rest("PUT", post+"/rating", `{"rating":4}`).wants(t, 200); got["favorite"] != true || got["rating"] != 4.0 {
		t.Errorf("the post is %v", got)
	}
	if got := h.rest("GET", "/circle/posts?favorites=true", "").items(t); len(got) != 1 {
		t.Errorf("the favourites are %v", got)
	}
	h.rest("DELETE", post+"/favorite", "").wants(t, 200)
	if got := h.rest("GET", "/circle/posts?favorites=true", "").items(t); len(got) != 0 {
		t.Errorf("the favourites are %v", got)
	}
	h.rest("PUT", post+"/rating", `{"rating":6}`).refuses(t, 400, "invalid_field", "rating")
}

func TestBadPostsAndCommentsStoreNothing(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	post := "/circle/posts/" + stringAt(h.rest("POST", "/circle/posts", `{"text":"Ahoy"}`).wants(t, 201), "id")
	gone := stringAt(h.rest("POST", post+"/comments", `{"text":"x"}`).wants(t, 201), "id")
	h.rest("DELETE", post+"/comments/"+gone, "").wants(t, 204)
	outside, archived := h.newCharacter(), h.newCharacter()
	h.join(archived)
	h.rest("PATCH", "/characters/"+archived, `{"archived":true}`).wants(t, 200)
	before := string(h.rest("GET", post, "").body)
	long := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		path, body string
		status     int
		code       string
	}{
		"a post without text and images":         {"/circle/posts", `{}`, 400, "invalid_field"},
		"five images":                            {"/circle/posts", `{"text":"x","images":["a","b","c","d","e"]}`, 400, "invalid_field"},
		"an image twice":                         {"/circle/posts", `{"text":"x","images":["a","a"]}`, 400, "invalid_field"},
		"an unknown image":                       {"/circle/posts", `{"text":"x","images":["a"]}`, 404, "not_found"},
		"an unknown author":                      {"/circle/posts", `{"text":"x","authorId":"nobody"}`, 404, "not_found"},
		"an author that does not take part":      {"/circle/posts", `{"text":"x","authorId":"` + outside + `"}`, 409, "conflict"},
		"an archived author":                     {"/circle/posts", `{"text":"x","authorId":"` + archived + `"}`, 409, "conflict"},
		"a post of 1 MB":                         {"/circle/posts", `{"text":"` + long + `"}`, 413, "too_large"},
		"a comment of 1 MB":                      {post + "/comments", `{"text":"` + long + `"}`, 413, "too_large"},
		"a comment of 2,001 characters":          {post + "/comments", `{"text":"` + long[:2001] + `"}`, 413, "too_large"},
		"a blank comment":                        {post + "/comments", `{"text":" "}`, 400, "invalid_field"},
		"a reply to a deleted comment":           {post + "/comments", `{"text":"x","replyTo":"` + gone + `"}`, 404, "not_found"},
		"a comment on a post that is not there":  {"/circle/posts/" + op.NewID() + "/comments", `{"text":"x"}`, 404, "not_found"},
		"a forwarded post that is not there":     {"/circle/posts/" + op.NewID() + "/forward", `{"characterId":"` + outside + `"}`, 404, "not_found"},
		"a decision that is none":                {"/circle/actions/" + op.NewID(), `{"decision":"maybe"}`, 400, "invalid_field"},
		"an action that is not there":            {"/circle/actions/" + op.NewID(), `{"decision":"accept"}`, 404, "not_found"},
		"a retry of a turn that is not there":    {"/circle/turns/" + op.NewID() + "/retry", "", 404, "not_found"},
		"a character that is not there joins":    {"/circle/characters/" + op.NewID() + "/init", "", 404, "not_found"},
		"a comment with an unknown member named": {post + "/comments", `{"text":"x","authorId":"` + outside + `"}`, 400, "invalid_field"},
	} {
		t.Run(name, func(t *testing.T) { h.rest("POST", c.path, c.body).refuses(t, c.status, c.code) })
	}
	if after := string(h.rest("GET", post, "").body); after != before {
		t.Errorf("the post was %s\nand is %s", before, after)
	}
	if got := h.rest("GET", "/circle/posts", "").items(t); len(got) != 1 {
		t.Errorf("the feed has %d posts", len(got))
	}
}

func TestImagesAreStoredWithThumbnails(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	var file bytes.Buffer
	h.must(png.Encode(&file, image.NewRGBA(image.Rect(0, 0, 300, 200))))
	a := h.upload("POST", "/attachments", "harbour.png", file.Bytes()).wants(t, 201)
	if a["name"] != "harbour.png" || a["contentType"] != "image/png" || a["width"] != 300.0 || a["height"] != 200.0 {
		t.Errorf("the attachment is %v", a)
	}
	path := "/attachments/" + stringAt(a, "id")
	if got := h.rest("GET", path, "").wants(t, 200); got["size"] != float64(file.Len()) {
		t.Errorf("it is listed as %v", got)
	}
	whole := h.rest("GET", path+"/content", "")
	if whole.status != 200 || !bytes.Equal(whole.body, file.Bytes()) || whole.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the content: %d, %d bytes, %v", whole.status, len(whole.body), whole.header)
	}
	small := h.rest("GET", path+"/content?size=64", "")
	if config, _, err := image.DecodeConfig(bytes.NewReader(small.body)); err != nil || config.Width != 64 {
		t.Errorf("the thumbnail: %d, %v, %v", small.status, config, err)
	}
	h.rest("GET", path+"/content?size=5", "").refuses(t, 400, "invalid_field", "size")
	post := h.rest("POST", "/circle/posts", `{"images":["`+stringAt(a, "id")+`"]}`).wants(t, 201)
	if images, names := post["images"].([]any), post["imageNames"].([]any); !slices.Equal(images, []any{a["id"]}) || !slices.Equal(names, []any{"harbour.png"}) {
		t.Errorf("the post has %v, %v", images, names)
	}
	h.upload("POST", "/attachments", "a.txt", []byte("no image")).refuses(t, 415, "unsupported_media_type")
	h.upload("POST", "/attachments", "a.png", append(file.Bytes(), make([]byte, 10<<20)...)).refuses(t, 413, "too_large")
	h.rest("DELETE", path, "").wants(t, 204)
	h.rest("GET", path+"/content", "").refuses(t, 404, "not_found")
	if left := h.rest("GET", "/circle/posts/"+stringAt(post, "id"), "").wants(t, 200)["images"].([]any); len(left) != 0 {
		t.Errorf("the post still has %v", left)
	}
}

func TestAForwardedPostIsAMessageInAPrivateChat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	alice := h.characterOf(chat)
	h.join(alice)
	a := h.upload("POST", "/attachments", "harbour.png", onePixel).wants(t, 201)
	post := stringAt(h.rest("POST", "/circle/posts", `{"text":"The lamp burns.","authorId":"`+alice+`","images":["`+stringAt(a, "id")+`"]}`).wants(t, 201), "id")
	body := `{"characterId":"` + alice + `","text":"Is that yours?"}`
	sent := h.rest("POST", "/circle/posts/"+post+"/forward", body, "Idempotency-Key: once").wants(t, 200)
	const want = "Is that yours?\n\n[Forwarded from the circle: a post by Alice]\n\nThe lamp burns.\n\n[Images: harbour.png]"
	message := sent["userMessage"].(map[string]any)
	if message["text"] != want || message["conversationId"] != chat || h.model.last() == "" || sent["message"].(map[string]any)["text"] != "Yes." {
		t.Errorf("sent %v", sent)
	}
	box := h.rest("GET", "/circle/messagebox?characterId="+alice, "").items(t)
	if len(box) != 1 || box[0]["type"] != "message" || box[0]["contextId"] != post || box[0]["text"] != "forwarded your post" {
		t.Errorf("the author's message box is %v", box)
	}
	h.rest("DELETE", "/circle/posts/"+post, "").wants(t, 204)
	again := h.rest("POST", "/circle/posts/"+post+"/forward", body, "Idempotency-Key: once").wants(t, 200)
	if again["userMessage"].(map[string]any)["id"] != message["id"] {
		t.Errorf("a repeated call sent %v", again)
	}
	if left := h.rest("GET", "/circle/messagebox?characterId="+alice, "").items(t); len(left) != 0 {
		t.Errorf("of the deleted post, the author's message box has %v", left)
	}
	bob := h.newCharacter()
	other := stringAt(h.rest("POST", "/circle/posts", `{"text":"Ahoy"}`).wants(t, 201), "id")
	made := h.rest("POST", "/circle/posts/"+other+"/forward", `{"characterId":"`+bob+`"}`).wants(t, 200)["userMessage"].(map[string]any)
	if in := h.rest("GET", "/conversations/"+stringAt(made, "conversationId"), "").wants(t, 200); in["characterId"] != bob {
		t.Errorf("forwarded into %v", in)
	}
}

func TestRelationshipsAreReadAndChanged(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice, bob := h.newCharacter(), h.newCharacter()
	h.join(alice)
	path := "/circle/relationships/" + alice + "/"
	got := h.rest("PATCH", path+h.user.ID, `{"strength":42,"description":"They sail."}`).wants(t, 200)
	if got["type"] != "friend" || got["kept"] != false || got["targetId"] != h.user.ID || got["description"] != "They sail." {
		t.Errorf("the relationship is %v", got)
	}
	h.rest("PATCH", path+bob, `{"type":"mentor"}`).wants(t, 200)
	if got := h.rest("PATCH", path+bob, `{"strength":-100}`).wants(t, 200); got["type"] != "mentor" || got["kept"] != true {
		t.Errorf("a named type became %v", got)
	}
	if got := h.rest("PATCH", path+bob, `{"type":""}`).wants(t, 200); got["type"] != "enemy" || got["kept"] != false {
		t.Errorf("a type that follows the strength is %v", got)
	}
	graph := h.rest("GET", "/circle/relationships", "").wants(t, 200)
	if len(graph["nodes"].([]any)) != 3 || len(graph["edges"].([]any)) != 2 {
		t.Errorf("the graph is %v", graph)
	}
	if of := h.rest("GET", "/circle/relationships?characterId="+bob, "").wants(t, 200); len(of["edges"].([]any)) != 0 {
		t.Errorf("bob's graph is %v", of)
	}
	h.rest("PATCH", path+alice, `{}`).refuses(t, 400, "invalid_field", "targetId")
	h.rest("PATCH", path+bob, `{"strength":101,"type":"twin"}`).refuses(t, 400, "invalid_field", "strength")
	h.rest("PATCH", path+bob, `{"description":"`+strings.Repeat("a", 501)+`"}`).refuses(t, 413, "too_large")
}

func TestActionsAreDecidedOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice := h.newCharacter()
	action, late := h.makeAction(alice), op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		return tx.InsertAction(&circle.Action{
			ID: late, CharacterID: alice, Type: "support", Text: "help", State: "pending", ExpiresAt: tx.Now().Add(-time.Hour), CreatedAt: tx.Now().Add(-2 * time.Hour),
		})
	})
	list := h.rest("GET", "/circle/actions?characterId="+alice, "").items(t)
	if len(list) != 2 || list[0]["state"] != "pending" || list[1]["state"] != "expired" || list[1]["endedAt"] != list[1]["expiresAt"] {
		t.Errorf("the actions are %v", list)
	}
	if got := h.rest("POST", "/circle/actions/"+action, `{"decision":"reject"}`).wants(t, 200); got["state"] != "rejected" {
		t.Errorf("the action is %v", got)
	}
	h.rest("POST", "/circle/actions/"+action, `{"decision":"accept"}`).refuses(t, 409, "conflict")
	h.rest("POST", "/circle/actions/"+late, `{"decision":"accept"}`).refuses(t, 409, "conflict")
	if box := h.rest("GET", "/circle/messagebox?characterId="+alice, "").items(t); len(box) != 1 || box[0]["text"] != "rejected" {
		t.Errorf("the character reads %v", box)
	}
	if got := h.rest("POST", "/circle/actions/"+h.makeAction(alice), `{"decision":"accept"}`).wants(t, 200); got["state"] != "accepted" {
		t.Errorf("the action is %v", got)
	}
	h.inCircle(func(tx circle.Tx) error {
		r, err := tx.Relation(alice, circle.Me)
		if r.Strength != -2+5 || r.Interactions != 2 {
			t.Errorf("the character thinks %+v of the user", r)
		}
		return err
	})
}

func TestAnEmptyCommentIDDeletesNoPost(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	post := stringAt(h.rest("POST", "/circle/posts", `{"text":"My garden."}`).wants(t, 201), "id")
	p, _ := h.connect(nil)
	p.fails("not_found", "circle.delete", "d1", map[string]any{"postId": post, "commentId": ""})
	h.rest("GET", "/circle/posts/"+post, "").wants(t, 200)
}

func TestMessageBoxesForgetWhatIsDeleted(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice, bob := h.newCharacter(), h.newCharacter()
	h.join(alice)
	post := stringAt(h.rest("POST", "/circle/posts", `{"authorId":"`+alice+`","text":"My garden."}`).wants(t, 201), "id")
	said := op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		return tx.InsertComment(&circle.Comment{ID: said, PostID: post, AuthorID: bob, Thread: said, Depth: 1, Text: "Bob was there.", CreatedAt: tx.Now()})
	})
	comments := "/circle/posts/" + post + "/comments"
	var mine []string
	for _, text := range []string{`"one"`, `"two","replyTo":"` + said + `"`} {
		mine = append(mine, stringAt(h.rest("POST", comments, `{"text":`+text+`}`).wants(t, 201), "id"))
	}
	h.rest("PUT", "/circle/posts/"+post+"/like", "").wants(t, 200)
	box := func(when, character string, want ...string) {
		t.Helper()
		var got []string
		for _, item := range h.rest("GET", "/circle/messagebox?characterId="+character, "").items(t) {
			context, _ := item["context"].(string)
			got = append(got, stringAt(item, "type")+" "+stringAt(item, "text")+" "+context)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	box("Alice at first", alice, "like  My garden.", "comment two My garden.", "comment one My garden.")
	box("Bob at first", bob, "reply two Bob was there.")
	h.rest("DELETE", comments+"/"+mine[0], "").wants(t, 204)
	box("Alice after a comment was deleted", alice, "like  My garden.", "comment two My garden.")
	h.rest("DELETE", comments+"/"+said, "").wants(t, 204)
	box("Bob after his comment was deleted", bob, "reply two ")
	h.rest("DELETE", "/circle/posts/"+post, "").wants(t, 204)
	box("Alice after the post was deleted", alice)
	box("Bob after the post was deleted", bob)
}

func TestSettingsOfTheCircleHaveDefaultsAndBounds(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	got := h.rest("GET", "/circle/settings", "").wants(t, 200)
	if got["quietFrom"] != "23:00" || got["callsPerDay"] != 200.0 || got["updatedAt"] != nil {
		t.Errorf("the defaults are %v", got)
	}
	if got := h.rest("PUT", "/circle/settings", `{"callsPerDay":0,"quick":true,"quietFrom":"22:30","updatedAt":null}`).wants(t, 200); got["callsPerDay"] != 0.0 || got["quick"] != true || got["sleepAfter"] != 3.0 || got["quietFrom"] != "22:30" {
		t.Errorf("the settings are %v", got)
	}
	for field, body := range map[string]string{
		"quietFrom": `{"quietFrom":"24:00"}`, "callsPerDay": `{"callsPerDay":10001}`, "sleepAfter": `{"sleepAfter":0}`, "tokensPerDay": `{"tokensPerDay":-1}`,
		"proactiveADay": `{"proactiveADay":25}`, "silentHours": `{"silentHours":0}`, "mood": `{"mood":1}`,
	} {
		h.rest("PUT", "/circle/settings", body).refuses(t, 400, "invalid_field", field)
	}
	spent := h.rest("GET", "/circle/spend", "").wants(t, 200)
	if spent["callsPerDay"] != 0.0 || spent["tokensPerDay"] != 400_000.0 {
		t.Errorf("the cost is %v", spent)
	}
	h.rest("GET", "/circle/spend?from=2026-02-01&to=2026-01-01", "").refuses(t, 400, "invalid_field", "from")
	h.rest("GET", "/circle/spend?to=today", "").refuses(t, 400, "invalid_field", "to")
}

func TestALookAtTheFeedWakesTheCircle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/circle/characters/"+h.newCharacter()+"/init", "").wants(t, 200)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	h.inCircle(func(tx circle.Tx) error {
		s, err := tx.CircleState()
		if err != nil {
			return err
		}
		now := tx.Now()
		s.LookedAt, s.AsleepAt = now.AddDate(0, 0, -9), &now
		return tx.PutCircleState(s)
	})
	if asleep := h.rest("GET", "/circle/settings", "").wants(t, 200); asleep["asleepAt"] == nil {
		t.Errorf("asleep, the circle is %v", asleep)
	}
	h.rest("GET", "/circle/posts", "").wants(t, 200)
	p.event("circle.settings", "")
	if awake := h.rest("GET", "/circle/settings", "").wants(t, 200); awake["asleepAt"] != nil || awake["lookedAt"] == nil {
		t.Errorf("awake, the circle is %v", awake)
	}
}

func TestInitMakesACharacterTakePart(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice := h.newCharacter()
	got := h.rest("POST", "/circle/characters/"+alice+"/init", "").wants(t, 200)
	base, scene := got["base"].(map[string]any), got["circle"].(map[string]any)
	if base["charDescription"] != "A guide of few words." || base["charPersonality"] != "calm" || scene["scenePrompt"] == "" || scene["responseFormat"] == "" {
		t.Errorf("init answers %v", got)
	}
	set := h.rest("GET", "/characters/"+alice+"/settings", "").wants(t, 200)["circle"].(map[string]any)
	if set["enabled"] != true {
		t.Errorf("the settings are %v", set)
	}
	h.rest("POST", "/circle/characters/"+alice+"/init", "").wants(t, 200)
	h.rest("POST", "/circle/posts", `{"text":"x","authorId":"`+alice+`"}`).wants(t, 201)
}

func TestFailedTurnsAreShownAndRetried(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice := h.newCharacter()
	h.join(alice)
	id, post := op.NewID(), op.NewID()
	h.inCircle(func(tx circle.Tx) error {
		now := tx.Now()
		// Not through the API, which has a job plan the reactions to it.
		if err := tx.InsertPost(&circle.Post{ID: post, Text: "Ahoy", CreatedAt: now}); err != nil {
			return err
		}
		_, err := tx.InsertTurn(&circle.Turn{
			ID: id, CharacterID: alice, PostID: post, Reason: rules.Chance, State: circle.TurnFailed, DueAt: now, CreatedAt: now, EndedAt: &now,
		})
		if err != nil {
			return err
		}
		return tx.UpdateTurn(&circle.Turn{ID: id, PostID: post, Reason: rules.Chance, State: circle.TurnFailed, DueAt: now, EndedAt: &now, Error: op.FailureOf(fault.New(fault.UpstreamDown, "gone"))})
	})
	for _, path := range []string{"/circle/posts/" + post + "/turns", "/circle/turns?state=failed", "/circle/turns?characterId=" + alice} {
		turns := h.rest("GET", path, "").items(t)
		if len(turns) != 1 || turns[0]["state"] != "failed" || turns[0]["error"].(map[string]any)["code"] != "upstream_unavailable" {
			t.Errorf("%s: %v", path, turns)
		}
	}
	h.rest("GET", "/circle/turns?state=lost", "").refuses(t, 400, "invalid_field", "state")
	if got := h.rest("POST", "/circle/turns/"+id+"/retry", "").wants(t, 202); got["state"] != "planned" {
		t.Errorf("the turn is %v", got)
	}
}

// The app gets 200 whatever happens.
func TestTheAppAsksForReactions(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	alice := h.newCharacter()
	body := `{"type":"post","content":{"authorId":"` + h.user.ID + `","text":"Ahoy","context":"","hue":1},"responderId":"` + alice + `","mood":1}`
	h.model.enqueue(&script{pieces: []string{`{"thoughts":"He is back.","action":{"like":true,"comment":"Welcome!"},"emotion":{"type":"positive","intensity":0.8}}`}})
	got := h.rest("POST", "/nodest/circle", body).wants(t, 200)
	action, _ := got["action"].(map[string]any)
	if got["success"] != true || action["like"] != true || action["comment"] != "Welcome!" || got["thoughts"] != "He is back." {
		t.Errorf("the reaction is %v", got)
	}
	for name, body := range map[string]string{
		"an unknown type":      `{"type":"dance","content":{"authorId":"a"},"responderId":"` + alice + `"}`,
		"an unknown responder": `{"type":"post","content":{"authorId":"` + h.user.ID + `","text":"x"},"responderId":"nobody"}`,
		"no content":           `{"type":"post","responderId":"` + alice + `"}`,
	} {
		if got := h.rest("POST", "/nodest/circle", body).wants(t, 200); got["success"] != false || got["error"] == "" {
			t.Errorf("%s: %v", name, got)
		}
	}
	h.model.enqueue(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	if got := h.rest("POST", "/nodest/circle", body).wants(t, 200); got["success"] != false || got["code"] != "upstream_unavailable" {
		t.Errorf("without a provider: %v", got)
	}
	if got := h.rest("GET", "/circle/posts", "").items(t); len(got) != 0 {
		t.Errorf("the feed is %v", got)
	}
}
