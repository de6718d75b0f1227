package server

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nodest/internal/fault"
)

// serviceRoutes serves what operators and browsers ask for.
func (s *Server) serviceRoutes(e *echo.Echo) {
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.ready)
	e.GET("/metrics", s.metrics())
	e.GET("/openapi.json", document(func() *fixed { return newFixed("application/json", cacheCheck, openapiJSON()) }))
	e.GET("/asyncapi.yaml", document(func() *fixed { return newFixed("application/yaml", cacheCheck, asyncapiYAML) }))
	e.GET("/docs", s.docs())
	e.GET("/docs.css", document(func() *fixed { return newFixed(contentTypes[".css"], cacheCheck, docsStyle) }))
	e.GET("/docs.js", document(func() *fixed { return newFixed(contentTypes[".js"], cacheCheck, docsScript) }))
	e.GET("/", s.index)
	e.GET("/signin", s.index) // the secret of a sign-in link stands behind #, where no server sees it
	e.GET("/assets/*", s.pageFile)
	e.GET("/*", s.pageFile)
}

// docs serves the reference for people.
func (s *Server) docs() echo.HandlerFunc {
	serve := document(func() *fixed { return newFixed(contentTypes[".html"], cacheCheck, []byte(docsPage())) })
	return func(c echo.Context) error {
		c.Response().Header().Set("Content-Security-Policy", docsPolicy)
		return serve(c)
	}
}

// headAsGet lets every address that answers GET answer HEAD too; net/http leaves
// the body out. Streams, and what costs as much as a backup, have no HEAD.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && !slices.Contains([]string{base + "/events", base + "/ws", backupPath}, r.URL.Path) {
			r = r.Clone(r.Context())
			r.Method = http.MethodGet
			r.Header.Del("Accept") // a stream was not meant
		}
		next.ServeHTTP(w, r)
	})
}

// ready says whether requests can be answered.
func (s *Server) ready(c echo.Context) error {
	if s.Draining() {
		return fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	if s.opts.Ready != nil {
		if err := s.opts.Ready(c.Request().Context()); err != nil {
			reason := fault.Public(err)
			if reason.Code != fault.StorageDown {
				reason = fault.Wrap(err, fault.StorageDown, "the database does not answer")
			}
			return reason
		}
	}
	return c.String(http.StatusOK, "ready\n")
}

// metrics serves Prometheus metrics to owners, or to everybody. The address of the client does
// not matter: behind a proxy on this machine every request comes from here.
func (s *Server) metrics() echo.HandlerFunc {
	registry := s.opts.Metrics.Registry
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("nodest_websocket_connections", "Open WebSocket connections and event streams that have begun.", s.sockets.count),
		gauge("nodest_connections", "Places for WebSocket connections and event streams that are taken, those that are just beginning or closing included.", s.sockets.taken),
		gauge("nodest_connections_limit", "WebSocket connections and event streams that the process may have.", func() int { return s.opts.Connections }),
		backupFigures{s},
	)
	figures := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return func(c echo.Context) error {
		if !s.opts.OpenMetrics {
			who, err := s.authenticate(c.Request())
			if err != nil {
				return err
			}
			if !who.Owner() {
				return fault.New(fault.Forbidden, "only an owner can read the metrics")
			}
		}
		figures.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// backupFigures tells Prometheus about scheduled backups; nothing where there are none.
type backupFigures struct{ s *Server }

var (
	backupAt = prometheus.NewDesc("nodest_backup_last_success_timestamp_seconds",
		"When the last scheduled backup was complete, in Unix time; 0 = none was yet.", nil, nil)
	backupFailed = prometheus.NewDesc("nodest_backup_failed", "1 if the last scheduled backup failed, otherwise 0.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b backupFigures) Describe(out chan<- *prometheus.Desc) { out <- backupAt; out <- backupFailed }

// Collect implements prometheus.Collector.
func (b backupFigures) Collect(out chan<- prometheus.Metric) {
	if b.s.opts.Backups == nil {
		return
	}
	ctx, cancel := context.WithTimeout(b.s.ctx, 5*time.Second)
	defer cancel()
	found, err := b.s.opts.Backups(ctx)
	if err != nil || found == nil { // without its figures, an alert on their absence fires
		return
	}
	at, failed := 0.0, 0.0
	if found.Last != nil {
		at = float64(time.Time(found.Last.At).Unix())
	}
	if found.Failure != nil {
		failed = 1
	}
	out <- prometheus.MustNewConstMetric(backupAt, prometheus.GaugeValue, at)
	out <- prometheus.MustNewConstMetric(backupFailed, prometheus.GaugeValue, failed)
}

// methodOf is the method of a request as the counter names it: a client can
// invent as many as it likes.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// Policies of what is not the page. Data, such as an answer of the API or a user's
// picture, can do nothing even when it is opened as a page.
const (
	dataPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// pagePolicy is the policy of the page. Older versions of Safari do not count sockets as
// 'self', so they are named: those of the host that the request was sent to, and those of the
// public URL, which a proxy may not pass on.
func (s *Server) pagePolicy(r *http.Request) string {
	hosts := []string{r.Host}
	if _, public, _ := strings.Cut(s.origins.public, "://"); public != r.Host {
		hosts = append(hosts, public)
	}
	sockets := ""
	for _, host := range hosts {
		if plainHost.MatchString(host) {
			sockets += " ws://" + host + " wss://" + host
		}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'" + sockets +
		"; manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'" +
		"; require-trusted-types-for 'script'; trusted-types 'none'"
}

// plainHost matches the hosts that a policy can name; a client can send any other.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// secure sets the headers that keep browsers from doing what the page does not
// want, and answers CORS for the configured origins alone.
func (s *Server) secure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h, r := c.Response().Header(), c.Request()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", dataPolicy)
		if len(s.opts.Origins) > 0 {
			h.Add("Vary", "Origin")
		}
		origin := r.Header.Get("Origin")
		if origin == "" || !s.originAllowed(r) || s.ownOrigin(r) {
			return next(c)
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "ETag, X-Request-Id, Idempotency-Replayed, Preference-Applied, Retry-After, Content-Disposition")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Prefer, X-Device-Id, X-Request-Id, Last-Event-ID")
			h.Set("Access-Control-Max-Age", "600")
			return c.NoContent(http.StatusNoContent)
		}
		return next(c)
	}
}
