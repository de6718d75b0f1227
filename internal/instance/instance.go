// Package instance builds a server with everything below it from the settings: the database, the
// services, the jobs. It must not read a command line or print anything: the commands do.
package instance

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/circle"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/account"
	"nodest/internal/attachment"
	"nodest/internal/backup"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/logtool"
	"nodest/internal/loretool"
	"nodest/internal/mcptool"
	"nodest/internal/metrics"
	"nodest/internal/op"
	"nodest/internal/researchtool"
	"nodest/internal/rights"
	"nodest/internal/setup"
	"nodest/internal/stream"
	"nodest/internal/tavern"
	"nodest/knowledge"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/extract"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/server"
	serverapi "nodest/server/api"
	"nodest/store"
	"nodest/store/sqldb"
	"nodest/websearch"
	"nodest/websearch/research"
)

// Set by tests, which kill servers and run on slow machines.
var (
	Lease         time.Duration             // after which replies and jobs of a crashed process are recovered; 0 = the defaults
	RecallTimeout = 1500 * time.Millisecond // after which a turn continues without memories

	KnowledgeTimeout = 3 * time.Second // after which it continues without the character's documents

	WarmAfter = 15 * time.Second // after which a server compiles the reader of PDFs, if it is not in the data folder
)

// Options are what the program says of itself.
type Options struct {
	Version string
	Log     *slog.Logger
}

// TokenFile is the file of the data folder with a token of the owner for commands on this machine. Whoever
// can read it can read the database beside it too.
const TokenFile = "cli.token"

// Instance is a server with everything below it.
type Instance struct {
	Cfg  *setup.Config
	opts Options
	log  *slog.Logger
	db   *store.DB
	services
	relay      stream.Relay // nil = this process is alone
	metrics    *metrics.Set
	server     *server.Server
	http       *http.Server
	Addr       string // where it listens
	Failed     chan error
	end        context.CancelFunc
	Background sync.WaitGroup // tend, and the loading of memories
}

// services are the subjects of the program, in the order in which they are built.
type services struct {
	Accounts   *account.Service
	Models     *setup.Models
	hub        *stream.Hub
	jobs       *jobs.Runner
	maker      *backup.Maker
	backups    *backup.Schedule
	memory     *memory.Service
	dreams     *dream.Service
	web        *Web
	search     *websearch.Service
	mcp        *mcptool.Service
	lore       *loretool.Service
	characters *character.Service
	chats      *chat.Service
	engine     *nodest.Engine
	circle     *circle.Service
	cognition  *cognition.Service
	branches   *side.Service
	knowledge  *knowledge.Service
	research   *research.Service
}

// Open builds everything from the database up. It is closed with close.
func Open(ctx context.Context, cfg *setup.Config, opts Options) (r *Instance, err error) {
	log := opts.Log
	dir := cfg.Get("NODEST_DATA")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r = &Instance{Cfg: cfg, opts: opts, log: log, metrics: metrics.New(), Failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.db, err = store.Open(ctx, store.Options{
		URL: cfg.Get("NODEST_DATABASE_URL"), Dir: dir, Log: log, Retention: Retention(cfg),
		Quotas: account.Quotas{
			Bytes: int64(cfg.Count("NODEST_QUOTA_MEGABYTES")) << 20, Messages: int64(cfg.Count("NODEST_QUOTA_MESSAGES")),
			Items: int64(cfg.Count("NODEST_QUOTA_ITEMS")),
		},
		Committed: func(userID string, events []*stream.Event) { r.hub.Committed(userID, events) },
		Metered:   r.metered,
		Jobs:      func(cancelled []string) { r.jobs.Changed(cancelled) },
	})
	if err != nil {
		return r, err
	}
	// After the database: opening it completes a restore, which brings its secret.
	secret, err := account.Secret(dir, cfg.Get("NODEST_SECRET_KEY"))
	if err != nil {
		return r, err
	}
	// The folder of SQLite is locked; on PostgreSQL other processes may write,
	// revoke tokens and leave replies and jobs behind.
	alone := cfg.Get("NODEST_DATABASE_URL") == ""
	r.jobs = jobs.New(r.db, jobs.Options{Process: r.db.Process(), Alone: alone, Lease: Lease, Log: log})
	r.metrics.Watch(r.db.Backlog)
	r.handle(r.db.Maintenance())
	if r.Accounts, err = account.New(r.db, secret, account.Options{
		Now: r.db.Now, AdminToken: cfg.Get("NODEST_ADMIN_TOKEN"), Log: log, Left: func(userID string) { r.engine.StopAll(userID) },
		BuiltIn: append([]string{"jina"}, setup.ProviderNames...),
	}); err != nil {
		return r, err
	}
	if r.Models, err = setup.NewModels(cfg, log, r.Accounts.ProviderKeys); err != nil {
		return r, err
	}
	r.Models.UseMetrics(r.metrics)
	r.Models.UseServers(r.Accounts.OpenServers)
	if absent, err := r.Models.Absent(ctx); err != nil {
		return r, err
	} else if len(absent) > 0 {
		log.Warn("the settings name model servers that no owner has added yet", "servers", absent)
	}
	if r.web, err = NewWeb(cfg, searchCounter{r.db}); err != nil {
		return r, err
	}
	if r.mcp, err = NewToolServers(cfg, false, log); err != nil {
		return r, err
	}
	r.maker = backup.New(cfg, opts.Version, log)
	r.backups = backup.NewSchedule(r.maker, backup.PlanOf(cfg), r.db, log)
	r.handle(r.backups.Kinds()...)
	if r.relay, err = r.openRelay(ctx); err != nil {
		return r, err
	}
	r.build(alone)
	if err := r.engine.Recover(ctx); err != nil {
		return r, err
	}
	r.jobs.Start()
	tending, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end = end
	r.Background.Go(func() { r.tend(tending) })
	r.Background.Go(func() { r.memory.Run(tending) })
	r.Background.Go(func() { tendHeap(tending) })
	return r, nil
}

// Stay begins what a server does that stays, and not one that runs for a command: scheduled backups, and
// compiled code for what may come.
func (r *Instance) Stay(ctx context.Context) {
	staying, end := context.WithCancel(context.WithoutCancel(ctx))
	before := r.end
	r.end = func() { end(); before() }
	r.Background.Go(func() { r.backups.Run(staying) })
	r.Background.Go(func() { r.warmParser(staying) })
}

// build joins the services and the server that answers for them.
func (r *Instance) build(alone bool) {
	cfg, log := r.Cfg, r.log
	var poll, recheck time.Duration
	database := "sqlite"
	if !alone {
		poll, recheck, database = time.Second, 30*time.Second, "postgres"
	}
	r.hub = stream.NewHub(r.db, stream.HubOptions{
		Poll: poll, Relay: r.relay, Log: log,
		Stored: func(userID string) { r.engine.StoredElsewhere(userID) }, Asked: func(userID string) { r.engine.Asked(userID) },
	})
	r.characters = character.New(r.db.Characters(), character.Options{
		Replan: circle.Replan, HasToolServer: r.mcp.Has,
		CheckProvider: func(ctx context.Context, userID, name string) error {
			known, err := r.Models.HasProvider(ctx, name)
			if err == nil && !known {
				err = fault.InvalidField("provider", "value", "unknown")
			}
			return err
		},
	})
	r.chats = chat.New(r.db.Chats(), r.characters, chat.Options{
		Memory: true, Log: log,
		Model: func(ctx context.Context, userID string) (llm.Asker, string, error) {
			return r.engine.SummaryModel(ctx, userID)
		},
		Context: func(ctx context.Context, userID string, o character.TurnOptions) int {
			return r.engine.ContextTokens(ctx, userID, o)
		},
		Before: func(ctx context.Context, userID, conversationID string) {
			r.branches.BeforeSummary(ctx, userID, conversationID)
		},
	})
	r.memory = memory.New(r.db.Memory(), memory.Options{
		Scenes: r.chats.MemoryScene, Settings: r.chats.MemorySettings, Embedder: r.Models.Embedder, Log: log,
	})
	r.dreams = dream.New(r.db.Dreams(), dream.Options{
		Scenes: r.chats.DreamScene, Facts: r.memory.Profile,
		Model: func(ctx context.Context, userID, characterID string) (llm.Asker, error) {
			return r.engine.MemoryModel(ctx, userID, characterID)
		},
	})
	r.search = r.web.service(r)
	r.knowledge = r.newKnowledge()
	r.cognition = cognition.NewService(r.db.Cognition())
	r.branches = side.New(r.db.Side(), side.Options{Idle: cfg.Duration("NODEST_MEMORY_IDLE_CLOSE"), Log: log,
		Model: func(ctx context.Context, userID string) (llm.Asker, string, error) {
			return r.engine.SummaryModel(ctx, userID)
		},
	})
	r.research = r.newResearch()
	r.lore = loretool.New(loretool.Options{Embedder: r.Models.Meaning, Limit: RecallTimeout, Log: log})
	r.engine = nodest.New(nodest.Deps{
		Store: r.db, Characters: r.characters, Chats: r.chats, Models: r.Models, Publisher: r.hub, Others: r.hub,
	}, nodest.Options{
		Process:            r.db.Process(),
		MaxReply:           cfg.Count("NODEST_REPLY_KILOBYTES") << 10,
		GenerationsPerUser: cfg.Count("NODEST_GENERATIONS"), TokensPerDay: int64(cfg.Count("NODEST_TOKENS_PER_DAY")), MonthlyUSD: cfg.Amount("NODEST_USD_PER_MONTH"),
		Sources: r.sources(), Tools: r.tools(), Ended: []func(nodest.Tx, *nodest.Ended) error{logtool.LogQueries}, Stored: r.generated, Embedder: r.Models.Meaning,
		SummaryWait: cfg.Duration("NODEST_MEMORY_SUMMARY_SYNC_WAIT"), Alone: alone, Lease: Lease, Log: log,
	})
	reader := extract.New(r.db.Memory(), extract.Options{
		Scenes: r.chats.MemoryScene, Model: r.engine.MemoryModel, Rest: cfg.Duration("NODEST_MEMORY_IDLE_CLOSE"),
	})
	attachments := attachment.New(r.db.Attachments())
	r.circle = circle.New(r.db.Circle(), circle.Options{
		Characters: r.characters, Memory: r.memory, Image: circle.ImagesOf(attachments), Log: log,
		Model: func(ctx context.Context, userID string) (*circle.Model, error) {
			m, err := r.engine.CircleModel(ctx, userID)
			return (*circle.Model)(m), err
		},
		LastChats: r.engine.LastChats,
		Greet: func(ctx context.Context, userID, conversationID, key string) error {
			_, err := r.engine.Greet(ctx, &op.Call{UserID: userID, Key: key, Hash: "circle.greet"}, nodest.GreetInput{ConversationID: conversationID})
			return err
		},
	})
	r.handle(slices.Concat(r.memory.Kinds(), r.branches.Kinds(), reader.Kinds(), r.dreams.Kinds(), r.chats.Kinds(), r.circle.Kinds(), r.knowledge.Kinds(), r.research.Kinds(), researchtool.Kinds(r.research, r.engine))...)
	archives := archive.New(r.db.Chats())
	folders := tavern.New(r.db.Tavern(), tavern.Options{
		Characters: r.characters, Archives: archives, Chats: r.chats, TempDir: cfg.Get("NODEST_DATA"), Memories: r.writeMemories, Beside: r.beside(), Log: log,
	})
	r.handle(folders.Kinds()...)
	proxies, _ := setup.Networks(cfg.Get("NODEST_TRUSTED_PROXIES")) // checked on loading
	services := serverapi.Services{
		Engine: r.engine, Characters: r.characters, Chats: r.chats, Archives: archives, Tavern: folders, Memory: r.memory, Dreams: r.dreams,
		Circle: r.circle, Cognition: r.cognition, Side: r.branches, Knowledge: r.knowledge, Attachments: attachments, Web: r.search, Research: r.research, Tools: r.mcp, Hub: r.hub,
		Rights: rights.New(r.db, rights.Options{
			Program: r.opts.Version, TempDir: cfg.Get("NODEST_DATA"), DeleteChat: r.engine.DeleteConversation, Log: log,
			Imported: func(ctx context.Context, userID string) error {
				return errors.Join(r.knowledge.IndexWords(ctx, userID), r.memory.Sweep(ctx), r.knowledge.Sweep(ctx))
			},
		}),
	}
	r.server = server.New(server.Deps{
		Services: services, App: app.New(r.db.App(), r.chats, services.Archives, r.engine), Accounts: r.Accounts, Providers: r.Models,
	}, server.Options{
		Version: r.opts.Version, Backup: func(ctx context.Context, w io.Writer) error { return r.maker.Write(ctx, w, nil) }, Origins: setup.Split(cfg.Get("NODEST_ORIGINS")), Ready: r.db.Ping, Log: log,
		PublicURL: cfg.Get("NODEST_PUBLIC_URL"), TrustedProxies: proxies, OpenMetrics: cfg.Get("NODEST_METRICS") == "open", Metrics: r.metrics,
		Database: database, TempDir: cfg.Get("NODEST_DATA"), Generations: cfg.Count("NODEST_GENERATIONS"),
		Limits: server.Limits{
			WorkBytes: int64(cfg.Count("NODEST_REQUEST_MEGABYTES")) << 20, Connections: cfg.Count("NODEST_MAX_CONNECTIONS"),
		},
		Intervals: server.Intervals{DrainNotice: cfg.Duration("NODEST_GRACE"), Recheck: recheck},
		Backups:   r.backupState,
		Figures: func(ctx context.Context) (*server.Figures, error) {
			f, err := r.db.Figures(ctx)
			return (*server.Figures)(f), err
		},
	})
}

// Retention says how long things are kept, by the settings.
func Retention(cfg *setup.Config) store.Retention {
	return store.Retention{
		Events:     time.Duration(cfg.Count("NODEST_EVENT_DAYS")) * 24 * time.Hour,
		EventCount: int64(cfg.Count("NODEST_EVENT_COUNT")),
		Audit:      time.Duration(cfg.Count("NODEST_AUDIT_DAYS")) * 24 * time.Hour,
	}
}

// watchEvery is how often a process looks whether others have died.
const watchEvery = 750 * time.Millisecond

// tend recovers what crashed processes left behind, and removes old data.
func (r *Instance) tend(ctx context.Context) {
	recovery := time.NewTicker(5 * time.Second)
	defer recovery.Stop()
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	upkeep := time.NewTicker(dream.SweepEvery)
	defer upkeep.Stop()
	if err := errors.Join(r.memory.Sweep(ctx), r.knowledge.Sweep(ctx), r.dreams.Sweep(ctx)); err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "sweep of memories and documents failed", "err", err)
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-recovery.C:
			err = r.engine.Recover(ctx)
		case <-watch.C:
			var some bool
			if some, err = r.db.ExpireLost(ctx); some {
				err = r.engine.Recover(ctx)
				r.jobs.Changed(nil)
			}
		case <-upkeep.C:
			err = errors.Join(r.db.Enqueue(ctx, store.Upkeep), r.memory.Sweep(ctx), r.knowledge.Sweep(ctx), r.dreams.Sweep(ctx))
		}
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "maintenance failed", "err", err)
		}
	}
}

// EnsureTokenFile returns the owner's token that the data folder keeps for commands on
// this machine. It creates one unless the one that is there still works.
func (r *Instance) EnsureTokenFile(ctx context.Context, dir string) (token string, err error) {
	path := filepath.Join(dir, TokenFile)
	if text, err := os.ReadFile(path); err == nil {
		token = strings.TrimSpace(string(text))
		if _, err := r.Accounts.Authenticate(ctx, token); err == nil {
			return token, nil
		}
	}
	owner, err := r.Accounts.Owner(ctx)
	if err != nil {
		return "", err
	}
	if token, _, err = r.Accounts.CreateToken(ctx, &account.Identity{User: owner}, "command line", 0); err != nil {
		return "", err
	}
	return token, os.WriteFile(path, []byte(token+"\n"), 0o600)
}

// Answer starts answering requests.
func (r *Instance) Answer(ctx context.Context, ln net.Listener) {
	r.Addr = ln.Addr().String()
	if r.Cfg.Get("NODEST_DATABASE_URL") == "" {
		if err := sqldb.Announce(r.Cfg.Get("NODEST_DATA"), r.Addr); err != nil {
			r.log.WarnContext(ctx, "commands do not find this server by its data folder", "err", err)
		}
	}
	r.http = &http.Server{
		Handler: r.server.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
		// A request outlives the stop signal: the reply it waits for does too.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	go func() {
		if err := r.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			r.Failed <- err
		}
	}()
}

// Stop lets running replies and jobs finish for at most grace, then ends
// everything but the database.
func (r *Instance) Stop(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := r.server.Drain(ctx, r.finish)
	if r.http != nil {
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if stop := r.http.Shutdown(last); stop != nil {
			err = errors.Join(err, r.http.Close())
		}
	}
	if errors.Is(err, context.DeadlineExceeded) { // the work that still ran is stored as interrupted
		return nil
	}
	return err
}

// finish waits for the replies and the jobs, side by side.
func (r *Instance) finish(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- r.jobs.Close(ctx) }()
	return errors.Join(r.engine.Close(ctx), <-failed)
}

// Close ends what open began. After stop nothing runs any more but the background.
func (r *Instance) Close() {
	if r.end != nil {
		r.end()
		r.Background.Wait()
	}
	if r.jobs != nil { // where stop was not called, jobs go back into the queue
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.jobs.Close(now) // reports only that they did
	}
	if r.lore != nil {
		r.lore.Close()
	}
	if r.hub != nil {
		r.hub.Close()
	}
	if r.relay != nil {
		if err := r.relay.Close(); err != nil {
			r.log.Warn("relay to other processes not closed cleanly", "err", err)
		}
	}
	if r.web != nil {
		if err := r.web.Close(); err != nil {
			r.log.Warn("sessions with search providers not closed cleanly", "err", err)
		}
	}
	if r.mcp != nil {
		if err := r.mcp.Close(); err != nil {
			r.log.Warn("sessions with MCP servers not closed cleanly", "err", err)
		}
	}
	if r.db != nil {
		if err := r.db.Close(); err != nil {
			r.log.Error("database not closed cleanly", "err", err)
		}
	}
}
