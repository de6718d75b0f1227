package instance

import (
	"context"

	"nodest/internal/metrics"
	"nodest/internal/stream"
	"nodest/internal/stream/relay"
	"nodest/store"
)

// openRelay returns the way to the other processes on the database: NATS, or the database itself; nil on SQLite, where
// there are none.
func (r *Instance) openRelay(ctx context.Context) (stream.Relay, error) {
	measure := stream.RelayMeasure{
		Sent:     func(n int) { r.metrics.Relayed(metrics.Sent, n) },
		Received: func(n int) { r.metrics.Relayed(metrics.Received, n) },
		Dropped:  r.metrics.RelayDropped,
		Lag:      r.metrics.RelayLag,
	}
	address := r.Cfg.Get("NODEST_NATS_URL")
	if address == "" {
		return r.db.Relay(ctx, store.RelayOptions{Measure: measure, Log: r.log})
	}
	installation, err := r.db.Installation(ctx)
	if err != nil {
		return nil, err
	}
	if installation == "" {
		r.log.Warn("NODEST_NATS_URL has no effect without NODEST_DATABASE_URL: one process has nobody to tell")
		return nil, nil //nolint:nilnil // no relay is no failure
	}
	n, err := relay.NewNATS(relay.Options{
		URL: address, Credentials: r.Cfg.Get("NODEST_NATS_CREDS"), CA: r.Cfg.Get("NODEST_NATS_CA"),
		Installation: installation, Measure: measure, Log: r.log,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}
