package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/circle"
	"nodest/framework"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/offline"
	"nodest/llm/openai"
	"nodest/nodest"
)

// story is a circle of five characters in virtual time, with two devices of the user.
type story struct {
	*testServer
	clock         *atomic.Int64 // the store's clock, in ms
	phone, tablet *wsClient
	cast          map[string]string // ids by name
}

var cast = map[string]string{
	"Mira": "Mira keeps an orchard above the harbour.", "Tomas": "Tomas repairs clocks.", "Juno": "Juno teaches the cello.",
	"Bram": "Bram drives the night bus.", "Wanda": "Wanda grows mushrooms in a cellar.",
}

// news is a post of the user. Whom it mentions certainly gets a turn.
const news = "The boat is mended at last! Mira, Tomas: who comes sailing with me on Sunday?"

// alone is a model for everything.
type alone nodest.Model

func (a alone) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model(a), nil
}

// newProvider starts a fake provider and returns it, and a model that asks it over HTTP.
func newProvider(t *testing.T, says llmtest.Server) (*llmtest.Fake, nodest.Model) {
	t.Helper()
	fake := llmtest.NewOpenAI(t)
	fake.Always(says)
	client, err := openai.New(nil, openai.Options{BaseURL: fake.URL})
	if err != nil {
		t.Fatal(err)
	}
	name := client.DefaultModel(t.Context())
	chain := llm.Chain(slog.New(slog.DiscardHandler), llm.Link{Provider: openai.OpenAI, Model: name, Generator: llm.Dependable(openai.OpenAI, client)})
	return fake, nodest.Model{Generator: chain, Provider: openai.OpenAI, Name: name, Key: openai.OpenAI}
}

// newStory begins at noon: reactions take at most six hours, and nobody sleeps.
func newStory(t *testing.T, model nodest.Model) *story {
	s := &story{clock: new(atomic.Int64), cast: map[string]string{}}
	s.clock.Store(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).UnixMilli())
	s.testServer = newTestServerOf(t, parts{models: alone(model), now: s.now}, nil)
	s.rest("PUT", "/circle/settings", `{"quick":false}`).wants(t, 200) // not as on the first day
	for name, is := range cast {
		card, err := json.Marshal(map[string]any{"roleCard": map[string]string{"name": name, "description": is, "first_mes": "Hello."}})
		s.must(err)
		s.cast[name] = stringAt(s.rest("POST", "/characters", string(card)).wants(t, 201), "id")
		s.join(s.cast[name])
	}
	s.phone, _ = s.connect(map[string]any{"deviceId": "phone"})
	s.tablet, _ = s.connect(map[string]any{"deviceId": "tablet", "want": []string{"circle"}})
	return s
}

func (s *story) now() time.Time { return time.UnixMilli(s.clock.Load()).UTC() }

func (s *story) time(item map[string]any, member string) time.Time {
	s.t.Helper()
	at, err := time.Parse(time.RFC3339, stringAt(item, member))
	s.must(err)
	return at
}

// settle waits until all jobs of the circle that are due are done. It returns when the
// next reaction is due; zero = none is planned.
func (s *story) settle() (next time.Time) {
	s.t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		busy := false
		next = time.Time{}
		for _, j := range s.rest("GET", "/jobs?limit=100", "").items(s.t) {
			switch open := j["state"] == "running" || j["state"] == "queued"; {
			case !open || !strings.HasPrefix(stringAt(j, "kind"), "circle."):
			case j["state"] == "running", j["notBefore"] == nil, !s.time(j, "notBefore").After(s.now()):
				busy = true
			case j["kind"] == circle.JobReact && (next.IsZero() || s.time(j, "notBefore").Before(next)):
				next = s.time(j, "notBefore")
			}
		}
		if !busy {
			return next
		}
	}
	s.t.Fatal("the jobs of the circle do not end")
	return next
}

// unfold lets time leap from one reaction to the next until none is planned, and returns
// the turns about a post, oldest first. Each must have ended when it was due.
func (s *story) unfold(post string) []map[string]any {
	s.t.Helper()
	for due := s.settle(); !due.IsZero(); due = s.settle() {
		s.clock.Store(due.UnixMilli())
		s.jobs.Changed(nil)
	}
	turns := s.turns(post)
	for _, turn := range turns {
		if turn["endedAt"] != turn["dueAt"] {
			s.t.Errorf("a turn was due at %v and ended at %v: %v", turn["dueAt"], turn["endedAt"], turn)
		}
	}
	return turns
}

func (s *story) turns(post string) []map[string]any {
	s.t.Helper()
	turns := s.rest("GET", "/circle/posts/"+post+"/turns", "").items(s.t)
	slices.Reverse(turns)
	return turns
}

// tell posts the news from the phone, lets everybody react who was chosen, and returns
// their turns. Who was not chosen has none.
func (s *story) tell() (post string, turns []map[string]any) {
	s.t.Helper()
	post = field[string](s.t, s.phone.ok("circle.post", s.newKey(), map[string]any{"text": news}), "id")
	if e := s.tablet.event("circle.post", ""); field[string](s.t, e, "post.id") != post || field[string](s.t, e, "post.text") != news {
		s.t.Errorf("the tablet got %s", e.Data)
	}
	s.settle()
	posted, planned := s.now(), s.turns(post)
	due := map[time.Time]bool{}
	for _, turn := range planned {
		at := s.time(turn, "dueAt")
		delay := at.Sub(posted)
		if turn["state"] != "planned" || delay < 20*time.Second || delay > 6*time.Hour || due[at] && delay > 20*time.Second {
			s.t.Errorf("a turn after %s: %v; want a delay of its own", delay, turn)
		}
		due[at] = true
	}
	for name, id := range s.cast {
		of := slices.DeleteFunc(slices.Clone(planned), func(turn map[string]any) bool { return turn["characterId"] != id })
		if mentioned := strings.Contains(news, name); len(of) > 1 || mentioned && (len(of) == 0 || of[0]["reason"] != "mentioned") {
			s.t.Errorf("%s has the turns %v", name, of)
		}
	}
	return post, s.unfold(post)
}

// comments are those of the characters below a post.
func (s *story) comments(post string) []map[string]any {
	s.t.Helper()
	var found []map[string]any
	all, _ := s.rest("GET", "/circle/posts/"+post, "").wants(s.t, 200)["comments"].([]any) // absent if there are none
	for _, c := range all {
		if c := c.(map[string]any); stringAt(c, "author.id") != s.user.ID {
			found = append(found, c)
		}
	}
	return found
}

// hears waits until the tablet knows of a comment.
func (s *story) hears(commentID string) {
	s.t.Helper()
	waitFor(s.tablet, "the comment "+commentID, func(frames []*frame) *frame {
		i := slices.IndexFunc(frames, func(f *frame) bool {
			return f.Ev == "circle.comment" && field[string](s.t, f, "comment.id") == commentID
		})
		if i < 0 {
			return nil
		}
		return frames[i]
	})
}

// strength is what a character thinks of the user.
func (s *story) strength(character string) float64 {
	s.t.Helper()
	for _, edge := range s.rest("GET", "/circle/relationships?characterId="+character, "").wants(s.t, 200)["edges"].([]any) {
		if edge := edge.(map[string]any); edge["characterId"] == character && edge["targetId"] == s.user.ID {
			return edge["strength"].(float64)
		}
	}
	return 0
}

const umbrella = "Bring the green umbrella, the forecast is dreadful."

// answer lets the user answer a comment, which its author likes, and returns the answer's
// id and the turns that follow.
func (s *story) answer(comment map[string]any) (id string, turns []map[string]any) {
	s.t.Helper()
	author, post := stringAt(comment, "author.id"), stringAt(comment, "postId")
	before := s.strength(author)
	id = field[string](s.t, s.phone.ok("circle.comment", s.newKey(), map[string]any{"postId": post, "text": umbrella, "replyTo": comment["id"]}), "id")
	s.hears(id)
	grown := waitFor(s.tablet, "a better relationship", func(frames []*frame) *float64 {
		for _, f := range frames {
			if f.Ev == "circle.relationship" && field[string](s.t, f, "characterId") == author && field[string](s.t, f, "targetId") == s.user.ID {
				return new(field[float64](s.t, f, "strength"))
			}
		}
		return nil
	})
	if after := s.strength(author); after <= before || *grown != after {
		s.t.Errorf("the relationship was %v, the event says %v, the graph %v", before, *grown, after)
	}
	turns = s.unfold(post)
	return id, slices.DeleteFunc(turns, func(turn map[string]any) bool { return turn["commentId"] != id })
}

// recalls checks that a private chat remembers the user's answer, unless its character
// shall not remember the circle there.
func (s *story) recalls(chat, question string) {
	s.t.Helper()
	if got := s.prompt(chat, question); !strings.Contains(got, umbrella) || !strings.Contains(got, "in the circle") {
		s.t.Errorf("the prompt is %s", got)
	}
	s.rest("PUT", "/characters/"+s.characterOf(chat)+"/settings", `{"circle":{"enabled":true,"postsPerDay":0},"retrieval":{"includeCircle":false}}`).wants(s.t, 200)
	if got := s.prompt(chat, question); strings.Contains(got, umbrella) || strings.Contains(got, "in the circle") {
		s.t.Errorf("without the circle, the prompt is %s", got)
	}
	s.join(s.characterOf(chat))
}

// prompt is the preview of what a message in a private chat asks the model.
func (s *story) prompt(chat, message string) string {
	s.t.Helper()
	data, err := json.Marshal(map[string]string{"text": message})
	s.must(err)
	a := s.rest("POST", "/conversations/"+chat+"/prompt", string(data))
	a.wants(s.t, 200)
	return string(a.body)
}

const forecast = "What shall I bring, now that the forecast is so dreadful? The green umbrella?"

// The user posts; of five characters, Mira and Tomas react, each at its own time. The user
// answers Mira, she likes the user better for it, answers, and remembers it in a private
// chat. Nothing of that chat is in the requests for the circle.
func TestAStoryOfTheCircle(t *testing.T) {
	t.Parallel()
	provider, model := newProvider(t, scriptOfTheCircle)
	s := newStory(t, model)
	mira, tomas := s.cast["Mira"], s.cast["Tomas"]
	chat := s.confide(mira)

	post, turns := s.tell()
	for _, turn := range turns {
		speaks := turn["characterId"] == mira || turn["characterId"] == tomas
		if speaks && turn["state"] != "done" || !speaks && (turn["state"] != "nothing" || turn["note"] != "choice") {
			t.Errorf("the turn %v", turn)
		}
	}
	comments := s.comments(post)
	if len(comments) != 1 || comments[0]["text"] != "I shall bring an apple cake." || stringAt(comments[0], "author.id") != mira {
		t.Fatalf("the comments are %v", comments)
	}
	s.hears(stringAt(comments[0], "id"))
	if like := s.tablet.event("circle.like", ""); field[string](t, like, "postId") != post || field[string](t, like, "like.author.id") != tomas {
		t.Errorf("the tablet got %s", like.Data)
	}

	answer, turns := s.answer(comments[0])
	if len(turns) != 1 || turns[0]["characterId"] != mira || turns[0]["state"] != "done" {
		t.Errorf("to the answer, the turns are %v", turns)
	}
	last := s.comments(post)[1]
	if last["replyTo"] != answer || last["depth"] != 3.0 || last["text"] != "It is packed already." || stringAt(last, "author.id") != mira {
		t.Errorf("Mira answers %v", last)
	}
	s.hears(stringAt(last, "id"))

	s.reply(s.phone, chat, forecast, nil)
	if asked := asked(lastOf(provider.Requests())); !strings.Contains(asked, umbrella) || !strings.Contains(asked, "in the circle") {
		t.Errorf("in private, Mira was asked %s", asked)
	}
	s.recalls(chat, forecast)
	for name, reacted := range map[string]bool{"Tomas": true, "Wanda": false} {
		if asked := s.prompt(s.newChatWith(s.cast[name]), "Is the boat mended?"); strings.Contains(asked, "in the circle") != reacted {
			t.Errorf("%s is asked %s", name, asked)
		}
	}
	s.wantDiscreet(provider.Requests())
}

// private is in everything that no prompt for the circle may have.
const private = "Quillfeather"

// confide tells a character about the boat in private, in every way that there is, and
// marks one thing as shareable.
func (s *story) confide(character string) (chat string) {
	s.t.Helper()
	persona := stringAt(s.rest("POST", "/personas", `{"document":{"name":"Ann","description":"Ann paid for the boat as Mrs `+private+`."}}`).wants(s.t, 201), "id")
	s.rest("PUT", "/settings", `{"personaId":"`+persona+`","customSetting":{"content":"The boat belongs to `+private+`.","constant":true}}`).wants(s.t, 200)
	s.addMemory("/characters/"+character+"/memories", "Ann sails the boat for "+private+" on Sunday.", "")
	s.addMemory("/characters/"+character+"/memories", "Ann named the boat Petrel last Sunday.", `,"shareable":true`)
	chat = s.newChatWith(character)
	s.reply(s.phone, chat, "Tell nobody that the boat was mended with the money of "+private+".", nil)
	return chat
}

// wantDiscreet checks all requests for the circle: each was counted, none has something
// private, and what Mira may tell was shown to her alone.
func (s *story) wantDiscreet(requests []llmtest.Request) {
	s.t.Helper()
	var chat []string
	inCircle, shared := 0, 0
	for _, r := range requests {
		if text := asked(r); strings.HasSuffix(r.Path, "/models") {
			continue // the server chooses its model
		} else if !strings.Contains(text, theScene) {
			chat = append(chat, text)
		} else {
			inCircle++
			if strings.Contains(text, private) {
				s.t.Errorf("a request for the circle has something private: %s", text)
			}
			if strings.Contains(text, "Petrel") {
				shared++
				if !strings.Contains(text, "You are Mira.") {
					s.t.Errorf("somebody else was shown what Mira remembers: %s", text)
				}
			}
		}
	}
	days := s.rest("GET", "/circle/spend", "").wants(s.t, 200)["days"].([]any)
	calls := 0.0
	for _, day := range days {
		calls += day.(map[string]any)["calls"].(float64)
	}
	if len(chat) != 2 || shared == 0 || float64(inCircle) != calls {
		s.t.Errorf("%d requests in private, %d in the circle (%v counted), %d with what may be told", len(chat), inCircle, calls, shared)
	}
	for _, secret := range []string{"as Mrs ", "belongs to ", "boat for ", "money of "} {
		if !strings.Contains(strings.Join(chat, ""), secret+private) {
			s.t.Errorf("in private, %q was not shown: %q", secret, chat)
		}
	}
}

var theScene, _ = circle.Scene(framework.English)

// asked is the whole text of a request.
func asked(r llmtest.Request) string {
	var texts []string
	for _, m := range r.Messages {
		texts = append(texts, m.Text)
	}
	return strings.Join(texts, "\n")
}

func lastOf[T any](list []T) T { return list[len(list)-1] }

// scriptOfTheCircle lets Mira comment and answer, Tomas like, and the others do nothing.
// Each thinks something that nobody may read.
func scriptOfTheCircle(r llmtest.Request) llmtest.Reply {
	text, like, comment := asked(r), "false", ""
	switch {
	case !strings.Contains(text, theScene):
		return llmtest.Say("I see.")
	case strings.Contains(text, "You are Mira.") && strings.Contains(text, umbrella):
		comment = "It is packed already."
	case strings.Contains(text, "You are Mira."):
		comment = "I shall bring an apple cake."
	case strings.Contains(text, "You are Tomas."):
		like = "true"
	}
	return llmtest.Say(`{"thoughts":"I think of `+private+`.","action":{"like":`+like+`,"comment":"`+comment+`"},`, `"emotion":{"type":"positive","intensity":0.8}}`)
}

// With the offline model, too, characters choose what they do about a post: if none writes,
// the user asks. They always answer the user, and say in private what they remember.
func TestAStoryOfTheCircleWithTheOfflineModel(t *testing.T) {
	t.Parallel()
	s := newStory(t, nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true})
	post, turns := s.tell()
	if len(s.comments(post)) == 0 {
		s.phone.ok("circle.comment", s.newKey(), map[string]any{"postId": post, "text": "Mira, Tomas, will you come?"})
		turns = s.unfold(post)
	}
	for _, turn := range turns {
		if turn["state"] != "done" && (turn["state"] != "nothing" || turn["note"] == nil) || turn["calls"] == 0.0 {
			t.Errorf("the turn %v", turn)
		}
	}
	comments := s.comments(post)
	if len(comments) == 0 {
		t.Fatalf("nobody wrote anything: %v", turns)
	}
	for _, c := range comments {
		s.hears(stringAt(c, "id"))
	}
	author := stringAt(comments[0], "author.id")
	answer, turns := s.answer(comments[0])
	if !slices.Contains(stringsAt(turns, "characterId"), author) {
		t.Errorf("to the answer, the turns are %v", turns)
	}
	if !slices.ContainsFunc(s.comments(post), func(c map[string]any) bool { return c["replyTo"] == answer && stringAt(c, "author.id") == author }) {
		t.Errorf("no answer to %s: %v", answer, turns)
	}
	chat := s.newChatWith(author)
	if reply, _ := s.reply(s.phone, chat, forecast, nil); !strings.Contains(fmt.Sprint(reply["swipes"]), "in the circle") {
		t.Errorf("in private, the reply is %v", reply)
	}
	s.recalls(chat, forecast)
}
