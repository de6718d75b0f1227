package bench

import (
	"io"
	"testing"
	"time"

	"nodest/internal/fault"
)

func TestBadOptionsAreRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	chat := func(o ServerOptions) error { return Chat(t.Context(), io.Discard, o) }
	if !fault.Is(chat(ServerOptions{Only: "everything"}), fault.Invalid) {
		t.Fatal(`want fault.Is(chat(ServerOptions{Only: "everything"}), fault.Invalid)`)
	}
	if !fault.Is(chat(ServerOptions{FirstToken: -time.Second}), fault.Invalid) {
		t.Fatal("fault.Is(chat(ServerOptions{FirstToken: -time.Second}), fault.Invalid) is false, want true")
	}
	for _, database := range []string{"nonsense", "mysql://localhost/x", "://"} {
		err := Year(t.Context(), io.Discard, YearOptions{ServerOptions: ServerOptions{Database: database}, Messages: 100})
		if !fault.Is(err, fault.Invalid) {
			t.Fatalf("%s: %v", database, err)
		}
	}
}
