package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/stream/outbox"
	"nodest/server/api"
)

type helloData struct {
	Protocol  int              `json:"protocol,omitempty"`
	Client    string           `json:"client,omitempty"`
	DeviceID  string           `json:"deviceId,omitempty"`
	Token     string           `json:"token,omitempty"`
	Resume    *stream.Position `json:"resume,omitempty"`
	Subscribe []string         `json:"subscribe,omitempty"` // nil = deltas of all conversations
	Batch     bool             `json:"batch,omitempty"`
	Want      []string         `json:"want,omitempty"` // nil = all classes
	Quiet     bool             `json:"quiet,omitempty"`
	DeltaMs   int              `json:"deltaMs,omitempty"`
	TimeZone  string           `json:"timeZone,omitempty"` // zone of the device, an IANA name; an unknown one is ignored
}

type welcome struct {
	Session  string       `json:"session"`
	User     string       `json:"user"`
	Server   string       `json:"server"`
	Protocol int          `json:"protocol"`
	Epoch    string       `json:"epoch"`
	Seq      int64        `json:"seq"`
	Resumed  bool         `json:"resumed"`
	Reason   string       `json:"reason,omitempty"`
	PingS    float64      `json:"pingS"`
	DeltaMs  int64        `json:"deltaMs"`
	Limits   limits       `json:"limits"`
	Now      int64        `json:"now"`
	Active   []activeText `json:"active"`
}

type limits struct {
	FrameBytes   int64 `json:"frameBytes"`
	TextChars    int   `json:"textChars"`
	CmdsPer10s   int   `json:"cmdsPer10s"`
	GensParallel int   `json:"gensParallel"`
	QueueBytes   int   `json:"queueBytes"`
}

// activeText is a running generation and how long its text is, in code points.
type activeText struct {
	GenerationID   string `json:"generationId"`
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId,omitempty"`
	Off            int    `json:"off"`
}

// mostDeltaMs is the maximum of hello.deltaMs.
const mostDeltaMs = 5000

// greet answers hello; an invalid hello ends the connection.
func (c *socket) greet(cmd *command) {
	var in helloData
	if err := api.Decode(api.OrObject(cmd.Data), &in); err != nil {
		c.refuse(cmd, err, closeProtocol, "invalid hello")
		return
	}
	if in.Protocol != 0 && in.Protocol != 1 {
		c.refuse(cmd, fault.InvalidField("protocol", "range", "must be 1, the only version this server supports"), closeVersion, "protocol version not supported")
		return
	}
	if err := in.validate(); err != nil {
		c.refuse(cmd, err, closeProtocol, "invalid hello")
		return
	}
	ctx, cancel := context.WithTimeout(c.s.ctx, c.s.opts.HelloWithin)
	defer cancel()
	if c.identity() == nil {
		who, err := c.s.Accounts.Authenticate(ctx, in.Token)
		if err != nil {
			c.refuse(cmd, err, closeAuth, "sign in first")
			return
		}
		c.mu.Lock()
		c.who = who
		c.mu.Unlock()
	}
	// From here on a revocation closes the connection; an earlier one, since the token was
	// read, is detected now.
	if err := c.s.Accounts.Check(ctx, c.identity()); err != nil {
		c.refuse(cmd, err, closeAuth, "sign in first")
		return
	}
	if err := c.welcome(ctx, cmd, &in); err != nil {
		c.refuse(cmd, err, closeInternal, "hello failed")
	}
}

func (c *socket) refuse(cmd *command, err error, code int, reason string) {
	c.fail(cmd.ID, cmd.Cmd, err)
	c.out.Close(code, reason, false)
}

func (in *helloData) validate() error {
	var c op.Checks
	c.That(in.DeviceID == "" || op.IsClientID(in.DeviceID), "deviceId", "format", "must have at most 64 characters of A-Z a-z 0-9 _ -")
	op.Between(&c, "deltaMs", &in.DeltaMs, 0, mostDeltaMs)
	c.That(in.Resume == nil || in.Resume.Seq >= 0, "resume.seq", "range", "must not be negative")
	c.That(len(in.Subscribe) <= outbox.MaxSubscribed, "subscribe", "range", "must have at most %d conversations", outbox.MaxSubscribed)
	unknown := func(class string) bool { return !slices.Contains(outbox.Classes, class) }
	c.That(!slices.ContainsFunc(in.Want, unknown), "want", "range", "must contain only these classes: %s", strings.Join(outbox.Classes, ", "))
	return c.Err()
}

// welcome joins the user's stream and says where it stands.
func (c *socket) welcome(ctx context.Context, cmd *command, in *helloData) error {
	c.device = in.DeviceID
	c.device = cmp.Or(c.device, "s-"+c.id)
	if in.TimeZone != "" {
		if _, err := c.s.Characters.DeviceZone(ctx, c.userID(), in.TimeZone); err != nil && !fault.Is(err, fault.Invalid) {
			return err
		}
	}
	c.s.sockets.enter(c)
	c.ws.SetReadLimit(c.s.opts.FrameBytes)
	c.out.Configure(outbox.Settings{
		Filter: outbox.Filter{Quiet: in.Quiet, Chats: setOf(in.Subscribe), Want: setOf(in.Want)},
		Batch:  in.Batch, DeltaEvery: time.Duration(in.DeltaMs) * time.Millisecond,
	})
	r, err := c.s.join(ctx, c, in.Resume)
	if err != nil {
		return err
	}
	c.leave = r.leave
	active, err := c.s.active(ctx, c.userID())
	if err != nil {
		return err
	}
	parallel := c.s.opts.Generations
	if own := c.identity().User.Limits.Generations; own > 0 {
		parallel = own
	}
	w := welcome{
		Session: c.id, User: c.userID(), Server: "nodest/" + c.s.opts.Version, Protocol: 1,
		Epoch: r.at.Epoch, Seq: r.at.Seq, Resumed: r.reason == "", Reason: r.reason,
		PingS: pingEvery.Seconds(), DeltaMs: int64(in.DeltaMs), Now: time.Now().UnixMilli(), Active: active,
		Limits: limits{
			c.s.opts.FrameBytes, chat.MaxText, c.s.opts.CommandsPer10s, parallel, c.s.opts.QueueBytes,
		},
	}
	texts := make([]outbox.Text, len(active))
	for i, a := range active {
		texts[i] = outbox.Text{GenerationID: a.GenerationID, ConversationID: a.ConversationID, MessageID: a.MessageID}
	}
	c.greeted.Store(true)
	c.alive()
	c.out.Begin(c.s.encodeReply(&reply{ID: cmd.ID, OK: true, Data: w}), r.from, r.at.Seq, texts...)
	return nil
}

func setOf(list []string) map[string]bool {
	if list == nil {
		return nil
	}
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[v] = true
	}
	return set
}

// resumption is the position of a connection in the user's stream.
type resumption struct {
	at     stream.Position // newest
	from   int64           // events after this one follow
	reason string          // why the client must reload: "epoch", "too_old" or "new"; "" = resumed
	leave  func()
}

// join adds the connection to the user's stream. Where the client's own
// position cannot be gone on from, it continues at the newest.
func (s *Server) join(ctx context.Context, c *socket, resume *stream.Position) (*resumption, error) {
	at, oldest, leave, err := s.Hub.Join(ctx, c.userID(), c.out)
	if err != nil {
		return nil, err
	}
	if resume != nil && resume.Epoch == at.Epoch && resume.Seq > at.Seq {
		// Another process wrote what this one has not seen yet.
		newest, _, err := s.Hub.Position(ctx, c.userID())
		if err != nil {
			leave()
			return nil, err
		}
		if newest.Seq >= resume.Seq {
			at = newest
		}
	}
	r := &resumption{at: at, from: at.Seq, leave: leave}
	if r.reason = s.reload(at, oldest, resume); r.reason == "" {
		r.from = resume.Seq
	}
	return r, nil
}

// reload says why a client must reload, or "" if it can go on from its position.
func (s *Server) reload(at stream.Position, oldest int64, resume *stream.Position) string {
	switch {
	case resume == nil || resume.Epoch == "":
		return "new"
	case resume.Epoch != at.Epoch || resume.Seq > at.Seq:
		return "epoch"
	case resume.Seq+1 < oldest || at.Seq-resume.Seq > s.opts.ReplayMax:
		return "too_old"
	}
	return ""
}

func (s *Server) active(ctx context.Context, userID string) ([]activeText, error) {
	running, err := s.Engine.Active(ctx, userID)
	if err != nil {
		return nil, err
	}
	list := make([]activeText, len(running))
	for i, a := range running {
		list[i] = activeText{a.Generation.ID, a.Generation.ConversationID, a.Generation.MessageID, a.Off}
	}
	return list, nil
}
