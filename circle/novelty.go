package circle

import (
	"context"
	"time"

	"nodest/circle/rules"
	"nodest/internal/op"
)

// saidWithin is how long nobody says again what anybody has said, word for word. What is
// only alike is compared with the latest texts: rules.Repeats.
const saidWithin = 90 * 24 * time.Hour

// said reports whether a text was written lately. Transactions that store a text ask again:
// another process may have stored the same meanwhile.
func said(tx Tx, text string) (bool, error) {
	return tx.WasSaid(rules.Key(text), tx.Now().Add(-saidWithin))
}

// wasSaid is said, outside a transaction.
func (svc *Service) wasSaid(ctx context.Context, userID, text string) (bool, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (bool, error) { return said(tx, text) })
}
