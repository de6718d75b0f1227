// Package server has the transports of NodeST: REST, WebSocket and server-sent events, with one
// authentication check and one table of errors. Package api has the operations that they serve.
//
// New creates a Server, Handler serves it, Drain shuts it down. A WebSocket command and its REST
// route are one entry of the table and one Go function, so they give the same answers.
//
// openapi.yaml and asyncapi.yaml specify what clients see.
package server

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"nodest/card/picture"
	"nodest/internal/account"
	"nodest/internal/metrics"
	"nodest/nodest/app"
	"nodest/server/api"
)

// Deps are what a Server cannot work without.
type Deps struct {
	api.Services
	App       *app.Service
	Accounts  *account.Service
	Providers Providers
}

// Options tune a Server. The zero value is ready to use.
type Options struct {
	Version string                      // default "dev"
	Origins []string                    // web origins that may call, beside the server's own
	Ready   func(context.Context) error // reports whether the database responds; nil = always
	Log     *slog.Logger                // default slog.Default()

	PublicURL      string         // where browsers reach the server; "" = only at the host that they name
	TrustedProxies []netip.Prefix // whose X-Forwarded-For says where a client is
	Metrics        *metrics.Set   // that the process counts; default new ones
	OpenMetrics    bool           // whoever reaches the server may read /metrics, and not only owners

	Database string                                  // the kind of the database: sqlite or postgres
	Figures  func(context.Context) (*Figures, error) // nil = health has none
	Backup   func(context.Context, io.Writer) error  // writes a backup of everything; nil = there is no backup
	Backups  func(context.Context) (*Backups, error) // nil, or returns nil = none are scheduled

	TempDir string // folder for uploads while they arrive; "" = that of the system
	Limits
	Intervals

	Generations int // the engine's limit per user, announced in hello; default 2
}

// Limits bound what clients may send, hold open and leave waiting.
type Limits struct {
	BodyBytes      int64         // JSON body of a request; default 256 KiB, as FrameBytes
	BodyWithin     time.Duration // to receive the next 256 KiB of a body; default 1 min
	AnswerWithin   time.Duration // to read the next 64 KiB of an answer; default 1 min
	WorkBytes      int64         // memory for bodies and answers, half of it for one user; default 1 GiB
	FrameBytes     int64         // frame from a client; default 256 KiB
	QueueBytes     int           // waiting for one connection; default 1 MiB
	Connections    int           // WebSockets and event streams of the process; default 10,000
	PerUser        int           // WebSockets and event streams of a user; default 8, or two for each of Generations
	PerNetwork     int           // WebSockets of an address that have not signed in; default 256
	PerDevice      int           // WebSockets of a device; default 3
	CommandsPer10s int           // per WebSocket; default 50
	Burst          int           // commands at once; default 20
	ReplayMax      int64         // events that a resume replays; default 2,000
}

// Intervals are how long the server waits for a client, and how often it looks after all of them.
type Intervals struct {
	HelloWithin time.Duration // default 10 s
	WriteWithin time.Duration // one frame; default 10 s
	Tick        time.Duration // how often pings and expiries are checked; default 1 s
	Recheck     time.Duration // how often the tokens of connections are verified again; 0 = no other process revokes any
	DrainNotice time.Duration // time until a restart, announced to clients; default 10 s
}

// withDefaults is the only place that knows the defaults.
func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Metrics == nil {
		o.Metrics = metrics.New()
	}
	o.FrameBytes = cmp.Or(o.FrameBytes, 256<<10)
	o.BodyBytes = cmp.Or(o.BodyBytes, o.FrameBytes)
	o.BodyWithin = cmp.Or(o.BodyWithin, time.Minute)
	o.AnswerWithin = cmp.Or(o.AnswerWithin, time.Minute)
	o.WorkBytes = cmp.Or(o.WorkBytes, 1<<30)
	o.QueueBytes = cmp.Or(o.QueueBytes, 1<<20)
	o.Connections = cmp.Or(o.Connections, 10_000)
	o.PerNetwork = cmp.Or(o.PerNetwork, 256)
	o.PerDevice = cmp.Or(o.PerDevice, 3)
	o.CommandsPer10s = cmp.Or(o.CommandsPer10s, 50)
	o.Burst = cmp.Or(o.Burst, 20)
	o.ReplayMax = cmp.Or(o.ReplayMax, 2000)
	o.HelloWithin = cmp.Or(o.HelloWithin, 10*time.Second)
	o.WriteWithin = cmp.Or(o.WriteWithin, 10*time.Second)
	o.Tick = cmp.Or(o.Tick, time.Second)
	o.DrainNotice = cmp.Or(o.DrainNotice, 10*time.Second)
	o.Generations = cmp.Or(o.Generations, 2)
	o.PerUser = cmp.Or(o.PerUser, max(8, 2*o.Generations))
	return o
}

// Server serves the API. It is safe for concurrent use.
type Server struct {
	Deps
	opts     Options
	origins  allowed
	echo     *echo.Echo
	ops      map[string]*api.Operation // by command
	calls    inflight
	appCalls singleflight.Group // calls of the NodeST interface
	sockets  sockets
	memory   gate // bodies and answers
	disk     gate // those in temporary files
	pictures *picture.Thumbnails
	spools   spools
	lifetime

	proxyHint sync.Once  // logs that a proxy may be missing from TrustedProxies
	backingUp sync.Mutex // held while a backup is downloaded
	exporting sync.Map   // users who download what they have
}

// lifetime is what a server needs to start, and to end all that it started.
type lifetime struct {
	started    time.Time
	draining   atomic.Bool
	ctx        context.Context // ends when the server does
	cancel     context.CancelFunc
	wg         sync.WaitGroup // goroutines that outlive a request
	stopRevoke func()
}

// New returns a server. Drain ends what it starts.
func New(d Deps, opts Options) *Server {
	s := &Server{Deps: d, opts: opts.withDefaults(), lifetime: lifetime{started: time.Now()}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.origins = newAllowed(s.opts)
	s.memory = gate{all: s.opts.WorkBytes, each: s.opts.WorkBytes / 2}
	s.disk = gate{all: tempBytes, each: tempBytes / 8}
	s.pictures = picture.NewThumbnails()
	s.ops = api.ByCommand()
	s.sockets.init(s)
	s.stopRevoke = s.Accounts.OnRevoke(s.sockets.revoked)
	s.wg.Go(s.sockets.beat)
	if s.opts.Recheck > 0 {
		s.wg.Go(s.sockets.recheck)
	}

	s.echo = echo.New()
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.handleError
	s.echo.Pre(s.pace)
	s.echo.Pre(s.requestID)
	s.echo.Pre(s.hosted)
	s.echo.Pre(s.secure)
	s.echo.Pre(s.traced)
	s.echo.Use(s.logRequests, s.recoverPanics)
	s.routes(s.echo)
	return s
}

// routes lists what is served; each function is in the file of its subject.
func (s *Server) routes(e *echo.Echo) {
	s.operationRoutes(e) // the operations of package api
	s.streamRoutes(e)    // WebSocket, SSE
	s.accountRoutes(e)   // sign-in, tokens, users, providers
	s.fileRoutes(e)      // imports, exports, avatars
	s.portRoutes(e)      // the interface of the NodeST app
	s.rightsRoutes(e)    // everything of a user: export, deletion
	s.operateRoutes(e)   // the server as a whole: health, backup
	s.serviceRoutes(e)   // probes, metrics, documentation, the page
}

// Handler returns the HTTP handler of everything.
func (s *Server) Handler() http.Handler { return headAsGet(s.echo) }

// Draining says whether Drain has been called: /readyz answers 503 from then on.
func (s *Server) Draining() bool { return s.draining.Load() }

// Drain ends the server: no new connections and no new generations, every client is told, finish
// (the engine's Close) lets running generations come to their end, and then the sockets are closed
// with 1012. It returns when no goroutine of the server is left, or when ctx ends.
func (s *Server) Drain(ctx context.Context, finish func(context.Context) error) error {
	s.draining.Store(true)
	s.sockets.goingAway()
	var err error
	if finish != nil {
		err = finish(ctx)
	}
	s.stopRevoke()
	s.sockets.closeAll(closeRestart, "restart")
	s.cancel()
	ended := make(chan struct{})
	go func() { s.wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
	}
	for { // a writer may set itself a new deadline
		s.sockets.cut()
		select {
		case <-ended:
			return cmp.Or(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
