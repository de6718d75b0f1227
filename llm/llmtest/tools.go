package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	pb "cloud.google.com/go/ai/generativelanguage/apiv1beta/generativelanguagepb"
	"google.golang.org/protobuf/encoding/protojson"

	"nodest/llm"
)

// chatMessage is a message of a chat completion. The last members are those that a server
// added to its own message and gets back.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"` // a string, or parts; of a message with calls also null
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		ExtraContent struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`

	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"` // OpenRouter only: Groq refuses it
}

func (m chatMessage) read() (Message, error) {
	read := Message{Role: m.Role}
	if string(m.Content) != "null" || len(m.ToolCalls) == 0 {
		var err error
		if read, err = readContent(m.Role, m.Content); err != nil {
			return read, err
		}
	}
	if m.Role == "tool" {
		read.Result = &llm.ToolResult{CallID: m.ToolCallID, Text: read.Text}
	}
	if len(m.ToolCalls) > 0 && m.Role != "assistant" {
		return read, fmt.Errorf("calls of the role %q", m.Role)
	}
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Type != "function" || c.Function.Name == "" {
			return read, errors.New("a call without id, type or name")
		}
		read.Calls = append(read.Calls, Call{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments, Signature: c.ExtraContent.Google.Signature})
	}
	return read, nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)

func checkTools(in chatRequest) error {
	for _, t := range in.Tools {
		if t.Type != "function" || !toolName.MatchString(t.Function.Name) {
			return fmt.Errorf("a tool of the type %q with the name %q", t.Type, t.Function.Name)
		}
		var schema struct{ Type string }
		if json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object" {
			return fmt.Errorf("the parameters of %s are no object", t.Function.Name)
		}
	}
	if in.ResponseFormat != nil && len(in.Tools) > 0 { // Groq says so
		return errors.New("json mode cannot be combined with tool/function calling")
	}
	if in.ToolChoice != "" && len(in.Tools) == 0 {
		return errors.New("tool_choice without tools")
	}
	if !slices.Contains([]string{"", "auto", "none"}, in.ToolChoice) {
		return fmt.Errorf("tool_choice %q", in.ToolChoice)
	}
	return nil
}

// checkOrder wants each call to be answered once, before anything else is said.
func checkOrder(messages []Message) error {
	var open []string
	for _, m := range messages {
		if m.Result != nil {
			at := slices.Index(open, m.Result.CallID)
			if at < 0 {
				return fmt.Errorf("a result for the call %q, which was not made", m.Result.CallID)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("the calls %q are not answered", open)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the calls %q are not answered", open)
	}
	return nil
}

// call sends a call, in pieces if it has several.
func (s *openAIStream) call(c Call) {
	send := func(id, name, args string) {
		function := map[string]any{"arguments": args}
		call := map[string]any{"function": function}
		switch s.r.Index {
		case Counted:
			call["index"] = s.calls
		case AllZero:
			call["index"] = 0
		}
		if name != "" {
			function["name"], call["type"] = name, "function"
		}
		if id != "" {
			call["id"] = id
		}
		if name != "" && c.Signature != "" {
			call["extra_content"] = map[string]any{"google": map[string]any{"thought_signature": c.Signature}}
		}
		s.data(s.chunk(map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{call}}, "finish_reason": nil}))
	}
	if c.Pieces == 0 {
		send(c.ID, c.Name, c.Args)
	} else {
		send(c.ID, c.Name, "")
		for piece := range slices.Chunk([]rune(c.Args), max(1, len(c.Args)/c.Pieces)) {
			send("", "", string(piece))
		}
	}
	s.calls++
}

// withoutThoughts takes the signatures of thoughts and the ids of calls out of a turn.
func withoutThoughts(content map[string]any) {
	parts, _ := content["parts"].([]any)
	var kept []any
	for _, p := range parts {
		part, _ := p.(map[string]any)
		_, signed := part["thoughtSignature"].(string)
		delete(part, "thoughtSignature")
		delete(part, "thought")
		for _, member := range []string{"functionCall", "functionResponse"} {
			if inner, ok := part[member].(map[string]any); ok {
				delete(inner, "id")
			}
		}
		if len(part) > 0 || !signed {
			kept = append(kept, part)
		}
	}
	content["parts"] = kept
}

// addNewMembers adds what withoutThoughts has taken out of body.
func addNewMembers(messages []Message, body []byte) error {
	var in struct {
		Contents []struct {
			Parts []struct {
				Signature    []byte `json:"thoughtSignature"`
				FunctionCall *struct{ ID string }
				Response     *struct{ ID string } `json:"functionResponse"`
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	var calls, results []int
	for i, m := range messages {
		for range m.Calls {
			calls = append(calls, i)
		}
		if m.Result != nil {
			results = append(results, i)
		}
	}
	done := map[int]int{}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil && len(calls) > 0:
				at := calls[0]
				call := &messages[at].Calls[done[at]]
				call.ID, call.Signature = p.FunctionCall.ID, string(p.Signature)
				calls = calls[1:]
				done[at]++
			case p.Response != nil && len(results) > 0:
				messages[results[0]].Result.CallID, results = p.Response.ID, results[1:]
			}
		}
	}
	return nil
}

func geminiTools(in *pb.GenerateContentRequest) (tools []llm.Tool, noCalls bool) {
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			parameters, _ := protojson.Marshal(f.Parameters) // it was decoded
			tools = append(tools, llm.Tool{Name: f.Name, Description: f.Description, Parameters: parameters})
		}
	}
	return tools, in.ToolConfig.GetFunctionCallingConfig().GetMode() == pb.FunctionCallingConfig_NONE
}

func checkGeminiTools(in *pb.GenerateContentRequest) error {
	if in.GenerationConfig.GetResponseMimeType() != "" && len(in.Tools) > 0 {
		return errors.New("function calling with a response mime type is unsupported")
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			if !toolName.MatchString(f.Name) {
				return fmt.Errorf("a function with the name %q", f.Name)
			}
			if err := checkSchema(f.Parameters); err != nil {
				return fmt.Errorf("the parameters of %s: %w", f.Name, err)
			}
		}
	}
	return checkGeminiTurns(in)
}

// checkGeminiTurns checks that calls and their answers follow one another.
func checkGeminiTurns(in *pb.GenerateContentRequest) error {
	var open []string // functions called in the turn before
	before := "user"
	for i, c := range in.Contents {
		var called, answered []string
		for _, p := range c.Parts {
			if f := p.GetFunctionCall(); f != nil {
				called = append(called, f.Name)
			}
			if f := p.GetFunctionResponse(); f != nil {
				answered = append(answered, f.Name)
			}
		}
		switch {
		case !slices.Equal(open, answered):
			return fmt.Errorf("contents[%d] answers %q, called were %q", i, answered, open)
		case called != nil && (c.Role != "model" || before != "user"):
			return fmt.Errorf("contents[%d]: a function call turn must come immediately after a user turn or after a function response turn", i)
		case answered != nil && c.Role != "user":
			return fmt.Errorf("contents[%d]: a function response of the role %q", i, c.Role)
		}
		open, before = called, c.Role
	}
	if open != nil {
		return fmt.Errorf("the calls %q are not answered", open)
	}
	return nil
}

func checkSchema(s *pb.Schema) error {
	switch s.GetType() {
	case pb.Type_TYPE_UNSPECIFIED:
		if s != nil {
			return errors.New("a schema without type")
		}
	case pb.Type_OBJECT:
		if len(s.Properties) == 0 {
			return errors.New("an object without properties")
		}
	case pb.Type_ARRAY:
		if s.Items == nil {
			return errors.New("an array without items")
		}
		return checkSchema(s.Items)
	}
	for _, p := range s.GetProperties() {
		if err := checkSchema(p); err != nil {
			return err
		}
	}
	return nil
}

func geminiCall(c Call) map[string]any {
	var args map[string]any
	if err := json.NewDecoder(bytes.NewReader([]byte(c.Args))).Decode(&args); err != nil && strings.TrimSpace(c.Args) != "" {
		panic(err) // Gemini's arguments are always an object
	}
	call := map[string]any{"name": c.Name, "args": args}
	if c.ID != "" {
		call["id"] = c.ID
	}
	part := map[string]any{"functionCall": call}
	if c.Signature != "" {
		part["thoughtSignature"] = base64.StdEncoding.EncodeToString([]byte(c.Signature))
	}
	return part
}
