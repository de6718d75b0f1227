package nodest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm/llmtest"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestACheckAsksTheModelOnce(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	fake.Script(llmtest.Say("OK"), llmtest.Say(slices.Repeat([]string{strings.Repeat("好", 150)}, 1000)...), llmtest.Fail(500), llmtest.Fail(401))
	check, err := s.CheckModel(t.Context(), nodesttest.Ann, "openai", "")
	s.Must(err)
	if check.Error != nil || check.Reply != "OK" || check.Model != "m-1" || check.Took <= 0 {
		t.Errorf("check %+v", check)
	}
	if r := fake.Requests()[0]; len(r.Messages) != 1 || strings.Contains(string(r.Body), "max_") {
		t.Errorf("sent %s", r.Body)
	}
	check, err = s.CheckModel(t.Context(), nodesttest.Ann, "openai", "")
	s.Must(err)
	if check.Error != nil || !strings.HasPrefix(check.Reply, strings.Repeat("好", 150)) || len(check.Reply) > 100_000 {
		t.Errorf("a long reply is not broken off: %d bytes of %d, %v", len(check.Reply), 450_000, check.Error)
	}
	for _, code := range []fault.Code{fault.UpstreamDown, fault.UpstreamAuth} {
		check, err = s.CheckModel(t.Context(), nodesttest.Ann, "openai", "")
		s.Must(err)
		if check.Error == nil || check.Error.Code != code || check.Reply != "" {
			t.Errorf("check %+v, want %s", check, code)
		}
	}
	if n := len(fake.Requests()); n != 4 {
		t.Errorf("%d requests for 4 checks", n)
	}
	for user, want := range map[string]int64{nodesttest.Ann: 2, nodesttest.Bob: 0} { // replies, also one that was broken off
		rows, err := s.Usage(t.Context(), user, "", "")
		s.Must(err)
		var requests int64
		for _, r := range rows {
			requests += r.Requests
		}
		if requests != want {
			t.Errorf("the usage of %s has %d requests, want %d", user, requests, want)
		}
	}
}

func TestChecksAreLimited(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	gate := make(chan struct{})
	slow := llmtest.Say("OK") // waits twice
	slow.Gate = gate
	fake.Script(slow, llmtest.Say("OK"), slow)
	first := make(chan error, 1)
	go func() {
		_, err := s.CheckModel(t.Context(), nodesttest.Ann, "openai", "")
		first <- err
	}()
	gate <- struct{}{}
	_, err := s.CheckModel(t.Context(), nodesttest.Ann, "openai", "")
	s.WantCode(err, fault.RateLimited)
	_, err = s.CheckModel(t.Context(), nodesttest.Bob, "openai", "") // others do not wait
	s.Must(err)
	gate <- struct{}{}
	s.Must(<-first)

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := s.CheckModel(ctx, nodesttest.Ann, "openai", "")
		first <- err
	}()
	gate <- struct{}{}
	cancel()
	s.WantCode(<-first, fault.Cancelled) // the caller is gone

	_, err = s.CheckModel(t.Context(), nodesttest.Ann, "openai", strings.Repeat("x", 257))
	s.WantCode(err, fault.Invalid)
}

func TestChecksThatAskNobody(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 1})
	s.SayAndWait(s.Chat(), "Hello")
	_, err := s.CheckModel(t.Context(), nodesttest.Ann, "voice", "")
	s.WantCode(err, fault.QuotaExceeded)
	check, err := s.CheckModel(t.Context(), nodesttest.Bob, "missing", "m")
	s.Must(err)
	if check.Error == nil || check.Error.Code != fault.NotConfigured || check.Model != "m" {
		t.Errorf("check %+v", check)
	}
}
