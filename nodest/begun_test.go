package nodest_test

import (
	"testing"

	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// The preset begins the replies of models that are known to go on with a message of theirs; the stored reply has what the model wrote.
func TestAPresetBeginsReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.importCard(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","first_mes":"Hello."}}`)
	s.bindPreset(ch.ID, `{"assistant_prefill":"Well, {{user}},","prompts":[{"identifier":"main","content":"M"},{"identifier":"chatHistory","marker":true}],"prompt_order":[{"character_id":100001,"order":[{"identifier":"main","enabled":true},{"identifier":"chatHistory","enabled":true}]}]}`)
	c := s.ChatWith(ch.ID)
	for _, want := range []bool{true, false} {
		s.RealModel = &nodest.Model{Generator: s.Model, Provider: "openrouter", Name: "vendor/model", Begins: want}
		s.Model.Enqueue(nodesttest.Reply(" come in."))
		reply := s.SayAndWait(c, "Good evening.")
		all := s.Model.AllRequests()
		r := all[len(all)-1]
		last := r.Messages[len(r.Messages)-1]
		if begun := last.Role == llm.Assistant && last.Text == "Well, User,"; begun != want || r.Begun != want {
			t.Errorf("%v: the request ends with %s %q, begun %v", want, last.Role, last.Text, r.Begun)
		}
		if reply.Text() != " come in." && reply.Text() != "come in." {
			t.Errorf("%v: the reply is %q", want, reply.Text())
		}
	}
}
