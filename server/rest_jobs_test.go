package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
)

// failJob adds a job of a user that has failed. Its kind is one that nobody handles.
func (h *testServer) failJob(userID, subject string) {
	h.t.Helper()
	ctx := context.Background()
	h.must(h.db.Enqueue(ctx, jobs.Spec{Kind: "test.fail", UserID: userID, Subject: subject, Payload: []byte(`{"secret":1}`)}))
	claimed, err := h.db.ClaimJobs(ctx, "test", time.Minute, []jobs.Want{{Kind: "test.fail", Free: 1, PerUser: 1}})
	h.must(err)
	h.must(h.db.EndJob(ctx, claimed[0], jobs.Outcome{State: jobs.Failed, Error: &jobs.Failure{Code: fault.UpstreamDown, Message: "Gemini is not available"}}))
}

func TestJobsAreListedAndRetried(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	if list := h.rest("GET", "/jobs", "").items(t); len(list) != 0 {
		t.Errorf("jobs of a new user: %v", list)
	}
	h.failJob(h.user.ID, "a")
	h.failJob(h.user.ID, "b")
	states := func(query string) (found []string) {
		t.Helper()
		for _, j := range h.rest("GET", "/jobs"+query, "").items(t) {
			found = append(found, stringAt(j, "subject")+" "+stringAt(j, "state"))
		}
		return found
	}
	if got := states(""); !slices.Equal(got, []string{"b failed", "a failed"}) {
		t.Errorf("jobs: %v", got)
	}
	first := h.rest("GET", "/jobs?limit=1", "").wants(t, 200)
	failed := first["items"].([]any)[0].(map[string]any)
	if failed["payload"] != nil || failed["error"].(map[string]any)["message"] != "Gemini is not available" {
		t.Errorf("job: %v", failed)
	}
	if got := states("?limit=1&cursor=" + stringAt(first, "nextCursor")); !slices.Equal(got, []string{"a failed"}) {
		t.Errorf("second page: %v", got)
	}

	id := stringAt(failed, "id")
	again := h.rest("POST", "/jobs/"+id+"/retry", "", "Idempotency-Key: k-1").wants(t, 202)
	if again["id"] == id || again["subject"] != "b" || again["state"] != "queued" || again["attempt"] != 0.0 {
		t.Errorf("retried: %v", again)
	}
	for _, key := range []string{"k-1", "k-2"} { // the same request, and another one for the same work
		if twice := h.rest("POST", "/jobs/"+id+"/retry", "", "Idempotency-Key: "+key).wants(t, 202); twice["id"] != again["id"] {
			t.Errorf("retried twice: %v", twice)
		}
	}
	if got := states("?state=queued"); !slices.Equal(got, []string{"b queued"}) {
		t.Errorf("queued: %v", got)
	}
	if got := states("?state=failed"); !slices.Equal(got, []string{"b failed", "a failed"}) {
		t.Errorf("failed: %v", got)
	}
	claimed, err := h.db.ClaimJobs(context.Background(), "test", time.Minute, []jobs.Want{{Kind: "test.fail", Free: 1, PerUser: 1}})
	h.must(err)
	if len(claimed) != 1 || string(claimed[0].Payload) != `{"secret":1}` {
		t.Errorf("claimed: %+v", claimed)
	}
	h.rest("POST", "/jobs/"+stringAt(again, "id")+"/retry", "").refuses(t, 409, "conflict")
	h.rest("GET", "/jobs?state=lost", "").refuses(t, 400, "invalid_field", "state")
	h.rest("GET", "/jobs?limit=0", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/jobs?cursor=x", "").refuses(t, 400, "invalid_field", "cursor")
}

// Nobody sees or retries the jobs of others, or of the server itself.
func TestJobsOfOthers(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.failJob(h.user.ID, "a")
	h.failJob("", "all") // the server's own
	mine := h.rest("GET", "/jobs", "").items(t)
	if len(mine) != 1 {
		t.Fatalf("jobs: %v", mine)
	}
	mia := "Authorization: Bearer " + h.newMember("mia")
	if list := h.rest("GET", "/jobs", "", mia).items(t); len(list) != 0 {
		t.Errorf("Mia sees %v", list)
	}
	h.rest("POST", "/jobs/"+stringAt(mine[0], "id")+"/retry", "", mia).refuses(t, 404, "not_found")
	if got := h.rest("GET", "/jobs?state=queued", "").items(t); len(got) != 0 {
		t.Errorf("a stranger retried %v", got)
	}
}
