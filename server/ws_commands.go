package server

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream/outbox"
	"nodest/server/api"
)

// command is a frame of the client.
type command struct {
	ID   string          `json:"id,omitempty"`
	Cmd  string          `json:"cmd"`
	Key  string          `json:"key,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// reply is the answer to a command.
type reply struct {
	ID     string   `json:"id"`
	OK     bool     `json:"ok"`
	Data   any      `json:"data,omitempty"`
	Error  *problem `json:"error,omitempty"`
	Replay bool     `json:"replay,omitempty"`
}

// mostRefused is how many commands in a row may exceed the rate limit.
const mostRefused = 3

// frame does what a frame asks for: one command, or several in a row.
func (c *socket) frame(data []byte) {
	switch {
	case !utf8.Valid(data):
		c.out.Close(closeProtocol, "the frame is not valid UTF-8", false)
	case op.CheckLimits(data) != nil:
		c.out.Close(closeProtocol, "the frame is nested too deeply or has too many values", false)
	case !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")):
		c.object(data)
	case !c.out.Batching():
		c.out.Close(closeProtocol, "batching was not negotiated", false)
	default:
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			c.out.Close(closeProtocol, "the frame is not valid JSON", false)
			return
		}
		for _, one := range list {
			if c.out.Ended() {
				return
			}
			c.object(one)
		}
	}
}

// object reads one command. A command without an id cannot be answered and ends the connection.
func (c *socket) object(data []byte) {
	var cmd command
	err := api.Decode(data, &cmd)
	loose := struct {
		ID  string `json:"id"`
		Cmd string `json:"cmd"`
	}{cmd.ID, cmd.Cmd}
	if err != nil && json.Unmarshal(data, &loose) != nil {
		c.out.Close(closeProtocol, "the frame is not a command", false)
		return
	}
	if n := utf8.RuneCountInString(loose.ID); n > 64 || (n == 0 && loose.Cmd != "ping") {
		c.out.Close(closeProtocol, "a command needs an id of 1 to 64 characters", false)
		return
	}
	if err != nil {
		c.fail(loose.ID, loose.Cmd, err)
		return
	}
	switch {
	case cmd.Cmd == "hello" && !c.greeted.Load():
		c.greet(&cmd)
	case !c.greeted.Load():
		c.fail(cmd.ID, cmd.Cmd, fault.New(fault.BadRequest, "the first command must be hello"))
		c.out.Close(closeProtocol, "the first command must be hello", false)
	case cmd.Cmd == "hello":
		c.out.Close(closeTwice, "hello was already sent", false)
	case c.allowed(&cmd):
		c.do(&cmd)
	}
}

// allowed counts a command against the limit of the connection.
func (c *socket) allowed(cmd *command) bool {
	wait := c.rate.take(time.Now())
	if wait == 0 {
		c.refused = 0
		return true
	}
	c.fail(cmd.ID, cmd.Cmd, fault.New(fault.RateLimited, "too many commands on this connection").After(wait))
	if c.refused++; c.refused >= mostRefused {
		c.out.Close(closeRate, "too many commands", false)
	}
	return false
}

// do runs a command and sends the reply.
func (c *socket) do(cmd *command) {
	var result any
	var replayed bool
	var err error
	h := &hold{s: c.s, g: &c.s.memory, who: holder{user: c.userID()}}
	defer h.release() // when the reply is queued
	switch cmd.Cmd {
	case "ping":
		now := time.Now().UnixMilli()
		c.out.Reply(pongFrame(now))
		if cmd.ID == "" {
			return
		}
		result = map[string]int64{"now": now}
	case "gen.attach":
		c.attach(cmd)
		return
	case "subscribe", "unsubscribe":
		result, err = c.subscribe(cmd)
	case "auth.refresh":
		result, err = c.refresh(cmd)
	default:
		result, replayed, err = c.operate(cmd, h)
	}
	if err != nil {
		c.fail(cmd.ID, cmd.Cmd, err)
		return
	}
	c.out.Reply(c.s.encodeReply(&reply{ID: cmd.ID, OK: true, Data: result, Replay: replayed}))
}

// operate runs an operation of the table.
func (c *socket) operate(cmd *command, h *hold) (result any, replayed bool, err error) {
	o := c.s.ops[cmd.Cmd]
	switch {
	case o == nil:
		return nil, false, fault.New(fault.UnknownCommand, "no such command")
	case o.Key && cmd.Key == "":
		return nil, false, fault.InvalidField("key", "required", "required: this command needs an idempotency key")
	}
	if err := h.takeAnswer(c.s.ctx, o); err != nil {
		return nil, false, err
	}
	call := c.call(cmd.Key)
	call.Room = h.room(c.s.ctx)
	result, err = c.s.perform(c.s.ctx, c.s.ctx, o, call, cmd.Data)
	return result, call.Replayed, err
}

func (c *socket) call(key string) *op.Call {
	return &op.Call{UserID: c.userID(), Device: c.device, Key: key}
}

func (c *socket) fail(id, what string, err error) {
	c.out.Reply(c.failure(id, what, err))
}

func (c *socket) failure(id, what string, err error) []byte {
	return c.s.encodeReply(&reply{ID: id, Error: c.s.problemOf(op.NewID(), what, err)})
}

func (s *Server) encodeReply(r *reply) []byte {
	b, err := json.Marshal(r)
	if err != nil { // an answer that is not JSON is a bug of ours
		b, _ = json.Marshal(&reply{ID: r.ID, Error: s.problemOf(op.NewID(), "encoding a reply failed", err)})
	}
	return b
}

func pongFrame(now int64) []byte {
	b, _ := json.Marshal(struct {
		Ev  string `json:"ev"`
		Now int64  `json:"now"`
	}{"pong", now})
	return b
}

type subscribeData struct {
	ConversationIDs []string `json:"conversationIds"`
}

// subscribe names the conversations whose deltas are wanted. A connection that
// named none gets all; from the first subscribe on only the named ones.
func (c *socket) subscribe(cmd *command) (any, error) {
	var in subscribeData
	if err := api.Decode(api.OrObject(cmd.Data), &in); err != nil {
		return nil, err
	}
	if len(in.ConversationIDs) == 0 {
		return nil, fault.InvalidField("conversationIds", "required", "required: a list of conversation ids")
	}
	named, ok := c.out.Subscribe(in.ConversationIDs, cmd.Cmd == "subscribe")
	if !ok {
		return nil, fault.InvalidField("conversationIds", "range", "must have at most %d conversations", outbox.MaxSubscribed)
	}
	return subscribeData{api.OrEmpty(named)}, nil
}

type refreshData struct {
	Token string `json:"token"`
}

// refresh goes on with another token of the same user.
func (c *socket) refresh(cmd *command) (any, error) {
	var in refreshData
	if err := api.Decode(api.OrObject(cmd.Data), &in); err != nil {
		return nil, err
	}
	who, err := c.s.Accounts.Authenticate(c.s.ctx, in.Token)
	if err != nil {
		return nil, err
	}
	if who.User.ID != c.userID() {
		return nil, fault.New(fault.Forbidden, "the token belongs to another user")
	}
	c.mu.Lock()
	c.who, c.expiring = who, false
	c.mu.Unlock()
	answer := map[string]any{}
	if who.ExpiresAt != nil {
		answer["expiresAt"] = op.Time(*who.ExpiresAt)
	}
	return answer, nil
}

// attach answers with the text of a generation from an offset, as reply and as one
// delta; the live deltas follow.
func (c *socket) attach(cmd *command) {
	var in api.AttachData
	if err := api.Decode(api.OrObject(cmd.Data), &in); err != nil {
		c.fail(cmd.ID, cmd.Cmd, err)
		return
	}
	c.out.Attach(in.GenerationID, func() ([]byte, *outbox.Text) {
		result, err := c.s.perform(c.s.ctx, c.s.ctx, c.s.ops["gen.attach"], c.call(""), cmd.Data)
		if err != nil {
			return c.failure(cmd.ID, cmd.Cmd, err), nil
		}
		return c.s.encodeReply(&reply{ID: cmd.ID, OK: true, Data: result}), attachedText(result.(*api.Attached).Found)
	})
}
