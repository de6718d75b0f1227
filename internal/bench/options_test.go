package bench

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/internal/fault"
)

func TestBadOptionsAreRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	chat := func(o ServerOptions) error { return Chat(t.Context(), io.Discard, o) }
	require.True(t, fault.Is(chat(ServerOptions{Only: "everything"}), fault.Invalid))
	require.True(t, fault.Is(chat(ServerOptions{FirstToken: -time.Second}), fault.Invalid))
	for _, database := range []string{"nonsense", "mysql://localhost/x", "://"} {
		err := Year(t.Context(), io.Discard, YearOptions{ServerOptions: ServerOptions{Database: database}, Messages: 100})
		require.True(t, fault.Is(err, fault.Invalid), "%s: %v", database, err)
	}
}
