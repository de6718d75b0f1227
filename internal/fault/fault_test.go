package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"nodest/internal/fault"
)

func TestPublicShowsOnlyWhatWasMeantToBeShown(t *testing.T) {
	secret := errors.New("password of the database")
	for name, c := range map[string]struct {
		err  error
		code fault.Code
		text string
	}{
		"a code and its message":             {fault.New(fault.NotFound, "no conversation %q", "x"), fault.NotFound, `no conversation "x"`},
		"a code under context":               {fmt.Errorf("load: %w", fault.New(fault.Busy, "busy")), fault.Busy, "busy"},
		"an error without a code":            {secret, fault.Internal, "internal error"},
		"internal with a message":            {fault.Wrap(secret, fault.Internal, "row 7"), fault.Internal, "internal error"},
		"an ended context":                   {fmt.Errorf("x: %w", context.Canceled), fault.Cancelled, "cancelled"},
		"a deadline":                         {context.DeadlineExceeded, fault.UpstreamTimeout, "the request timed out"},
		"the cause stays out of the message": {fault.Wrap(secret, fault.UpstreamDown, "gemini is down"), fault.UpstreamDown, "gemini is down"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fault.Public(c.err)
			if got.Code != c.code || got.Message != c.text {
				t.Errorf("got %s %q, want %s %q", got.Code, got.Message, c.code, c.text)
			}
		})
	}
}

func TestLogsLeaveOutWhatForeignServersSay(t *testing.T) {
	said := "cannot answer: my secret diary"
	quoted := fault.Wrap(errors.New("status 400"), fault.UpstreamBadAnswer, "Gemini rejected the request").Quote(said)
	for name, err := range map[string]error{
		"itself":         quoted,
		"wrapped":        fmt.Errorf("turn: %w", quoted),
		"joined":         errors.Join(errors.New("x"), quoted),
		"a cause":        fault.Wrap(quoted, fault.UpstreamDown, "all failed"),
		"in another":     fault.Wrap(quoted, quoted.Code, "field: %s", quoted.Message).Quoting(quoted),
		"told again":     fault.Retell(quoted.Code, quoted.Message).Because(errors.New("earlier")),
		"in parentheses": fault.New(fault.Blocked, "blocked").QuoteIn(said),
	} {
		if text := err.Error(); strings.Contains(text, "diary") || text == "" {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := quoted.Error(); text != "upstream_bad_answer: Gemini rejected the request: …: status 400" {
		t.Errorf("the rest stays: %s", text)
	}
	if public := fault.Public(fmt.Errorf("x: %w", quoted)).Message; public != "Gemini rejected the request: "+said {
		t.Errorf("the user reads it: %s", public)
	}
}

func TestEveryCodeHasStatusAndTitle(t *testing.T) {
	for _, c := range fault.Codes() {
		if fault.Status(c) < 400 || fault.Title(c) == "" {
			t.Errorf("%s: status %d title %q", c, fault.Status(c), fault.Title(c))
		}
	}
	if fault.Status("never_heard") != 500 {
		t.Error("an unknown code must be a 500")
	}
}
