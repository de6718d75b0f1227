package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Backlog is what waits in the database, of all processes.
type Backlog struct {
	Generations   map[string]Queue // by status, which is queued, building or streaming
	Due           map[string]Queue // queued jobs whose time has come, by kind
	RunningJobs   map[string]int64 // by kind
	FailedJobs    int64            // those of the last 7 days
	DiskFreeBytes int64            // where the data folder is; -1 = unknown
}

// Queue is how many wait, and how long the oldest one has waited.
type Queue struct {
	Count  int64
	Oldest time.Duration
}

// How long figures of the database serve scrapes, and how long a scrape waits for them.
const (
	backlogAge  = 10 * time.Second
	backlogWait = 3 * time.Second
)

// backlog tells Prometheus about the database.
type backlog struct {
	read func(context.Context) (*Backlog, error)
	now  func() time.Time

	mu    sync.Mutex
	at    time.Time
	found *Backlog // nil = it could not be read
}

var (
	databaseUp = prometheus.NewDesc("nodest_database_up", "1 if the figures of the database could be read, otherwise 0.", nil, nil)
	genOpen    = prometheus.NewDesc("nodest_generations_open", "Generations that have not ended, of all processes, by status.", []string{"status"}, nil)
	genAge     = prometheus.NewDesc("nodest_generations_oldest_seconds", "Age of the oldest generation that has not ended, by status.", []string{"status"}, nil)
	jobsDue    = prometheus.NewDesc("nodest_jobs_due", "Jobs that are due and wait for a process, by kind.", []string{"kind"}, nil)
	jobAge     = prometheus.NewDesc("nodest_jobs_oldest_due_seconds", "Time for which the oldest job that is due has waited, by kind.", []string{"kind"}, nil)
	jobsRun    = prometheus.NewDesc("nodest_jobs_running", "Jobs that are running, of all processes, by kind.", []string{"kind"}, nil)
	jobsFailed = prometheus.NewDesc("nodest_jobs_failed", "Jobs that failed for good in the last 7 days, of all processes.", nil, nil)
	diskFree   = prometheus.NewDesc("nodest_disk_free_bytes", "Free bytes on the disk of the data folder.", nil, nil)
)

// Watch has the figures of the database read when they are asked for, every 10 s at most.
func (s *Set) Watch(read func(context.Context) (*Backlog, error)) {
	s.Registry.MustRegister(&backlog{read: read, now: time.Now})
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{databaseUp, genOpen, genAge, jobsDue, jobAge, jobsRun, jobsFailed, diskFree} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	f := b.current()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if f == nil {
		gauge(databaseUp, 0)
		return
	}
	gauge(databaseUp, 1)
	for status, q := range f.Generations {
		gauge(genOpen, float64(q.Count), status)
		gauge(genAge, q.Oldest.Seconds(), status)
	}
	for kind, q := range f.Due {
		gauge(jobsDue, float64(q.Count), kind)
		gauge(jobAge, q.Oldest.Seconds(), kind)
	}
	for kind, n := range f.RunningJobs {
		gauge(jobsRun, float64(n), kind)
	}
	gauge(jobsFailed, float64(f.FailedJobs))
	if f.DiskFreeBytes >= 0 {
		gauge(diskFree, float64(f.DiskFreeBytes))
	}
}

// current is what was found, read again if it is too old. Scrapes at the same time wait for one reading.
func (b *backlog) current() *Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.at.IsZero() || now.Sub(b.at) >= backlogAge {
		ctx, cancel := context.WithTimeout(context.Background(), backlogWait)
		defer cancel()
		found, err := b.read(ctx)
		if err != nil {
			found = nil
		}
		b.at, b.found = now, found
	}
	return b.found
}
