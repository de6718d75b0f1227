package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var byteOrderMark = []byte("\uFEFF")

// lenient makes an answer one that the SDK can read: without a byte-order mark, labelled by its
// form, and without members that have an odd type. The SDK ends the session because of each.
func lenient(resp *http.Response) {
	body := bufio.NewReader(resp.Body)
	if head, _ := body.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
		_, _ = body.Discard(len(head)) // they are in the buffer
	}
	first, err := body.Peek(1)
	if err != nil { // no body; who reads it is told the error
		resp.Body = rest{body, resp.Body}
		return
	}
	kind := "text/event-stream"
	if first[0] == '{' || first[0] == '[' {
		kind = "application/json"
	}
	resp.Header.Set("Content-Type", kind)
	resp.ContentLength = -1
	resp.Body = rest{&repairing{in: body, lines: kind != "application/json"}, resp.Body}
}

type rest struct {
	io.Reader
	io.Closer
}

// repairing repairs the messages of an answer: the answer itself, or what stands in the data
// lines of an event stream. Events in several data lines are passed on as they are.
type repairing struct {
	in    *bufio.Reader
	lines bool
	out   []byte
	err   error
}

func (r *repairing) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		if r.lines {
			r.out, r.err = r.line()
			if data, ok := bytes.CutPrefix(r.out, []byte("data:")); ok {
				text := bytes.TrimRight(data, "\r\n")
				r.out = append(append([]byte("data:"), repaired(text)...), data[len(text):]...)
			}
			continue
		}
		if r.out, r.err = io.ReadAll(r.in); r.err == nil {
			r.out, r.err = repaired(r.out), io.EOF
		}
	}
	n := copy(p, r.out)
	if r.out = r.out[n:]; len(r.out) == 0 && n == 0 {
		return 0, r.err
	}
	return n, nil
}

// line reads up to the end of a line, which may be CR, and nothing behind it.
func (r *repairing) line() (line []byte, err error) {
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return line, err
		}
		if line = append(line, b); b == '\n' || b == '\r' {
			return line, nil
		}
	}
}

// repaired is a message without members of its result that the SDK cannot read. Any other
// message is returned as it is.
func repaired(message []byte) []byte {
	var parts, result map[string]json.RawMessage
	if json.Unmarshal(message, &parts) != nil || json.Unmarshal(parts["result"], &result) != nil {
		return message
	}
	var fits func(json.RawMessage) bool
	switch {
	case result["tools"] != nil:
		fits = readable[mcp.ListToolsResult]
		result["tools"] = each(result["tools"], tool)
	case result["content"] != nil:
		fits = readable[mcp.CallToolResult]
		result["content"] = each(result["content"], block)
	}
	if fits == nil || fits(parts["result"]) {
		return message
	}
	parts["result"] = fitting(encode(result), fits)
	return encode(parts)
}

func readable[T any](doc json.RawMessage) bool { return json.Unmarshal(doc, new(T)) == nil }

// fitting is an object without the members because of which it does not fit, nil if it is no object.
// always has members that others are read by.
func fitting(doc json.RawMessage, fits func(json.RawMessage) bool, always ...string) json.RawMessage {
	if fits(doc) {
		return doc
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return nil
	}
	for name := range members {
		alone := map[string]json.RawMessage{name: members[name]}
		for _, a := range always {
			alone[a] = members[a]
		}
		if !fits(encode(alone)) {
			delete(members, name)
		}
	}
	return encode(members)
}

// tool is a tool that a server lists. Nobody can call one without a name.
func tool(doc json.RawMessage) json.RawMessage {
	doc = fitting(doc, readable[mcp.Tool])
	var named mcp.Tool
	if json.Unmarshal(doc, &named) != nil || named.Name == "" {
		return nil
	}
	return doc
}

// block is a block of a result. A text by itself is one of text. One of a kind that nobody knows is
// named.
func block(doc json.RawMessage) json.RawMessage {
	var text string
	if doc[0] == '"' && json.Unmarshal(doc, &text) == nil {
		return encode(map[string]string{"type": "text", "text": text})
	}
	var kind struct{ Type string }
	if json.Unmarshal(doc, &kind) == nil && !isBlock(encode(map[string]string{"type": kind.Type})) {
		return encode(map[string]string{"type": "text", "text": "[" + kind.Type + "]"})
	}
	return fitting(doc, isBlock, "type")
}

func isBlock(doc json.RawMessage) bool {
	return readable[mcp.CallToolResult](encode(map[string][]json.RawMessage{"content": {doc}}))
}

// each is a list with what f makes of its items, without those of which it makes nothing. What is no
// list counts as one item.
func each(doc json.RawMessage, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(doc, &list) != nil {
		list = []json.RawMessage{doc}
	}
	made := []json.RawMessage{}
	for _, item := range list {
		if item = f(item); item != nil {
			made = append(made, item)
		}
	}
	return encode(made)
}

// encode is the JSON of parts of JSON, which cannot fail.
func encode(v any) json.RawMessage {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return doc
}
