package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// relayMetrics are about live text between processes.
type relayMetrics struct {
	lag      prometheus.Histogram
	messages map[Direction]prometheus.Counter
	dropped  prometheus.Counter
}

// Direction is the way of a relayed message.
type Direction string

// The directions.
const (
	Sent     Direction = "sent"
	Received Direction = "received"
)

func newRelayMetrics(s *Set) relayMetrics {
	messages := s.counter("nodest_relay_messages_total", "Messages with live text between processes, by direction.", "direction")
	return relayMetrics{
		lag:      s.histogram("nodest_relay_lag_seconds", "Time of a relayed message from its sender to this process.", steps).With(nil).(prometheus.Histogram),
		messages: map[Direction]prometheus.Counter{Sent: messages.WithLabelValues(string(Sent)), Received: messages.WithLabelValues(string(Received))},
		dropped:  s.counter("nodest_relay_dropped_total", "Messages with live text that were dropped because the relay was away or too slow.").WithLabelValues(),
	}
}

// RelayLag notes how long a message was under way. Where clocks differ it may be negative, which counts as 0.
func (s *Set) RelayLag(lag time.Duration) {
	if s != nil {
		s.relay.lag.Observe(max(lag, 0).Seconds())
	}
}

// Relayed counts messages that were sent to, or received from, other processes.
func (s *Set) Relayed(way Direction, n int) {
	if s == nil {
		return
	}
	if c, ok := s.relay.messages[way]; ok && n > 0 {
		c.Add(float64(n))
	}
}

// RelayDropped counts messages that were not relayed. Their text is in the log of events all the same.
func (s *Set) RelayDropped(n int) {
	if s != nil && n > 0 {
		s.relay.dropped.Add(float64(n))
	}
}
