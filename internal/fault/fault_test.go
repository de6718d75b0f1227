package fault_test

import (
	"context"
	"errors"
	"fmt"
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
